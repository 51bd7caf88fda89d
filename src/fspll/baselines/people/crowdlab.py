"""CROWDLAB: annotators and a classifier, weighted by how often they agree with one another.

Hui Wen Goh, Ulyana Tkachenko and Jonas Mueller, "CROWDLAB: Supervised learning to infer consensus
labels and quality scores for data with multiple annotators", NeurIPS Human in the Loop Learning
Workshop, 2022. Written from its formulas; where departed from, it is said.

Shapes: n samples, l classes, t triples of judgments.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fspll._common.arguments import check_count
from fspll.baselines.people.base import PeopleClassifier, majority_shares, vote_shares
from fspll.baselines.people.soft_logistic import out_of_sample
from fspll.candidates.judgments import Judgments

_LEAST = 1e-6  # weight of an annotator or classifier that is no better than a constant guess


class Weights(NamedTuple):
    """How much the classifier and each annotator count, and how an answer is read."""

    model: float
    annotators: np.ndarray  # (number of annotators,)
    right: float  # probability of the label that an annotator gave


class CROWDLAB(PeopleClassifier):
    """Weighted mean of annotators and of a classifier's out-of-sample probabilities (CROWDLAB).

    The shares of sample i are proportional to w_M p_M(k | x_i) + sum_j w_j p_j(k | y_ij) over its
    annotators j, with p_j = P for the label that was given and (1 - P) / (l - 1) for others. P is
    the annotators' mean agreement with the majority, where there are two or more of them. With
    s_j the agreement of annotator j with the others, A_M that of the classifier with the majority,
    and A that of the most frequent label with it,

        w_j = 1 - (1 - s_j) / (1 - A),
        w_M = (1 - (1 - A_M) / (1 - A)) sqrt(annotators per sample).

    The classifier is a logistic regression on the features, fitted to the majority's shares on four
    fifths of the samples at a time. Departures: shares are kept to the candidates; a judgment of
    several labels counts as that share of each; a weight is at least 1e-6. An annotator who shares
    no sample with others gets the mean agreement of those who do; where nobody does, the
    classifier's agreement with the labels stands for all.

    Parameters
    ----------
    n_folds : int, default=5
        Folds of the samples for the classifier.
    ridge, scale, classes
        As in :class:`fspll.baselines.people.majority_vote.MajorityVote`.

    Attributes
    ----------
    labels_, confidence_, coef_, intercept_, judgments_
        As of :class:`fspll.baselines.people.majority_vote.MajorityVote`.
    weights_ : Weights
        Of the classifier and of the annotators.
    classes_, candidates_, mean_, scale_, n_features_in_
        As in every baseline.

    Examples
    --------
    >>> said = Judgments([0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4, [0, 0, 1, 1, 0, 1, 1, 1],
    ...                  ("Ann", "Ben"))
    >>> sets = said.counts(4, 2).toarray() > 0
    >>> CROWDLAB(n_folds=4).fit([[0.0], [1.0], [0.1], [1.1]], sets, said).labels_.tolist()
    [0, 1, 0, 1]
    """

    def __init__(
        self,
        *,
        n_folds: int = 5,
        ridge: float = 1.0,
        scale: str = "standard",
        classes: Any = None,
    ) -> None:
        self.n_folds = n_folds
        self.ridge = ridge
        self.scale = scale
        self.classes = classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_folds", self.n_folds, 2)

    def _combine(self, X: np.ndarray, mask: np.ndarray, judgments: Judgments) -> np.ndarray:
        majority = majority_shares(judgments, mask)
        model = out_of_sample(X, majority, ridge=float(self.ridge), n_folds=int(self.n_folds))
        self.weights_ = agreement_weights(judgments, majority, model)
        combined = np.maximum(combine(judgments, model, self.weights_), _LEAST) * mask
        return combined / combined.sum(axis=1, keepdims=True)


def agreement_weights(judgments: Judgments, majority: np.ndarray, model: np.ndarray) -> Weights:
    """Return the weights that the agreement of annotators and classifier gives them."""
    shares, rows, people = judgments.shares, judgments.rows, judgments.annotators
    votes = vote_shares(judgments, (len(majority), majority.shape[1]))
    per_sample = judgments.per_sample(len(majority))
    # Of equally many votes, the classifier's choice is the consensus.
    best = majority >= majority.max(axis=1, keepdims=True) * (1 - 1e-9)
    consensus = np.where(best, model, -1.0).argmax(axis=1)
    several = per_sample > 1
    compared = several if several.any() else np.ones(len(majority), dtype=bool)
    model_right = (model.argmax(axis=1) == consensus)[compared].mean()
    commonest = np.bincount(consensus[compared]).max() / compared.sum()
    size = judgments.n_annotators
    if several.any():
        hit = np.bincount(rows, shares * (judgments.labels == consensus[rows]), len(majority))
        right = float((hit[several] / per_sample[several]).mean())
        others = np.asarray(votes[rows, judgments.labels]).ravel() - shares
        met = np.bincount(people, shares * (per_sample[rows] - 1), size)
        agreed = np.bincount(people, shares * others, size)
        mean = agreed.sum() / met.sum()
        agreement = np.where(met > 0.5, agreed / np.maximum(met, 0.5), mean)
    else:
        right, agreement = float(model_right), np.full(size, float(model_right))
    error = max(1.0 - commonest, _LEAST)
    mean_number = np.sqrt(per_sample.mean())
    return Weights(
        model=float(max(1 - (1 - model_right) / error, _LEAST) * mean_number),
        annotators=np.maximum(1 - (1 - agreement) / error, _LEAST),
        right=right,
    )


def combine(judgments: Judgments, model: np.ndarray, weights: Weights) -> np.ndarray:
    """Return the weighted mean of the classifier's and the annotators' probabilities, (n, l)."""
    n, n_classes = model.shape
    other = (1 - weights.right) / max(n_classes - 1, 1)
    weight = judgments.shares * weights.annotators[judgments.annotators]
    found = weights.model * model
    found += other * np.bincount(judgments.rows, weight, n)[:, None]
    np.add.at(found, (judgments.rows, judgments.labels), weight * (weights.right - other))
    return found / found.sum(axis=1, keepdims=True)
