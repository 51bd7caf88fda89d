"""Columns and first rows of a file, before anybody knows which of them are the labels."""

from __future__ import annotations

import json

import pytest

from fspll._common.errors import DataError
from fspll.annotations.outline import Outline, list_sheets, read_outline


def test_a_table(tmp_path):
    path = tmp_path / "l.csv"
    rows = [f"{n}.png;{'word ' * 40};{n}" for n in range(9)]
    path.write_text("\n".join(["file;text;n", *rows]))
    found = read_outline(path)
    assert found.columns == ["file", "text", "n"]
    assert len(found.rows) == 5
    name, text, number = found.rows[1]
    assert (name, number) == ("1.png", "1")
    assert text == " ".join(["word"] * 15) + " …"
    assert list_sheets(path) == []


def test_very_many_columns_are_cut(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text(",".join(f"c{n}" for n in range(500)) + "\n" + ",".join("1" * 500) + "\n")
    found = read_outline(path)
    assert (len(found.columns), len(found.rows[0])) == (200, 200)


def test_an_encoding(tmp_path):
    path = tmp_path / "l.csv"
    path.write_bytes("Größe,b\n1,2\n".encode("cp1252"))
    with pytest.raises(DataError, match="is not UTF-8"):
        read_outline(path)
    assert read_outline(path, encoding="cp1252").columns == ["Größe", "b"]


def test_objects(tmp_path):
    path = tmp_path / "l.jsonl"
    path.write_text('{"a": 1, "b": ["x", "y"]}\n{"a": null, "c": {"d": 1}}\n')
    found = read_outline(path)
    assert found.columns == ["a", "b", "c"]
    assert found.rows == [["1", '["x", "y"]', ""], ["", "", '{"d": 1}']]


def test_the_choices_of_label_studio(tmp_path):
    path = tmp_path / "export.json"
    chosen = [{"from_name": "mood", "value": {"choices": ["glad"]}}]
    tasks = [{"id": 7, "data": {"text": "well"}, "annotations": [{"result": chosen}]}]
    path.write_text(json.dumps(tasks))
    assert read_outline(path) == Outline(["text"], [["well"]], ["mood"])


def test_arrays_have_no_columns(tmp_path):
    np = pytest.importorskip("numpy")
    np.savez(tmp_path / "l.npz", X=np.zeros((2, 2)))
    assert read_outline(tmp_path / "l.npz") == Outline()


def test_sheets(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.create_sheet("hidden").sheet_state = "hidden"
    book.create_sheet("labels").append(["a", "b"])
    book["labels"].append([1, "x"])
    book.save(tmp_path / "l.xlsx")
    assert list_sheets(tmp_path / "l.xlsx") == ["Sheet", "labels"]
    assert read_outline(tmp_path / "l.xlsx", sheet="labels").rows == [["1", "x"]]
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 and nothing")
    with pytest.raises(DataError, match="is no spreadsheet in the format"):
        list_sheets(tmp_path / "bad.xlsx")
