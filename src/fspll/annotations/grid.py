"""Rows with named columns, from a table or from JSON objects, and the samples they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fspll._common.errors import DataError
from fspll._common.pictures import has_picture_suffix
from fspll.annotations.collecting import Opinion, Options, collect
from fspll.annotations.samples import Annotations
from fspll.annotations.splitting import Splitter

# In this order: the first that a file has is taken.
CANDIDATE_NAMES = (
    "candidates",
    "candidate_labels",
    "candidate",
    "labels",
    "label",
    "choices",
    "choice",
    "classes",
    "class",
    "categories",
    "category",
)
FILE_NAMES = (
    "file",
    "filename",
    "file_name",
    "image",
    "image_path",
    "picture",
    "photo",
    "path",
    "filepath",
    "file_path",
)
# A file's name before a number: in a file with a row per annotator, "id" may count the rows.
SAMPLE_NAMES = (
    "sample",
    "sample_id",
    "sample_name",
    *FILE_NAMES,
    "item",
    "item_id",
    "task_id",
    "id",
    "name",
)
ANNOTATOR_NAMES = (
    "annotator",
    "annotator_id",
    "annotator_name",
    "annotated_by",
    "completed_by",
    "labeled_by",
    "labelled_by",
    "labeler",
    "labeller",
    "rater",
    "rater_id",
    "coder",
    "coder_id",
    "worker",
    "worker_id",
    "workerid",
)
# These may as well name the author of a sample: they count only where samples repeat.
_USER_NAMES = ("user", "user_id", "username")
ANSWER_NAMES = ("answer", "label")
ALTERNATIVE_NAMES = ("alternatives", "alternative", *CANDIDATE_NAMES)
_STEMS = "annotator|rater|coder|candidate|label|choice|class|category|vote"
# What several columns have in common that are a person's answer each. The other stems rather number
# the candidates of one sample.
_PEOPLE_STEMS = ("annotator", "rater", "coder", "label", "vote")
_NUMBERED = re.compile(rf"({_STEMS})(_?[0-9]+|_[a-z])")


@dataclass(frozen=True)
class Grid:
    """Rows of cells under a header.

    Attributes
    ----------
    source : str
        The file's name, for messages.
    header : list of str
        The names of the columns.
    rows : list of sequence
        One cell per column each: text without blanks around it, or any JSON value, or None.
    where : list of str
        The place of each row as a person counts: "row 7".
    """

    source: str
    header: list[str]
    rows: Sequence[Sequence[Any]]
    where: list[str]

    def place(self, row: int, column: int) -> str:
        """Say where a cell is."""
        return f"{self.source}, {self.where[row]}, column {self.header[column]!r}"

    def texts(self, column: int, what: str) -> list[str]:
        """Return a column of which no cell may be empty; numbers become text."""
        found = []
        for row, cells in enumerate(self.rows):
            value = cells[column]
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = str(value)
            if not isinstance(value, str | None):
                raise DataError(
                    f"{self.place(row, column)}: expected text, found a {type(value).__name__}"
                )
            if not value:
                raise DataError(f"{self.place(row, column)}: there is no {what}")
            found.append(value)
        return found


# -------------------------------------------------------------------- columns by name


def find_column(
    header: Sequence[str], given: str | None, known: Sequence[str], source: str
) -> int | None:
    """Return the place of a column: that which was given, or the first known one, or None.

    Names are compared as they are and then without regard to case, blanks and hyphens. A name that
    was given must be there; one that is there twice is refused.
    """
    for name in [given] if given is not None else known:
        exact = [i for i, column in enumerate(header) if column == name]
        places = exact or [i for i, column in enumerate(header) if _plain(column) == _plain(name)]
        if len(places) > 1:
            raise DataError(
                f"{source} has {len(places)} columns called {name!r}; rename all but one"
            )
        if places:
            return places[0]
    if given is not None:
        raise DataError(f"{source} has no column {given!r}; {list_columns(header)}")
    return None


def find_numbered(header: Sequence[str]) -> list[int]:
    """Return the places of columns such as ``label_1, label_2``, if there are two or more."""
    families: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        found = _NUMBERED.fullmatch(_plain(name))
        if found:
            families.setdefault(found[1], []).append(place)
    return next((places for places in families.values() if len(places) > 1), [])


def list_columns(header: Sequence[str]) -> str:
    """Say which columns there are, but not all of very many."""
    shown = ", ".join(repr(name) for name in header[:20])
    return f"its columns are {shown}" + (f" and {len(header) - 20} more" if header[20:] else "")


def _plain(name: str) -> str:
    return re.sub(r"[\s\-_]+", "_", name.strip().casefold())


# -------------------------------------------------------------------- rows as samples


@dataclass(frozen=True)
class Described:
    """The samples of a grid's rows: names, and pictures and texts where there are any."""

    names: list[str]
    files: list[str] | None
    texts: list[str] | None

    def opinion(self, row: int, labels: list[str], place: str, annotator: str | None) -> Opinion:
        """Return the labels that somebody gave to the sample of a row."""
        return Opinion(
            name=self.names[row],
            labels=labels,
            place=place,
            annotator=annotator,
            file=None if self.files is None else self.files[row],
            text=None if self.texts is None else self.texts[row],
        )


