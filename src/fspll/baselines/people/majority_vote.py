"""Majority vote: the label that most annotators gave."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fspll.baselines.people.base import PeopleClassifier, majority_shares
from fspll.candidates.judgments import Judgments


class MajorityVote(PeopleClassifier):
    """Majority vote of the annotators, with a logistic regression for new samples.

    A candidate's confidence is its share of the votes. Where several labels have the most votes,
    they share these in proportion to the votes that they got over all samples.

    Parameters
    ----------
    ridge : float, default=1.0
        Of the logistic regression that predicts new samples.
    scale : {"standard", "minmax", "none"}, default="standard"
        How features are scaled; see :class:`fspll.baselines.base.PartialLabelClassifier`.
    classes : sequence, optional
        All classes in the order wanted.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The label with most votes of every sample.
    confidence_ : ndarray of shape (n, l)
        Shares of the votes; rows sum to one, zero off the candidates.
    coef_, intercept_ : ndarray of shape (d, l) and (l,)
        The logistic regression, over the classes that are somebody's candidate.
    judgments_ : Judgments
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> said = Judgments([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 0, 1, 1, 1], ("Ann", "Ben", "Eva"))
    >>> clf = MajorityVote().fit([[0.0], [1.0]], [{"cat", "dog"}, {"dog"}], said)
    >>> clf.labels_.tolist(), clf.confidence_.round(2).tolist()
    (['cat', 'dog'], [[0.67, 0.33], [0.0, 1.0]])
    """

    needs_annotators: ClassVar[bool] = False

    def __init__(self, *, ridge: float = 1.0, scale: str = "standard", classes: Any = None) -> None:
        self.ridge = ridge
        self.scale = scale
        self.classes = classes

    def _combine(self, X: np.ndarray, mask: np.ndarray, judgments: Judgments) -> np.ndarray:
        return majority_shares(judgments, mask)
