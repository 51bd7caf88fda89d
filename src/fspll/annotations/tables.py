"""CSV and TSV files as spreadsheets write them: a header, then rows, counted as a person does."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fspll._common.errors import DataError
from fspll.annotations.decoding import read_text
from fspll.annotations.grid import Grid
from fspll.annotations.writing import unguard

_SEPARATORS = ("\t", ";", ",")
_QUOTED = re.compile(r'"[^"]*"')
# A first line by which a spreadsheet is told the separator; it shows no row for it.
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?(?:\r\n|\r|\n)', re.IGNORECASE)
_LARGEST_FIELD = 2**31 - 1


def read_table(path: Path, *, encoding: str | None = None, separator: str | None = None) -> Grid:
    """Read a table; its first row that is not blank names the columns.

    Parameters
    ----------
    path : Path
        The file.
    encoding : str, optional
        See :func:`fspll.annotations.decoding.read_text`.
    separator : str, optional
        What stands between the fields. By default that of a tab, ``;`` and ``,`` which the header
        has most often (outside quotes).
    """

    def place_of(before: str) -> str:
        before, sep = _split_off_separator(before, separator)
        with _fields_up_to(len(before)):
            rows = list(_records(before, sep, strict=False))
        row, fields = len(rows), len(rows[-1])
        header = next((cells for cells in rows if any(map(str.strip, cells))), [])
        known = row > 1 and fields <= len(header)
        return f"row {row}" + (f", column {header[fields - 1].strip()!r}" if known else "")

    text = read_text(path, encoding, place_of)
    text, sep = _split_off_separator(text, separator)
    with _fields_up_to(len(text)):
        header, rows, where = _read_rows(path, text, sep)
    if not rows:
        raise DataError(f"{path} has a header but no rows below it")
    return Grid(path.name, header, rows, where)


def _read_rows(path: Path, text: str, sep: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the header, the rows below it, and where each of those is."""
    header: list[str] = []
    rows, where = [], []
    number = 0
    try:
        for number, record in enumerate(_records(text, sep), start=1):
            if not any(map(str.strip, record)):
                continue  # spreadsheets leave blank rows behind
            row = [unguard(cell.strip()) for cell in record]
            if not header:
                header = row
            elif len(row) == len(header):
                rows.append(row)
                where.append(f"row {number}")
            else:
                raise DataError(
                    f"{path.name}, row {number} has {_fields(len(row))} where the header has "
                    f"{len(header)}; a field that contains {_name(sep)} must be in double quotes"
                )
    except csv.Error as error:
        unclosed = "unexpected end of data" in str(error)
        problem = "a double quote is opened and never closed" if unclosed else str(error)
        raise DataError(f"{path.name}, row {number + 1}: {problem}") from None
    return header, rows, where


def _split_off_separator(text: str, given: str | None) -> tuple[str, str]:
    """Return the text that begins with the header, and what separates its fields."""
    told = _SEPARATOR_LINE.match(text)
    if told:
        return text[told.end() :], given or told[1]
    if given:
        return text, given
    header = _QUOTED.sub("quoted", text[:100_000]).lstrip("\r\n ")
    header = re.split(r"[\r\n]", header, maxsplit=1)[0]
    best = max(_SEPARATORS, key=header.count)
    return text, best if best in header else ","


def _records(text: str, separator: str, *, strict: bool = True) -> Iterator[list[str]]:
    lines = io.StringIO(text, newline="")
    return csv.reader(lines, delimiter=separator, strict=strict, skipinitialspace=True)


@contextmanager
def _fields_up_to(size: int) -> Iterator[None]:
    """Let fields be as long as the file; the limit is of the whole process, so put it back."""
    before = csv.field_size_limit()
    csv.field_size_limit(min(max(before, size + 1), _LARGEST_FIELD))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _fields(n: int) -> str:
    return f"{n} field{'s' if n != 1 else ''}"


def _name(separator: str) -> str:
    return "a tab" if separator == "\t" else repr(separator)
