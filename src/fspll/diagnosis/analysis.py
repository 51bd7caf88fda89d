"""What candidate sets can and cannot decide, given which samples belong together.

A cluster holds the samples of one class, and distinct clusters are distinct classes. What is still
open is a *matching*, which gives every cluster a label of its own; :mod:`fspll.diagnosis` counts
them.

Shapes: n samples, K clusters, l classes with K <= l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fspll._common.arguments import check_count, is_number
from fspll._common.errors import InputError, InputTypeError
from fspll._common.words import counted, listed
from fspll.annotations.frames import is_frame
from fspll.annotations.reading import read_annotations
from fspll.annotations.samples import Annotations
from fspll.candidates.sets import Candidates, Classes
from fspll.diagnosis.asking import ask
from fspll.diagnosis.matchings import Matchings, split
from fspll.diagnosis.solving import solve

__all__ = ["Diagnosis", "Question", "ceiling", "diagnose"]


@dataclass(frozen=True)
class Question:
    """A sample whose true label is worth asking for.

    Attributes
    ----------
    sample : int
        The row to ask about. Its label is that of its whole cluster, whose other members would do
        as well; among those that contradict nothing this is the first with the fewest candidates,
        the shortest question to a person.
    candidates : list of label
        Its candidates that are possible before any answer, the likeliest first.
    ceiling_after : float
        The ceiling to expect once this question and those before it are answered.
    """

    sample: int
    candidates: list[Any]
    ceiling_after: float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What candidate sets decide, given the clusters; ``print`` it to read it.

    Attributes
    ----------
    n_samples, n_classes, n_clusters : int
        n, l and K.
    ceiling : float
        The best share of right labels that any method can expect: every cluster gets its most
        frequent label among the matchings.
    ceiling_error : float or None
        Its standard error when the matchings were sampled, else None.
    exact : bool
        Whether the matchings were counted, all of them; if not, they were sampled.
    classes : ndarray of shape (l,)
        The label that each column of ``marginals`` stands for.
    clusters : ndarray of shape (K,)
        The cluster that each row of ``marginals`` stands for, in sorted order.
    marginals : ndarray of shape (K, l)
        Share of the matchings that give the cluster the label.
    undecided : list of list of label
        Labels that the best matchings exchange among one another, or leave unused in turn: given
        the clusters, the candidate sets cannot tell which is which.
    always_together : list of list of label
        Labels that occur in exactly the same sets: no sample separates them, whatever the clusters.
    never_candidates : list of label
        Labels in no candidate set.
    contradictions : list of int
        Rows whose sets lack the label that a matching with the fewest such rows gives them.
    ask : list of Question
        The questions to ask, the most useful first.
    """

    n_samples: int
    n_classes: int
    n_clusters: int
    ceiling: float
    ceiling_error: float | None
    exact: bool
    classes: np.ndarray
    clusters: np.ndarray
    marginals: np.ndarray
    undecided: list[list[Any]]
    always_together: list[list[Any]]
    never_candidates: list[Any]
    contradictions: list[int]
    ask: list[Question]

    def __str__(self) -> str:
        return "\n".join(self.describe())

    def describe(self, names: Sequence[str] | None = None) -> list[str]:
        """Say it in words, line by line; samples are called by ``names`` if there are any."""
        lines = [
            f"{counted(self.n_samples, 'sample')} in {counted(self.n_clusters, 'cluster')}, "
            f"{counted(self.n_classes, 'class', 'classes')}"
        ]
        if self.ceiling > 1 - 1e-9:
            lines.append("given the clusters, the candidate sets decide every label")
        else:
            error = "" if self.ceiling_error is None else f" (± {self.ceiling_error:.1%}, sampled)"
            lines.append(
                f"given the clusters, no method can expect more than {self.ceiling:.1%}{error} of "
                f"the labels to be right"
            )
        if self.contradictions:
            if names is None:
                rows = f"row{'s'[: len(self.contradictions) - 1]} {listed(self.contradictions)}"
            else:
                rows = listed([names[row] for row in self.contradictions])
            lines.append(
                f"no labeling of the clusters agrees with all sets; the best contradicts "
                f"{len(self.contradictions)}, where the true label is missing or the cluster is "
                f"wrong: {rows}"
            )
        lines += [
            f"cannot be told apart, given the clusters: {listed(group)}" for group in self.undecided
        ]
        lines += [
            f"always together, cannot be told apart by any sample: {listed(group)}"
            for group in self.always_together
        ]
        if self.never_candidates:
            lines.append(f"never a candidate: {listed(self.never_candidates)}")
        for number, question in enumerate(self.ask):
            name = f"row {question.sample}" if names is None else names[question.sample]
            lines.append(
                f"{'then ask' if number else 'ask'} for the label of {name} "
                f"({listed(question.candidates, between=' or ')}): "
                f"up to {question.ceiling_after:.1%} right"
            )
        return lines


