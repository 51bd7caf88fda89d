"""PL-KNN: the k nearest training samples vote with their candidate sets.

Eyke Hüllermeier and Jürgen Beringer, "Learning from ambiguously labeled examples", Intelligent Data
Analysis 10(5), 2006. Shapes: n training samples, m new samples, d features, l classes, k
neighbors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from fspll._common.arguments import check_count
from fspll.baselines.base import PartialLabelClassifier

_VALUES_AT_ONCE = 1 << 22  # of distances between new and training samples
_ALL_UP_TO = 2000  # training samples that are all measured by differences
_SPARE = 20  # more samples than k are measured by differences beyond that
_ZERO = 1e-6  # sum of distances below which all neighbors coincide with the sample


class PLKNN(PartialLabelClassifier):
    """Partial-label k nearest neighbors.

    A neighbor at distance d_r counts 1 - d_r / sum_r' d_r' for each of its candidates; a single
    neighbor, or neighbors that all coincide with the sample, count one each.

    Parameters
    ----------
    n_neighbors : int, default=10
        How many neighbors vote, k; all samples when there are fewer.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the candidate with the most votes of the *other*
        samples nearby.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> clf = PLKNN(n_neighbors=2).fit([[0.0], [0.1], [1.0], [1.1]], [{0, 1}, {0}, {1}, {0, 1}])
    >>> clf.labels_.tolist(), clf.predict([[0.2]]).tolist()
    ([0, 0, 1, 1], [0])
    """

    def __init__(
        self, *, n_neighbors: int = 10, scale: str = "standard", classes: Any = None
    ) -> None:
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_neighbors", self.n_neighbors, 1)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        self._X, self._mask = X, mask
        self.labels_ = self._most_credible(self._votes(X, own=True), mask)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return self._votes(X, own=False)

    def _votes(self, X: np.ndarray, *, own: bool) -> np.ndarray:
        """Return the votes for each class, of shape (m, l); ``own`` when X is the training set."""
        k = min(self.n_neighbors, len(self._X) - own)
        votes = np.zeros((len(X), self._mask.shape[1]))
        if k == 0:
            return votes
        at_once = max(1, _VALUES_AT_ONCE // len(self._X))
        for start in range(0, len(X), at_once):
            part = slice(start, min(start + at_once, len(X)))
            itself = np.arange(part.start, part.stop) if own else None
            distance, who = _nearest(X[part], self._X, k, itself)
            weight = _weights(distance)
            for r in range(k):  # one neighbor at a time, to keep memory at (m, l)
                votes[part] += weight[:, r, None] * self._mask[who[:, r]]
        return votes


def _weights(distance: np.ndarray) -> np.ndarray:
    """Return the vote of each neighbor, of shape (m, k)."""
    total = distance.sum(axis=1, keepdims=True)
    if distance.shape[1] == 1:  # the formula would give it no vote at all
        return np.ones_like(distance)
    alike = total < _ZERO
    return np.where(alike, 1.0, 1 - distance / np.where(alike, 1.0, total))


def _nearest(
    X: np.ndarray, train: np.ndarray, k: int, itself: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and numbers of the k nearest training samples, of shape (m, k) each.

    Nearest first; of equally near ones the one that comes first. ``itself`` names the training
    sample that each row is, which is left out by its number: a duplicate stays a neighbor.
    """
    if len(train) <= _ALL_UP_TO:
        distance = cdist(X, train)
        if itself is not None:
            distance[np.arange(len(X)), itself] = np.inf
        who = np.argsort(distance, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distance, who, axis=1), who
    # A shortlist by products of norms, which are fast but inexact; then exact distances.
    square = np.square(train).sum(axis=1) - 2 * (X @ train.T)
    if itself is not None:
        square[np.arange(len(X)), itself] = np.inf
    many = min(k + _SPARE, len(train) - (itself is not None))
    short = np.sort(np.argpartition(square, many - 1, axis=1)[:, :many], axis=1)
    distance = np.stack([cdist(x[None], train[near])[0] for x, near in zip(X, short, strict=True)])
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distance, order, axis=1), np.take_along_axis(short, order, axis=1)
