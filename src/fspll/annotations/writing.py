"""Tables that a spreadsheet opens without running anything, and that read back as they were.

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is a formula to a
spreadsheet. Such a cell is written with an apostrophe before it, unless it is a plain number. Where
a comma is the decimal sign, spreadsheets split at semicolons instead, whatever is quoted, so the
same holds inside a cell behind a semicolon, a tab or the end of a line. The readers of this package
take off exactly these apostrophes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError, InputError
from fspll._common.files import write_beside
from fspll.annotations.splitting import Splitter, may_be_several

# Apostrophes that stand before a risky sign already are counted in, so that "'=x" comes back too.
_RISKY = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
# Where a cell would begin that is split inside: quotes and blanks before the sign do not help.
_RISKY_INSIDE = re.compile(r"""(?<=[;\t\r\n])(?=["' ]*[=+\-@\t\r])""")
_GUARDED_INSIDE = re.compile(r"""(?<=[;\t\r\n])'(?=["' ]*[=+\-@\t\r])""")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")
_NEEDS_QUOTES = re.compile(r'[,;\t\r\n"]|^\s|\s$')


def guard(cell: str) -> str:
    """Return the cell with an apostrophe before it if a spreadsheet might run it.

    >>> guard("=1+1"), guard("-0.5"), guard("cat"), guard("cat;=1+1")
    ("'=1+1", '-0.5', 'cat', "cat;'=1+1")
    """
    cell = _RISKY_INSIDE.sub("'", cell)
    return f"'{cell}" if _RISKY.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguard(cell: str) -> str:
    """Take off the apostrophes that :func:`guard` put into a cell, and no others.

    >>> unguard("'=1+1"), unguard("'tis"), unguard("cat;'=1+1")
    ('=1+1', "'tis", 'cat;=1+1')
    """
    cell = cell[1:] if cell.startswith("'") and _GUARDED.match(cell) else cell
    return _GUARDED_INSIDE.sub("", cell)


def write_table(
    path: Path | str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    excel: bool = False,
) -> None:
    """Write a CSV file that is safe to open in a spreadsheet.

    UTF-8, commas, a line feed after every row. The file is written beside its place and renamed,
    so a failure leaves an earlier one as it was.

    Parameters
    ----------
    path : path
        The file to write.
    header : sequence of str
        The names of the columns.
    rows : iterable of sequence
        As many cells as columns each: text, numbers, or None for an empty cell.
    excel : bool, default=False
        Begin with a byte-order mark, without which Excel does not recognize UTF-8.
    """
    path = Path(path)
    with (
        write_beside(path) as beside,
        beside.open("w", encoding="utf-8-sig" if excel else "utf-8", newline="") as file,
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


def to_plain_text(value: Any) -> str:
    r"""Return any cell as text that a text file can hold; None is empty.

    >>> to_plain_text(["a", 1]), to_plain_text(None), to_plain_text("\0")
    ('["a", 1]', '', '\ufffd')
    """
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = "" if value is None else str(value)
    return text if is_plain_text(text) else _NO_TEXT.sub("\ufffd", text)


def join_candidates(sets: Sequence[Sequence[str]]) -> list[str]:
    """Return one cell per sample for a column of candidates, so that they read back as they are.

    Labels are joined with ``|``. Where that would be misread, because a label contains ``|`` or
    another sign that may separate, every cell is a JSON list.

    >>> join_candidates([["cat", "dog"], ["fox"]])
    ['cat|dog', 'fox']
    >>> join_candidates([["a|b", "c"]])
    ['["a|b", "c"]']
    """
    cells = ["|".join(labels) for labels in sets]
    try:
        splitter = Splitter.choose(None, cells, "")
        # One label with a comma would be read otherwise once rows are added or removed.
        plain = bool(splitter.delimiter) or not any(map(may_be_several, cells))
        plain = plain and all(
            splitter.labels(cell, "") == list(dict.fromkeys(labels))
            for cell, labels in zip(cells, sets, strict=True)
        )
    except DataError:  # of a sign that may separate
        plain = False
    return cells if plain else [json.dumps(list(one), ensure_ascii=False) for one in sets]
