"""PL-ECOC: error-correcting output codes that never need to disambiguate.

Min-Ling Zhang, Fei Yu and Cai-Zhi Tang, "Disambiguation-free partial label learning", IEEE
Transactions on Knowledge and Data Engineering 29(10), 2017. Shapes: n training samples, m new
samples, l classes, L columns of the coding matrix.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import numpy as np
from scipy.special import logsumexp

from fspll._common.arguments import check_choice, check_count, check_positive
from fspll.baselines.base import PartialLabelClassifier, check_random_state, random_generator
from fspll.baselines.dichotomies import (
    ENUMERATE_UP_TO,
    draw_columns,
    draw_weighted_columns,
    members,
    weighted_signs,
)
from fspll.baselines.machines import KERNELS, KernelMachines, Problem
from fspll.baselines.nearest_mean import class_means, mean_scores

_PLAIN_EXPONENT = 300.0  # outputs up to here are exponentiated without under- or overflow


class PLECOC(PartialLabelClassifier):
    """Partial-label learning by error-correcting output codes.

    Random splits of the classes in two are turned into two-class problems on the samples whose
    candidates all lie on one side. A new sample gets the class whose row of the coding matrix M
    fits the outputs f_t of the machines best, argmin_j sum_t H_jt exp(-f_t M_jt), where H_jt tells
    how well machine t does on the samples that have j as a candidate.

    A split is usable when at least a tenth of the samples lie on one of its sides, and at least one
    sample on each. With small training sets or large candidate sets there may be none. The method
    then falls back in steps of ours, and ``fallback_level_`` tells how far: (1) splits are drawn at
    random; (2) with up to 12 classes all splits are enumerated, and L of the usable ones drawn;
    (3) when there are none, or they leave two classes with the same code, a sample belongs to the
    side of most of its candidates, with a smaller weight the less clear that is; (4) when even then
    one side is always empty, nearest class mean.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the support vector machines.
    kernel : {"rbf", "linear"}, default="rbf"
        Their kernel; "rbf" is exp(-|a - b|^2 / d), libsvm's default.
    n_columns : int, optional
        How many splits L to use, ceil(10 log2 l) by default. Fewer are used when there are no more.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.
    random_state : int, numpy.random.Generator, RandomState or None, default=None
        Draws the splits.

    Attributes
    ----------
    coding_matrix_ : int8 ndarray of shape (l, L)
        1 and -1; rows of zeros for classes that are nobody's candidate.
    performance_ : ndarray of shape (l, L)
        H with rows that sum to one.
    n_columns_ : int
        The L that was used.
    fallback_level_ : int
        1 to 4, see above.
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated afterwards: the candidate with the highest score. The
        method itself does not need it.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = PLECOC(random_state=0).fit(X, y)
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        n_columns: int | None = None,
        scale: str = "standard",
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.n_columns = n_columns
        self.scale = scale
        self.classes = classes
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("C", self.C)
        check_choice("kernel", self.kernel, KERNELS)
        if self.n_columns is not None:
            check_count("n_columns", self.n_columns, 1)
        check_random_state(self.random_state)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        present = np.flatnonzero(mask.any(axis=0))
        sets = mask[:, present]
        columns, self.fallback_level_ = self._draw(sets)
        self.n_columns_ = len(columns)
        self.coding_matrix_ = np.zeros((mask.shape[1], len(columns)), dtype=np.int8)
        self.coding_matrix_[present] = np.where(columns.T, 1, -1)
        self.performance_ = np.zeros(self.coding_matrix_.shape)
        self._present, self._means = present, class_means(X, mask)
        self._machines = KernelMachines(X, self.kernel, self.C)
        make = _weighted_problem if self.fallback_level_ == 3 else _strict_problem
        outputs = self._machines.train(make(sets, column) for column in columns)
        self.performance_[present] = performance(outputs, sets, self.coding_matrix_[present])
        scores = self._decoded(outputs) if len(columns) else mean_scores(X, self._means)
        self.labels_ = self._most_credible(scores, mask)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        if self.n_columns_ == 0:
            return mean_scores(X, self._means)
        return self._decoded(self._machines.outputs(X))

    def _decoded(self, outputs: np.ndarray) -> np.ndarray:
        scores = np.zeros((len(outputs), len(self.classes_)))
        code, weights = self.coding_matrix_[self._present], self.performance_[self._present]
        scores[:, self._present] = -decode(outputs, code, weights)
        return scores

    def _draw(self, sets: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the columns, of shape (L, l) without absent classes, and the fallback level."""
        n, n_classes = sets.shape
        rng = random_generator(self.random_state)
        if n_classes > 1:
            wanted = self.n_columns or ceil(10 * log2(n_classes))
            columns = draw_columns(sets, wanted, max(2, ceil(n / 10)), rng)
            # As many as the user asked for are enough, whatever the codes.
            if len(columns) and (_all_differ(columns.T) or len(columns) == self.n_columns):
                return columns, 1 if n_classes > ENUMERATE_UP_TO else 2
            columns = draw_weighted_columns(sets, wanted, rng)
            if len(columns):
                return columns, 3
        return np.zeros((0, n_classes), dtype=bool), 4


def performance(outputs: np.ndarray, sets: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Return how well each machine does on the samples that may be of a class, of shape (l, L).

    It is the share of *all* samples with candidate j, used in training or not, on which machine t
    gives the sign of the code; then rows are divided by their sum. A class on which every machine
    fails weights all alike.

    Parameters
    ----------
    outputs : array of shape (n, L)
        Of the machines on the training samples.
    sets : bool array of shape (n, l)
        Candidate sets; every class is somebody's candidate.
    code : array of shape (l, L)
        Coding matrix of 1 and -1.
    """
    weights = sets.T.astype(float)
    hits = np.where(code > 0, weights @ (outputs > 0), weights @ (outputs < 0))
    share = hits / sets.sum(axis=0)[:, None]
    total = share.sum(axis=1, keepdims=True)
    return np.where(total > 0, share / np.where(total > 0, total, 1), 1 / max(1, code.shape[1]))


def decode(outputs: np.ndarray, code: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return log sum_t H_jt exp(-f_t M_jt), the loss of each class, of shape (m, l).

    Split by the sign of the code, the sum is two matrix products, exp(-f) and exp(f) each with a
    part of H. Each row is scaled by its largest output; rows with outputs so large that the
    smallest terms would vanish are summed in logarithms.

    Parameters
    ----------
    outputs : array of shape (m, L)
        Of the machines, f_t for each sample.
    code : array of shape (l, L)
        Coding matrix M of 1 and -1.
    weights : array of shape (l, L)
        H, non-negative; rows sum to one.
    """
    positive, negative = np.where(code > 0, weights, 0).T, np.where(code > 0, 0, weights).T
    largest = np.abs(outputs).max(axis=1, keepdims=True)
    plain = largest[:, 0] <= _PLAIN_EXPONENT
    loss = np.empty((len(outputs), len(code)))
    f, top = outputs[plain], largest[plain]
    loss[plain] = np.log(np.exp(-f - top) @ positive + np.exp(f - top) @ negative) + top
    for row in np.flatnonzero(~plain):
        loss[row] = logsumexp(-outputs[row] * code, b=weights, axis=1)
    return loss


def _strict_problem(sets: np.ndarray, column: np.ndarray) -> Problem:
    positive, negative = members(sets, column[None])
    who = np.flatnonzero(positive | negative)
    return who, np.where(positive[who, 0], 1, -1), None


def _weighted_problem(sets: np.ndarray, column: np.ndarray) -> Problem:
    lean = weighted_signs(sets, column)
    who = np.flatnonzero(lean)
    return who, np.sign(lean[who]).astype(int), np.abs(lean[who])


def _all_differ(code: np.ndarray) -> bool:
    return len(np.unique(code, axis=0)) == len(code)
