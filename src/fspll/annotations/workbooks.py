"""Spreadsheets of Excel (``.xlsx``): one sheet, its values as the program last showed them.

What is written here is text and numbers, never a formula.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError, InputError, MissingPackageError
from fspll._common.files import write_beside
from fspll._common.reading import check_plain_file, check_size
from fspll._common.words import listed, spoken
from fspll.annotations.frames import plain_value
from fspll.annotations.grid import Grid, is_title
from fspll.annotations.writing import guard, to_plain_text, unguard

_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
MOST_ROWS = 2**20  # of a sheet
_FORMULA = re.compile(rb"<f[ >]")


def read_workbook(path: Path, sheet: str | None = None) -> Grid:
    """Read one sheet; its first row that is not blank, and no title, names the columns.

    Parameters
    ----------
    path : Path
        The file.
    sheet : str, optional
        The sheet's name. By default the first one that can be seen and is not empty.
    """
    openpyxl = load_openpyxl(f"reading {path.name}")
    has_formulas = _check(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and the like, which are not read
        return _read_sheet(openpyxl, path, sheet, has_formulas)


def _read_sheet(openpyxl: Any, path: Path, sheet: str | None, has_formulas: bool) -> Grid:
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # its reader raises whatever its parsers do
        raise _no_spreadsheet(path, error) from error
    try:
        visible = [one.title for one in book.worksheets if one.sheet_state == "visible"]
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(
                f"{path.name} has no sheet {sheet!r}; it has {listed([*map(repr, visible)])}"
            )
        for title in [sheet] if sheet is not None else visible:
            rows = list(_rows(book[title]))
            if not rows:
                continue
            if has_formulas:
                _check_formulas(openpyxl, path, title, dict(rows))
            return _make_grid(path, title, visible, rows)
    finally:
        book.close()
    raise DataError(f"{path} is empty" if sheet is None else f"{path}, sheet {sheet!r} is empty")


def sheet_names(path: Path) -> list[str]:
    """Return the sheets that can be seen."""
    openpyxl = load_openpyxl(f"reading {path.name}")
    _check(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True)
    except Exception as error:  # its reader raises whatever its parsers do
        raise _no_spreadsheet(path, error) from error
    try:
        return [one.title for one in book.worksheets if one.sheet_state == "visible"]
    finally:
        book.close()


def _no_spreadsheet(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(f"{path} cannot be read as a spreadsheet: {reason}")


def load_openpyxl(purpose: str) -> Any:
    """Return the package, or say which extra it takes for what."""
    try:
        import openpyxl
    except ImportError:
        raise MissingPackageError("openpyxl", "tables", purpose) from None
    return openpyxl


def write_workbook(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str
) -> None:
    """Write one sheet; cells that look like formulas are guarded as in :mod:`.writing`.

    Parameters
    ----------
    path : Path
        The file; replaced whole when it is there.
    header : sequence of str
        The names of the columns.
    rows : iterable of sequence
        As many cells as columns each: text, numbers, or None for an empty cell.
    title : str
        The name of the sheet.
    """
    book = load_openpyxl(f"writing {path.name}").Workbook(write_only=True)
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    for number, row in enumerate((header, *rows)):
        if number == MOST_ROWS:
            raise InputError(f"{path.name} would have more than {MOST_ROWS:,} rows; write CSV")
        sheet.append([_to_write(cell) for cell in row])
    with write_beside(path) as beside, beside.open("wb") as file:
        book.save(file)


def _to_write(cell: Any) -> Any:
    if cell is None or isinstance(cell, int | float):
        return cell
    return guard(_NOT_IN_XML.sub("\ufffd", to_plain_text(cell)))


def _check(path: Path) -> bool:
    """Refuse what is no zip file, or unpacks to too much; tell whether there are formulas."""
    check_plain_file(path, "a spreadsheet")
    try:
        with zipfile.ZipFile(path) as archive:
            # A small file may hold far more than the memory does.
            check_size(f"{path}, unpacked,", sum(one.file_size for one in archive.infolist()))
            sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
            return any(_FORMULA.search(archive.read(name)) for name in sheets)
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path} is no spreadsheet in the format .xlsx: {error}") from error


def _check_formulas(openpyxl: Any, path: Path, title: str, rows: dict[int, list[Any]]) -> None:
    """Refuse formulas whose value no program has stored; they would look like empty cells."""
    book = openpyxl.load_workbook(path, read_only=True)
    try:
        sheet = book[title]
        sheet.reset_dimensions()
        for number, row in enumerate(sheet.iter_rows(), start=1):
            for place, cell in enumerate(row):
                known = rows.get(number, [])[place : place + 1]
                if cell.data_type == "f" and known in ([], [None]):
                    raise DataError(
                        f"{path.name}, cell {cell.coordinate}: the formula has no stored value; "
                        "open the file in a spreadsheet program, save it there and read it again"
                    )
    finally:
        book.close()


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows that are not blank, with their numbers."""
    sheet.reset_dimensions()  # what other programs write there may be wrong
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [_cell(value) for value in row]
        if any(cell not in (None, "") for cell in cells):
            yield number, cells


def _cell(value: Any) -> Any:
    value = plain_value(value)
    return unguard(value) if isinstance(value, str) else value


def _make_grid(
    path: Path, title: str, visible: list[str], rows: list[tuple[int, list[Any]]]
) -> Grid:
    others = [repr(one) for one in visible if one != title]
    source = f"{path.name}, sheet {title!r}" if others else path.name
    understood = [f"not read: sheet {spoken(others)}"] if others else []
    width = max(_width(cells) for _, cells in rows)
    rows = [(number, [*cells, *[None] * width][:width]) for number, cells in rows]
    begin = next((n for n, (_, cells) in enumerate(rows) if not is_title(cells)), 0)
    if begin:
        understood.append(f"header in row {rows[begin][0]}")
    header = ["" if cell is None else str(cell) for cell in rows[begin][1]]
    rows = rows[begin + 1 :]
    if not rows:
        raise DataError(f"{source} has a header but no rows below it")
    where = [f"row {number}" for number, _ in rows]
    cells = [cells for _, cells in rows]
    hint = f"; the other sheets are {spoken(others)}: say which with sheet=..." if others else ""
    return Grid(source, header, cells, where, tuple(understood), hint)


def _width(cells: list[Any]) -> int:
    return max(n for n, cell in enumerate(cells, start=1) if cell not in (None, ""))
