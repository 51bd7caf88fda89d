"""Feature vectors on one scale, as an encoder that can be saved with a classifier.

Shapes: n samples, m features.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll.embeddings.encoders.network import NetworkEncoder


class Standardize(nn.Module):
    """Take the mean off every feature and divide it by its standard deviation.

    Parameters
    ----------
    n_features : int
        m. Until they are set, means are 0 and scales 1.
    """

    architecture: ClassVar[str] = "standardize"
    modality: ClassVar[str] = "vector"
    mean: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        check_count(f"n_features of {self.architecture}", n_features, 1)
        self.n_features = n_features
        self.register_buffer("mean", torch.zeros(n_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(n_features, dtype=torch.float64))

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this network again."""
        return {"n_features": self.n_features}

    def forward(self, features: Tensor) -> Tensor:
        """Return (n, m) features, of mean 0 and standard deviation 1 on those it was made from."""
        return ((features.to(self.mean.dtype) - self.mean) / self.scale).to(features.dtype)


def standardizer(features: np.ndarray) -> NetworkEncoder:
    """Return an encoder that brings features like these to mean 0 and standard deviation 1.

    A feature that never changes is left at its distance from the mean.

    Parameters
    ----------
    features : array of shape (n, m)

    Examples
    --------
    >>> standardizer(np.array([[1.0, 5.0], [3.0, 5.0]])).encode(np.array([[5.0, 5.0]])).tolist()
    [[3.0, 0.0]]
    """
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(np.asarray(features, dtype=np.float64))
    network = Standardize(scaler.n_features_in_)
    network.mean.copy_(torch.from_numpy(scaler.mean_))
    network.scale.copy_(torch.from_numpy(scaler.scale_))
    return NetworkEncoder(network.eval(), None, Standardize.architecture, device="cpu")
