"""A person's answers, and how each of them stays with its sample.

A file may name its samples by their rows, and rows move. Files of this package therefore carry a
hash of every sample's content (:data:`CONTENT`), by which an answer finds its sample again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError
from fspll.annotations.grid import ANSWER_NAMES, SAMPLE_NAMES, Grid, find_column, list_columns
from fspll.annotations.opening import open_table

CONTENT = "content_hash"  # the column
COLUMNS = ("sample", "answer", CONTENT)  # of the file of answers, always
DETAILS = ("time", "answered_by", "discarded")  # and these where there is anything in them
# A letter comes first: a spreadsheet would take some hashes for numbers, and round them.
_HASH = re.compile(r"sha256-[0-9a-f]{32}")


def content_name(digest: bytes | None) -> str:
    """Return a hash of a sample's content as files have it; "" where there is none.

    >>> content_name(bytes(range(20)))
    'sha256-000102030405060708090a0b0c0d0e0f'
    """
    return "" if digest is None else f"sha256-{digest.hex()[:32]}"


@dataclass(frozen=True)
class Answer:
    """What a person said of one sample.

    Attributes
    ----------
    sample : str
        Its name when it was asked about.
    label : label
    content : str
        The hash of its content then, as :func:`content_name` returns it; "" where it is not known.
    time : str
        When it was given, in ISO 8601; "" where it is not known.
    who : str
        Who gave it; "" where it is not known.
    discarded : bool
        The sample is to be left out; it has no label then.
    """

    sample: str
    label: Any
    content: str = ""
    time: str = ""
    who: str = ""
    discarded: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Mapping[str, Any]):
    """Answers of one file: a mapping of sample to label that also knows the samples' contents.

    Attributes
    ----------
    records : tuple of Answer
        A name may be there twice with different contents; the mapping has the last of them.
    source : str
        The file, for messages.
    kept : bool
        Whether an earlier run kept them: then their samples need not be there any more.

    Examples
    --------
    >>> Answers((Answer("a.png", "cat"),))
    {'a.png': 'cat'}
    """

    records: tuple[Answer, ...] = ()
    source: str = ""
    kept: bool = False

    def renamed(self, names: Mapping[str, str]) -> Answers:
        """Return the same answers with other names for labels."""
        records = (replace(one, label=names.get(one.label, one.label)) for one in self.records)
        return replace(self, records=tuple(records)) if names else self

    def _labels(self) -> dict[str, Any]:
        return {one.sample: one.label for one in self.records if not one.discarded}

    def __getitem__(self, sample: str) -> Any:
        return self._labels()[sample]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels())

    def __len__(self) -> int:
        return len(self._labels())

    def __repr__(self) -> str:
        return repr(self._labels())


def read_answers(path: Path | str, *, encoding: str | None = None, kept: bool = False) -> Answers:
    """Read the label that a person gave to each sample.

    Parameters
    ----------
    path : path
        A CSV or TSV file with the columns ``sample`` (or ``file``, ``id``, ...) and ``answer`` (or
        ``label``), and, if it is a file of this package, ``content_hash`` and perhaps ``time``,
        ``answered_by`` and ``discarded`` ("yes" for a sample to leave out). Rows without an answer
        are not answered yet and are skipped.
    encoding : str, optional
        As in :func:`read_annotations`.
    kept : bool, default=False
        Whether the file is one that an earlier run wrote: it may be without rows, and samples may
        have gone since.

    Returns
    -------
    Answers
        A mapping of sample to answer, in the order of the file; empty if nothing is answered.

    Raises
    ------
    DataError
        When two rows give the same sample different answers, or the file cannot be used.
    """
    path = Path(path)
    grid = open_table(path, encoding=encoding, may_be_empty=kept)
    sample = find_column(grid.header, None, SAMPLE_NAMES, grid.source)
    answer = find_column(grid.header, None, ANSWER_NAMES, grid.source)
    if sample is None or answer is None:
        raise DataError(
            f"{path.name} needs the columns 'sample' and 'answer'; {list_columns(grid.header)}"
        )
    contents = read_contents(grid)
    more = [_cells(grid, column) for column in DETAILS]
    answers: dict[tuple[str, str], str | None] = {}
    details: dict[tuple[str, str], tuple[str, str, bool]] = {}
    where: dict[tuple[str, str], str] = {}
    for row, cells in enumerate(grid.rows):
        name, given = (str(cells[at] or "") for at in (sample, answer))
        time, who, discarded = (cells[row] for cells in more)
        if discarded and given:
            raise DataError(
                f"{grid.place(row, answer)}: the sample is discarded, yet has the answer {given!r};"
                " keep one of the two"
            )
        if not given and not discarded:
            continue
        if not name:
            raise DataError(f"{grid.place(row, sample)}: there is no name of a sample")
        key = (name, contents[row])
        if answers.setdefault(key, given or None) != (given or None):
            raise DataError(
                f"{path.name}, {where[key]} and {grid.where[row]} answer {answers[key]!r} and "
                f"{given!r} for the same sample {name!r}; keep one of them"
            )
        where.setdefault(key, grid.where[row])
        details.setdefault(key, (time, who, bool(discarded)))
    records = tuple(
        Answer(name, given, content, *details[name, content])
        for (name, content), given in answers.items()
    )
    return Answers(records, str(path), kept)


def answer_table(answers: Iterable[Answer]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the header and the rows of ``answers.csv``, which :func:`read_answers` reads.

    Time, author and discarded samples have columns only where there are any.
    """
    answers = list(answers)
    rows = [
        (one.sample, one.label, one.content, one.time, one.who, "yes" if one.discarded else None)
        for one in answers
    ]
    used = [place for place in range(3, 6) if any(row[place] for row in rows)]
    header = (*COLUMNS, *(DETAILS[place - 3] for place in used))
    return header, [(*row[:3], *(row[place] for place in used)) for row in rows]


def _cells(grid: Grid, column: str) -> list[str]:
    """Return a column of details; empty where the file does not have it."""
    place = find_column(grid.header, None, (column,), grid.source)
    return ["" if place is None else str(row[place] or "").strip() for row in grid.rows]


def read_contents(grid: Grid) -> list[str]:
    """Return the hash of the content of every row's sample; "" where the file does not have it."""
    column = find_column(grid.header, None, (CONTENT,), grid.source)
    if column is None:
        return [""] * len(grid.rows)
    cells = [str(row[column] or "") for row in grid.rows]
    return [cell if _HASH.fullmatch(cell) else "" for cell in cells]
