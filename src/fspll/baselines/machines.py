"""Many two-class support vector machines on one training set.

Every machine sees a part of the samples only, but all share the kernel: it is computed once, a
machine is a column of coefficients over all samples, and the outputs of all machines for new
samples are one matrix product.

Shapes: n training samples, m new samples, d features, T machines.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.svm import SVC

from fspll.baselines.batched_svm import solve_together

KERNELS = ("rbf", "linear")
_KEEP_UP_TO = 20_000  # samples, 3.2 GB: beyond, libsvm computes what it needs of the kernel itself
_VALUES_AT_ONCE = 1 << 23  # of a kernel between new and training samples
_VALUES_IN_CACHE = 1 << 18  # of a kernel, on which the steps of its formula are taken in turn
_SPARSE_BELOW = 0.1  # share of support vectors, under which sparse products are faster
_SMALL = 192  # samples of a problem that is solved together with others
_MEMBERS_AT_ONCE = 1 << 15  # of such problems, for the sake of the processor's cache
_MAX_STEPS = 10_000_000  # libsvm's own limit, which scikit-learn takes away

# One problem: the numbers of the samples, +1 or -1 for each, and their weights or None.
Problem = tuple[np.ndarray, np.ndarray, np.ndarray | None]
# Its machine: the numbers of the support vectors, their coefficients, the intercept.
Solution = tuple[np.ndarray, np.ndarray, float]


class KernelMachines:
    """Support vector machines with hinge loss, as libsvm has them.

    Parameters
    ----------
    X : array of shape (n, d)
        Training samples.
    kernel : {"rbf", "linear"}
        "rbf" is exp(-|a - b|^2 / d), with libsvm's default width; "linear" is the plain product.
    C : float
        Cost of a margin that is missed by one.

    Attributes
    ----------
    coefficients : array or sparse array of shape (n, T)
        Zero but for support vectors.
    intercepts : array of shape (T,)
    """

    def __init__(self, X: np.ndarray, kernel: str, C: float) -> None:
        self.X = X
        self.kernel = kernel
        self.C = C
        self.coefficients: np.ndarray | sparse.csc_array = np.zeros((len(X), 0))
        self.intercepts = np.zeros(0)

    def train(self, problems: Iterable[Problem | None]) -> np.ndarray:
        """Train one machine a problem and return their outputs on the training samples, (n, T).

        A problem has samples of both signs; None stands for a machine that always answers zero.
        """
        problems = list(problems)
        kept = self._kernel(self.X) if len(self.X) <= _KEEP_UP_TO else None
        solutions: dict[int, Solution] = {} if kept is None else self._solve_small(problems, kept)
        # The arrays are our own: checking them again costs more than training on a few samples.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for number, problem in enumerate(problems):
                if problem is not None and number not in solutions:
                    solutions[number] = self._solve(problem, kept)
        self.intercepts = np.zeros(len(problems))
        shape = (len(self.X), len(problems))
        if not solutions:
            self.coefficients = np.zeros(shape)
            return np.zeros(shape)
        for number, solution in solutions.items():
            self.intercepts[number] = solution[2]
        rows, values, _ = zip(*solutions.values(), strict=True)
        columns = np.repeat(list(solutions), [len(part) for part in rows])
        coefficients = sparse.csc_array(
            (np.concatenate(values), (np.concatenate(rows), columns)), shape=shape
        )
        dense = coefficients.nnz > _SPARSE_BELOW * shape[0] * shape[1]
        self.coefficients = coefficients.toarray() if dense else coefficients
        return self.outputs(self.X) if kept is None else self._combine(kept)

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Return what every machine says of new samples, of shape (m, T)."""
        at_once = max(1, _VALUES_AT_ONCE // len(self.X))
        parts = [
            self._combine(self._kernel(X[start : start + at_once]))
            for start in range(0, len(X), at_once)
        ]
        return np.concatenate(parts)

    def _combine(self, kernel: np.ndarray) -> np.ndarray:
        return kernel @ self.coefficients + self.intercepts

    def _kernel(self, A: np.ndarray) -> np.ndarray:
        """Return the kernel between some samples and the training samples, of shape (m, n)."""
        if self.kernel == "linear":
            return A @ self.X.T
        result = np.empty((len(A), len(self.X)))
        square_A, square_X = np.square(A).sum(axis=1), np.square(self.X).sum(axis=1)
        step = max(1, _VALUES_IN_CACHE // len(self.X))
        for first in range(0, len(A), step):
            rows = slice(first, first + step)
            square = np.matmul(A[rows], self.X.T, out=result[rows])
            square *= -2
            square += square_A[rows, None]
            square += square_X
            np.maximum(square, 0, out=square)  # rounding
            square *= -1 / self.X.shape[1]
            np.exp(square, out=square)
        return result

    def _solve_small(self, problems: list[Problem | None], kept: np.ndarray) -> dict[int, Solution]:
        """Solve problems of few samples, those of similar size together."""
        sizes = {
            number: len(problem[0])
            for number, problem in enumerate(problems)
            if problem is not None
        }
        waiting = sorted(
            (number for number in sizes if sizes[number] <= _SMALL), key=sizes.__getitem__
        )
        solutions = {}
        while waiting:
            longest = max(2 * sizes[waiting[0]], 16)
            room = _MEMBERS_AT_ONCE // longest
            group = [number for number in waiting[:room] if sizes[number] <= longest]
            waiting = waiting[len(group) :]
            shape = (len(group), sizes[group[-1]])
            members, signs = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=np.int8)
            cost = np.full(shape, float(self.C))
            for row, number in enumerate(group):
                who, sign, weight = problems[number]  # type: ignore[misc]
                members[row, : len(who)], signs[row, : len(who)] = who, sign
                if weight is not None:
                    cost[row, : len(who)] *= weight
            coefficients, intercepts, unsolved = solve_together(kept, members, signs, cost)
            for row in set(range(len(group))) - set(unsolved.tolist()):
                support = np.flatnonzero(coefficients[row])
                solutions[group[row]] = (
                    members[row, support],
                    coefficients[row, support],
                    intercepts[row],
                )
        return solutions

    def _solve(self, problem: Problem, kept: np.ndarray | None) -> Solution:
        members, signs, weights = problem
        if kept is not None:
            machine = SVC(C=self.C, kernel="precomputed", max_iter=_MAX_STEPS)
            whole = np.array_equal(members, np.arange(len(kept)))  # then no copy is needed
            machine.fit(kept if whole else kept[np.ix_(members, members)], signs, weights)
        else:
            machine = SVC(C=self.C, kernel=self.kernel, gamma="auto", max_iter=_MAX_STEPS)
            machine.fit(self.X[members], signs, weights)
        return members[machine.support_], machine.dual_coef_[0], machine.intercept_[0]
