"""What was asked about a file, and the labels that several people gave to a sample put together.

Shapes: n samples, l classes, e different labels given to the samples in all. Votes are sparse from
the start: time and memory grow with e, not with n times l.
"""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from fspll._common.errors import DataError
from fspll.annotations.samples import Annotations
from fspll.annotations.writing import is_plain_text
from fspll.candidates.judgments import Judgments

_ROWS_SHOWN = 4
_NOBODY = -1  # an annotator that the file does not name


@dataclass(frozen=True)
class Options:
    """What a caller specifies about a file; None where it is left to be found.

    Attributes
    ----------
    candidates : tuple of str, optional
        The columns that hold labels.
    sample, annotator, text, file : str, optional
        The columns that hold a sample's name, who labeled it, its text, its picture.
    delimiter : str, optional
        What separates the labels of a cell.
    combine : {"union", "majority"}, optional
        How the labels of several annotators become one set.
    classes : tuple of str, optional
        The labels that may occur.
    encoding : str, optional
        The encoding of a text file.
    unlabeled : {"skip", "use", "error"}
        What becomes of samples without candidates.
    sheet : str, optional
        The sheet of a spreadsheet.
    features_columns : tuple of str, optional
        The columns of numbers that are a sample's vector; "a:z" for all from a to z.
    marks : bool, optional
        Whether the columns of labels hold marks: one column per label.
    excluded : str, optional
        The column of labels that a sample does not have.
    renames : mapping of str to str
        Other names for labels.
    """

    candidates: tuple[str, ...] | None = None
    sample: str | None = None
    annotator: str | None = None
    text: str | None = None
    file: str | None = None
    delimiter: str | None = None
    combine: str | None = None
    classes: tuple[str, ...] | None = None
    encoding: str | None = None
    unlabeled: str = "skip"
    sheet: str | None = None
    features_columns: tuple[str, ...] | None = None
    marks: bool | None = None
    excluded: str | None = None
    renames: Mapping[str, str] = field(default_factory=dict)

    def renamed(self, labels: Collection[str]) -> Collection[str]:
        """Return labels by their new names, each once."""
        if not self.renames:
            return labels
        return dict.fromkeys(self.renames.get(label, label) for label in labels)


class Opinion(NamedTuple):
    """The labels that one annotator gave to one sample.

    Attributes
    ----------
    name : str
        The sample.
    labels : sequence of str
        Different from one another; none for a sample that is only named.
    place : str
        Where it stands: "row 7".
    annotator : str, optional
        Who gave the labels; None where the file does not name anyone, and then every opinion
        counts as another person's.
    file, text : str, optional
        The sample's picture and text.
    """

    name: str
    labels: Collection[str]
    place: str
    annotator: str | None = None
    file: str | None = None
    text: str | None = None


