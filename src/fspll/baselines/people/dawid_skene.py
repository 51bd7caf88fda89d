"""Dawid-Skene: every annotator's confusion of the classes, estimated with the labels by EM.

A. P. Dawid and A. M. Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM
Algorithm", Journal of the Royal Statistical Society, Series C 28(1), 1979.

Shapes: n samples, l classes, u pairs of an annotator and a label that this annotator gave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.arguments import check_count, check_positive
from fspll.baselines.people.base import PeopleClassifier, candidate_votes
from fspll.candidates.judgments import Judgments

_CONVERGED = 1e-6  # largest change of a probability
_LEAST = 1e-10  # probability of an answer, where nothing is smoothed


class DawidSkene(PeopleClassifier):
    """Labels and annotators' confusion matrices by expectation maximization (Dawid-Skene).

    Given the true class k, annotator a says label j with probability theta_akj. Starting from
    the shares of the votes, the classes' frequencies and theta are estimated from the shares of the
    labels (M step), and the shares from these (E step), in turns. A judgment of several labels
    counts as that share of each. Where no sample has two annotators, the shares of the votes stay.

    Parameters
    ----------
    smoothing : float, default=1.0
        Judgments that every annotator is taken to have made of each class besides the real ones,
        spread evenly over the labels; 0 is maximum likelihood.
    max_rounds : int, default=200
        The most rounds; it ends before when no share changes by more than 1e-6.
    ridge, scale, classes
        As in :class:`fspll.baselines.people.majority_vote.MajorityVote`.

    Attributes
    ----------
    labels_, confidence_, coef_, intercept_, judgments_
        As of :class:`fspll.baselines.people.majority_vote.MajorityVote`; the confidence is the
        posterior probability in the model.
    n_rounds_ : int
        Rounds that were made.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> said = Judgments([0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 0],
    ...                  ("Ann", "Ben", "Eva"))
    >>> sets = said.counts(3, 2).toarray() > 0
    >>> DawidSkene().fit([[0.0], [1.0], [0.1]], sets, said).labels_.tolist()
    [0, 1, 0]
    """

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        max_rounds: int = 200,
        ridge: float = 1.0,
        scale: str = "standard",
        classes: Any = None,
    ) -> None:
        self.smoothing = smoothing
        self.max_rounds = max_rounds
        self.ridge = ridge
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("smoothing", self.smoothing, zero=True)
        check_count("max_rounds", self.max_rounds, 0)

    def _combine(self, X: np.ndarray, mask: np.ndarray, judgments: Judgments) -> np.ndarray:
        # Of people who never judge the same sample nothing can be learned without features.
        turns = int(self.max_rounds) if (judgments.per_sample(len(mask)) > 1).any() else 0
        shares, self.n_rounds_ = estimate(
            judgments, mask, smoothing=float(self.smoothing), max_rounds=turns
        )
        return shares


def estimate(
    judgments: Judgments, mask: np.ndarray, *, smoothing: float, max_rounds: int
) -> tuple[np.ndarray, int]:
    """Return the posterior (n, l) of the labels, zero off the mask, and the number of turns."""
    n, n_classes = mask.shape
    votes = candidate_votes(judgments, mask)
    shares = votes / votes.sum(axis=1, keepdims=True)
    pair, which = np.unique(
        judgments.annotators * n_classes + judgments.labels, return_inverse=True
    )
    u, people = len(pair), judgments.n_annotators
    # (u, n): how much each sample adds to each pair; (people, u): whose each pair is.
    given = sparse.csr_array((judgments.shares, (which, judgments.rows)), shape=(u, n))
    owner = sparse.csr_array((np.ones(u), (pair // n_classes, np.arange(u))), shape=(people, u))
    given_to, owned = given.T.tocsr(), owner.T.tocsr()
    for turn in range(max_rounds):
        counts = given @ shares  # (u, l)
        total = owned @ (owner @ counts)
        with np.errstate(invalid="ignore"):
            theta = (counts + smoothing / n_classes) / (total + smoothing)
        # Without smoothing nothing is known of classes that an annotator never saw.
        theta = np.where(total + smoothing > 0, theta, 1.0 / n_classes)
        frequency = np.maximum(shares.mean(axis=0), _LEAST)
        score = given_to @ np.log(np.maximum(theta, _LEAST)) + np.log(frequency)
        score = np.where(mask, score, -np.inf)
        before = shares
        shares = np.exp(score - score.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        if np.abs(shares - before).max() < _CONVERGED:
            return shares, turn + 1
    return shares, max_rounds
