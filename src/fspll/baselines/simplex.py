"""Label confidences on a graph: a quadratic over a product of small simplexes.

Shapes: n samples, l classes, s candidates in the largest set. A row y_i of confidences Y (n, l)
lives in the simplex over the candidates of sample i: non-negative, of sum one, zero off the
candidates. The methods ask for

    min over Y   |(I - W) Y|^2 + pull * |Y - F|^2,

W (n, n) the sparse weights of the neighbors, F (n, l) outputs to stay close to. Candidate sets are
small, so only the candidates' entries are kept, a row of s for each sample with the rest padded;
an accelerated gradient step is a product with a small or sparse matrix and a projection of rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

_MAX_STEPS = 3_000
_DENSE_ENTRIES = 320  # up to this many entries a dense matrix is faster than two sparse ones
_LOOK_EVERY = 3  # steps between looks at the gap
_TIE_BREAK = 1e-6  # pull towards equal shares where the graph alone leaves the answer open


class CandidateSimplexes:
    """The simplexes that the rows of confidences live in.

    Parameters
    ----------
    mask : bool array of shape (n, l)
        Candidates; no row is empty.
    """

    def __init__(self, mask: np.ndarray) -> None:
        self.mask = mask
        sizes = mask.sum(axis=1)
        self.uniform = mask / sizes[:, None]
        width = int(sizes.max())
        self.columns = np.argsort(~mask, axis=1, kind="stable")[:, :width]  # candidates first
        self.padding = np.arange(width) >= sizes[:, None]
        self._ban = np.where(self.padding, -np.inf, 0.0)
        self._counts = np.arange(1.0, width + 1)

    def gather(self, Z: np.ndarray) -> np.ndarray:
        """Return the candidates' entries of Z (n, l), of shape (n, s); zero where padded."""
        entries = np.take_along_axis(Z, self.columns, axis=1)
        entries[self.padding] = 0.0
        return entries

    def scatter(self, entries: np.ndarray) -> np.ndarray:
        """Undo :meth:`gather`: return (n, l) with zeros off the candidates."""
        Z = np.zeros(self.mask.shape)
        np.put_along_axis(Z, self.columns, np.where(self.padding, 0.0, entries), axis=1)
        return Z

    def project(self, entries: np.ndarray) -> np.ndarray:
        """Return the nearest point of the simplexes to entries (n, s), whatever is in the padding.

        Each row becomes max(z - theta, 0). Of the thresholds (sum of the r largest - 1) / r, which
        rise as long as the r-th largest entry stays positive and then fall, theta is the largest.
        """
        entries = entries + self._ban
        sums = np.sort(-entries, axis=1).cumsum(axis=1)  # of the negatives: largest first
        theta = ((-1.0 - sums) / self._counts).max(axis=1, keepdims=True)
        return np.maximum(entries - theta, 0.0)

    def gap(self, entries: np.ndarray, gradient: np.ndarray) -> float:
        """Return the Frank-Wolfe gap <g, y> - sum_i min_j g_ij, both arguments (n, s).

        A convex function with this gradient at y is there at most this above its minimum.
        """
        # As differences from the rows' minima: nothing is negative, little is lost to rounding.
        lowest = (gradient - self._ban).min(axis=1, keepdims=True)
        return float(np.vdot(entries, gradient - lowest))


