"""Nearest class mean under ambiguity: what is left when a method finds nothing to learn from.

Shapes: n samples, d features, l classes.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist


def class_means(X: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the mean of each class, a sample counting 1/|S| in each of its candidates.

    Parameters
    ----------
    X : array of shape (n, d)
    mask : bool array of shape (n, l)

    Returns
    -------
    array of shape (l, d)
        Zeros for a class that is nobody's candidate.
    """
    share = mask / mask.sum(axis=1, keepdims=True)
    total = share.sum(axis=0)
    return (share.T @ X) / np.where(total > 0, total, 1)[:, None]


def mean_scores(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return minus the squared distances to the class means, of shape (n, l)."""
    return -cdist(X, means, "sqeuclidean")
