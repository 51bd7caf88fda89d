"""Which format a file has, and tables of any format as grids."""

from __future__ import annotations

from pathlib import Path

from fspll._common.errors import DataError, InputError
from fspll.annotations.frames import read_arrow
from fspll.annotations.grid import Grid
from fspll.annotations.tables import read_table
from fspll.annotations.workbooks import read_workbook

TABLES = ("csv", "tsv", "xlsx", "parquet", "feather")
FORMATS = (*TABLES, "json", "jsonl", "label-studio", "folder", "mat", "npz")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".mat": "mat",
    ".npz": "npz",
}
_SPREADSHEETS = (".xls", ".ods", ".numbers")
_BEGINNINGS = {b"PK\x03\x04": "xlsx", b"PAR1": "parquet", b"ARROW1": "feather"}


def find_format(path: Path, given: str | None = None) -> str:
    """Return the format that was given, or that of the path's ending, or of its first letters."""
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"format must be one of {', '.join(FORMATS)}, not {given!r}")
        return given
    if path.is_dir():
        return "folder"
    ending = path.suffix.lower()
    if ending in _SPREADSHEETS:
        raise DataError(
            f"{path} is a spreadsheet in a format that is not read here; save it as .xlsx or as "
            "CSV (UTF-8)"
        )
    if ending == ".npy":
        raise DataError(
            f"{path} holds features without labels; name the table of candidates, and give "
            f"features='{path.name}' with it"
        )
    return ENDINGS.get(ending) or _format_by_content(path)


def open_table(
    path: Path,
    kind: str | None = None,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    may_be_empty: bool = False,
) -> Grid:
    """Read a table: CSV, TSV, a sheet of a spreadsheet, parquet or feather.

    Parameters
    ----------
    path : Path
        The file.
    kind : str, optional
        One of :data:`TABLES`; by default that of the path.
    encoding : str, optional
        Of a text file.
    sheet : str, optional
        Of a spreadsheet.
    may_be_empty : bool
        Whether a text file may have a header only.
    """
    kind = kind or find_format(path)
    if sheet is not None and kind != "xlsx":
        raise InputError(f"sheet={sheet!r} belongs to a spreadsheet, and {path.name} is none")
    if kind == "xlsx":
        return read_workbook(path, sheet)
    if kind in ("parquet", "feather"):
        return read_arrow(path, kind)
    separator = "\t" if kind == "tsv" else None
    return read_table(path, encoding=encoding, separator=separator, may_be_empty=may_be_empty)


def _format_by_content(path: Path) -> str:
    """Tell JSON and binary tables by their first letters; everything else is a table of text."""
    if not path.is_file():  # a pipe, say, which can be read only once
        return "csv"  # whose reader says what is wrong
    try:
        with path.open("rb") as file:
            begin = file.read(1000)
    except OSError:
        return "csv"
    for letters, kind in _BEGINNINGS.items():
        if begin.startswith(letters):
            return kind
    text = begin.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return "json" if text[:1] in (b"[", b"{") else "csv"