def diagnose(
    y: Any,
    clusters: Any,
    *,
    classes: Classes = None,
    n_ask: int = 5,
    eps: float = 0.01,
    seed: int = 0,
) -> Diagnosis:
    """Tell what candidate sets decide once it is known which samples belong together.

    All matchings that agree with every candidate set are equally likely, and nothing but a further
    answer can choose among them. When none agrees with all sets, a matching costs the factor
    ``eps`` for every sample whose set lacks its label.

    The matchings are counted exactly, group by group; in a group too entangled for that they are
    sampled. Questions are chosen greedily, each by the ceiling to expect over its answers and the
    answers to those before it; in a large group only the 16 least certain clusters are considered.
    In a group of more than 20,000 matchings the expectation is estimated from sampled matchings,
    labels chosen on one half of them and scored on the other, and what an answer tells of other
    clusters is left out once the sample is too small to show it: there ``ceiling_after`` is an
    estimate, and after the first two or three questions a low one.

    Parameters
    ----------
    y : whatever :meth:`Candidates.read` takes, Annotations, or a table of candidates
        Candidate sets of n samples. A data frame that is no 0/1 mask, and a series of texts such as
        "cat|lynx", are read by :func:`fspll.annotations.read_annotations`.
    clusters : array of shape (n,)
        The cluster of every sample, by number or name: from a classifier's predictions, from a
        clustering, or the true classes under any names.
    classes : sequence of length l, optional
        The classes in order, as for :meth:`Candidates.read`.
    n_ask : int
        At most so many questions are proposed; fewer when a further one would settle nothing, that
        is, less than a twentieth of a sample.
    eps : float
        How likely it is that a set lacks the label of its cluster; used only when no matching
        agrees with all sets.
    seed : int
        For the sampling of matchings.

    Examples
    --------
    >>> y = [{"lynx", "cat"}, {"lynx", "cat", "dog"}, {"lynx", "cat"}, {"dog", "cat"}]
    >>> found = diagnose(y, clusters=[0, 0, 1, 2])
    >>> found.ceiling, found.undecided
    (0.625, [['cat', 'lynx']])
    >>> print(found)
    4 samples in 3 clusters, 3 classes
    given the clusters, no method can expect more than 62.5% of the labels to be right
    cannot be told apart, given the clusters: cat, lynx
    ask for the label of row 0 (cat or lynx): up to 100.0% right
    """
    sets = _read_sets(y, classes)
    check_count("n_ask", n_ask)
    names, inverse = _read_clusters(clusters, len(sets), sets.n_classes)
    mask = sets.mask
    matchings = Matchings.of(mask, inverse, len(names), eps)
    rng = np.random.default_rng(seed)
    solution = solve(matchings, rng)
    marginals = solution.marginals()
    contradicting = ~mask[np.arange(len(mask)), matchings.best[inverse]]
    summary = sets.summary()
    error = solution.error()
    return Diagnosis(
        n_samples=len(sets),
        n_classes=sets.n_classes,
        n_clusters=len(names),
        ceiling=solution.ceiling(),
        ceiling_error=error,
        exact=error is None,
        classes=sets.classes,
        clusters=names,
        marginals=marginals,
        undecided=[
            sets.classes[labels].tolist()
            for _, labels in split(matchings.excess == 0)
            if len(labels) > 1
        ],
        always_together=summary.always_together,
        never_candidates=summary.never_candidates,
        contradictions=np.flatnonzero(contradicting).tolist(),
        ask=[
            _question(cluster, after, sets, inverse, contradicting, marginals)
            for cluster, after in ask(solution, n_ask, rng)
        ],
    )