def describe(grid: Grid, options: Options, unnamed: list[str] | None = None) -> Described:
    """Find out what a grid's rows are about.

    Parameters
    ----------
    grid : Grid
        The rows.
    options : Options
        ``sample``, ``file`` and ``text`` are used; a text is only read when it was asked for.
    unnamed : list of str, optional
        What to call the rows if no column names them; by default "row 7".
    """
    file = find_column(grid.header, options.file, FILE_NAMES, grid.source)
    # A column that was named as the file's also names the sample, if nothing else names it.
    known = SAMPLE_NAMES if options.file is None else (*SAMPLE_NAMES[:3], options.file)
    sample = find_column(grid.header, options.sample, known, grid.source)
    text = find_column(grid.header, options.text, (), grid.source)
    files = None if file is None else grid.texts(file, "file name")
    if sample is None:
        names = list(unnamed or grid.where)
    else:
        names = grid.texts(sample, "name of a sample")
        if files is None and all(map(has_picture_suffix, names)):
            files = names
    texts = None if text is None else grid.texts(text, "text")
    return Described(names, files, texts)


def read_grid(grid: Grid, options: Options) -> Annotations:
    """Read the candidates of every row: one row or column per sample and annotator."""
    columns = _candidate_columns(grid, options)
    described = describe(grid, options)
    annotator = find_annotator(grid, options, described)
    cells = (row[column] for row in grid.rows for column in columns)
    named = " and ".join(repr(grid.header[column]) for column in columns)
    splitter = Splitter.choose(options.delimiter, cells, f"{grid.source}, column {named}")
    who = None if annotator is None else grid.texts(annotator, "annotator")
    people = _people_of_columns(grid, options, columns, described) if who is None else None
    opinions = _opinions(grid, columns, described, splitter, who, people)
    return collect(grid.source, opinions, options, repeats=annotator is not None)


def find_annotator(grid: Grid, options: Options, described: Described) -> int | None:
    """Return the place of the column that says who labeled, or None."""
    found = find_column(grid.header, options.annotator, ANNOTATOR_NAMES, grid.source)
    if found is None and len(set(described.names)) < len(described.names):
        found = find_column(grid.header, None, _USER_NAMES, grid.source)
    return found


def _people_of_columns(
    grid: Grid, options: Options, columns: list[int], described: Described
) -> list[str] | None:
    """Return the annotator that each column of labels stands for, or None where it is not known."""
    if len(columns) < 2 or len(set(described.names)) < len(described.names):
        return None  # in the rows of a sample that is named twice, others may have answered
    stem = _NUMBERED.fullmatch(_plain(grid.header[columns[0]]))
    if options.candidates is None and (stem is None or stem[1] not in _PEOPLE_STEMS):
        return None
    names = [grid.header[column] for column in columns]
    return names if len(set(names)) == len(names) else None


def _candidate_columns(grid: Grid, options: Options) -> list[int]:
    if options.candidates is not None:
        found = [find_column(grid.header, name, (), grid.source) for name in options.candidates]
        return [place for place in found if place is not None]
    single = find_column(grid.header, None, CANDIDATE_NAMES, grid.source)
    columns = find_numbered(grid.header) if single is None else [single]
    if not columns:
        raise DataError(
            f"{grid.source} has no column of candidates that its name shows (such as "
            f"'candidates' or 'label'); {list_columns(grid.header)}; say which with candidates=..."
        )
    return columns


def _opinions(
    grid: Grid,
    columns: list[int],
    described: Described,
    splitter: Splitter,
    who: list[str] | None,
    people: list[str] | None,
) -> Iterator[Opinion]:
    """Yield the labels of each row; several columns are one annotator each, unless named."""
    for row, cells in enumerate(grid.rows):
        anything = False
        for place, column in enumerate(columns):
            labels = splitter.labels(cells[column], grid.place(row, column))
            if labels:
                anything = True
                annotator = who[row] if who is not None else people[place] if people else None
                yield described.opinion(row, labels, grid.where[row], annotator)
        if not anything:
            raise DataError(f"{grid.place(row, columns[0])}: there are no candidates")
