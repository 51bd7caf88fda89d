"""Spreadsheets: which sheet, which rows, and what cannot be read."""

from __future__ import annotations

import datetime
import io
import re
import sys
import zipfile

import pytest

from fspll._common.errors import DataError, InputError, MissingPackageError
from fspll.annotations import read_annotations, read_answers

openpyxl = pytest.importorskip("openpyxl")
ROWS = [["file", "candidates"], ["a.png", "cat|lynx"], ["b.png", "dog"]]
EXPECTED = {"a.png": {"cat": 1, "lynx": 1}, "b.png": {"dog": 1}}


@pytest.fixture
def book(tmp_path):
    """Return a function that writes sheets and returns the file's path."""

    def write(name="l.xlsx", hidden=(), **sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for title, rows in sheets.items():
            sheet = made.create_sheet(title)
            for row in rows:
                sheet.append(row)
            sheet.sheet_state = "hidden" if title in hidden else "visible"
        made.save(tmp_path / name)
        return tmp_path / name

    return write


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [[], *ROWS[:2], [None, None], ROWS[2]],
        [[*row, None] for row in ROWS],
        [["file", " Candidates "], ["a.png", " cat\nlynx "], ["b.png", "dog"]],
        [["file", "cat", "dog", "lynx"], ["a.png", "x", None, "X"], ["b.png", None, "x"]],
        [["file", "cat", "dog", "lynx"], ["a.png", 1, 0, 1], ["b.png", 0, 1, 0]],
        [["file", "cat", "dog", "lynx"], ["a.png", True, False, True], ["b.png", False, True]],
    ],
)
def test_one_sheet(book, votes_of, rows):
    assert votes_of(read_annotations(book(Labels=rows))) == EXPECTED


def test_a_style_that_is_missing_is_nothing_to_be_told_of(book, votes_of):
    """Other programs write such files, and the reader's warning would reach the terminal."""
    path = book(Labels=ROWS)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    styles = parts["xl/styles.xml"]
    parts["xl/styles.xml"] = re.sub(rb"<cellStyles.*?</cellStyles>", b"", styles)
    assert parts["xl/styles.xml"] != styles
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert votes_of(read_annotations(path)) == EXPECTED  # in tests, warnings are errors


def test_rows_are_counted_as_the_program_shows_them(book):
    found = read_annotations(book(Labels=[["Labels of March"], [], *ROWS]))
    assert found.origins == ("l.xlsx, row 4", "l.xlsx, row 5")
    assert found.summary.endswith("header in row 3")


def test_the_sheet_is_said_and_can_be_chosen(book, votes_of):
    other = [["file", "candidates"], ["c.png", "fox"], ["d.png", ""]]
    path = book(Empty=[], Secret=ROWS, Labels=ROWS, More=other, hidden=("Secret",))
    found = read_annotations(path)
    assert votes_of(found) == EXPECTED
    assert found.summary.startswith("l.xlsx, sheet 'Labels': 2 samples")
    assert found.summary.endswith("not read: sheet 'Empty' and 'More'")
    assert found.origins[0] == "l.xlsx, sheet 'Labels', row 2"
    assert votes_of(read_annotations(path, sheet="More")) == {"c.png": {"fox": 1}}
    with pytest.raises(InputError, match="no sheet 'More!'; it has 'Empty', 'Labels', 'More'"):
        read_annotations(path, sheet="More!")
    with pytest.raises(DataError, match="sheet 'Empty' is empty"):
        read_annotations(path, sheet="Empty")


def test_numbers_dates_and_guards(book, votes_of):
    day = datetime.datetime(2024, 3, 1)
    path = book(L=[["id", "label", "day"], [1.0, 3.0, day], ["'=b", 2, day], ["c", 2.5, day]])
    assert votes_of(read_annotations(path)) == {"1": {"3": 1}, "=b": {"2": 1}, "c": {"2.5": 1}}
    assert read_annotations(path, text="day").texts[0] == "2024-03-01"


def test_merged_cells_are_pointed_out(book):
    path = book(L=[["file", "rater", "label"], ["a", 1, "cat"], [None, 2, "dog"], ["b", 1, "cat"]])
    with pytest.raises(DataError, match=r"row 3, column 'file': there is no .*\(of merged cells"):
        read_annotations(path)


def test_answers(book):
    path = book(L=[["sample", "answer"], ["a", 1], ["b", None], [3, "cat"]])
    assert read_answers(path) == {"a": "1", "3": "cat"}


def test_formulas_that_were_never_computed(book):
    path = book(L=[["file", "label"], ["a", "cat"], ["b", '="c"&"at"']])
    with pytest.raises(
        DataError, match=r"l\.xlsx, cell B3: the formula has no stored value; open the file in a "
    ):
        read_annotations(path)


def test_what_cannot_be_read(book, make, monkeypatch, tmp_path):
    with pytest.raises(DataError, match=r"l\.xlsx is no spreadsheet in the format \.xlsx"):
        read_annotations(make("l.xlsx", b"no zip file"))
    with pytest.raises(DataError, match=r"none\.xlsx does not exist"):
        read_annotations(tmp_path / "none.xlsx")
    path = book(L=ROWS[:1])
    with pytest.raises(DataError, match="has a header but no rows below it"):
        read_annotations(path)
    with pytest.raises(DataError, match=r"l\.xlsx is empty"):
        read_annotations(book(L=[]))
    whole = book(L=ROWS).read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        names = archive.namelist()
        parts = {name: archive.read(name) for name in names}
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, parts[name][: len(parts[name]) // 2])
    with pytest.raises(DataError, match=r"l\.xlsx cannot be read as a spreadsheet: "):
        read_annotations(path)
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"sheet='x' belongs to a spreadsheet"):
        read_annotations(make("l.csv", "file,label\na,b\n"), sheet="x")
    with zipfile.ZipFile(path) as archive:
        size = sum(one.file_size for one in archive.infolist())
    assert size > len(whole)  # what it unpacks to counts
    monkeypatch.setenv("FSPLL_MAX_BYTES", f"{size - 1}")
    with pytest.raises(
        DataError,
        match=rf"l\.xlsx, unpacked, has {size:,} bytes, more than the {size - 1:,} that are "
        "allowed; set FSPLL_MAX_BYTES to raise the limit",
    ):
        read_annotations(path)
    monkeypatch.setenv("FSPLL_MAX_BYTES", f"{size}")
    assert len(read_annotations(path)) == len(ROWS) - 1
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        MissingPackageError, match=r"reading l\.xlsx needs the package 'openpyxl'.*fspll\[tables\]"
    ):
        read_annotations(path)