def ceiling(candidates_mask: np.ndarray, clusters: Any, *, eps: float = 0.01) -> float:
    """Return the best share of right labels to expect: ``diagnose(...).ceiling``, but quicker.

    Parameters
    ----------
    candidates_mask : ndarray of bool, shape (n, l)
        True where the class is a candidate.
    clusters : array of shape (n,)
        The cluster of every sample, by number or name.
    eps : float
        As for :func:`diagnose`.

    Examples
    --------
    >>> ceiling(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool), [0, 1, 2])
    0.6666666666666666
    """
    mask = candidates_mask
    plain = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.ndim == 2
    if not plain or not len(mask) or not mask.any(axis=1).all():
        mask = Candidates.from_mask(mask).mask
    names, inverse = _read_clusters(clusters, *mask.shape)
    matchings = Matchings.of(mask, inverse, len(names), eps)
    return solve(matchings, np.random.default_rng(0)).ceiling()


def _read_sets(y: Any, classes: Classes) -> Candidates:
    """Read candidate sets in any shape, tables of candidates among them."""
    if isinstance(y, Annotations):
        y = y.candidates
    elif is_frame(y) and _holds_text(y):
        # A sample that was left out would put the clusters out of order.
        y = read_annotations(y, unlabeled="error").candidates
    return Candidates.read(y, classes)


def _holds_text(frame: Any) -> bool:
    values = np.asarray(frame)
    return values.dtype.kind not in "buif" and any(isinstance(one, str) for one in values.ravel())


def _read_clusters(clusters: Any, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct clusters and, for every sample, which of them is its own."""
    expected = f"clusters names one cluster for each of the {n} candidate sets"
    try:
        found = np.asarray(clusters)
        if found.dtype == object and found.ndim == 1:
            found = np.array(found.tolist())
    except ValueError:  # what NumPy has to say of lists of different lengths
        raise InputError(f"{expected}, not lists of different lengths") from None
    if found.shape != (n,):
        raise InputError(f"{expected}, an array of shape ({n},), not one of shape {found.shape}")
    if found.dtype.kind not in "biuUT":
        for row, name in enumerate(found.tolist()):
            if not isinstance(name, str) and not (is_number(name) and name == name // 1):
                raise InputTypeError(
                    f"clusters are whole numbers or names, but row {row} holds {name!r:.60}"
                )
    names, inverse = np.unique(found, return_inverse=True)
    if len(names) > n_classes:
        raise InputError(
            f"{len(names)} clusters cannot each have a class of their own out of {n_classes}; "
            f"merge clusters or name all classes"
        )
    return names, inverse


def _question(
    cluster: int,
    after: float,
    sets: Candidates,
    inverse: np.ndarray,
    contradicting: np.ndarray,
    marginals: np.ndarray,
) -> Question:
    members = np.flatnonzero(inverse == cluster)
    agreeing = members[~contradicting[members]]
    members = agreeing if len(agreeing) else members
    sample = int(members[sets.sizes[members].argmin()])
    shares = np.where(sets.mask[sample], marginals[cluster], 0.0)
    likeliest = np.argsort(-shares.round(9), kind="stable")[: np.count_nonzero(shares)]
    return Question(sample, sets.classes[likeliest].tolist(), after)
