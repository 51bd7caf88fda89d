"""Columns of marks: one column per label, with an "x" or a 1 where a sample may have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fspll._common.errors import DataError
from fspll.annotations.grid import Grid

# How a person marks a label, and how the others, besides leaving the cell empty. A table has one
# pair of these: "x" and "y" together are rather labels.
_PAIRS = {
    "1": "0",
    "x": "",
    "✓": "",
    "✔": "",
    "true": "false",
    "yes": "no",
    "y": "n",
    # As spreadsheets write them in other countries.
    "wahr": "falsch",
    "vrai": "faux",
    "verdadero": "falso",
    "ja": "nein",
    "oui": "non",
}
_BLANK = {"", "-"}
# What a table of dummies, as pandas writes it, puts before every label.
_PREFIX = re.compile(r"(label|labels|class|category|candidate|candidates|choice)[_:=]\s*", re.I)


def find_marks(grid: Grid, columns: Sequence[int]) -> list[int]:
    """Return those of the columns that hold nothing but marks of one kind, if there are several."""
    values = {
        column: {_plain(row[column]) for row in grid.rows} - _BLANK
        for column in columns
        if grid.header[column]
    }
    for yes, no in _PAIRS.items():
        found = [column for column, one in values.items() if one <= {yes, no}]
        marked = [column for column in found if yes in values[column]]
        # A label that nobody chose is a column of marks, too; a column without anything is none.
        if len(marked) > 1:
            return [column for column in found if values[column]]
    return []


def only_digits(grid: Grid, columns: Sequence[int]) -> bool:
    """Tell whether marks are 0 and 1, which may be names of classes as well."""
    return {_plain(row[column]) for row in grid.rows for column in columns} <= {*_BLANK, "0", "1"}


def is_mark(value: Any, where: str) -> bool:
    """Tell whether a cell is marked; refuse what is no mark."""
    text = _plain(value)
    if text in _PAIRS:
        return True
    if text in _BLANK or text in _PAIRS.values():
        return False
    raise DataError(f"{where}: {value!r:.60} is no mark; expected 1 or x, or 0 or nothing")


def label_names(header: Sequence[str]) -> list[str]:
    """Return the labels that columns of marks stand for.

    >>> label_names(["label_cat", "label_dog"]), label_names(["cat", "label_dog"])
    (['cat', 'dog'], ['cat', 'label_dog'])
    """
    found = [_PREFIX.match(name) for name in header]
    short = [name[one.end() :] for name, one in zip(header, found, strict=True) if one]
    whole = len(short) < len(header) or len({one[0] for one in found if one}) > 1
    return list(header) if whole or not all(short) else short


def _plain(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()
