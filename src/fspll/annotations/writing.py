"""Tables that a spreadsheet opens without running anything, and that read back as they were.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to a
spreadsheet. Such a cell is written with an apostrophe before it, unless it is a plain number. The
readers of this package take off exactly that apostrophe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fspll._common.errors import InputError
from fspll._common.files import write_beside

# Apostrophes that stand before a risky sign already are counted in, so that "'=x" comes back too.
_RISKY = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NEEDS_QUOTES = re.compile(r'[,;\t\r\n"]|^\s|\s$')


def guard(cell: str) -> str:
    """Return the cell with an apostrophe before it if a spreadsheet might run it.

    >>> guard("=1+1"), guard("-0.5"), guard("cat")
    ("'=1+1", '-0.5', 'cat')
    """
    return f"'{cell}" if _RISKY.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguard(cell: str) -> str:
    """Take off the apostrophe that :func:`guard` put before a cell, and no other.

    >>> unguard("'=1+1"), unguard("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell


def write_table(path: Path | str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file that is safe to open in a spreadsheet.

    UTF-8 without a byte-order mark, commas, a line feed after every row. The file is written
    beside its place and renamed, so a failure leaves an earlier one as it was.

    Parameters
    ----------
    path : path
        The file to write.
    header : sequence of str
        The names of the columns.
    rows : iterable of sequence
        As many cells as columns each: text, numbers, or None for an empty cell.
    """
    path = Path(path)
    with (
        write_beside(path) as beside,
        beside.open("w", encoding="utf-8", newline="") as file,
    ):
        for number, row in enumerate(_with_header(header, rows), start=1):
            if len(row) != len(header):
                raise InputError(
                    f"row {number} of {path.name} has {len(row)} cells for {len(header)} columns"
                )
            cells = [_written(cell, number, header[i], path) for i, cell in enumerate(row)]
            # A blank line would be no row at all.
            file.write((",".join(cells) or '""') + "\n")


def _with_header(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterable[Sequence[Any]]:
    yield header
    yield from rows


def _written(cell: Any, row: int, column: str, path: Path) -> str:
    text = guard("" if cell is None else str(cell))
    if not is_plain_text(text):
        raise InputError(
            f"row {row}, column {column!r} of {path.name} cannot be written: {text!r} holds a "
            "character that no text file can hold"
        )
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def is_plain_text(text: str) -> bool:
    """Tell whether a text file can hold this: no NUL, no half of a surrogate pair."""
    if text.isascii():
        return "\0" not in text
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def join_candidates(sets: Sequence[Sequence[str]]) -> list[str]:
    """Return one cell per sample for a column of candidates, so that they read back as they are.

    Labels are joined with ``|``. Where that could be misread, because a label contains ``|`` or,
    in a column without any ``|``, another sign that may separate, every cell is a JSON list.

    >>> join_candidates([["cat", "dog"], ["fox"]])
    ['cat|dog', 'fox']
    >>> join_candidates([["a|b", "c"]])
    ['["a|b", "c"]']
    """
    labels = {label for labels in sets for label in labels}
    several = any(len(set(labels)) > 1 for labels in sets)
    signs = "|" if several else "|;,/"
    unclear = any(label[:1] in ("[", "{", "(") or set(label) & set(signs) for label in labels)
    if unclear:
        return [json.dumps(list(labels), ensure_ascii=False) for labels in sets]
    return ["|".join(labels) for labels in sets]
