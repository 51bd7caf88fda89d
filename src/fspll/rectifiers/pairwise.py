"""The rectification loop on pairs of samples that share a candidate: exact and fast.

Two facts make a batch of few-shot tasks cheap.

1. *The features are needed once.* For weights w that sum to one and p = sum_j w_j e_j,

       |e_i - p|^2 = sum_j w_j D_ij - 1/2 sum_jk w_j w_k D_jk,     D_ij = |e_i - e_j|^2,

   so the distance of a sample to a prototype needs only squared distances between samples.
2. *Candidate sets are small.* The weight of sample j in class c is zero unless c is a candidate of
   j. With an **entry** for each (sample, candidate), a round touches only **pairs** of entries of
   the same class: some thousands per task, whatever the number of features.

Both the distances of Eq. (1) and (2) and the neighborhood sums of Eq. (3) are then products of one
sparse matrix pattern (entry x entry, a block a class) with a vector, over all tasks of the batch at
once. Shapes: B tasks, n samples, l classes, E entries, in order of (task, class, sample).
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fspll.rectifiers.neighbors import (
    CANCELED,
    neighbors,
    restore_canceled,
    squared_distances,
    squared_norms,
)

_PAIRS_AT_ONCE = 1 << 20  # pairs in work at a time: small enough for the processor's caches
_MOST_PAIRS = 1 << 24  # pairs of one task, beyond which memory (some 500 MB) forbids this way


class Round(NamedTuple):
    """Confidence after a round, as ``scaled * exp(log_scale)``; a class has one scale.

    Eq. (1) cancels the scale of a class, so prototypes come from ``scaled``, which cannot underflow
    however large the features are: its largest weight of a class is about one.
    """

    scaled: Tensor  # (B, n, l), zero off the candidates
    log_scale: Tensor  # (B, 1, l)

    @property
    def confidence(self) -> Tensor:
        """Q of the paper, of shape (B, n, l)."""
        return self.scaled * self.log_scale.exp()


def count_pairs(candidates: Tensor) -> Tensor:
    """Pairs of entries of the same class in each task, of shape (B,)."""
    return candidates.to(torch.float32).sum(dim=-2).square().sum(dim=-1)


def is_cheaper(candidates: Tensor, n_features: int) -> bool:
    """Tell whether pairs are the cheaper way, compared with dense products over all classes.

    A dense product runs about ten times more multiplications per second than a sparse one.
    """
    if candidates.device.type == "mps":  # no sparse products there
        return False
    n, n_classes = candidates.shape[-2:]
    pairs = float(count_pairs(candidates).max())
    return pairs <= _MOST_PAIRS and 10 * pairs <= n * n_classes * (n_features + n)


@dataclass(frozen=True, eq=False)
class _Pattern:
    """Entries of a batch and the pairs of entries that share a class."""

    cell: Tensor  # (E,) index of the entry in the flattened (B, n, l)
    sample: Tensor  # (E,) index in the flattened (B, n)
    group: Tensor  # (E,) index of the class in the flattened (B, l)
    group_sizes: Tensor  # (B * l,)
    pair_starts: Tensor  # (E + 1,) int32, where each entry's pairs begin
    pair_other: Tensor  # (pairs,) int32, the other entry
    pair_cell: Tensor  # (pairs,) index of the pair of samples in the flattened (B, n, n)
    slot: Tensor  # (E,) index of the entry in a flattened (B * n, widest set) table
    widest: int

    @classmethod
    def of(cls, candidates: Tensor) -> _Pattern:
        batch, n, n_classes = candidates.shape
        cell = candidates.flatten().nonzero().squeeze(1)  # by sample
        sample = cell // n_classes
        sizes = torch.bincount(sample, minlength=batch * n)
        widest = int(sizes.max())
        # Position of a candidate among those of its sample, so that a softmax over a sample's
        # candidates is a softmax over a row of a narrow table.
        position = torch.arange(len(cell), device=cell.device) - (sizes.cumsum(0) - sizes)[sample]
        slot = sample * widest + position
        group = sample // n * n_classes + cell % n_classes
        order = group.argsort(stable=True)
        cell, sample, slot, group = cell[order], sample[order], slot[order], group[order]
        group_sizes = torch.bincount(group, minlength=batch * n_classes)
        partners = group_sizes[group]
        ends = partners.cumsum(0)
        # An entry's pairs run over its class from the first member to the last.
        first = (group_sizes.cumsum(0) - group_sizes)[group]
        other = torch.repeat_interleave(first - (ends - partners), partners)
        other += torch.arange(len(other), device=cell.device)
        pair_cell = torch.repeat_interleave(sample * n, partners) + (sample % n)[other]
        return cls(
            cell=cell,
            sample=sample,
            group=group,
            group_sizes=group_sizes,
            pair_starts=torch.cat([ends.new_zeros(1), ends]).int(),
            pair_other=other.int(),
            pair_cell=pair_cell,
            slot=slot,
            widest=widest,
        )

    def matrix(self, values: Tensor) -> Tensor:
        """Sparse (E, E) matrix with one value per pair."""
        _silence_sparse_warning()
        size = len(self.cell)
        return torch.sparse_csr_tensor(
            self.pair_starts, self.pair_other, values, (size, size), check_invariants=False
        )

    def reduce(self, values: Tensor, how: str) -> Tensor:
        """Reduce the entries of each class, of shape (B * l,)."""
        return torch.segment_reduce(values, how, lengths=self.group_sizes, unsafe=True)


@functools.cache
def _silence_sparse_warning() -> None:
    """Make torch's once-per-process note about sparse matrices appear where nobody sees it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = torch.ones(1)
        index = torch.tensor([0, 1], dtype=torch.int32)
        torch.sparse_csr_tensor(index, index[:1], one, (1, 1), check_invariants=False) @ one


