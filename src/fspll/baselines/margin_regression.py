"""The regression of PL-LEAF: several outputs, a tube, and a reward for the candidates' margin.

Shapes: n samples, l outputs. With outputs f = K B + 1 b for the training samples, it minimizes the
convex function

    J(B, b) = 1/2 tr(B'KB) + C1 sum_i max(u_i - epsilon, 0)^2 - C2 <Z, f>,     u_i = |y_i - f_i|.

At the minimum B_i = a_i (y_i - f_i) + C2 z_i, a_i = 2 C1 max(u_i - epsilon, 0) / u_i, and the rows
of B sum to zero.

Matilde Sanchez-Fernandez, Mario de-Prado-Cumplido, Jeronimo Arenas-Garcia and Fernando Perez-Cruz,
"SVM Multiregression for Nonlinear Channel Estimation in Multiple-Input Multiple-Output Systems",
IEEE Transactions on Signal Processing 52(8), 2004, have the regression without the reward, and
solve it by reweighted least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fspll.baselines.kernel_ridge import KernelRidge

_MAX_STEPS = 2000
_TOLERANCE = 1e-8  # of the condition of optimality, in units of its terms' weights
_PUBLIC_TOLERANCE = 1e-10

Point = tuple[np.ndarray, np.ndarray, np.ndarray]  # B, K B and b


@dataclass(frozen=True)
class MarginProblem:
    """What is minimized.

    Attributes
    ----------
    K : float64 array of shape (n, n)
    Y : float64 array of shape (n, l)
        Label confidences to be reproduced.
    Z : float64 array of shape (n, l)
        Direction of the candidates' margin.
    C1, C2, epsilon : float
    """

    K: np.ndarray
    Y: np.ndarray
    Z: np.ndarray
    C1: float
    C2: float
    epsilon: float

    def objective(self, B: np.ndarray, KB: np.ndarray, b: np.ndarray, C1: float) -> float:
        """Return J at (B, b), given K B, with C1 as the weight of the errors."""
        f = KB + b
        excess = np.maximum(np.linalg.norm(self.Y - f, axis=1) - self.epsilon, 0.0)
        return float(
            0.5 * np.vdot(B, KB) + C1 * np.vdot(excess, excess) - self.C2 * np.vdot(self.Z, f)
        )

    def weights(self, f: np.ndarray) -> np.ndarray:
        """Return a_i at outputs f (n, l): zero inside the tube; of shape (n,)."""
        u = np.linalg.norm(self.Y - f, axis=1)
        excess = np.maximum(u - self.epsilon, 0.0)
        return 2.0 * self.C1 * np.divide(excess, u, out=np.zeros_like(u), where=excess > 0)

    def pull(self, f: np.ndarray) -> np.ndarray:
        """Return a_i (y_i - f_i) + C2 z_i, minus the gradient of all but the norm, (n, l)."""
        return self.weights(f)[:, None] * (self.Y - f) + self.C2 * self.Z


def solve_regression(
    problem: MarginProblem, *, overwrite_kernel: bool = False
) -> tuple[np.ndarray, np.ndarray, int]:
    """Find the minimum by accelerated proximal gradients over the outputs f.

    Apart from the norm of the regression J is a function of f whose gradient, -a (Y - f) - C2 Z,
    changes at most 2 C1 times as fast as f. A step along it, with the norm taken exactly, is

        min over B, b   1/2 tr(B'KB) + C1 |f - T|^2,    T = f0 + (a (Y - f0) + C2 Z) / (2 C1):

    a kernel ridge regression of T with ridge 1 / (2 C1). One factor of the kernel serves all steps,
    no search along a step is needed, and samples inside the tube are like any others. Momentum and
    its restart are as in :func:`fspll.baselines.simplex.smooth_confidence`.

    Parameters
    ----------
    problem : MarginProblem
    overwrite_kernel : bool, default=False
        Destroy ``problem.K``, which saves the memory of another.

    Returns
    -------
    B : float64 array of shape (n, l)
    b : float64 array of shape (l,)
    steps : int
    """
    # Errors get no larger weight than this: rounding of the kernel would exceed the ridge.
    p = replace(problem, C1=min(problem.C1, 1e12 / len(problem.K)))
    bend = 2.0 * p.C1
    regression = KernelRidge(p.K if overwrite_kernel else p.K.copy(), 1.0 / bend)
    f = ahead_f = np.zeros_like(p.Y)
    pull = p.pull(f)
    momentum, steps = 1.0, 0
    while True:
        steps += 1
        B, b, new = regression.fit(ahead_f + pull / bend)
        # At the minimum B is the pull itself.
        if np.abs(B - p.pull(new)).max() <= _TOLERANCE * (bend + p.C2) or steps == _MAX_STEPS:
            return B, b, steps
        change = new - f
        if np.vdot(new - ahead_f, change) < 0:
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        f, ahead_f, momentum = new, new + (momentum - 1) / following * change, following
        pull = p.pull(ahead_f)


def _search(
    problem: MarginProblem, old: Point, new: Point, value: float
) -> tuple[Point | None, float]:
    """Return the first point on the way back from new to old that is no higher than ``value``."""
    share = 1.0
    while share > 1e-16:
        B, KB, b = (o + share * (n - o) for o, n in zip(old, new, strict=True))
        reached = problem.objective(B, KB, b, problem.C1 / 2)
        if reached <= value:
            return (B, KB, b), reached
        share /= 10
    return None, value


def _bordered_solve(
    K: np.ndarray, diagonal: np.ndarray, target: np.ndarray, total: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Solve (K + diag) B + 1 b = target with 1'B = total, by a Cholesky factor and elimination."""
    n = len(K)
    system = K.copy()
    system[np.arange(n), np.arange(n)] += diagonal
    # Scaled to a unit diagonal: a sample inside the tube has a diagonal very much larger.
    unit = 1.0 / np.sqrt(system[np.arange(n), np.arange(n)])
    system *= unit[:, None]
    system *= unit
    right = np.column_stack([target, np.ones(n)]) * unit[:, None]
    factor = cho_factor(system, overwrite_a=True, check_finite=False)
    solved = cho_solve(factor, right, check_finite=False) * unit[:, None]
    B, ones = solved[:, :-1], solved[:, -1:]
    b = (B.sum(axis=0) - total) / ones.sum()
    return B - ones * b, b


def public_steps(problem: MarginProblem) -> tuple[np.ndarray, np.ndarray, int]:
    """Do what the public program of the method does, with its departures from the minimum.

    Samples inside the tube keep their rows of B from the step before; the search along a step
    looks at C1 / 2 although the step is one of C1, so that it stops after about the first; a
    negative objective stops it, too; and when no sample is outside the tube, B becomes zero.
    Returns as :func:`solve_regression`.
    """
    p = problem
    B, KB, b = np.zeros_like(p.Y), np.zeros_like(p.Y), np.zeros(p.Y.shape[1])
    weights = p.weights(KB + b)
    value = p.objective(B, KB, b, p.C1 / 2)
    steps = 0
    while steps < _MAX_STEPS and (weights > 0).any():
        steps += 1
        outside = np.flatnonzero(weights > 0)
        a = weights[outside, None]
        # The sum over all samples is to vanish, those inside the tube counted as C2 z_i.
        inside = p.C2 * np.delete(p.Z, outside, axis=0).sum(axis=0)
        new_B = B.copy()
        new_B[outside], new_b = _bordered_solve(
            p.K[np.ix_(outside, outside)],
            1.0 / a[:, 0],
            p.Y[outside] + p.C2 * p.Z[outside] / a,
            -inside,
        )
        trial, trial_value = _search(p, (B, KB, b), (new_B, p.K @ new_B, new_b), value)
        if trial is None:
            break
        (B, KB, b), before, value = trial, value, trial_value
        weights = p.weights(KB + b)
        if before == 0 or (before - value) / before < _PUBLIC_TOLERANCE:
            break
    return (B if (weights > 0).any() else np.zeros_like(B)), b, steps
