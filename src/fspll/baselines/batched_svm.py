"""Many small support vector machines solved together.

libsvm solves a problem of twenty samples in microseconds, but a call of it through scikit-learn
takes a millisecond. Here the same optimization, sequential minimal optimization with the working
set of R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order information
for training support vector machines", JMLR 6, 2005, makes one step in all problems at once.

Shapes: n samples, B problems, p samples in the largest of them.
"""

from __future__ import annotations

import numpy as np

_TINY = 1e-12  # libsvm's, for curvatures that are not positive
_TOLERANCE = 1e-4  # of the largest violation of the optimality conditions; libsvm's is 1e-3
_MOST_STEPS = 20  # a sample


def solve_together(
    kernel: np.ndarray,
    members: np.ndarray,
    signs: np.ndarray,
    cost: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimize 1/2 v'Kv - y'v over sum(v) = 0 and 0 <= y_s v_s <= cost_s.

    This is the dual problem of the machine in v_s = y_s a_s, its coefficients.

    Parameters
    ----------
    kernel : array of shape (n, n)
    members : int array of shape (B, p)
        The samples of each problem; shorter problems are filled up with any sample.
    signs : array of shape (B, p)
        y, 1 and -1, both in every problem; 0 where there is no sample.
    cost : array of shape (B, p)

    Returns
    -------
    coefficients : array of shape (B, p)
        v; zero where there is no sample.
    intercepts : array of shape (B,)
    unsolved : int array
        Problems that take so many steps that libsvm, one by one, is faster; nothing is returned
        for them.
    """
    coefficients, intercepts = np.zeros(signs.shape), np.zeros(len(signs))
    live = np.arange(len(signs))
    # Each problem's own part of the kernel, (B, p, p): a row of it is then read in one piece.
    part = kernel[members[:, :, None], members[:, None, :]]
    state = [
        np.zeros(signs.shape),
        signs.astype(float),  # residual y - Kv, which is the intercept wherever v is free
        np.minimum(signs * cost, 0),
        np.maximum(signs * cost, 0),
        kernel[members, members],
    ]
    for _ in range(_MOST_STEPS * signs.shape[1]):
        v, residual, lower, upper, diagonal = state
        rows = np.arange(len(live))
        rising = np.where(v < upper, residual, -np.inf)
        falling = np.where(v > lower, residual, np.inf)
        i = rising.argmax(axis=1)
        highest = rising[rows, i]
        done = highest - falling.min(axis=1) < _TOLERANCE
        if done.any():
            coefficients[live[done]] = v[done]
            intercepts[live[done]] = _intercepts(rising[done], falling[done])
            live = live[~done]
            if len(live) == 0:
                break
            state = [array[~done] for array in state]
            continue
        row_i = part[live, i]
        gain = np.maximum(highest[:, None] - falling, 0)
        curvature = np.maximum(diagonal[rows, i][:, None] + diagonal - 2 * row_i, _TINY)
        j = (gain * gain / curvature).argmax(axis=1)
        # Raise v_i and lower v_j by as much, as far as the bounds allow; then exactly onto them.
        room_i, room_j = upper[rows, i] - v[rows, i], v[rows, j] - lower[rows, j]
        step = np.minimum(gain[rows, j] / curvature[rows, j], np.minimum(room_i, room_j))
        v[rows, i] = np.where(step >= room_i, upper[rows, i], v[rows, i] + step)
        v[rows, j] = np.where(step >= room_j, lower[rows, j], v[rows, j] - step)
        row_j = part[live, j]
        residual -= step[:, None] * (row_i - row_j)
    return coefficients, intercepts, live


def _intercepts(rising: np.ndarray, falling: np.ndarray) -> np.ndarray:
    """Return what libsvm takes: the mean residual over free v, or the middle of what is allowed."""
    free = np.isfinite(rising) & np.isfinite(falling)
    count = free.sum(axis=1)
    mean = np.where(free, rising, 0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, mean, (rising.max(axis=1) + falling.min(axis=1)) / 2)
