"""Rows with named columns, from a table or from JSON objects, and the samples they describe."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fspll._common.errors import DataError
from fspll._common.pictures import has_picture_suffix
from fspll.annotations.addresses import read_addresses
from fspll.annotations.collecting import Opinion, Options

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
    understood : tuple of str
        How the file was read, where that is not plain: "fields separated by ';'".
    hint : str
        What else to try where no column of candidates is found.
    """

    source: str
    header: list[str]
    rows: Sequence[Sequence[Any]]
    where: list[str]
    understood: tuple[str, ...] = ()
    hint: str = ""

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
                raise DataError(
                    f"{self.place(row, column)}: there is no {what}; fill in every cell of this "
                    "column (of merged cells only the first counts)"
                )
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
    alike = [plain_name(column) for column in header]  # once: there may be very many
    for name in [given] if given is not None else known:
        exact = [i for i, column in enumerate(header) if column == name]
        wanted = plain_name(name)
        places = exact or [i for i, column in enumerate(alike) if column == wanted]
        if len(places) > 1:
            raise DataError(
                f"{source} has {len(places)} columns called {name!r}; rename all but one"
            )
        if places:
            return places[0]
    if given is not None:
        raise DataError(f"{source} has no column {given!r}; {list_columns(header)}")
    return None


def is_title(cells: Sequence[Any]) -> bool:
    """Tell a line above a table from its header: of several cells only the first is filled."""
    filled = [number for number, cell in enumerate(cells) if cell not in (None, "")]
    return len(cells) > 1 and filled == [0]


def find_index(grid: Grid) -> tuple[int | None, int | None]:
    """Return the place of a first column without a name, as pandas and R write the rows' names.

    Returned first where its cells count the rows, second where they are names that all differ.
    """
    if not grid.header or grid.header[0]:
        return None, None
    cells = [row[0] for row in grid.rows]
    texts = [str(cell) for cell in cells]
    if any(texts == [str(n) for n in range(first, first + len(texts))] for first in (0, 1)):
        return 0, None
    names = all(cell not in (None, "") for cell in cells) and len(set(cells)) == len(cells)
    return None, 0 if names else None


def list_columns(header: Sequence[str]) -> str:
    """Say which columns there are, but not all of very many."""
    shown = ", ".join(repr(name) for name in header[:20])
    return f"its columns are {shown}" + (f" and {len(header) - 20} more" if header[20:] else "")


def plain_name(name: str) -> str:
    """Return a column's name without regard to case, blanks and hyphens."""
    return re.sub(r"[\s\-_]+", "_", name.strip().casefold())


# -------------------------------------------------------------------- rows as samples


@dataclass(frozen=True)
class Described:
    """The samples of a grid's rows: names, pictures and texts where there are any, and whence."""

    names: list[str]
    files: list[str] | None
    texts: list[str] | None
    understood: tuple[str, ...] = ()
    columns: tuple[int | None, ...] = ()

    @property
    def repeated(self) -> bool:
        """Whether a sample is named more than once."""
        return len(set(self.names)) < len(self.names)

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
    if sample is None:
        sample = find_index(grid)[1]
    text = find_column(grid.header, options.text, (), grid.source)
    files = None if file is None else grid.texts(file, "file name")
    if sample is None:
        names = list(unnamed or grid.where)
    else:
        names = grid.texts(sample, "name of a sample")
        if files is None and all(map(has_picture_suffix, names)):
            files = names
            file = sample
    texts = None if text is None else grid.texts(text, "text")
    names, files, renamed = read_addresses(names, files)
    places = {"samples": None if sample == file else sample, "pictures": file, "texts": text}
    understood = [
        f"{what} from {grid.header[at]!r}" for what, at in places.items() if at is not None
    ]
    return Described(names, files, texts, (*understood, *renamed), (sample, file, text))


def find_annotator(grid: Grid, options: Options, described: Described) -> int | None:
    """Return the place of the column that says who labeled, or None."""
    found = find_column(grid.header, options.annotator, ANNOTATOR_NAMES, grid.source)
    if found is None and described.repeated:
        found = find_column(grid.header, None, _USER_NAMES, grid.source)
    return found
