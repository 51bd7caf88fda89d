"""Multinomial logistic regression that learns from shares of classes instead of one label each.

Shapes: n samples, d features, l classes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

_MOST_STEPS = 200


class SoftLogistic:
    """A linear model of the log-odds of the classes, with a ridge on the weights.

    It minimizes -sum_ik q_ik log p_ik + ridge / 2 |W|^2 with p_i the softmax of W' x_i + b; the
    bias b is free, but for a ridge of 1e-6 that makes the minimum unique.

    Parameters
    ----------
    X : array of shape (n, d)
    shares : array of shape (n, l)
        The targets q: non-negative. A row that sums to less counts for less.
    ridge : float, default=1.0
    """

    def __init__(self, X: np.ndarray, shares: np.ndarray, ridge: float = 1.0) -> None:
        n_features, n_classes = X.shape[1], shares.shape[1]
        total = shares.sum(axis=1, keepdims=True)
        # Steps of one size suit weights only when the features are of one size.
        peak = max(float(np.abs(X).max()), 1e-100)
        size = peak * max(float(np.sqrt(np.mean((X / peak) ** 2))), 1e-10)
        unit = X / size
        ridges = np.full((n_features + 1, 1), ridge / size / size)
        ridges[-1] = 1e-6

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            W = flat.reshape(n_features + 1, n_classes)
            logits = unit @ W[:-1] + W[-1]
            difference = total * softmax(logits, axis=1) - shares
            slope = np.concatenate([unit.T @ difference, difference.sum(axis=0)[None]])
            loss = -np.vdot(shares, log_softmax(logits, axis=1)) + 0.5 * np.vdot(W, ridges * W)
            return float(loss), (slope + ridges * W).ravel()

        start = np.zeros((n_features + 1) * n_classes)
        found = minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS}
        )
        W = found.x.reshape(n_features + 1, n_classes)
        self.weights, self.bias = W[:-1] / size, W[-1]

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the log-odds of the classes up to a constant per sample, of shape (n, l)."""
        return X @ self.weights + self.bias


def out_of_sample(
    X: np.ndarray, shares: np.ndarray, *, ridge: float, n_folds: int = 5
) -> np.ndarray:
    """Return the probabilities that models give to samples they were not fitted to, (n, l).

    Sample i is in fold i mod ``n_folds`` of an order drawn with a fixed seed. With one sample there
    is nothing to learn from: all classes are equally likely.
    """
    n = len(X)
    folds = np.random.default_rng(0).permutation(n) % min(n_folds, n)
    if n < 2:
        return np.full(shares.shape, 1.0 / shares.shape[1])
    found = np.empty(shares.shape)
    for fold in range(folds.max() + 1):
        held_out = folds == fold
        model = SoftLogistic(X[~held_out], shares[~held_out], ridge)
        found[held_out] = softmax(model.logits(X[held_out]), axis=1)
    return found
