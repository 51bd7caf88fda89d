"""Feature vectors on one scale, as a network without weights to learn."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count


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
