"""What neighbors' candidate sets say about a label, with a reliability that is measured.

Neighbors found inside groups always share a label with the sample, so the dense code's estimate of
their reliability, which lives by disjoint sets, would see nothing here. What can be measured is
their *agreement*: neighbors of the sample's own class all share its true label, others share any
of its candidates.

Shapes: n samples, l classes, z entries, p links.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln

from fspll.rectifiers.sparse.centering import blocks
from fspll.rectifiers.sparse.entries import SAMPLES_AT_ONCE, Entries
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
    """The links between neighbors with their levels and chances, arrays of shape (p,).

    Whatever else there is one of per link is made for some samples at a time.
    """

    def __init__(self, entries: Entries, neighbors: Neighbors) -> None:
        self.start = neighbors.links.indptr
        self.entries = entries
        edge = _edges(neighbors, self)
        distance, number = neighbors.links.data, neighbors.links.indices
        ratio = np.empty_like(distance)
        for a, b, mine in self.blocks():
            mean = (edge[mine] + edge[entries.row[number[a:b]]]) / 2
            ratio[a:b] = distance[a:b] / np.maximum(mean, np.finfo(distance.dtype).tiny)
        ends = _level_ends(ratio)
        others = max(1, int(np.count_nonzero(entries.class_sizes)) - 1)
        overlap = _OverlapByChance(entries.sizes, others)
        self.level = np.empty(len(ratio), dtype=np.int8)
        self.holds, self.lacks = (np.empty(len(ratio), dtype=np.float32) for _ in range(2))
        self.pairs = np.zeros(_LEVELS, dtype=np.int64)
        for a, b, mine in self.blocks():
            other = entries.row[number[a:b]]
            self.level[a:b] = np.searchsorted(ends, ratio[a:b])
            chance = others * overlap(mine, other)
            self.holds[a:b] = (entries.sizes[other] - 1) / chance
            self.lacks[a:b] = entries.sizes[other] / chance
            # A pair that shares several labels has as many links, and counts once.
            _, first = np.unique(mine * entries.n_samples + other, return_index=True)
            self.pairs += np.bincount(self.level[a:b][first], minlength=_LEVELS)

    def blocks(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield the ends of the links of some samples, and the sample of each, (b - a,)."""
        for i, j in blocks(self.entries.n_samples, SAMPLES_AT_ONCE):
            a, b, entry = self._of_samples(i, j)
            yield a, b, self.entries.row[entry]

    def _of_samples(self, i: int, j: int) -> tuple[int, int, np.ndarray]:
        """Return the ends of the links of samples i to j, and the entry of each."""
        first, last = self.entries.start[i], self.entries.start[j]
        counts = np.diff(self.start[first : last + 1])
        return self.start[first], self.start[last], np.repeat(np.arange(first, last), counts)

    def score(self, reliability: np.ndarray) -> np.ndarray:
        """Sum over the neighbors that hold the label of log(holds it / lacks it), (z,)."""
        total = np.empty(len(self.entries))
        for i, j in blocks(self.entries.n_samples, SAMPLES_AT_ONCE):
            a, b, entry = self._of_samples(i, j)
            first, last = self.entries.start[i], self.entries.start[j]
            rho = reliability[self.level[a:b]]
            gain = np.log((rho + (1 - rho) * self.holds[a:b]) / ((1 - rho) * self.lacks[a:b]))
            total[first:last] = np.bincount(entry - first, weights=gain, minlength=last - first)
        return total

    def expected_share(self, reliability: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        """Share of the neighbors of each level that are of their sample's class, expected."""
        total: np.ndarray = np.zeros(_LEVELS)
        levels = np.arange(_LEVELS)
        for i, j in blocks(self.entries.n_samples, SAMPLES_AT_ONCE):
            a, b, entry = self._of_samples(i, j)
            rho = reliability[self.level[a:b]]
            same = confidence[entry] * rho / (rho + (1 - rho) * self.holds[a:b])
            # The sum so far comes first, so that blocks add up as one sum would.
            weights, level = np.concatenate([total, same]), self.level[a:b]
            total = np.bincount(np.concatenate([levels, level]), weights, minlength=_LEVELS)
        return np.clip(total / np.maximum(self.pairs, 1), *_RANGE)


def _edges(neighbors: Neighbors, links: _Links) -> np.ndarray:
    """Squared distance of the first sample that is no neighbor, (n,).

    Who has fewer than k others in his groups has no such sample; his farthest neighbor serves.
    """
    edge = neighbors.edge.copy()
    open_end = np.isinf(edge)
    if open_end.any():
        edge[open_end] = 0
        for a, b, mine in links.blocks():
            chosen = open_end[mine]
            np.maximum.at(edge, mine[chosen], neighbors.links.data[a:b][chosen])
    return edge


def _level_ends(ratio: np.ndarray) -> np.ndarray:
    """Return where levels of distance end; all levels have about as many links."""
    some = ratio[:: max(1, len(ratio) >> 20)]
    return np.quantile(some, np.linspace(0, 1, _LEVELS + 1)[1:-1]) if len(some) else np.empty(0)


class _OverlapByChance:
    """Probability that the sets of two samples of different classes share a label.

    The class of the second sample and then its distractors, drawn evenly from l - 1 = ``others``
    labels, must all miss the set of the first.
    """

    def __init__(self, sizes: np.ndarray, others: int) -> None:
        distinct, self.which = np.unique(sizes, return_inverse=True)
        a, b = distinct[:, None].astype(float), distinct[None, :].astype(float)
        room = np.maximum(others - a, b - 1)  # labels outside the first set
        missed = np.exp(
            gammaln(room + 1)
            - gammaln(room - b + 2)
            - gammaln(others + 1.0)
            + gammaln(np.maximum(others - b + 2, 1))
        )
        disjoint = np.where(others - a >= b - 1, (others + 1 - a) / others * missed, 0)
        self.table = np.maximum(1 - disjoint, 1e-9)

    def __call__(self, mine: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the probabilities of pairs of samples, (p,)."""
        return self.table[self.which[mine], self.which[other]]
