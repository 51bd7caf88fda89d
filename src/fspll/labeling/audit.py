"""An audit: labels drawn at random for a person to check, and what the answers say of all labels.

The draw gives every label the same chance, so that the share of right ones among those drawn is an
unbiased estimate of the share of right ones among all, whatever the model believes. Labels are put
in order of their confidence, and every (n / k)-th is taken from a random start on (a systematic
sample): sure and doubtful labels are then drawn in the proportion in which they occur, which makes
the estimate more exact than an independent draw would. The interval is Wilson's for an independent
draw, hence rather too wide than too narrow.

With k answers, r labels right among them, and a mean confidence c of the audited labels, the share
to expect is

    t = (r + PRIOR * c) / (k + PRIOR),

as if the model's own claim were worth ``PRIOR`` answers. Then every confidence p becomes

    p' = p * t / c                        where t < c,
    1 - p' = (1 - p) * (1 - t) / (1 - c)  otherwise,

so that the mean over the audited labels is t. The first is the probability of a label where the
model is right about it only on a condition that holds in a share t / c of the cases, such as that
people do not all make the same mistake. On simulated crowds it gave better probabilities than one
shift of all log-odds, which moves doubtful labels too far.

Shapes: n samples, l classes, k audited labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fspll._common.arguments import check_count
from fspll._common.errors import DataError, InputError
from fspll._common.words import listed
from fspll.annotations.answers import read_contents
from fspll.annotations.grid import SAMPLE_NAMES, find_column, list_columns
from fspll.annotations.tables import read_table
from fspll.labeling.answering import find_samples

PRIOR = 5.0  # answers that the model's own claim is worth; a round number, not fitted to any data
_Z = 1.959963984540054  # of a 95% interval
_SHOWN = 5


@dataclass(frozen=True)
class Audit:
    """Labels that were drawn at random, and what a person said of them.

    Attributes
    ----------
    samples : tuple of str
        Whose labels were drawn, in random order.
    labels : tuple of label
        The label that each had been given.
    answers : tuple of label or None
        The true label of each, as a person says; None where there is no answer yet.
    contents : tuple of str
        The hash of each sample's content, see :mod:`fspll.annotations.answers`; "" where it is not
        known.

    Examples
    --------
    >>> drawn = Audit(("s4", "s1", "s7"), ("cat", "dog", "cat"), (None, None, None))
    >>> checked = drawn.answered({"s4": "cat", "s1": "cat"})
    >>> checked.n_right, checked.n_answers
    (1, 2)
    >>> print("%.2f to %.2f" % checked.interval)
    0.09 to 0.91
    """

    samples: tuple[str, ...]
    labels: tuple[Any, ...]
    answers: tuple[Any, ...]
    contents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.contents:
            object.__setattr__(self, "contents", ("",) * len(self.samples))
        if not len(self.samples) == len(self.labels) == len(self.answers):
            raise InputError(
                f"an audit has as many labels and answers as samples, not {len(self.labels)} and "
                f"{len(self.answers)} for {len(self.samples)}"
            )

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def given(self) -> dict[str, Any]:
        """The answers that there are, by sample."""
        both = zip(self.samples, self.answers, strict=True)
        return {name: answer for name, answer in both if answer is not None}

    @property
    def n_answers(self) -> int:
        """How many labels a person has checked."""
        return len(self.given)

    @property
    def n_right(self) -> int:
        """How many of these are right."""
        both = zip(self.labels, self.answers, strict=True)
        return sum(answer is not None and str(label) == str(answer) for label, answer in both)

    @property
    def share(self) -> float:
        """The share of right labels among those checked; NaN without an answer."""
        return self.n_right / self.n_answers if self.n_answers else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the share of right labels among all, after Wilson (1927)."""
        n = self.n_answers
        if not n:
            return 0.0, 1.0
        share, square = self.n_right / n, _Z**2
        center = (share + square / (2 * n)) / (1 + square / n)
        half = _Z * (share * (1 - share) / n + square / (4 * n * n)) ** 0.5 / (1 + square / n)
        return max(0.0, center - half), min(1.0, center + half)

    def answered(self, answers: Mapping[str, Any]) -> Audit:
        """Return the same audit with (more) answers, by sample."""
        strange = [name for name in answers if name not in set(self.samples)]
        if strange:
            raise InputError(
                f"these samples are not in the audit: {listed([*map(repr, strange)], _SHOWN)}"
            )
        both = zip(self.samples, self.answers, strict=True)
        return replace(self, answers=tuple(answers.get(name, old) for name, old in both))

    def renamed(self, names: Mapping[str, str]) -> Audit:
        """Return the same audit with other names for labels."""
        labels = tuple(names.get(label, label) for label in self.labels)
        return replace(
            self, labels=labels, answers=tuple(names.get(one, one) for one in self.answers)
        )

    def take(self, rows: Iterable[int]) -> Audit:
        """Return some of the rows."""
        rows = list(rows)
        parts = (self.samples, self.labels, self.answers, self.contents)
        return Audit(*(tuple(part[row] for row in rows) for part in parts))

    @property
    def checked(self) -> Audit:
        """The rows that have an answer."""
        return self.take(row for row, answer in enumerate(self.answers) if answer is not None)

    @property
    def keys(self) -> list[tuple[str, str]]:
        """What tells the samples apart: name and content."""
        return list(zip(self.samples, self.contents, strict=True))

    def filled_in(self, other: Audit) -> Audit:
        """Return this audit with the answers of another; rows that only the other has come last.

        A row without an answer here is replaced as a whole: an answer is about the label that the
        person saw.
        """
        checked = other.checked
        place = {key: len(self) + row for row, key in enumerate(checked.keys)}
        order = []
        for row, key in enumerate(self.keys):
            newer = place.pop(key, row)
            order.append(newer if self.answers[row] is None else row)
        return self.joined(checked).take([*order, *place.values()])

    def joined(self, more: Audit) -> Audit:
        """Return these rows and then those of another audit."""
        return Audit(
            self.samples + more.samples,
            self.labels + more.labels,
            self.answers + more.answers,
            self.contents + more.contents,
        )

    def follow(self, names: Sequence[str], contents: Sequence[str]) -> tuple[Audit, Audit]:
        """Return the rows whose samples are there, by the names they have now, and the others.

        Parameters
        ----------
        names, contents : sequences of str, of length n
            The samples now.
        """
        found = find_samples(self.keys, names, contents)
        there = self.take(row for row, name in enumerate(found) if name is not None)
        gone = self.take(row for row, name in enumerate(found) if name is None)
        now = tuple(name for name in found if name is not None)
        content_of = dict(zip(names, contents, strict=True))
        known = zip(now, there.contents, strict=True)
        changed = tuple(content_of[name] or before for name, before in known)
        return replace(there, samples=now, contents=changed), gone


