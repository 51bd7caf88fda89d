"""Which labels a cluster can still have, and which clusters depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from fspll._common.arguments import is_number
from fspll._common.errors import InputError

NEGLIGIBLE = 1e-10  # a matching this much less likely than the best one is left out of account


@dataclass(frozen=True, eq=False)
class Matchings:
    """All matchings of K clusters with l labels, before any is counted.

    ``sizes`` of shape (K,) counts the samples of every cluster; ``cost`` of shape (K, l) is the
    logarithm of what a label costs a cluster, infinite where it is impossible; ``best`` of shape
    (K,) is a matching of least cost; ``excess`` of shape (K, l) counts how many more samples the
    best matching *through* that entry contradicts, infinite where there is none; ``kept`` of the
    same shape says whether such a matching is likely enough to count.
    """

    sizes: np.ndarray
    cost: np.ndarray
    best: np.ndarray
    excess: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, mask: np.ndarray, inverse: np.ndarray, n_clusters: int, eps: float) -> Matchings:
        """Count misses of every label in every cluster; ``inverse`` (n,) numbers the clusters."""
        if not is_number(eps) or not 0 < eps < 1:
            raise InputError(f"eps is a chance, above 0 and below 1, not {eps!r}")
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(n_clusters))
        misses = np.add.reduceat(~mask[order], starts, axis=0, dtype=float)
        best = linear_sum_assignment(misses)[1]
        penalty = -float(np.log(eps))
        if not misses[np.arange(n_clusters), best].any():  # some matching agrees with every set
            misses = np.where(misses == 0, 0.0, np.inf)
        excess = _excess(misses, best)
        kept = excess * penalty <= -np.log(NEGLIGIBLE)
        return cls(np.bincount(inverse), misses * penalty, best, excess, kept)

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the clusters and labels of every group in which something is open."""
        open_clusters = np.flatnonzero(self.kept.sum(axis=1) > 1)
        for clusters, labels in split(self.kept[open_clusters]):
            yield open_clusters[clusters], labels


def _excess(cost: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Return what the cheapest matching through every entry costs above the cheapest of all.

    Two matchings differ by chains of moves: a cluster takes another's label, that one a third,
    until the label that came free is taken or, when K < l, an unused label ends the chain. So this
    is a problem of shortest paths among labels (Floyd and Warshall; for the few labels of a task
    SciPy's takes 0.6 ms where this takes 0.02), where an unused label leads to any other at no
    cost. An infinite excess marks the entries that belong to no matching at all.
    """
    moves = np.zeros((cost.shape[1], cost.shape[1]))
    moves[best] = cost - cost[np.arange(len(best)), best][:, None]
    paths = moves.copy()
    np.fill_diagonal(paths, 0.0)
    for label in range(len(paths)):
        np.minimum(paths, paths[:, label, None] + paths[label], out=paths)
    return moves[best] + paths[:, best].T


def split(linked: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows and columns of the connected parts of a bool matrix, by first row."""
    n_rows, n_columns = linked.shape
    row, column = np.nonzero(linked)
    edges = row, n_rows + column
    graph = sparse.coo_array((np.ones(len(row)), edges), shape=(n_rows + n_columns,) * 2)
    part = connected_components(graph, directed=False)[1]
    for number in dict.fromkeys(part[:n_rows].tolist()):
        yield np.flatnonzero(part[:n_rows] == number), np.flatnonzero(part[n_rows:] == number)