def rounds(
    embeddings: Tensor,
    candidates: Tensor,
    *,
    n_neighbors: int,
    manifold_weight: float,
    n_iterations: int,
    squared: bool,
    keep_all: bool = False,
) -> list[Round]:
    """Run Eq. (1) to (3) on a batch of tasks and return the last round, or all of them.

    Parameters
    ----------
    embeddings : Tensor of shape (B, n, m)
    candidates : bool Tensor of shape (B, n, l)
    n_neighbors, manifold_weight, n_iterations
        k, lambda, and how many rounds.
    squared : bool
        Take squared Euclidean distances in Eq. (2).
    keep_all : bool
        Return the start and every round instead of the last round only.
    """
    n = candidates.shape[-2]
    work = max(float(count_pairs(candidates).max()), n * n)
    at_once = max(1, int(_PAIRS_AT_ONCE / work))
    parts = [
        _rounds_of_part(e, y, n_neighbors, manifold_weight, n_iterations, squared, keep_all)
        for e, y in zip(embeddings.split(at_once), candidates.split(at_once), strict=True)
    ]
    return [
        Round(*(torch.cat(tensors) for tensors in zip(*same_round, strict=True)))
        for same_round in zip(*parts, strict=True)
    ]


def _rounds_of_part(
    embeddings: Tensor,
    candidates: Tensor,
    n_neighbors: int,
    manifold_weight: float,
    n_iterations: int,
    squared: bool,
    keep_all: bool,
) -> list[Round]:
    n = candidates.shape[-2]
    pattern = _Pattern.of(candidates)
    square = squared_distances(embeddings)
    norms = squared_norms(embeddings)
    spread = None
    k = min(n_neighbors, n - 1)
    if k > 0 and manifold_weight > 0:
        near = neighbors(square, embeddings, norms, k)
        spread = pattern.matrix(near.flatten()[pattern.pair_cell].to(embeddings.dtype))
        count = torch.count_nonzero(near, dim=-1).to(embeddings.dtype)
        share = manifold_weight / count.flatten()[pattern.sample]
    between = pattern.matrix(
        restore_canceled(square, embeddings, norms).flatten()[pattern.pair_cell]
    )
    group = pattern.group
    scaled = embeddings.new_ones(len(group))
    log_scale = embeddings.new_zeros(len(pattern.group_sizes))
    table = embeddings.new_full((candidates.shape[0] * n * pattern.widest,), -torch.inf)
    kept = [_as_round(pattern, candidates, scaled, log_scale)] if keep_all else []
    for _ in range(n_iterations):
        weight = scaled / pattern.reduce(scaled, "sum")[group]
        scatter = between @ weight
        d = scatter - (0.5 * pattern.reduce(weight * scatter, "sum"))[group]
        # Next to its prototype a sample's distance is a small difference of large terms.
        lost = (d < CANCELED * scatter).nonzero().squeeze(1)
        if len(lost):
            d[lost] = _exact_squares(pattern, embeddings, weight, lost)
        d = d.clamp_min_(0) if squared else d.clamp_min_(0).sqrt_()
        table[pattern.slot] = -d
        log_q = table.view(-1, pattern.widest).log_softmax(dim=-1).flatten()[pattern.slot]
        log_scale = pattern.reduce(log_q, "max")
        scaled = (log_q - log_scale[group]).exp_()
        if spread is not None:
            scaled = scaled + share * (spread @ scaled)
        if keep_all:
            kept.append(_as_round(pattern, candidates, scaled, log_scale))
    return kept or [_as_round(pattern, candidates, scaled, log_scale)]


def _exact_squares(
    pattern: _Pattern, embeddings: Tensor, weight: Tensor, entries: Tensor
) -> Tensor:
    """Squared distances of some entries to the prototypes of their classes, from the features.

    Parameters
    ----------
    embeddings : Tensor of shape (B, n, m)
    weight : Tensor of shape (E,)
        Sums to one in each class.
    entries : int Tensor of shape (some,)
    """
    samples = (embeddings - embeddings.mean(dim=-2, keepdim=True)).flatten(0, 1)
    needed, place = pattern.group[entries].unique(return_inverse=True)
    row = torch.full_like(pattern.group_sizes, -1)
    row[needed] = torch.arange(len(needed), device=row.device)
    members = (row[pattern.group] >= 0).nonzero().squeeze(1)
    prototypes = samples.new_zeros(len(needed), samples.shape[1]).index_add_(
        0,
        row[pattern.group[members]],
        weight[members].unsqueeze(1) * samples[pattern.sample[members]],
    )
    return (samples[pattern.sample[entries]] - prototypes[place]).square().sum(dim=-1)


def _as_round(pattern: _Pattern, candidates: Tensor, scaled: Tensor, log_scale: Tensor) -> Round:
    dense = scaled.new_zeros(candidates.numel())
    dense[pattern.cell] = scaled
    scale = log_scale.clamp_min(torch.finfo(log_scale.dtype).min)  # a class without entries
    return Round(dense.view(candidates.shape), scale.view(-1, 1, candidates.shape[-1]))
