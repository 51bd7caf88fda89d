"""Where samples lie, seen in two dimensions.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

_CLEARLY = 0.1  # share of samples more near their own class, from which class means give the view
_TINY = 1e-9


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


def find_plane(features: np.ndarray, labels: np.ndarray) -> Plane:
    """Return the view in which most is to be seen.

    These are the two directions in which the samples vary most, or, if that keeps the classes
    clearly better apart, those in which the class means do. Directions that were chosen to tell
    classes apart always seem to, with many features; so each half of the samples judges the view
    that the other half chose.

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
    """Return the directions (m, 2) in which rows of X, whose mean is zero, vary most."""
    n, m = X.shape
    found = np.zeros((m, 2))
    count = min(most, n, m)
    wide = m > n  # then rows against rows is the smaller matrix, with the same values
    gram = X @ X.T if wide else X.T @ X
    values, vectors = linalg.eigh(gram, subset_by_index=(len(gram) - count, len(gram) - 1))
    for place, (value, vector) in enumerate(zip(values[::-1], vectors.T[::-1], strict=True)):
        if value <= _TINY * max(values[-1], 0) or value <= 0:
            break
        direction = X.T @ vector if wide else vector
        direction = direction / np.linalg.norm(direction)
        # Either end may point up; the same data should give the same picture.
        found[:, place] = direction * np.sign(direction[np.abs(direction).argmax()])
    return found


def _class_directions(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the directions in which class means vary most, one for each sample of a class."""
    center = X.mean(axis=0)
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    means = _sums(X - center, which, len(counts)) / counts[:, None]
    found = _main_directions(means * np.sqrt(counts)[:, None])
    if found[:, 1].any() or not found[:, 0].any():
        return found
    # Two classes differ in one direction; the other shows how they vary besides.
    first = found[:, :1]
    rest = (X - center) - (X - center) @ first @ first.T
    found[:, 1] = _main_directions(rest, 1)[:, 0]
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
