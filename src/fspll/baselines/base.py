"""What the baselines share: reading X and y, scaling the features, decisions and scores.

Shapes: n samples, d features, l classes; a mask is ``(n, l)`` bool.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fspll._common.arguments import check_choice, is_integer
from fspll._common.errors import InputError
from fspll.candidates.estimators import (
    check_lengths,
    checked_vectors,
    read_target,
    score_predictions,
)
from fspll.candidates.sets import Candidates

SCALES = ("standard", "minmax", "none")
FARTHEST = 1e70  # scaled coordinate
Self = TypeVar("Self", bound="PartialLabelClassifier")


class PartialLabelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the baselines; a method fills in ``_fit`` and ``_scores``.

    The constructor of a method takes, besides what is its own, these parameters.

    Parameters
    ----------
    scale : {"standard", "minmax", "none"}
        How features are scaled, always with the training samples' statistics: to mean zero and
        variance one, to the range from zero to one, or not at all. A constant feature is only
        shifted.
    classes : sequence, optional
        All classes in the order wanted. By default, the sorted labels that occur, or 0 .. l-1 when
        y is a mask.

    Attributes
    ----------
    classes_ : ndarray of shape (l,)
        The classes.
    candidates_ : Candidates
        What y was read as.
    mean_, scale_ : ndarray of shape (d,)
        What is subtracted from the features, and by what the difference is divided.
    n_features_in_ : int
        Number of features d.
    """

    revision: ClassVar[str] = "1"
    """Changed whenever the method computes something else, so that kept results are not reused."""

    uses_judgments: ClassVar[bool] = False
    """Whether ``fit`` takes who said what as a third argument."""

    scale: str
    classes: Any

    def fit(self: Self, X: Any, y: Any) -> Self:
        """Learn from candidate sets.

        Parameters
        ----------
        X : array of shape (n, d)
            Feature vectors.
        y : mask (n, l), list of sets of labels, or labels of shape (n,)
            Candidate sets; see :meth:`fspll.candidates.Candidates.read`.
        """
        features, candidates = self._read(X, y)
        self._fit(features, candidates.mask)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of each class, of shape (n, l), or (n,) for two classes.

        Columns follow ``classes_``; a class that is nobody's candidate has minus infinity. With
        two classes it is the second's score less the first's, as scikit-learn has it.
        """
        scores = self._checked_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the highest score, of shape (n,); the first of equal ones."""
        scores = self._checked_scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of samples whose *true* label is predicted.

        Where only candidate sets are known, as in ``cross_val_score`` on partial labels, it is the
        share of *candidate hits*: samples whose predicted label is among their candidates. For sets
        of one the two are equal; larger sets are easier to hit, so scores compare methods on the
        same sets and say nothing of accuracy by themselves.

        Parameters
        ----------
        X : array of shape (n, d)
        y : true labels of shape (n,), or candidate sets as in :meth:`fit`
        sample_weight : array of shape (n,), optional
        """
        check_is_fitted(self, "scale_")
        target = read_target(y, self.classes_)
        return score_predictions(target, self.predict(X), sample_weight)

    # ---------------------------------------------------------------- for the methods

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        """Learn from scaled features of shape (n, d), float64, and a mask of shape (n, l)."""
        raise NotImplementedError

    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Return scores of shape (n, l) for scaled features; the highest is predicted."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise when a parameter cannot be used; methods add theirs."""
        check_choice("scale", self.scale, SCALES)

    def _most_credible(self, scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the candidate with the highest score of each sample, labels of shape (n,)."""
        return self.classes_[np.where(mask, scores, -np.inf).argmax(axis=1)]

    # ---------------------------------------------------------------- inner steps

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, Candidates]:
        """Check what a user gives to ``fit``; return scaled features (n, d) and candidate sets."""
        self._check_parameters()
        features = checked_vectors(self, X, fitting=True, dtype=(np.float64,))
        candidates = Candidates.read(y, self.classes)
        check_lengths(len(features), candidates)
        self.candidates_ = candidates
        self.classes_ = candidates.classes
        self.mean_, self.scale_ = _statistics(features, self.scale)
        return self._scaled(features), candidates

    def _checked_scores(self, X: Any) -> np.ndarray:
        """Return the scores of samples as a user gives them, of shape (n, l)."""
        check_is_fitted(self, "scale_")
        features = checked_vectors(self, X, fitting=False, dtype=(np.float64,))
        scores = self._scores(self._scaled(features))
        present = np.bincount(self.candidates_.matrix.indices, minlength=scores.shape[1]) > 0
        return np.where(present, scores, -np.inf)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        # A new sample may lie very many standard deviations away from a feature that hardly varied.
        # Up to here even products of two distances stay finite.
        with np.errstate(over="ignore"):
            return np.clip((X - self.mean_) / self.scale_, -FARTHEST, FARTHEST)


# -------------------------------------------------------------------- checks and statistics


def _statistics(X: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what to subtract and what to divide by, both of shape (d,)."""
    low, high = X.min(axis=0), X.max(axis=0)
    if scale == "none":
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    if scale == "minmax":
        shift, spread = low, high - low
    else:
        # Divided by the range first: squares of large or tiny features leave the floats.
        unit = np.where(high > low, high - low, 1.0)
        relative = (X - low) / unit
        shift = low + unit * relative.mean(axis=0)
        spread = unit * relative.std(axis=0)
    constant = (high == low) | (spread == 0)
    # A mean of equal numbers can miss them by a rounding.
    return np.where(constant, low, shift), np.where(constant, 1.0, spread)


def random_generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a generator, a ``RandomState`` or None; see scikit-learn.

    The global state is never touched: None takes fresh entropy.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def check_random_state(random_state: Any) -> None:
    """Raise unless :func:`random_generator` can use it."""
    generators = (np.random.Generator, np.random.RandomState)
    usable = random_state is None or isinstance(random_state, generators)
    if not usable and not (is_integer(random_state) and random_state >= 0):
        raise InputError(
            f"random_state must be a whole number of 0 or more, a generator, or None, not "
            f"{random_state!r}"
        )
