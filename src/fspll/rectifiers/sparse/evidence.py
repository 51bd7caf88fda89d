"""The default rectifier for many samples: evidence weighted entry by entry.

The model of classes and candidate sets is that of :mod:`fspll.rectifiers.evidence`: means shrunk to
the mean of all, every sample scored against means computed without it, neighbors' sets as a
product. What is different, because there are many samples, and because nothing of n x n or n x l
may be built:

1. *Neighbors* are the nearest among the samples that share a candidate, and their reliability is
   measured by their agreement (:mod:`fspll.rectifiers.sparse.neighbor_likelihood`).
2. *Weights.* How much the fit to the class means counts against neighbors' sets, and against
   how frequent a class is, is measured anew in every round with labels known to be wrong
   (:mod:`fspll.rectifiers.sparse.decoys`). The dense code, which has too few samples for that, uses
   constants.
3. *Names.* A group around the mean of class c carries label c. The dense code asks which one-to-one
   naming explains the sets best, over l x l pairs. Labels that the same samples have share them
   evenly here.

Shapes: n samples, l classes, m features, z entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fspll.rectifiers.class_model import (
    FIRST_SHRINKAGE,
    LEAST_MASS,
    SHRINKAGE_RANGE,
    SIZE_WEIGHT,
    ManyClassModel,
    sharpness_for,
)
from fspll.rectifiers.sparse.centering import Centered
from fspll.rectifiers.sparse.decoys import DecoyTest, add_decoys
from fspll.rectifiers.sparse.entries import Entries, checked_embeddings, report
from fspll.rectifiers.sparse.grouped_neighbors import nearest_in_groups
from fspll.rectifiers.sparse.neighbor_likelihood import neighbor_log_likelihood

_USUAL = 0.3  # weight of neighbors and of frequencies where decoys report nothing
_SHARPEST = 100.0  # times the usual
_BALANCE_ROUNDS = 4


def infer_labels_sparse(
    embeddings: Any,
    candidates: Any,
    *,
    votes: np.ndarray | None = None,
    n_neighbors: int = 4,
    n_iterations: int = 10,
    class_balance: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> ManyClassModel:
    """Infer the labels of many ambiguous samples and a model of their classes.

    Time and memory grow with the number of candidate entries.

    Parameters
    ----------
    embeddings : array of shape (n, m)
    candidates : Candidates, or sparse 0/1 matrix of shape (n, l)
    votes : array of shape (z,), optional
        How likely each candidate was before the features were seen, positive, in the order of the
        samples.
    n_neighbors, n_iterations, class_balance
        As of :class:`fspll.rectifiers.EvidenceRule`.
    seed : int
        Of the decoys, and of the search for neighbors where a class is too large to be searched
        whole.
    progress : callable, optional
        Called with "neighbors" and then "round" when each is done.

    Examples
    --------
    >>> from scipy import sparse
    >>> e = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = [[1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]
    >>> y = sparse.csr_array(y)
    >>> q = infer_labels_sparse(e, y, n_neighbors=1).confidence
    >>> q.toarray().argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    real_entries = Entries.of(candidates)
    e = checked_embeddings(embeddings, real_entries)
    entries, real = add_decoys(real_entries, np.random.default_rng(seed))
    neighbor_score = np.zeros(len(entries))
    if n_neighbors > 0:
        neighbor_score = neighbor_log_likelihood(
            entries, nearest_in_groups(e, entries, n_neighbors, seed)
        )
    report(progress, "neighbors")
    centered = Centered.of(e, scaled=True)
    center, unit = centered.center, centered.unit
    classes, test = _ClassMeans(centered, entries), DecoyTest(entries, real)
    prior = _log_votes(entries, real, real_entries, votes)
    sharpness = sharpness_for(e.shape[1])
    usual, most = (sharpness, _USUAL, _USUAL), (_SHARPEST * sharpness, 1.0, 1.0)
    interchangeable = _Interchangeable(entries, real_entries, seed)
    score = neighbor_score
    for _ in range(n_iterations):
        confidence = interchangeable.share(_confidence(entries, score + prior, class_balance))
        fit = classes.candidate_fit(confidence)
        sources = [fit, neighbor_score]
        if not class_balance:
            sources.append(np.log(np.maximum(classes.mass, LEAST_MASS))[entries.label])
        weights = test.weights(sources, usual[: len(sources)], most[: len(sources)])
        score = sum(w * source for w, source in zip(weights, sources, strict=True))
        report(progress, "round")
    confidence = interchangeable.share(_confidence(entries, score + prior, class_balance))
    fit = classes.candidate_fit(confidence)
    (found,) = test.weights([fit], usual[:1], most[:1])  # new samples have no neighbors to ask
    scale = float(unit) ** 2 * sharpness / float(found)
    kept = np.maximum(confidence[real], np.finfo(e.dtype).tiny)  # decoys may take nearly all
    kept = kept / real_entries.sample_sum(kept)[real_entries.row]
    present = entries.class_sizes > 0
    prototypes = np.where(present[:, None], classes.means * float(unit) + center, 0)
    return ManyClassModel(
        confidence=real_entries.matrix(kept.astype(e.dtype)),
        prototypes=torch.from_numpy(prototypes.astype(e.dtype)),
        present=torch.from_numpy(present),
        n_neighbors=n_neighbors,
        spread=classes.spread * scale,
        # As in the dense model: half a sample, or nearly the most that there is.
        has_support=torch.from_numpy(
            classes.mass > 0.99 * min(float(classes.mass.max()), LEAST_MASS)
        ),
    )


def _log_votes(
    entries: Entries, real: np.ndarray, real_entries: Entries, votes: np.ndarray | None
) -> np.ndarray:
    """Logarithms of the votes (z,); a decoy has as few as the candidate with the fewest."""
    log_votes = np.zeros(len(entries))
    if votes is not None:
        given = np.log(votes)
        fewest = np.minimum.reduceat(given, real_entries.start[:-1])
        log_votes[:] = fewest[entries.row]
        log_votes[real] = given
    return log_votes


def _confidence(entries: Entries, score: np.ndarray, balance: bool) -> np.ndarray:
    """Softmax over the candidates; if asked for, with classes of about the same weight."""
    for _ in range(_BALANCE_ROUNDS if balance else 0):
        mass = entries.class_sum(entries.softmax(score))
        score = score - 0.5 * np.log(np.maximum(mass, 1e-6))[entries.label]
    return entries.softmax(score)


class _Interchangeable:
    """Labels that the same samples have: nothing tells them apart, so they share evenly.

    Otherwise the few decoys would break the tie, and the class means would make a certainty of it.
    """

    def __init__(self, entries: Entries, real: Entries, seed: int) -> None:
        # Two sums of random numbers stand for the samples of a class: sums of equal sets are equal.
        rng = np.random.default_rng([seed, 1])
        marks = rng.integers(0, 1 << 32, (2, real.n_samples)).astype(float)
        sums = [real.class_sum(mark[real.row]) for mark in marks]
        _, kind, count = np.unique(
            np.stack([*sums, real.class_sizes]), axis=1, return_inverse=True, return_counts=True
        )
        kind = kind.ravel()
        shared = (count[kind] > 1) & (real.class_sizes > 0)
        self.entry = np.flatnonzero(shared[entries.label])
        key = entries.row[self.entry] * len(count) + kind[entries.label[self.entry]]
        _, self.group, self.count = np.unique(key, return_inverse=True, return_counts=True)

    def share(self, confidence: np.ndarray) -> np.ndarray:
        """Return confidences (z,) with those of interchangeable labels evened out."""
        if len(self.entry):
            confidence = confidence.copy()
            total = np.bincount(self.group, weights=confidence[self.entry])
            confidence[self.entry] = (total / self.count)[self.group]
        return confidence


class _ClassMeans:
    """Class means, shrunk to the mean of all, and how samples fit their candidates."""

    def __init__(self, embeddings: Centered, entries: Entries) -> None:
        self.e, self.entries = embeddings, entries
        square = embeddings.squared_norms().sum(dtype=np.float64)
        self.total = float(square) / max(1, len(embeddings) - 1)
        self.floor = float(np.finfo(embeddings.dtype).eps) * self.total + 1e-30
        self.shrinkage = FIRST_SHRINKAGE

    def candidate_fit(self, confidence: np.ndarray) -> np.ndarray:
        """Compute the means by confidences (z,) and return the fit of samples to candidates, (z,).

        Each sample is left out in turn. With mean p = sum_i Q_i e_i / (M + kappa), leaving i out
        moves it straight away from e_i:
        |e_i - p without i| = |e_i - p| (M + kappa) / (M - Q_i + kappa).
        """
        kappa = self.shrinkage
        self.mass = self.entries.class_sum(confidence)
        self.means = self.entries.class_totals(self.e, confidence) / (self.mass + kappa)[:, None]
        mass = self.mass[self.entries.label]
        rest = np.maximum(mass - confidence, 0) + kappa
        inflation = 1 + 1 / rest
        square = self.entries.squared_distances(self.e, self.means)
        square = square * np.square((mass + kappa) / rest) / inflation
        self.spread = max(float(confidence @ square) / self.entries.n_samples, self.floor)
        between = max(self.total - self.spread, 1e-3 * self.total + 1e-30)
        self.shrinkage = float(np.clip(self.spread / between, *SHRINKAGE_RANGE))
        return -(square / self.spread + SIZE_WEIGHT * np.log(inflation))
