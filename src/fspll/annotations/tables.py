"""Text files: their encoding, and tables (CSV, TSV) as spreadsheets write them.

A table is a header, then rows, counted as a person does.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from fspll._common.errors import DataError, InputError
from fspll._common.reading import read_file
from fspll.annotations.grid import Grid, is_title
from fspll.annotations.writing import unguard

# A byte-order mark settles the encoding. UTF-32 first: its mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARK = "\ufeff"
_ZIP = b"PK\x03\x04"
_SEPARATORS = ("\t", ";", ",")
_QUOTED = re.compile(r'"[^"]*"')
# A first line that names the separator for a spreadsheet, which shows no row for it.
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?(?:\r\n|\r|\n)', re.IGNORECASE)
_LARGEST_FIELD = 2**31 - 1

Read = TypeVar("Read")


def read_text(path: Path, encoding: str | None, place_of: Callable[[str], str]) -> str:
    """Return the text of a file, without a byte-order mark.

    Parameters
    ----------
    path : Path
        The file.
    encoding : str or None
        How it is encoded. None: by its byte-order mark, or else UTF-8.
    place_of : callable
        From the text before a bad character to where that is: ``"row 7"``.
    """
    content = read_file(path)
    if not content:
        raise DataError(f"{path} is empty")
    if content.startswith(_ZIP):
        raise DataError(
            f"{path} is a zip file or a spreadsheet in its own format, not a text file; let "
            "its name end in .xlsx, or save it as CSV (UTF-8)"
        )
    used = encoding or next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(used)
    except LookupError:
        raise InputError(
            f"encoding={encoding!r} is not known; use for example 'utf-8', 'utf-16' or 'cp1252'"
        ) from None
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(used, errors="replace").removeprefix(_MARK)
        complaint = _complaint(content[error.start], used, encoding)
        raise DataError(f"{path.name}, {place_of(before + '?')}: {complaint}") from None
    text = text.removeprefix(_MARK)
    if not text.strip():
        raise DataError(f"{path} is empty")
    at = text.find("\0")
    if at >= 0:
        hint = "; if it is UTF-16 without a mark, give encoding='utf-16-le'" if at < 4 else ""
        raise DataError(
            f"{path.name}, {place_of(text[:at] + '?')}: there is a NUL byte, so this is no text "
            f"file{hint}"
        )
    return text


def _complaint(byte: int, used: str, given: str | None) -> str:
    if given is not None:
        return f"byte 0x{byte:02X} cannot be read as encoding={given!r}"
    if used != "utf-8":
        return f"the file begins like {used.removesuffix('-sig')} but is damaged here"
    return (
        f"byte 0x{byte:02X} is not UTF-8; if the whole file is Windows or Latin-1 text, give "
        'encoding="cp1252"; if only some rows are, save the file again as UTF-8'
    )


def read_in_either(read: Callable[..., Read], encoding: str | None) -> Read:
    """Read a file as UTF-8 or by its byte-order mark, or else in the encoding of the annotations.

    It is for files beside the annotations, such as answers, which need not be encoded alike.

    Parameters
    ----------
    read : callable
        Reads the file, in the ``encoding`` that it is given.
    encoding : str or None
    """
    try:
        return read()
    except DataError:
        if encoding is None:
            raise
        return read(encoding=encoding)


# -------------------------------------------------------------------- tables


def read_table(
    path: Path,
    *,
    encoding: str | None = None,
    separator: str | None = None,
    may_be_empty: bool = False,
) -> Grid:
    """Read a table; its first row that is not blank names the columns.

    Parameters
    ----------
    path : Path
        The file.
    encoding : str, optional
        See :func:`read_text`.
    separator : str, optional
        What stands between the fields. By default that of a tab, ``;`` and ``,`` which the header
        has most often (outside quotes).
    may_be_empty : bool, default=False
        Whether there may be no row below the header.
    """

    def place_of(before: str) -> str:
        before, sep = _split_off_separator(before, separator)
        with _fields_up_to(len(before)):
            rows = list(_records(before, sep, strict=False))
        row, fields = len(rows), len(rows[-1])
        header = next((cells for cells in rows if any(map(str.strip, cells))), [])
        known = row > 1 and fields <= len(header)
        return f"row {row}" + (f", column {header[fields - 1].strip()!r}" if known else "")

    usual = separator or ","
    text = read_text(path, encoding, place_of)
    text, sep = _split_off_separator(text, separator)
    with _fields_up_to(len(text)):
        header, rows, where = _read_rows(path, text, sep)
    if not rows and not may_be_empty:
        raise DataError(f"{path} has a header but no rows below it")
    understood = [] if sep == usual else [f"fields separated by {_name(sep)}"]
    understood += [f"encoding {encoding}"] if encoding else []
    return Grid(path.name, header, rows, where, tuple(understood))


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
                header = [] if is_title(row) else row
            elif len(row) == len(header):
                rows.append(row)
                where.append(f"row {number}")
            else:
                raise DataError(
                    f"{path.name}, row {number} has {_fields(len(row))} where the header has "
                    f"{len(header)}; {_mend(header, sep)}"
                )
    except csv.Error as error:
        unclosed = "unexpected end of data" in str(error)
        problem = "a double quote is opened and never closed" if unclosed else str(error)
        raise DataError(f"{path.name}, row {number + 1}: {problem}") from None
    return header, rows, where


def _mend(header: list[str], sep: str) -> str:
    if len(header) == 1:
        return "the first row must name the columns: delete what stands above that"
    return f"a field that contains {_name(sep)} must be in double quotes"


def _split_off_separator(text: str, given: str | None) -> tuple[str, str]:
    """Return the text that begins with the header, and what separates its fields."""
    named = _SEPARATOR_LINE.match(text)
    if named:
        return text[named.end() :], given or named[1]
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
