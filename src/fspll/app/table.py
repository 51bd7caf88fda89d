"""The samples of a session as columns, so that tens of thousands are filtered and sorted at once.

Shapes: n samples, l classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from fspll.annotations.answers import Answer
from fspll.annotations.samples import Annotations
from fspll.app.session import Session
from fspll.candidates.judgments import Agreement, Judgments
from fspll.labeling.reasons import SURE

NO_LABEL = -1
_NUMBER = re.compile("[0-9]+")


@dataclass(frozen=True, eq=False)
class Fixed:
    """What never changes while a session is open.

    Attributes
    ----------
    annotations : Annotations
    """

    annotations: Annotations

    @property
    def judgments(self) -> Judgments | None:
        """Who gave which label."""
        return self.annotations.judgments

    @cached_property
    def by_name(self) -> np.ndarray:
        """The samples in the order of their names, "s2" before "s10", of shape (n,)."""
        keys = [natural(name) for name in self.annotations.names]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__))

    @cached_property
    def words(self) -> list[str]:
        """What can be searched of each sample: name, text, other columns; without upper case."""
        parts = [self.annotations.names, *(cells for _, cells in self.annotations.columns)]
        if self.annotations.texts is not None:
            parts.append(self.annotations.texts)
        return ["\n".join(cells).casefold() for cells in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class Table:
    """The samples with labels, doubts and answers as they are now.

    Attributes
    ----------
    fixed : Fixed
    version : int
        Of the session.
    classes : tuple of str
        The labels of the annotations, in their order, then those that only answers have.
    columns : int array of shape (n,)
        The class of each sample; -1 for one that was discarded or cannot be read.
    confidence : array of shape (n,)
        NaN where there is no label.
    kinds : mapping of str to int array
        The samples by kind of doubt, without answered ones. The kinds are known from a fit on.
    doubtful : bool array of shape (n,)
        Labels that are not settled, and samples that contradict their candidates; not answered.
    answers : dict of int to Answer
    answered, discarded : bool arrays of shape (n,)
        What a person gave a label to, and what is left out.
    """

    fixed: Fixed
    version: int
    classes: tuple[str, ...]
    columns: np.ndarray
    confidence: np.ndarray
    kinds: Mapping[str, np.ndarray]
    doubtful: np.ndarray
    answers: dict[int, Answer]
    answered: np.ndarray
    discarded: np.ndarray

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def by_doubt(self) -> np.ndarray:
        """The samples, doubtful ones first, then the less sure before the surer, of shape (n,)."""
        return np.lexsort((np.nan_to_num(self.confidence, nan=2.0), ~self.doubtful))

    @cached_property
    def by_label(self) -> np.ndarray:
        """The samples by label, the less sure first, and those without one last, of shape (n,)."""
        order = sorted(range(len(self.classes)), key=lambda one: natural(self.classes[one]))
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order] = np.arange(len(order))
        place[NO_LABEL] = len(order)
        return np.lexsort((np.nan_to_num(self.confidence, nan=2.0), place[self.columns]))

    @cached_property
    def agreement(self) -> Agreement | None:
        """How often annotators agree with the labels; None where they are not known."""
        said, labeled = self.fixed.judgments, self.columns != NO_LABEL
        if said is None:
            return None
        return said.take(labeled).agreement(self.columns[labeled])


_FIXED: WeakKeyDictionary[Session, Fixed] = WeakKeyDictionary()
_TABLES: WeakKeyDictionary[Session, Table] = WeakKeyDictionary()


def table_of(session: Session) -> Table:
    """Return the samples as they are now; made anew only after an answer or a fit."""
    with session.ready():
        known = _TABLES.get(session)
        if known is None or known.version != session.version:
            if session not in _FIXED:
                _FIXED[session] = Fixed(session.annotations)
            known = _TABLES[session] = _tabulate(session, _FIXED[session])
        return known


def _tabulate(session: Session, fixed: Fixed) -> Table:
    view, answers, n = session.view, session.current(), len(session.annotations)
    classes = session.annotations.classes
    labels = list(view.labels)
    answered, discarded = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for row, one in answers.items():
        labels[row] = None if one.discarded else one.label
        (discarded if one.discarded else answered)[row] = True
    place: dict[str | None, int] = {label: column for column, label in enumerate(classes)}
    others = sorted({one for one in labels if one is not None and one not in place}, key=natural)
    place |= {label: len(place) + more for more, label in enumerate(others)}
    place[None] = NO_LABEL
    kinds: dict[str, list[int]] = {}
    for row, (kind, _) in view.reasons.items():
        if row not in answers and labels[row] is not None:
            kinds.setdefault(kind, []).append(row)
    confidence = session.confidence()
    doubtful = np.nan_to_num(confidence, nan=1.0) < SURE
    for rows in kinds.values():
        doubtful[rows] = True
    kinds.pop("", None)  # of the files, which do not tell the kind
    return Table(
        fixed,
        session.version,
        (*classes, *others),
        np.array([place[label] for label in labels]),
        confidence,
        {kind: np.array(rows) for kind, rows in kinds.items()},
        doubtful,
        answers,
        answered,
        discarded,
    )


def natural(text: str) -> str:
    """Return what sorts texts as people do: numbers inside them by value, and no upper case.

    >>> sorted(["s10", "S2", "s1"], key=natural)
    ['s1', 'S2', 's10']
    """
    return _NUMBER.sub(_with_length, text.casefold())


def _with_length(number: re.Match[str]) -> str:
    digits = number[0].lstrip("0")
    return f"{len(digits):04}{digits}"  # the longer is the larger
