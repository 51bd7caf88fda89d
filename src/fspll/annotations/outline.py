"""What a file of labels looks like before it is understood: its columns and its first rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from fspll._common.words import beginning
from fspll.annotations.grid import Grid
from fspll.annotations.jsonfiles import open_objects
from fspll.annotations.opening import TABLES, find_format, open_table
from fspll.annotations.workbooks import sheet_names
from fspll.annotations.writing import to_plain_text

_ROWS, _COLUMNS, _LETTERS = 5, 200, 80


@dataclass(frozen=True)
class Outline:
    """The columns of a file, for a person to choose from.

    Attributes
    ----------
    columns : list of str
        The header, or the keys of objects; none for files of arrays.
    rows : list of list of str
        The first cells of every column, cut short.
    choices : list of str
        The names of the ``<Choices>`` in an export of Label Studio.
    """

    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)


def read_outline(path: Path, *, encoding: str | None = None, sheet: str | None = None) -> Outline:
    r"""Return the columns and the first rows of a table or JSON file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("file,what\na.png,cat|lynx\n")
    ...     read_outline(path).columns
    ['file', 'what']
    """
    kind = find_format(path)
    if kind in ("json", "jsonl"):
        grid, choices = open_objects(path, encoding)
        return _outline(grid, choices)
    if kind not in TABLES:
        return Outline()
    return _outline(open_table(path, kind, encoding=encoding, sheet=sheet), [])


def list_sheets(path: Path) -> list[str]:
    """Return the sheets of a spreadsheet; none for other files."""
    return sheet_names(path) if find_format(path) == "xlsx" else []


def _outline(grid: Grid, choices: list[str]) -> Outline:
    columns = grid.header[:_COLUMNS]
    cells = [[row[place] for place in range(len(columns))] for row in grid.rows[:_ROWS]]
    rows = [[beginning(to_plain_text(cell), _LETTERS) for cell in row] for row in cells]
    return Outline(columns, rows, choices)
