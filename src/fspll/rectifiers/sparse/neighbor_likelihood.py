"""What neighbors' candidate sets say about a label, with a reliability that is measured.

Neighbors found inside groups always share a label with the sample, so the dense code's estimate of
their reliability, which lives by disjoint sets, would see nothing here. What can be measured is
their *agreement*: neighbors of the sample's own class all share its true label, others share any
of its candidates.

Shapes: n samples, l classes, z entries, p links.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from fspll.rectifiers.sparse.entries import Entries
from fspll.rectifiers.sparse.grouped_neighbors import Neighbors

_ROUNDS = 8
_LEVELS = 16  # of distance, each with a reliability of its own
_FIRST = 0.5
_RANGE = (1e-3, 1 - 1e-3)


def neighbor_log_likelihood(entries: Entries, neighbors: Neighbors) -> np.ndarray:
    """Log-likelihood of the neighbors' sets for every entry, up to a constant per sample, (z,).

    A neighbor j of i at distance level t shares its class with probability rho_t. If so, its set
    holds the true label y of i. If not, its set is any one that shares a label with i's, as all
    neighbors' do; relative to the former case, its probability is (s_j - 1)/(l - 1) / q if it
    holds y and s_j/(l - 1) / q if not, q being the probability that the sets of two samples of
    different classes share a label.

    y is not known, but all neighbors that share its class agree on it. So y and the reliabilities
    are estimated in turns (expectation and maximization): confidences in y from the product over
    the neighbors, rho_t as the expected share of the neighbors at level t that share a class.
    """
    links = _Links(entries, neighbors)
    reliability = np.full(_LEVELS, _FIRST)
    score = links.score(reliability)
    for _ in range(_ROUNDS):
        reliability = links.expected_share(reliability, entries.softmax(score))
        score = links.score(reliability)
    return score


class _Links:
    """The links between neighbors with their levels and chances, arrays of shape (p,)."""

    def __init__(self, entries: Entries, neighbors: Neighbors) -> None:
        links = neighbors.links
        self.n_entries = len(entries)
        self.source = np.repeat(np.arange(len(entries)), np.diff(links.indptr))
        mine, other = entries.row[self.source], entries.row[links.indices]
        self.level = _levels(_ratios(neighbors, mine, other))
        others = max(1, int(np.count_nonzero(entries.class_sizes)) - 1)
        chance = others * _overlap_by_chance(entries.sizes, mine, other, others)
        self.holds = ((entries.sizes[other] - 1) / chance).astype(np.float32)
        self.lacks = (entries.sizes[other] / chance).astype(np.float32)
        # A pair that shares several labels has as many links, and counts once.
        _, first = np.unique(mine * entries.n_samples + other, return_index=True)
        self.pairs = np.bincount(self.level[first], minlength=_LEVELS)

    def score(self, reliability: np.ndarray) -> np.ndarray:
        """Sum over the neighbors that hold the label of log(holds it / lacks it), (z,)."""
        rho = reliability[self.level]
        gain = np.log((rho + (1 - rho) * self.holds) / ((1 - rho) * self.lacks))
        return np.bincount(self.source, weights=gain, minlength=self.n_entries)

    def expected_share(self, reliability: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        """Share of the neighbors of each level that are of their sample's class, expected."""
        rho = reliability[self.level]
        same = confidence[self.source] * rho / (rho + (1 - rho) * self.holds)
        total = np.bincount(self.level, weights=same, minlength=_LEVELS)
        return np.clip(total / np.maximum(self.pairs, 1), *_RANGE)


def _ratios(neighbors: Neighbors, mine: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Squared distances in relation to the first sample that is no neighbor, mean of both sides.

    Who has fewer than k others in his groups has no such sample; his farthest neighbor serves.
    """
    distance = neighbors.links.data
    edge = neighbors.edge.copy()
    open_end = np.isinf(edge)
    if open_end.any():
        edge[open_end] = 0
        np.maximum.at(edge, mine[open_end[mine]], distance[open_end[mine]])
    mean = (edge[mine] + edge[other]) / 2
    return distance / np.maximum(mean, np.finfo(distance.dtype).tiny)


def _levels(ratio: np.ndarray) -> np.ndarray:
    """Return the level of each distance; all levels have about as many."""
    some = ratio[:: max(1, len(ratio) >> 20)]
    ends = np.quantile(some, np.linspace(0, 1, _LEVELS + 1)[1:-1]) if len(some) else []
    return np.searchsorted(ends, ratio).astype(np.int8)


def _overlap_by_chance(
    sizes: np.ndarray, mine: np.ndarray, other: np.ndarray, others: int
) -> np.ndarray:
    """Probability that the sets of two samples of different classes share a label, (p,).

    The class of the second sample and then its distractors, drawn evenly from l - 1 = ``others``
    labels, must all miss the set of the first.
    """
    distinct, which = np.unique(sizes, return_inverse=True)
    a, b = distinct[:, None].astype(float), distinct[None, :].astype(float)
    room = np.maximum(others - a, b - 1)  # labels outside the first set
    missed = np.exp(
        gammaln(room + 1)
        - gammaln(room - b + 2)
        - gammaln(others + 1.0)
        + gammaln(np.maximum(others - b + 2, 1))
    )
    disjoint = np.where(others - a >= b - 1, (others + 1 - a) / others * missed, 0)
    return np.maximum(1 - disjoint, 1e-9)[which[mine], which[other]]
