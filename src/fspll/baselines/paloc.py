"""PALOC: one-against-one votes, then one-against-the-rest machines stacked on top.

Xuan Wu and Min-Ling Zhang, "Towards enabling binary decomposition for partial label learning",
IJCAI 2018. How candidate sets are refined and machines stacked follows what public code does, and
may differ from the paper. Shapes: n training samples, m new samples, d features, l classes, and
T = l (l - 1) / 2 pairs of classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fspll._common.arguments import check_choice, check_positive
from fspll.baselines.base import PartialLabelClassifier
from fspll.baselines.machines import KERNELS, KernelMachines, Problem
from fspll.baselines.nearest_mean import class_means, mean_scores

_ZERO = 1e-10  # outputs below this are rounding, and vote for neither class


class PALOC(PartialLabelClassifier):
    """Partial-label learning by binary decomposition.

    A machine for each pair of classes learns from the samples that have exactly one of the two as
    a candidate; a pair with samples on one side only abstains. The machines vote. A training sample
    whose winner is among its candidates is taken to be of that class. Then a machine for each class
    tells it from the rest, on the features and all outputs of the first machines, and adds ``mu``
    votes where it says yes. Ties go to the larger sum of the pairs' outputs (a choice of ours),
    then to the first class.

    Where no pair has samples on both sides, the nearest class mean decides.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the support vector machines; it matters much for accuracy.
    kernel : {"rbf", "linear"}, default="rbf"
        Their kernel; "rbf" is exp(-|a - b|^2 / d), libsvm's default.
    mu : float, default=10.0
        Votes of a one-against-the-rest machine.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.

    Attributes
    ----------
    refined_ : bool ndarray of shape (n, l)
        What the votes leave of the candidate sets: the winner, or the whole set.
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the candidate with the most votes of the pairs.
    n_pairs_ : int
        How many pairs of classes have a machine.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = PALOC().fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        mu: float = 10.0,
        scale: str = "standard",
        classes: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.mu = mu
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("C", self.C)
        check_choice("kernel", self.kernel, KERNELS)
        check_positive("mu", self.mu, zero=True)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        problems = list(_pair_problems(mask))
        self.n_pairs_ = sum(problem is not None for problem in problems)
        self._means = class_means(X, mask)
        self._pairs = KernelMachines(X, self.kernel, self.C)
        outputs = self._pairs.train(problems)
        votes = self._pair_votes(X, outputs)
        winner = np.where(mask.any(axis=0), votes, -np.inf).argmax(axis=1)
        only_winner = np.arange(mask.shape[1]) == winner[:, None]
        self.refined_ = np.where(mask[np.arange(len(X)), winner][:, None], only_winner, mask)
        self._stack = KernelMachines(np.hstack([X, outputs]), self.kernel, self.C)
        self._stack.train(_class_problems(self.refined_))
        self.labels_ = self._most_credible(votes, mask)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        outputs = self._pairs.outputs(X)
        votes = self._pair_votes(X, outputs)
        if self.n_pairs_ == 0:
            return votes
        return votes + self.mu * (self._stack.outputs(np.hstack([X, outputs])) > _ZERO)

    def _pair_votes(self, X: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return votes plus a fraction that orders ties, of shape (m, l)."""
        if self.n_pairs_ == 0:
            return mean_scores(X, self._means)
        votes, margins = count_votes(outputs, len(self.classes_))
        # Two totals that are not tied differ by this much at least.
        beyond = self.mu % 1
        gap = 1.0 if min(beyond, 1 - beyond) < 1e-6 else min(beyond, 1 - beyond)
        return votes + gap * margins / (3 * (1 + np.abs(margins)))


def count_votes(outputs: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes that each class gets and the sum of outputs in its favor, (m, l) each.

    Parameters
    ----------
    outputs : array of shape (m, T)
        Of the machines for pairs (j, k), j < k, in the order (0, 1), (0, 2), ..., (1, 2), ...;
        positive for j, negative for k.
    n_classes : int
    """
    first, second = np.triu_indices(n_classes, 1)
    # One column a pair: 1 where its output favors the class when positive, -1 when negative.
    favors = np.zeros((len(first), n_classes))
    favors[np.arange(len(first)), first] = 1
    favors[np.arange(len(first)), second] = -1
    votes = (outputs > _ZERO) @ (favors > 0).astype(float)
    votes += (outputs < -_ZERO) @ (favors < 0).astype(float)
    return votes, outputs @ favors


def _pair_problems(mask: np.ndarray) -> Iterator[Problem | None]:
    for j, k in zip(*np.triu_indices(mask.shape[1], 1), strict=True):
        yield _problem(mask[:, j] & ~mask[:, k], mask[:, k] & ~mask[:, j])


def _class_problems(refined: np.ndarray) -> Iterator[Problem | None]:
    for column in refined.T:
        yield _problem(column, ~column)


def _problem(positive: np.ndarray, negative: np.ndarray) -> Problem | None:
    """Return the problem of two sets of samples, or None when one of them is empty."""
    if not positive.any() or not negative.any():
        return None
    who = np.flatnonzero(positive | negative)
    return who, np.where(positive[who], 1, -1), None