def smooth_confidence(
    W: sparse.csr_array,
    simplexes: CandidateSimplexes,
    start: np.ndarray,
    *,
    pull: float = 0.0,
    target: np.ndarray | None = None,
    tol: float = 1e-11,
) -> tuple[np.ndarray, float]:
    """Minimize |(I - W) Y|^2 + pull |Y - target|^2 over the simplexes.

    Accelerated projected gradients (A. Beck and M. Teboulle, "A Fast Iterative
    Shrinkage-Thresholding Algorithm for Linear Inverse Problems", SIAM Journal on Imaging Sciences
    2(1), 2009), restarted where momentum points uphill (B. O'Donoghue and E. Candes, "Adaptive
    Restart for Accelerated Gradient Schemes", Foundations of Computational Mathematics 15, 2015).
    The gradient is affine, so the one at the extrapolated point follows from those at the iterates,
    where it also gives the exact gap.

    Parameters
    ----------
    W : sparse array of shape (n, n)
    simplexes : CandidateSimplexes
    start : float64 array of shape (n, l)
        Confidences to begin with.
    pull : float, default=0
    target : float64 array of shape (n, l), optional
        F above; zeros by default.
    tol : float, default=1e-11
        Stop when the objective is certainly within ``tol * max(1 + pull, objective)`` of the
        minimum.

    Returns
    -------
    Y : float64 array of shape (n, l)
    gap : float
        Certified: the objective at Y is at most this above the minimum.
    """
    product = _hessian_product(W, simplexes)
    toward = 2.0 * pull * (0.0 if target is None else simplexes.gather(target))
    constant = 0.0 if target is None else pull * float(np.vdot(target, target))

    def gradient_at(y: np.ndarray) -> np.ndarray:
        return 2.0 * product(y) + (2.0 * pull) * y - toward

    y = z = simplexes.gather(start)
    curvature = 2.0 * (_largest_eigenvalue(product, y.shape) + pull)
    gradient = gradient_z = gradient_at(y)
    momentum, best, best_gap = 1.0, y, np.inf
    for step in range(_MAX_STEPS):
        if step % _LOOK_EVERY == 0:
            gap = simplexes.gap(y, gradient)
            if gap < best_gap:
                best, best_gap = y, gap
            objective = 0.5 * float(np.vdot(y, gradient - toward)) + constant
            if best_gap <= tol * max(1.0 + pull, objective):
                break
        new = simplexes.project(z - gradient_z / curvature)
        new_gradient = gradient_at(new)
        moved, change = new - z, new - y
        length = np.vdot(moved, moved)
        bend = np.vdot(moved, new_gradient - gradient_z)
        if length > 1e-12 and bend > curvature * length * (1 + 1e-6):
            # The eigenvalue was found from below; steps have to be shorter than it says.
            curvature = 1.02 * float(bend / length)
            z, gradient_z, momentum = y, gradient, 1.0
            continue
        if np.vdot(moved, change) < 0:  # the step from z points back: momentum went too far
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        # More momentum than the pull's strong convexity calls for only overshoots.
        root = np.sqrt(2.0 * pull / curvature)
        ahead = min((momentum - 1) / following, (1 - root) / (1 + root))
        z = new + ahead * change
        gradient_z = new_gradient + ahead * (new_gradient - gradient)
        y, gradient, momentum = new, new_gradient, following
    return simplexes.scatter(best), best_gap


def _hessian_product(
    W: sparse.csr_array, simplexes: CandidateSimplexes
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function y -> the candidates' entries of (I - W)'(I - W) Y, both (n, s).

    R maps entries to residuals (I - W) Y, one for each sample and class; the columns of padded
    entries are empty.
    """
    (n, n_classes), width = simplexes.mask.shape, simplexes.columns.shape[1]
    graph = W.tocoo()
    sample = np.concatenate([np.arange(n), graph.row])
    other = np.concatenate([np.arange(n), graph.col])
    value = np.concatenate([np.ones(n), -graph.data])
    used = ~simplexes.padding[other]
    rows = (sample[:, None] * n_classes + simplexes.columns[other])[used]
    columns = (other[:, None] * width + np.arange(width))[used]
    values = np.broadcast_to(value[:, None], used.shape)[used]
    R = sparse.csr_array((values, (rows, columns)), shape=(n * n_classes, n * width))
    RT = R.T.tocsr()
    if n * width <= _DENSE_ENTRIES:
        H = (RT @ R).toarray()
        return lambda y: (H @ y.ravel()).reshape(y.shape)
    R = R[np.diff(R.indptr) > 0]  # residuals that no candidate enters are zero
    RT = R.T.tocsr()
    return lambda y: (RT @ (R @ y.ravel())).reshape(y.shape)


def _largest_eigenvalue(
    product: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
) -> float:
    """Return about the largest eigenvalue of a positive semi-definite product, by powers."""
    v = np.cos(1.7 * np.arange(np.prod(shape))).reshape(shape)  # no eigenvector is blind to it
    value = 1.0
    for _ in range(30):
        v = v / np.linalg.norm(v)
        image = product(v)
        before, value = value, float(np.linalg.norm(image))
        if value == 0 or abs(value - before) <= 1e-2 * value:
            break
        v = image
    return 1.05 * max(value, 1e-3)


def graph_confidence(W: sparse.csr_array, simplexes: CandidateSimplexes) -> np.ndarray:
    """Return the confidences that fit the graph best: argmin |(I - W) Y|^2, of shape (n, l).

    Where the graph leaves the answer open, a tiny pull prefers equal shares.
    """
    pull = 0.0 if _decides(W, simplexes.mask) else _TIE_BREAK
    equal = simplexes.uniform
    return smooth_confidence(W, simplexes, equal, pull=pull, target=equal)[0]


def _decides(W: sparse.csr_array, mask: np.ndarray) -> bool:
    """Tell whether every closed group of samples is left with less than two common candidates.

    Samples of a group from which no weight leads away can all have the same confidences, at no
    cost, over the candidates that they share; with two of those, any mixture will do.
    """
    W = W.copy()
    W.eliminate_zeros()
    n_groups, group = connected_components(W, directed=True, connection="strong")
    source, destination = W.nonzero()
    closed = np.ones(n_groups, dtype=bool)
    closed[group[source[group[source] != group[destination]]]] = False
    excluded = np.zeros((n_groups, mask.shape[1]), dtype=bool)
    row, column = np.nonzero(~mask)
    excluded[group[row], column] = True
    return bool(((~excluded).sum(axis=1)[closed] < 2).all())