def read_audit(path: Path | str, *, encoding: str | None = None) -> Audit:
    """Read an ``audit.csv``, with answers or without.

    Parameters
    ----------
    path : path
        A table with the columns ``sample``, ``label`` (the one that was given) and ``answer`` (the
        true one; empty where nobody has answered yet), and ``content_hash`` if a run wrote it.
    encoding : str, optional
        As in :func:`fspll.annotations.read_annotations`.
    """
    path = Path(path)
    grid = read_table(path, encoding=encoding)
    known = (SAMPLE_NAMES, ("label",), ("answer",))
    found = [find_column(grid.header, None, names, grid.source) for names in known]
    places = [place for place in found if place is not None]
    if len(places) < len(known):
        raise DataError(
            f"{path.name} is no audit: it needs the columns 'sample', 'label' and 'answer'; "
            f"{list_columns(grid.header)}"
        )
    samples, labels, answers = ([cells[place] for cells in grid.rows] for place in places)
    contents = read_contents(grid)
    seen = set()
    for one in zip(samples, contents, strict=True):
        if one in seen:
            raise DataError(f"{path.name} names the sample {one[0]!r} twice; keep one of the rows")
        seen.add(one)
    answered = tuple(one or None for one in answers)
    return Audit(tuple(samples), tuple(labels), answered, tuple(contents))


# -------------------------------------------------------------------- drawing


def draw(confidence: np.ndarray, size: int, seed: Any = 0) -> np.ndarray:
    """Return places of labels to audit, in random order, each with the same chance.

    Parameters
    ----------
    confidence : array of shape (n,)
        Of the labels that may be drawn.
    size : int
        How many; all where there are fewer.
    seed : int or sequence of int

    Examples
    --------
    >>> sure, doubtful = [0.9] * 6, [0.5] * 3
    >>> drawn = draw(np.array(sure + doubtful), 3)
    >>> len(set(drawn.tolist())), int((drawn >= 6).sum())  # one in three is doubtful
    (3, 1)
    """
    check_count("audit", size, 1)
    n = len(confidence)
    size = min(size, n)
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(n), confidence))
    places = np.floor((np.arange(size) + rng.random()) * n / max(size, 1)).astype(np.int64)
    return rng.permutation(order[places.clip(0, n - 1)])


# -------------------------------------------------------------------- recalibration


class Recalibration(NamedTuple):
    """What turns confidences into those that agree with an audit.

    Attributes
    ----------
    claimed : float
        The mean confidence of the audited labels, c of the module's formula.
    target : float
        What it has to be, t.
    """

    claimed: float
    target: float

    @classmethod
    def of(cls, audit: Audit, claimed: np.ndarray) -> Recalibration:
        """Compare the confidences (k,) of the labels that have an answer with the answers."""
        mean = float(claimed.mean())
        return cls(mean, (audit.n_right + PRIOR * mean) / (audit.n_answers + PRIOR))

    def apply(
        self, probabilities: sparse.csr_array, top: np.ndarray, settled: np.ndarray
    ) -> sparse.csr_array:
        """Return the probabilities that agree with the audit.

        Where labels get less probable, so do the other candidates, by the same factor: what is lost
        goes to "none of these". Where they get more probable, the others get less so.

        Parameters
        ----------
        probabilities : sparse array of shape (n, l)
        top : int array of shape (n,)
            The columns of the labels.
        settled : bool array of shape (n,)
            Samples that a person answered for, which stay as they are.
        """
        rows = np.repeat(np.arange(len(top)), np.diff(probabilities.indptr))
        before = probabilities.data
        if self.target < self.claimed:
            after = before * (self.target / self.claimed)
        else:
            factor = (1 - self.target) / (1 - self.claimed) if self.claimed < 1 else 1.0
            chosen = probabilities.indices == top[rows]
            after = np.where(chosen, 1 - (1 - before) * factor, before * factor)
        return sparse.csr_array(
            (np.where(settled[rows], before, after), probabilities.indices, probabilities.indptr),
            shape=probabilities.shape,
        )
