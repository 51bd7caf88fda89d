"""The default rectifier for many samples: evidence weighted entry by entry.

The model of classes and candidate sets is that of :mod:`fspll.rectifiers.evidence`: means shrunk to
the mean of all, every sample judged by means computed without it, neighbors' sets as a product.
What is different, because there are many samples, and because nothing of n x n or n x l may be
built:

1. *Neighbors* are the nearest among the samples that share a candidate, and their reliability is
   measured by their agreement (:mod:`fspll.rectifiers.sparse.neighbor_likelihood`).
2. *Weights.* How much the fit to the class means counts against what neighbors say, and against
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
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fspll.rectifiers.evidence import (
    FIRST_SHRINKAGE,
    LEAST_MASS,
    SHRINKAGE_RANGE,
    SIZE_WEIGHT,
    EvidenceSettings,
    sharpness_for,
)
from fspll.rectifiers.sparse.decoys import DecoyTest, add_decoys
from fspll.rectifiers.sparse.entries import Entries, checked_embeddings, tell
from fspll.rectifiers.sparse.grouped_neighbors import nearest_in_groups
from fspll.rectifiers.sparse.neighbor_likelihood import neighbors_say

_USUAL = 0.3  # weight of neighbors and of frequencies where decoys tell nothing
_SHARPEST = 100.0  # times the usual
_BALANCE_ROUNDS = 4


class SparseClassModel(NamedTuple):
    """What many samples taught, as in the dense ``ClassModel``; names are certain.

    ``spread`` is s_w^2 scaled so that the sharpness of the dense model suits these classes.
    """

    prototypes: np.ndarray  # (l, m), shrunk to the mean of all samples
    present: np.ndarray  # (l,) bool
    spread: float
    believed: np.ndarray  # (l,) bool; classes that some sample is believed to belong to


class SparsePosterior(NamedTuple):
    """What :func:`weigh_evidence_sparse` returns; rows of ``confidence`` sum to one."""

    confidence: sparse.csr_array  # (n, l), stored at the candidates only
    model: SparseClassModel


def weigh_evidence_sparse(
    embeddings: Any,
    candidates: Any,
    settings: EvidenceSettings | None = None,
    *,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> SparsePosterior:
    """Infer the labels of many ambiguous samples and a model of their classes.

    Time and memory grow with the number of candidate entries.

    Parameters
    ----------
    embeddings : array of shape (n, m)
    candidates : Candidates, or sparse 0/1 matrix of shape (n, l)
    settings : EvidenceSettings, optional
    seed : int
        Of the decoys, and of the search for neighbors where a class is too large to be searched
        whole.
    progress : callable, optional
        Called with "neighbors" and then "round" when each is done.

    Examples
    --------
    >>> e = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> y = [[1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]
    >>> y = sparse.csr_array(y)
    >>> q = weigh_evidence_sparse(e, y, EvidenceSettings(n_neighbors=1)).confidence
    >>> q.toarray().argmax(axis=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    settings = settings or EvidenceSettings()
    real_entries = Entries.of(candidates)
    e = checked_embeddings(embeddings, real_entries)
    entries, real = add_decoys(real_entries, np.random.default_rng(seed))
    told = np.zeros(len(entries))
    if settings.n_neighbors > 0:
        told = neighbors_say(entries, nearest_in_groups(e, entries, settings.n_neighbors, seed))
    tell(progress, "neighbors")
    center = e.mean(axis=0, dtype=np.float64).astype(e.dtype)
    e = e - center
    # In units of a power of two, which rounds nothing, squares neither overflow nor vanish.
    unit = np.ldexp(e.dtype.type(1), int(np.frexp(np.abs(e).max())[1]) - 1)
    e /= unit
    classes, test = _Classes(e, entries), DecoyTest(entries, real)
    sharpness = sharpness_for(e.shape[1])
    usual, most = (sharpness, _USUAL, _USUAL), (_SHARPEST * sharpness, 1.0, 1.0)
    twins = _Twins(entries, real_entries, seed)
    score = told
    for _ in range(settings.n_iterations):
        belief = twins.share(_belief(entries, score, settings.balance))
        fit = classes.judge(belief)
        sources = [fit, told]
        if not settings.balance:
            sources.append(np.log(np.maximum(classes.mass, LEAST_MASS))[entries.label])
        weights = test.weights(sources, usual[: len(sources)], most[: len(sources)])
        score = sum(w * source for w, source in zip(weights, sources, strict=True))
        tell(progress, "round")
    belief = twins.share(_belief(entries, score, settings.balance))
    fit = classes.judge(belief)
    (found,) = test.weights([fit], usual[:1], most[:1])  # new samples have no neighbors to ask
    scale = float(unit) ** 2 * sharpness / float(found)
    confidence = np.maximum(belief[real], np.finfo(e.dtype).tiny)  # decoys may take nearly all
    confidence = confidence / real_entries.sample_sum(confidence)[real_entries.row]
    return SparsePosterior(
        real_entries.matrix(confidence.astype(e.dtype)), classes.model(center, float(unit), scale)
    )


def _belief(entries: Entries, score: np.ndarray, balance: bool) -> np.ndarray:
    """Softmax over the candidates; if asked for, with classes that weigh about the same."""
    for _ in range(_BALANCE_ROUNDS if balance else 0):
        mass = entries.class_sum(entries.softmax(score))
        score = score - 0.5 * np.log(np.maximum(mass, 1e-6))[entries.label]
    return entries.softmax(score)


class _Twins:
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
        twin = (count[kind] > 1) & (real.class_sizes > 0)
        self.entry = np.flatnonzero(twin[entries.label])
        key = entries.row[self.entry] * len(count) + kind[entries.label[self.entry]]
        _, self.group, self.count = np.unique(key, return_inverse=True, return_counts=True)

    def share(self, belief: np.ndarray) -> np.ndarray:
        """Return beliefs (z,) with those of twins evened out."""
        if len(self.entry):
            belief = belief.copy()
            total = np.bincount(self.group, weights=belief[self.entry])
            belief[self.entry] = (total / self.count)[self.group]
        return belief


class _Classes:
    """Class means, shrunk to the mean of all, and how samples fit their candidates."""

    def __init__(self, embeddings: np.ndarray, entries: Entries) -> None:
        self.e, self.entries = embeddings, entries
        square = np.einsum("ij,ij->i", embeddings, embeddings).sum(dtype=np.float64)
        self.total = float(square) / max(1, len(embeddings) - 1)
        self.floor = float(np.finfo(embeddings.dtype).eps) * self.total + 1e-30
        self.shrinkage = FIRST_SHRINKAGE

    def judge(self, belief: np.ndarray) -> np.ndarray:
        """Place the means by beliefs (z,) and return each sample's fit to its candidates, (z,).

        Each sample is left out in turn. With mean p = sum_i Q_i e_i / (M + kappa), leaving i out
        moves it straight away from e_i:
        |e_i - p without i| = |e_i - p| (M + kappa) / (M - Q_i + kappa).
        """
        kappa = self.shrinkage
        self.mass = self.entries.class_sum(belief)
        self.means = self.entries.class_totals(self.e, belief) / (self.mass + kappa)[:, None]
        mass = self.mass[self.entries.label]
        rest = np.maximum(mass - belief, 0) + kappa
        inflation = 1 + 1 / rest
        square = self.entries.squared_distances(self.e, self.means)
        square = square * np.square((mass + kappa) / rest) / inflation
        self.spread = max(float(belief @ square) / self.entries.n_samples, self.floor)
        between = max(self.total - self.spread, 1e-3 * self.total + 1e-30)
        self.shrinkage = float(np.clip(self.spread / between, *SHRINKAGE_RANGE))
        return -(square / self.spread + SIZE_WEIGHT * np.log(inflation))

    def model(self, center: np.ndarray, unit: float, scale: float) -> SparseClassModel:
        present = self.entries.class_sizes > 0
        means = self.means * unit + center
        return SparseClassModel(
            prototypes=np.where(present[:, None], means, 0).astype(self.e.dtype),
            present=present,
            spread=self.spread * scale,
            # As in the dense model: half a sample, or nearly the most that there is.
            believed=self.mass > 0.99 * min(float(self.mass.max()), LEAST_MASS),
        )