class _Samples:
    """Samples in the order in which they were first named."""

    def __init__(self, source: str, options: Options, repeats: bool) -> None:
        self.source = source
        self.repeats = repeats or options.combine is not None
        self.options = options
        self.allowed = None if options.classes is None else set(options.classes)
        self.number: dict[str, int] = {}
        self.first: list[Opinion] = []
        self.places: dict[int, list[str]] = {}  # of samples named more than once
        self.column: dict[str, int] = {}
        self.person: dict[str, int] = {}
        self.rows, self.columns, self.people = array("q"), array("q"), array("q")
        self.counted: set[tuple[int, int, int]] = set()

    def add(self, opinion: Opinion) -> None:
        sample = self.number.setdefault(opinion.name, len(self.first))
        if sample == len(self.first):
            self._check_text(opinion.name, opinion.place)
            self.first.append(opinion)
        else:
            self._add_place(sample, opinion)
        person = self._find_person(opinion)
        for label in self.options.renamed(opinion.labels):
            column = self.column.get(label)
            if column is None:
                column = self._new_label(label, opinion.place)
            if person != _NOBODY:
                vote = (sample, person, column)
                if vote in self.counted:
                    continue
                self.counted.add(vote)
            self.rows.append(sample)
            self.columns.append(column)
            self.people.append(person)

    def _find_person(self, opinion: Opinion) -> int:
        name = opinion.annotator
        if name is None or not opinion.labels:
            return _NOBODY
        if name not in self.person:
            self._check_text(name, opinion.place)
            self.person[name] = len(self.person)
        return self.person[name]

    def _add_place(self, sample: int, opinion: Opinion) -> None:
        first = self.first[sample]
        places = self.places.setdefault(sample, [first.place])
        if opinion.place == places[-1]:
            return  # another annotator in the same row
        both = f"{self.source}, {first.place} and {opinion.place}"
        if not self.repeats:
            raise DataError(
                f"{both} both name the sample {opinion.name!r}; if several people labeled it, "
                "name the column that says who (annotator=...) or say how to combine them "
                "(combine='union' or combine='majority')"
            )
        for what in ("file", "text"):
            if getattr(first, what) != getattr(opinion, what):
                raise DataError(
                    f"{both} give the sample {opinion.name!r} a different {what}: "
                    f"{getattr(first, what)!r} and {getattr(opinion, what)!r}"
                )
        places.append(opinion.place)

    def _new_label(self, label: str, place: str) -> int:
        self._check_text(label, place)
        if self.allowed is not None and label not in self.allowed:
            close = difflib.get_close_matches(label, sorted(self.allowed), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise DataError(
                f"{self.source}, {place}: the label {label!r} is not one of the "
                f"{len(self.allowed)} classes{hint}"
            )
        return self.column.setdefault(label, len(self.column))

    def _check_text(self, text: str, place: str) -> None:
        if not is_plain_text(text):
            raise DataError(
                f"{self.source}, {place}: {text!r} holds a character that no text file can hold"
            )

    def origin(self, sample: int) -> str:
        places = self.places.get(sample, [self.first[sample].place])
        if len(places) == 1:
            return f"{self.source}, {places[0]}"
        kind = places[0].partition(" ")[0]
        numbers = [place.removeprefix(kind).strip() for place in places[:_ROWS_SHOWN]]
        more = ", ..." if len(places) > _ROWS_SHOWN else ""
        return f"{self.source}, {kind}s {', '.join(numbers)}{more}"


def collect(
    source: str,
    opinions: Iterable[Opinion],
    options: Options,
    *,
    repeats: bool = False,
    understood: tuple[str, ...] = (),
) -> Annotations:
    """Put opinions together, one sample per name, in the order of the names' first mention.

    Parameters
    ----------
    source : str
        The file's name, for messages.
    opinions : iterable of Opinion
        In the order of the file.
    options : Options
        ``classes`` and ``combine`` are used. With ``combine="majority"`` only the labels with the
        most votes of a sample stay, all of them if several have as many; with "union", the default,
        every label stays. The votes that stay are counts either way.
    repeats : bool
        Whether a sample may be named more than once because the file says who labeled it. It also
        may if ``combine`` is set.
    understood : tuple of str
        How the file was read.
    """
    samples = _Samples(source, options, repeats)
    for opinion in opinions:
        samples.add(opinion)
    votes = _count(samples)
    labels = list(samples.column)
    majority = options.combine == "majority"
    classes, votes = keep_used(labels, keep_most(votes) if majority else votes)
    first = samples.first
    return Annotations(
        names=tuple(samples.number),
        classes=classes,
        votes=votes,
        origins=tuple(samples.origin(i) for i in range(len(first))),
        files=_all_or_none([opinion.file for opinion in first]),
        texts=_all_or_none([opinion.text for opinion in first]),
        judgments=_judgments(samples, labels, classes),
        source=source,
        understood=(*understood, *(["labels with the most votes"] if majority else [])),
    )


def _judgments(samples: _Samples, labels: list[str], classes: tuple[str, ...]) -> Judgments | None:
    """Return who said what, over the columns of ``classes``.

    None where an annotator is not named, or where no sample has two annotators: then there is
    nothing to compare.
    """
    rows, people = np.array(samples.rows), np.array(samples.people)
    if (people == _NOBODY).any():
        return None
    labeled = np.unique(rows)
    lowest = np.full(len(samples.first), len(samples.person))
    highest = np.full(len(samples.first), _NOBODY)
    np.minimum.at(lowest, rows, people)
    np.maximum.at(highest, rows, people)
    if (lowest == highest)[labeled].all():
        return None
    found = Judgments(rows, people, np.array(samples.columns), tuple(samples.person))
    place = {label: column for column, label in enumerate(classes)}
    return found.relabel([place.get(label, -1) for label in labels])


def _count(samples: _Samples) -> sparse.csr_array:
    """Return the votes of shape (n, l)."""
    rows = np.array(samples.rows, dtype=np.int64)
    columns = np.array(samples.columns, dtype=np.int64)
    shape = (len(samples.first), len(samples.column))
    # Coordinates that repeat are added up.
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def keep_most(votes: sparse.csr_array) -> sparse.csr_array:
    """Keep only the labels of each sample that have its highest count."""
    sizes = np.diff(votes.indptr)
    highest = np.maximum.reduceat(votes.data, votes.indptr[:-1][sizes > 0])
    fewer = votes.data < np.repeat(highest, sizes[sizes > 0])
    votes = votes.copy()
    votes.data[fewer] = 0
    votes.eliminate_zeros()
    return votes


def keep_used(
    classes: list[str], votes: sparse.csr_array
) -> tuple[tuple[str, ...], sparse.csr_array]:
    """Return the classes that some sample has, sorted, and the votes with their columns."""
    used = np.unique(votes.indices)
    order = sorted(used.tolist(), key=classes.__getitem__)
    place = np.full(len(classes), -1, dtype=votes.indices.dtype)
    place[order] = np.arange(len(order))
    shape = (votes.shape[0], len(order))
    moved = sparse.csr_array((votes.data, place[votes.indices], votes.indptr), shape=shape)
    moved.sort_indices()
    return tuple(classes[column] for column in order), moved


def _all_or_none(values: list[str | None]) -> tuple[str, ...] | None:
    found = tuple(value for value in values if value is not None)
    return found if len(found) == len(values) else None
