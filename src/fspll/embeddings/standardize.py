"""Feature vectors on one scale, as an embedding that can be saved with a classifier.

Shapes: n samples, m features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll.embeddings.encoder import Encoder


class Standardize(nn.Module):
    """Take the mean off every feature and divide it by its deviation.

    Parameters
    ----------
    n_features : int
        m. Until they are set, means are 0 and scales 1.
    """

    architecture = "standardize"
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
        """Return (n, m) features of mean 0 and deviation 1, were they those it was made from."""
        return ((features.to(self.mean.dtype) - self.mean) / self.scale).to(features.dtype)


def standardizer(features: np.ndarray) -> Encoder:
    """Return an embedding that brings features like these to mean 0 and deviation 1.

    A feature that never changes is left at its distance from the mean.

    Parameters
    ----------
    features : array of shape (n, m)

    Examples
    --------
    >>> standardizer(np.array([[1.0, 5.0], [3.0, 5.0]])).encode(np.array([[5.0, 5.0]])).tolist()
    [[3.0, 0.0]]
    """
    values = np.asarray(features, dtype=np.float64)
    network = Standardize(values.shape[1])
    deviation = values.std(axis=0)
    # What rounding leaves of a constant is no deviation.
    constant = deviation <= 1e-12 * np.abs(values).max(axis=0)
    network.mean.copy_(torch.from_numpy(values.mean(axis=0)))
    network.scale.copy_(torch.from_numpy(np.where(constant, 1.0, deviation)))
    return Encoder(network.eval(), None, Standardize.architecture, device="cpu")
