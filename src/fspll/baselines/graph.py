"""Who is near whom, and how each sample is made of its neighbors.

Shapes: n samples, d features, k neighbors. Every sample i gets weights w_i over its neighbors,
non-negative and of sum one, that rebuild it best:

    min over w in the simplex   |x_i - sum_r w_r x_nb(i,r)|^2  =  w' G_i w,     G_i = D_i D_i',

with D_i (k, d) the differences x_i - x_nb(i,r). All n of these small quadratic programs are solved
together. Row-normalize the features first (:func:`unit_rows`): the papers do.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

_ENTRIES_AT_ONCE = 1 << 22  # numbers in a block of work: 32 MB
_RIDGE = 1e-12  # of the mean of a Gram matrix's diagonal: singular problems get one solution
_FULL_FLIPS = 3  # exchanges of whole index sets without progress before single exchanges take over


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Return the rows of X (n, d) divided by their Euclidean length; zero rows stay zero."""
    # Dividing by the largest entry first keeps the squares of huge or tiny features in range.
    top = np.abs(X).max(axis=1, keepdims=True, initial=0.0)
    X = X / np.where(top > 0, top, 1.0)
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def nearest_others(X: np.ndarray, k: int) -> np.ndarray:
    """Find the k nearest *other* samples of each sample, nearest first, ties by lowest index.

    A sample is left out by its index, not by its distance: a duplicate is a neighbor like any
    other. Products of norms find everyone who might be among the k, differences decide.

    Parameters
    ----------
    X : float64 array of shape (n, d)
    k : int
        At most n - 1 are returned.

    Returns
    -------
    int64 array of shape (n, min(k, n - 1))
    """
    n, d = X.shape
    k = min(k, n - 1)
    found = np.empty((n, k), dtype=np.int64)
    if k == 0:
        return found
    centered = X - X.mean(axis=0)
    norms = np.einsum("ij,ij->i", centered, centered)
    margin = 8 * (8 + d) * np.finfo(np.float64).eps * (norms.max() + norms)
    step = max(1, _ENTRIES_AT_ONCE // n)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        square = norms[rows, None] + norms - 2 * (centered[rows] @ centered.T)
        square[np.arange(len(rows)), rows] = np.inf
        kth = np.partition(square, k - 1, axis=1)[:, k - 1]
        row, column = np.nonzero(square <= (kth + margin[rows])[:, None])
        exact = _squared_differences(X, rows[row], column)
        order = np.lexsort((column, exact, row))
        starts = np.searchsorted(row, np.arange(len(rows)))  # the sort keeps the rows in order
        found[rows] = column[order][starts[:, None] + np.arange(k)]
    return found


def _squared_differences(X: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return |x_i - x_j|^2 for pairs of rows, of shape (number of pairs,)."""
    square = np.empty(len(i))
    step = max(1, _ENTRIES_AT_ONCE // X.shape[1])
    for first in range(0, len(i), step):
        part = slice(first, first + step)
        difference = X[i[part]] - X[j[part]]
        square[part] = np.einsum("pd,pd->p", difference, difference)
    return square


def difference_grams(A: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """Return G_i = D_i D_i' for all samples, D_i the differences of row i to its neighbors.

    Parameters
    ----------
    A : float64 array of shape (n, m)
        Features, or label confidences.
    neighbors : int array of shape (n, k)

    Returns
    -------
    float64 array of shape (n, k, k)
    """
    n, k = neighbors.shape
    grams = np.empty((n, k, k))
    step = max(1, _ENTRIES_AT_ONCE // max(1, k * A.shape[1]))
    for first in range(0, n, step):
        part = slice(first, first + step)
        difference = A[part, None, :] - A[neighbors[part]]
        np.matmul(difference, difference.transpose(0, 2, 1), out=grams[part])
    return grams


def feature_graph(X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the graph that the methods begin with: of features whose rows have length one.

    Parameters
    ----------
    X : float64 array of shape (n, d)
    k : int
        Neighbors of a sample; n - 1 where there are not as many.

    Returns
    -------
    neighbors : int64 array of shape (n, k)
    grams : float64 array of shape (n, k, k)
        Of the differences to the neighbors.
    weights : float64 array of shape (n, k)
        Rows are non-negative and sum to one.
    """
    unit = unit_rows(X)
    neighbors = nearest_others(unit, k)
    grams = difference_grams(unit, neighbors)
    return neighbors, grams, simplex_weights(grams)


def simplex_weights(grams: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Minimize w' G_i w over the simplex, for all i at once.

    The minimizer is v / sum(v), where v >= 0 minimizes 1/2 v'Gv - 1'v: the conditions of optimality
    of the two are the same up to the multiplier of the sum, so no equality constraint is needed.

    Parameters
    ----------
    grams : float64 array of shape (n, k, k)
        Positive semi-definite.
    start : float64 array of shape (n, k), optional
        Weights of a similar problem; their zeros are where the search begins.

    Returns
    -------
    float64 array of shape (n, k)
        Rows are non-negative and sum to one.
    """
    n, k = grams.shape[:2]
    if k == 0:
        return np.zeros((n, 0))
    scale = np.trace(grams, axis1=1, axis2=2) / k
    G = grams / np.where(scale > 0, scale, 1.0)[:, None, None]
    # Large k needs a larger ridge to stand above the rounding of the factorization.
    G[:, np.arange(k), np.arange(k)] += max(_RIDGE, k * k * np.finfo(np.float64).eps)
    passive = np.ones((n, k), dtype=bool) if start is None else start > 0
    v = np.maximum(_nonnegative_solution(G, passive), 0.0)
    return v / v.sum(axis=1, keepdims=True)


def _nonnegative_solution(G: np.ndarray, passive: np.ndarray) -> np.ndarray:
    """Minimize 1/2 v'G_i v - 1'v over v >= 0 by block principal pivoting, all i at once.

    Each round solves for the passive (free) variables, then exchanges every variable that has the
    wrong sign: passive ones below zero, active ones whose gradient is. Where that makes no progress
    for some rounds, only the last wrong one is exchanged, which is known to end. J. Judice and F.
    Pires, "A block principal pivoting algorithm for large-scale strictly monotone linear
    complementarity problems", Computers & Operations Research 21, 1994.
    """
    n, k = passive.shape
    eps = np.finfo(np.float64).eps
    passive = passive.copy()
    solution = np.zeros((n, k))
    open_rows = np.arange(n)
    fewest = np.full(n, k + 1)
    patience = np.full(n, _FULL_FLIPS)
    for _ in range(100 + 20 * k):
        g, free = G[open_rows], passive[open_rows]
        system = np.where(free[:, :, None] & free[:, None, :], g, 0.0)
        system[:, np.arange(k), np.arange(k)] += ~free
        v = np.linalg.solve(system, free[:, :, None].astype(np.float64))[:, :, 0]
        gradient = np.einsum("nij,nj->ni", g, v) - 1.0
        # v is as large as G is singular; signs count only beyond the rounding this brings.
        size = np.abs(v).max(axis=1, keepdims=True)
        wrong = np.where(free, v < -4 * k * eps * size, gradient < -16 * k * k * eps * (1 + size))
        solution[open_rows] = v
        n_wrong = wrong.sum(axis=1)
        unfinished = n_wrong > 0
        if not unfinished.any():
            break
        open_rows, wrong, n_wrong = open_rows[unfinished], wrong[unfinished], n_wrong[unfinished]
        better = n_wrong < fewest[open_rows]
        fewest[open_rows] = np.minimum(fewest[open_rows], n_wrong)
        patience[open_rows] = np.where(better, _FULL_FLIPS, patience[open_rows] - 1)
        single = patience[open_rows] < 0
        last = k - 1 - wrong[:, ::-1].argmax(axis=1)
        passive[open_rows] ^= np.where(single[:, None], np.arange(k) == last[:, None], wrong)
    return solution


def weight_matrix(neighbors: np.ndarray, weights: np.ndarray) -> sparse.csr_array:
    """Return W (n, n) with the weights of sample i in row i; its diagonal is zero."""
    n, k = neighbors.shape
    starts = np.arange(0, n * k + 1, k) if k else np.zeros(n + 1, dtype=np.int64)
    # A copy: scipy sorts the arrays of a matrix in place when it wants to.
    return sparse.csr_array((weights.ravel(), neighbors.ravel(), starts), shape=(n, n), copy=True)
