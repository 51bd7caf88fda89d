"""Where samples lie, seen in two dimensions.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA

_CLEARLY = 0.1  # share of samples more near their own class, from which class means give the view
_TINY = 1e-9  # share of the largest variance that is rounding
_SMALL = 64  # samples or features, up to which all singular values are quick to compute


class Plane(NamedTuple):
    """A flat view: two directions at right angles, so that it shows true distances, foreshortened.

    Attributes
    ----------
    center : array of shape (m,)
    directions : array of shape (m, 2)
        Zero where there is nothing more to see.
    scale : float
        What features are divided by first, so that no square is too large to compute.
    by_classes : bool
        Whether class means gave the directions; otherwise the samples alone.
    """

    center: np.ndarray
    directions: np.ndarray
    scale: float
    by_classes: bool

    def place(self, points: np.ndarray) -> np.ndarray:
        """Return points (..., m) as (..., 2)."""
        return (np.asarray(points, dtype=float) / self.scale - self.center) @ self.directions

    @property
    def is_line(self) -> bool:
        """Whether there is only one direction to see."""
        return not self.directions[:, 1].any()

    @property
    def words(self) -> str:
        """What one looks along, as a sentence."""
        if self.is_line:
            return "The features vary in one direction only: height means nothing here."
        if self.by_classes:
            return (
                "The view is along the two directions in which the class means differ most, so "
                "classes look somewhat more apart than they are."
            )
        return "The view is along the two directions in which the samples vary most."


def spread_line(flat: np.ndarray) -> np.ndarray:
    """Return points (p, 2) of a line evenly over some height, only to lie side by side."""
    height = np.ptp(flat[:, 0]) * 0.2 or 1.0
    return np.column_stack([flat[:, 0], height * ((0.618034 * np.arange(len(flat))) % 1)])


def find_plane(features: np.ndarray, labels: np.ndarray) -> Plane:
    """Return the view in which most is to be seen.

    These are the two directions in which the samples vary most, or, if that keeps the classes
    clearly better apart, those in which the class means do. Directions that were chosen to tell
    classes apart always seem to, with many features; so a view that one half of the samples chose
    is evaluated on the other half.

    Parameters
    ----------
    features : array of shape (n, m)
    labels : int array of shape (n,)

    Examples
    --------
    >>> X = np.array([[0.0, 1, 0], [4, 0, 0], [8, 1, 0], [12, 0, 0]])
    >>> abs(find_plane(X, np.zeros(4, dtype=int)).directions).round().tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    X = np.asarray(features, dtype=float)
    scale = float(np.abs(X).max()) or 1.0
    X = X / scale
    center = X.mean(axis=0)
    X = X - center
    half = _half(labels)
    plain = _main_directions(X)
    gain = 0.0
    if len(np.unique(labels)) > 1:
        for part in (half, ~half):
            if not part.any() or part.all():
                continue
            chosen = _class_directions(X[part], labels[part])
            gain += _near_own(X @ chosen, labels, part) - _near_own(X @ plain, labels, part)
    if gain / 2 > _CLEARLY:
        return Plane(center, _class_directions(X, labels), scale, True)
    return Plane(center, plain, scale, False)


def _half(labels: np.ndarray) -> np.ndarray:
    """Return every other sample of each class, as a mask."""
    half = np.empty(len(labels), dtype=bool)
    order = np.argsort(labels, kind="stable")
    half[order] = np.arange(len(labels)) % 2 == 0
    return half


def _main_directions(X: np.ndarray, most: int = 2) -> np.ndarray:
    """Return the directions (m, 2) in which rows of X vary most, zeros where they do not vary."""
    found = np.zeros((X.shape[1], 2))
    smaller = min(X.shape)
    if len(X) < 2 or not np.ptp(X, axis=0).any():
        return found
    solver = "full" if smaller <= _SMALL else "arpack"
    pca = PCA(min(most, smaller), svd_solver=solver, random_state=0).fit(X)
    variance = pca.explained_variance_
    kept = np.count_nonzero(variance > _TINY * variance[0])
    found[:, :kept] = pca.components_[:kept].T
    return found


def _class_directions(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the directions (m, 2) in which class means vary most, one for each sample."""
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    found = _main_directions((_sums(X, which, len(counts)) / counts[:, None])[which])
    if found[:, 1].any() or not found[:, 0].any():
        return found
    # Two classes differ in one direction; the other shows how they vary besides.
    centered, first = X - X.mean(axis=0), found[:, :1]
    found[:, 1] = _main_directions(centered - centered @ first @ first.T, 1)[:, 0]
    return found


def _sums(X: np.ndarray, which: np.ndarray, count: int) -> np.ndarray:
    total = np.zeros((count, X.shape[1]))
    np.add.at(total, which, X)
    return total


def _near_own(flat: np.ndarray, labels: np.ndarray, part: np.ndarray) -> float:
    """Return the share of samples outside a part that lie nearest to their class's mean in it."""
    known, which, counts = np.unique(labels[part], return_inverse=True, return_counts=True)
    means = _sums(flat[part], which, len(known)) / counts[:, None]
    others = flat[~part]
    distance = (others**2).sum(axis=1)[:, None] - 2 * others @ means.T + (means**2).sum(axis=1)
    return float((known[distance.argmin(axis=1)] == labels[~part]).mean())
