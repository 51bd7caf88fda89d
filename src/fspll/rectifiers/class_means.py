"""Class means under uncertain labels: shrunk to the task's mean, each sample left out in turn.

Shapes: B tasks, n samples, l classes, m features, w candidates of the largest set.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fspll.rectifiers.candidate_table import CandidateTable
from fspll.rectifiers.class_model import (
    FIRST_SHRINKAGE,
    LEAST_MASS,
    SHRINKAGE_RANGE,
    SIZE_WEIGHT,
)


class ClassMeans:
    """Class means of a batch of tasks, shrunk to the task's mean, and how samples fit them."""

    def __init__(self, embeddings: Tensor, table: CandidateTable) -> None:
        self.e, self.table = embeddings, table
        self.norms = embeddings.square().sum(dim=-1, keepdim=True)  # (B, n, 1)
        n = embeddings.shape[-2]
        self.total = self.norms.sum(dim=(-1, -2), keepdim=True) / max(1, n - 1)  # (B, 1, 1)
        self.floor = torch.finfo(embeddings.dtype).eps * self.total + 1e-30
        self.shrinkage = torch.full_like(self.total, FIRST_SHRINKAGE)
        self.spread = self.total
        # Products between samples serve every round; with many samples, class means are cheaper.
        few = n <= 2 * embeddings.shape[-1]
        self.products = embeddings @ embeddings.transpose(-1, -2) if few else None

    def update(self, confidence: Tensor) -> None:
        """Compute the class means by confidences (B, n, w)."""
        self.confidence = self.table.widen(confidence)
        self.mass = self.confidence.sum(dim=-2, keepdim=True)  # (B, 1, l)
        self.kappa = self.shrinkage

    def means(self) -> Tensor:
        """Return the class means, (B, l, m)."""
        weight = (self.mass + self.kappa).transpose(-1, -2)
        return (self.confidence.transpose(-1, -2) @ self.e) / weight

    def candidate_fit(self, confidence: Tensor) -> Tensor:
        """Fit of samples to their candidates, each left out in turn; also settles the spread."""
        square = self.table.narrow(self._squares())
        fit, spread = self._left_out(square, confidence, self.table.narrow(self.mass))
        between = (self.total - spread).clamp_min(1e-3 * self.total + 1e-30)
        self.shrinkage = (spread / between).clamp(*SHRINKAGE_RANGE)
        return fit

    def class_fit(self) -> Tensor:
        """Fit of samples to all classes, (B, n, l); minus infinity where a class has no sample."""
        fit, _ = self._left_out(self._squares(), self.confidence, self.mass)
        return fit.masked_fill(~self.table.present.unsqueeze(-2), -torch.inf)

    def has_support(self) -> Tensor:
        """Tell which classes new samples may be of, (B, l).

        The mean of a class without samples is the task's: it would win all that fits badly.
        """
        mass = self.mass.squeeze(-2)
        # The factor lets rounding decide nothing where masses are even.
        return mass > 0.99 * mass.amax(dim=-1, keepdim=True).clamp(max=LEAST_MASS)

    def _squares(self) -> Tensor:
        """Squared distances of the samples to the means, (B, n, l)."""
        if self.products is not None:
            weight = self.mass + self.kappa
            cross = (self.products @ self.confidence).div_(weight)
            own = (self.confidence * cross).sum(dim=-2, keepdim=True) / weight
        else:
            means = self.means()
            cross = self.e @ means.transpose(-1, -2)
            own = means.square().sum(dim=-1).unsqueeze(-2)
        return cross.mul_(-2).add_(self.norms).add_(own).clamp_min_(0)

    def _left_out(self, square: Tensor, confidence: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        """Predictive fit without the sample itself, and the spread that follows.

        With mean p = sum_i Q_i e_i / (M + kappa), leaving i out moves it straight away from e_i:
        |e_i - p without i| = |e_i - p| (M + kappa) / (M - Q_i + kappa).
        """
        kappa = self.kappa
        rest = (mass - confidence).clamp_min(0) + kappa
        inflation = 1 + 1 / rest
        square = square * ((mass + kappa) / rest).square() / inflation
        spread = (confidence * square).sum(dim=(-1, -2), keepdim=True) / confidence.shape[-2]
        self.spread = spread.maximum(self.floor)
        return -(square / self.spread + SIZE_WEIGHT * inflation.log()), self.spread
