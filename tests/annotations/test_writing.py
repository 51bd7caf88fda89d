"""Tables that run nothing in a spreadsheet and read back as they were."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fspll.annotations
from fspll._common.errors import InputError
from fspll.annotations import join_candidates, read_annotations, read_answers, write_table
from fspll.annotations.writing import guard, unguard


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("'=x", "''=x"),
        ("''-1", "'''-1"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        ("-", "'-"),
        ("-inf", "'-inf"),
        ("-1e5\n", "'-1e5\n"),
        ("-٣", "'-٣"),
        ("-0.5", "-0.5"),
        ("+1e-05", "+1e-05"),
        ("-.5", "-.5"),
        ("a;=1+1", "a;'=1+1"),
        ("a;;'-b;c", "a;;''-b;c"),
        ('a; "=b', "a;' \"=b"),
        ("a\n@b\r\n+c", "a\n'@b\r\n'+c"),
        ("a\t\t=b", "a\t'\t'=b"),
        ("a;'b", "a;'b"),
        ("'tis", "'tis"),
        ("cat", "cat"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_is_guarded(cell, written):
    assert guard(cell) == written
    assert unguard(written) == cell


@settings(deadline=None)
@given(st.one_of(st.text(), st.text("=+-@';\t\r\n \"a")))
def test_guards_come_off_again(cell):
    assert unguard(guard(cell)) == cell


@settings(deadline=None, max_examples=300)
@given(st.lists(st.text("=+-@';,\t\r\n \"a1"), min_size=1, max_size=3))
@example(["x", "a;=cmd()", "b"])
@example(["x", 'a;"=cmd()', "b"])
def test_no_cell_is_a_formula_where_spreadsheets_split_at_semicolons(tmp_path_factory, cells):
    """As Excel splits a file in a locale whose decimal sign is a comma."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    write_table(path, [f"c{i}" for i in range(len(cells))], [["first", *cells[1:]]])
    with path.open(encoding="utf-8", newline="") as file:
        for cell in (cell for row in csv.reader(file, delimiter=";") for cell in row):
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


def test_the_file_itself(tmp_path):
    path = tmp_path / "new" / "t.csv"
    rows = [["=a", -0.5, None], ["ü,;", np.float64(1e-9), np.int64(-3)], ['say "x"', "a|b", " c"]]
    write_table(path, ["sample", "margin", "-x"], rows)
    assert path.read_bytes().decode() == (
        'sample,margin,\'-x\n\'=a,-0.5,\n"ü,;",1e-09,-3\n"say ""x""",a|b," c"\n'
    )
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[2] == ["ü,;", "1e-09", "-3"]
    assert [p.name for p in path.parent.iterdir()] == ["t.csv"]


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, ["a"], [["old"]])
    for rows, message in (
        ([["new"], ["x", "y"]], r"row 3 of t\.csv has 2 cells for 1 columns"),
        ([["a\0"]], "row 2, column 'a' of t.csv cannot be written"),
        ([["\ud800"]], "row 2, column 'a' of t.csv cannot be written"),
    ):
        with pytest.raises(InputError, match=message):
            write_table(path, ["a"], rows)
    assert path.read_text() == "a\nold\n"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAME = (st.sampled_from(["", "=", "+", "-", "@", "'", "'=", "\t'", '"', "[", ";"]), TEXT)
NAMES = st.tuples(*NAME).map("".join).map(str.strip).filter(bool)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=3, unique=True), min_size=1))
@example({"-0.5": ["=a|b"], "'-0.5": ["'=a"]})
@example({"a": ["Greek/alpha"], "b": ["Greek/beta"]})
def test_names_and_labels_survive_a_table(tmp_path_factory, sets):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    cells = join_candidates(list(sets.values()))
    write_table(path, ["sample", "candidates"], zip(sets, cells, strict=True))
    found = read_annotations(path)
    assert found.names == tuple(sets)
    for row, labels in enumerate(sets.values()):
        assert found.candidates.names(row) == sorted(labels)


def test_a_leading_tab_survives_behind_its_guard(tmp_path):
    write_table(tmp_path / "t.csv", ["sample", "answer"], [["\tx", "\ry"]])
    assert read_answers(tmp_path / "t.csv") == {"\tx": "\ry"}
    assert read_annotations(tmp_path / "t.csv", candidates="answer").names == ("\tx",)


def test_public_names():
    for name in fspll.annotations.__all__:
        assert getattr(fspll.annotations, name) is not None
    assert dir(fspll.annotations) == sorted(fspll.annotations.__all__)
    with pytest.raises(AttributeError, match=r"module 'fspll.annotations' has no attribute 'x'"):
        fspll.annotations.x  # noqa: B018


def test_excel_gets_one_mark_and_nothing_else_changes(tmp_path):
    rows = [["Épée", "=1+1"], ["a;b", None]]
    write_table(tmp_path / "plain.csv", ["sample", "é"], rows)
    write_table(tmp_path / "excel.csv", ["sample", "é"], rows, excel=True)
    plain = (tmp_path / "plain.csv").read_bytes()
    assert plain.startswith(b"sample")
    assert (tmp_path / "excel.csv").read_bytes() == b"\xef\xbb\xbf" + plain
