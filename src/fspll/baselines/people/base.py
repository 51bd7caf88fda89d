"""What the methods share that know who said what: reading judgments, and a head for new samples.

Shapes: n samples, d features, l classes, t triples of judgments.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import softmax

from fspll._common.arguments import check_positive
from fspll._common.errors import InputError, InputTypeError
from fspll.baselines.base import PartialLabelClassifier
from fspll.baselines.people.soft_logistic import SoftLogistic
from fspll.candidates.judgments import OTHER, Judgments
from fspll.candidates.sets import Candidates

Self = TypeVar("Self", bound="PeopleClassifier")


class PeopleClassifier(PartialLabelClassifier):
    """Base of the methods for people; a method fills in ``_combine``.

    It turns judgments into shares of the candidates, and fits a logistic regression to these
    shares, which predicts new samples.

    Parameters
    ----------
    ridge : float
        Of the logistic regression.
    scale, classes
        As in every baseline.
    """

    uses_judgments: ClassVar[bool] = True
    needs_annotators: ClassVar[bool] = True
    """Whether it matters who gave a label, and not only how many gave it."""

    ridge: float

    def fit(self: Self, X: Any, y: Any, judgments: Judgments | None = None) -> Self:
        """Learn from what annotators said.

        Parameters
        ----------
        X : array of shape (n, d)
            Feature vectors.
        y : mask (n, l), list of sets of labels, or labels of shape (n,)
            Candidate sets; see :meth:`fspll.candidates.Candidates.read`. Only candidates get a
            share: where a person settled a sample, its set holds that label alone.
        judgments : Judgments, optional
            Who said what, over the columns of the classes. By default every candidate set is one
            judgment of one annotator.
        """
        features, candidates = self._read(X, y)
        self.judgments_ = _read_judgments(judgments, candidates)
        self._fit(features, candidates.mask)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class for each sample, by the logistic regression."""
        return softmax(self._checked_scores(X), axis=1)

    # ---------------------------------------------------------------- for the methods

    def _combine(self, X: np.ndarray, mask: np.ndarray, judgments: Judgments) -> np.ndarray:
        """Return the shares (n, l) of the candidates by what was said; rows sum to one.

        Every class is somebody's candidate here.
        """
        raise NotImplementedError

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        self.present_ = mask.any(axis=0)
        place = np.where(self.present_, self.present_.cumsum() - 1, OTHER)
        shares = self._combine(X, mask[:, self.present_], self.judgments_.relabel(place).known())
        self.confidence_ = np.zeros(mask.shape)
        self.confidence_[:, self.present_] = shares
        self.labels_ = self._most_credible(self.confidence_, mask)
        head = SoftLogistic(X, shares, self.ridge)
        self.coef_, self.intercept_ = head.weights, head.bias

    def _scores(self, X: np.ndarray) -> np.ndarray:
        # A sample may lie as far away as features can be scaled; products stay finite.
        scores = np.zeros((len(X), len(self.classes_)))
        scores[:, self.present_] = X @ self.coef_ + self.intercept_
        return scores

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("ridge", self.ridge)


def vote_shares(judgments: Judgments, shape: tuple[int, int]) -> sparse.csr_array:
    """Return the votes of shape (n, l), where a judgment of several labels is one vote in all."""
    places = (judgments.rows, judgments.labels)
    return sparse.csr_array((judgments.shares, places), shape=shape)


def candidate_votes(judgments: Judgments, mask: np.ndarray) -> np.ndarray:
    """Return the votes for candidates, of shape (n, l); one each where no candidate has any."""
    votes = np.where(mask, vote_shares(judgments, mask.shape).toarray(), 0.0)
    return np.where(votes.any(axis=1, keepdims=True), votes, mask)


def majority_shares(judgments: Judgments, mask: np.ndarray) -> np.ndarray:
    """Return every candidate's share of the votes for candidates, of shape (n, l).

    What labels with equally many votes have, if no label has more, they share in proportion to the
    votes that they got over all samples.
    """
    votes = candidate_votes(judgments, mask)
    frequency = np.maximum(votes.sum(axis=0), 1e-12)
    best = mask & (votes > votes.max(axis=1, keepdims=True) * (1 - 1e-9))
    weights = best * frequency
    tied = (best * votes).sum(axis=1, keepdims=True) * weights / weights.sum(axis=1, keepdims=True)
    shares = np.where(best, tied, votes)
    return shares / shares.sum(axis=1, keepdims=True)


def anonymous(votes: sparse.csr_array) -> Judgments:
    """Return judgments of people who are not known, from how many gave each label, (n, l).

    The first vote of every sample is "vote 1", the next "vote 2": that they are one person's has
    no meaning, so this is only for methods that count.

    >>> anonymous(sparse.csr_array([[2, 1], [0, 1]])).labels.tolist()
    [0, 0, 1, 1]
    """
    votes = sparse.csr_array(votes)
    counts = np.asarray(votes.data)
    if not np.array_equal(counts, np.round(counts)):
        raise InputError("numbers of votes must be whole numbers for a method that counts them")
    counts = counts.astype(np.int64)
    rows = np.repeat(np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr)), counts)
    labels = np.repeat(votes.indices, counts)
    first = np.searchsorted(rows, rows, side="left")
    place = np.arange(len(rows)) - first
    most = int(place.max(initial=-1)) + 1
    return Judgments(rows, place, labels, tuple(f"vote {number + 1}" for number in range(most)))


def _read_judgments(judgments: Any, candidates: Candidates) -> Judgments:
    if judgments is None:
        matrix = candidates.matrix
        rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
        return Judgments(rows, np.zeros(len(rows), dtype=int), matrix.indices, ("annotator",))
    if not isinstance(judgments, Judgments):
        raise InputTypeError(f"judgments must be Judgments, not {type(judgments).__name__}")
    judgments.check(*candidates.matrix.shape)
    return judgments
