"""Kernel ridge regression with a free bias, on the kernel that the graph-based methods share.

Shapes: n training samples, m new ones, d features, l outputs. With the Gaussian kernel K of the
training samples, the regression of targets Y (n, l) minimizes

    |K alpha + 1 b - Y|^2 + ridge * tr(alpha' K alpha).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

_ENTRIES_AT_ONCE = 1 << 22  # kernel values of new samples in a block: 32 MB


def training_kernel(X: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the Gaussian kernel of the training samples and its width.

    The width sigma is the mean distance over all pairs of samples; 1 where there is none, or where
    all samples are equal.

    Parameters
    ----------
    X : float64 array of shape (n, d)

    Returns
    -------
    K : float64 array of shape (n, n)
    sigma : float
    """
    n = len(X)
    distance = cdist(X, X)
    pairs = n * (n - 1)
    sigma = float(distance.sum() / pairs) if pairs else 0.0
    sigma = sigma if sigma > 0 else 1.0
    return _gaussian(distance, sigma), sigma


def kernel_outputs(
    X: np.ndarray, X_train: np.ndarray, sigma: float, alpha: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Return k(X, X_train) alpha + bias for new samples, in blocks of rows.

    Parameters
    ----------
    X : float64 array of shape (m, d)
    X_train : float64 array of shape (n, d)
    sigma : float
    alpha : float64 array of shape (n, l)
    bias : float64 array of shape (l,)

    Returns
    -------
    float64 array of shape (m, l)
    """
    outputs = np.empty((len(X), alpha.shape[1]))
    step = max(1, _ENTRIES_AT_ONCE // len(X_train))
    for first in range(0, len(X), step):
        part = slice(first, first + step)
        outputs[part] = _gaussian(cdist(X[part], X_train), sigma) @ alpha + bias
    return outputs


def _gaussian(distance: np.ndarray, sigma: float) -> np.ndarray:
    """Turn distances into exp(-distance^2 / (2 sigma^2)), in place."""
    with np.errstate(over="ignore"):  # however far away, the kernel is zero there
        distance /= sigma  # first: the square of a huge sigma would overflow
        np.square(distance, out=distance)
    distance *= -0.5
    return np.exp(distance, out=distance)


class KernelRidge:
    """Regressions on one kernel: factored once, then two triangular solves for each target.

    Parameters
    ----------
    K : float64 array of shape (n, n)
        Kernel of the training samples; overwritten.
    ridge : float
        Weight of the squared norm; at least some rounding errors of K, so that duplicate samples
        never make the system singular.
    """

    def __init__(self, K: np.ndarray, ridge: float) -> None:
        n = len(K)
        self.ridge = max(ridge, 1e-13 * n)
        K[np.arange(n), np.arange(n)] += self.ridge
        # The transpose is the same matrix in the order of LAPACK, which then makes no copy.
        self._factor = cho_factor(K.T, overwrite_a=True, check_finite=False)
        self._ones = self._solve(np.ones((n, 1)))
        self._ones_sum = float(self._ones.sum())

    def _solve(self, B: np.ndarray) -> np.ndarray:
        return cho_solve(self._factor, B, check_finite=False)

    def fit(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Regress Y (n, l) on the samples.

        With A = K + ridge I, b = 1'A^-1 Y / 1'A^-1 1 and alpha = A^-1 (Y - 1 b), which sums to zero
        over the samples. The output K alpha + 1 b is Y - ridge alpha: no product with K is needed.

        Returns
        -------
        alpha : float64 array of shape (n, l)
        bias : float64 array of shape (l,)
        outputs : float64 array of shape (n, l)
            For the training samples.
        """
        alpha = self._solve(Y)
        bias = alpha.sum(axis=0) / self._ones_sum
        alpha -= self._ones * bias
        return alpha, bias, Y - self.ridge * alpha
