"""The paper's rule for many samples: Eq. (1) to (3) entry by entry.

The same equations as :mod:`fspll.rectifiers.paper`, with one difference: the k neighbors of a
sample are its nearest among the samples that share a candidate with it (see
:mod:`fspll.rectifiers.sparse.grouped_neighbors`), not among all samples.

Shapes: n samples, l classes, m features, z entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fspll.rectifiers.sparse.centering import Centered
from fspll.rectifiers.sparse.entries import Entries, checked_embeddings, report
from fspll.rectifiers.sparse.grouped_neighbors import Neighbors, nearest_in_groups


class SparseRectified(NamedTuple):
    """What :func:`rectify_sparse` returns; as of the dense rule."""

    prototypes: np.ndarray  # (l, m)
    present: np.ndarray  # (l,) bool
    confidence: sparse.csr_array  # (n, l), stored at the candidates only; not normalized


def rectify_sparse(
    embeddings: Any,
    candidates: Any,
    *,
    n_neighbors: int = 4,
    manifold_weight: float = 0.5,
    n_iterations: int = 10,
    metric: str = "euclidean",
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> SparseRectified:
    """Rectify prototypes by weighting the candidates of many samples.

    Time and memory grow with the number of candidate entries.

    Parameters
    ----------
    embeddings : array of shape (n, m)
    candidates : Candidates, or sparse 0/1 matrix of shape (n, l)
    n_neighbors, manifold_weight, n_iterations, metric
        As of :class:`fspll.rectifiers.FsPLLRule`.
    seed : int
        Of the search for neighbors, where a class is too large to be searched whole.
    progress : callable, optional
        Called with "neighbors" and then "round" when each is done.

    Examples
    --------
    >>> e = [[0.0], [0.1], [5.0]]
    >>> y = sparse.csr_array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    >>> q = rectify_sparse(e, y, n_neighbors=1).confidence
    >>> q[:2].toarray().argmax(axis=1).tolist()
    [1, 1]
    """
    entries = Entries.of(candidates)
    e = checked_embeddings(embeddings, entries)
    spread = manifold_weight > 0 and n_neighbors > 0
    share = None
    if spread and n_iterations > 0:
        neighbors = nearest_in_groups(e, entries, n_neighbors, seed)
        share = _shares(entries, neighbors, manifold_weight)
    report(progress, "neighbors")
    # A common shift changes nothing here and keeps float32 exact far from the origin.
    centered = Centered.of(e)
    scaled, largest = np.ones(len(entries), dtype=e.dtype), np.zeros(1, dtype=e.dtype)
    for _ in range(n_iterations):
        distance = entries.squared_distances(centered, _means(centered, entries, scaled))
        if metric == "euclidean":
            distance = np.sqrt(distance, out=distance)
        log_q = entries.log_softmax(-distance)
        # As in the dense rule: weights of a class may vanish while their ratios stay meaningful.
        largest = entries.class_max(log_q)
        scaled = np.exp(log_q - largest[entries.label])
        if share is not None:
            scaled = scaled + share @ scaled
        report(progress, "round")
    prototypes = _means(centered, entries, scaled) + centered.center
    present = entries.class_sizes > 0
    prototypes[~present] = 0
    confidence = scaled * np.exp(largest[entries.label] if len(largest) > 1 else largest)
    return SparseRectified(
        prototypes.astype(e.dtype), present, entries.matrix(confidence.astype(e.dtype))
    )


def _means(e: Centered, entries: Entries, weight: np.ndarray) -> np.ndarray:
    """Weighted mean of each class, Eq. (1), of shape (l, m); zeros where a class has no weight."""
    mass = entries.class_sum(weight)[:, None]
    return entries.class_totals(e, weight) / np.where(mass > 0, mass, 1)


def _shares(entries: Entries, neighbors: Neighbors, weight: float) -> sparse.csr_array:
    """Return lambda / k at every link, Eq. (3)."""
    links = neighbors.links
    share = weight / np.maximum(neighbors.n_found, 1)
    per_link = np.repeat(share[entries.row], np.diff(links.indptr)).astype(links.dtype)
    return sparse.csr_array((per_link, links.indices, links.indptr), shape=links.shape)
