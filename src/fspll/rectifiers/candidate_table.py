"""Candidate sets side by side: (B, n, w) for sets of at most w labels, instead of (B, n, l).

Shapes: B tasks, n samples, l classes, w candidates of the largest set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_BALANCE_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """The candidates of every sample, one after the other."""

    label: Tensor  # (B, n, w) int64
    real: Tensor  # (B, n, w) bool; False where a set is smaller than w
    ragged: bool  # whether any set is smaller than w
    present: Tensor  # (B, l) bool; classes that are somebody's candidate
    shape: torch.Size  # (B, n, l)

    @classmethod
    def of(cls, candidates: Tensor) -> CandidateTable:
        """Read a bool mask (B, n, l)."""
        sizes = candidates.sum(dim=-1)
        widest = int(sizes.max())
        order = candidates.to(torch.int8).topk(widest, dim=-1)
        return cls(
            label=order.indices,
            real=order.values > 0,
            ragged=int(sizes.min()) < widest,
            present=candidates.any(dim=-2),
            shape=candidates.shape,
        )

    def narrow(self, dense: Tensor) -> Tensor:
        """Return the candidates' entries of (B, n, l) or (B, 1, l) values."""
        return dense.expand(self.shape).gather(-1, self.label)

    def widen(self, confidence: Tensor) -> Tensor:
        """Return (B, n, l) confidences, zero off the candidates."""
        return confidence.new_zeros(self.shape).scatter_add_(-1, self.label, confidence)

    def softmax(self, score: Tensor) -> Tensor:
        """Return (B, n, w) confidences, zero where there is no candidate."""
        if self.ragged:
            score = score.masked_fill(~self.real, -torch.inf)
        return score.softmax(dim=-1)

    def balanced(self, score: Tensor, strength: float) -> Tensor:
        """Softmax whose classes have about the same total, by a few Sinkhorn rounds.

        At ``strength`` 0 it is a plain softmax.
        """
        for _ in range(_BALANCE_ROUNDS if strength > 0 else 0):
            mass = self.widen(self.softmax(score)).sum(dim=-2, keepdim=True)
            score = score - self.narrow(0.5 * strength * mass.clamp_min(1e-6).log())
        return self.softmax(score)
