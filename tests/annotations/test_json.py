"""JSON lines and lists of objects."""

from __future__ import annotations

import json
import time

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations

RECORDS = [
    {"sample": "a.png", "candidates": ["cat", " lynx ", "cat"], "text": "one"},
    {"sample": "b.png", "candidates": "dog", "text": "two", "extra": {"deep": 1}},
]
EXPECTED = {"a.png": {"cat": 1, "lynx": 1}, "b.png": {"dog": 1}}
LINES = "\n".join(map(json.dumps, RECORDS))


@pytest.mark.parametrize("name", ["l.jsonl", "l.ndjson", "l.json", "l.txt"])
@pytest.mark.parametrize(
    "content", [LINES, "\n\n" + LINES.replace("\n", "\r\n\r\n"), json.dumps(RECORDS, indent=2)]
)
def test_lines_and_lists(make, votes_of, name, content):
    found = read_annotations(make(name, content), text="text")
    assert votes_of(found) == EXPECTED
    assert found.texts == ("one", "two")
    assert found.files == ("a.png", "b.png")


def test_one_object_over_several_lines(make, votes_of):
    path = make("l.json", json.dumps(RECORDS[0], indent=2))
    assert votes_of(read_annotations(path)) == {"a.png": EXPECTED["a.png"]}


def test_places_are_lines_or_positions(make):
    assert read_annotations(make("l.jsonl", f"\n{LINES}")).origins == (
        "l.jsonl, row 2",
        "l.jsonl, row 3",
    )
    assert read_annotations(make("l.json", RECORDS)).origins == ("l.json, row 1", "l.json, row 2")


def test_a_line_separator_inside_a_text_breaks_no_line(make):
    path = make("l.jsonl", '{"label": "a\u2028b"}\n{"label": "c"}')
    assert read_annotations(path).classes == ("a\u2028b", "c")


def test_numbers_become_text_and_texts_are_split(make, votes_of):
    path = make("l.json", [{"id": 1, "labels": [3, 4]}, {"id": 2, "labels": "3|5"}])
    assert votes_of(read_annotations(path)) == {"1": {"3": 1, "4": 1}, "2": {"3": 1, "5": 1}}


def test_blanks_are_trimmed_as_in_tables(make):
    found = read_annotations(
        make("l.json", [{"file": " a.png\n", "label": " x ", "t": " y "}]), text="t"
    )
    assert (found.names, found.files, found.texts) == (("a.png",), ("a.png",), ("y",))
    with pytest.raises(DataError, match="row 1, column 'file': there is no file name"):
        read_annotations(make("l.json", [{"file": "  ", "label": "x"}]))


def test_annotators_and_columns_work_as_in_tables(make, votes_of):
    said = [("a", "Ann", "x"), ("a", "Ben", "x"), ("a", "Eva", "y")]
    path = make("l.json", [dict(zip(("id", "worker", "class"), s, strict=True)) for s in said])
    assert votes_of(read_annotations(path)) == {"a": {"x": 2, "y": 1}}
    assert votes_of(read_annotations(path, combine="majority")) == {"a": {"x": 2}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"l\.json is empty"),
        ("[]", "holds an empty list"),
        ("3", "holds a number; expected a list of objects"),
        ('"x"', "holds text; expected a list"),
        ("[3]", "row 1 is a number; expected an object"),
        ('{"label": "a"}\n[1]', "row 2 is a list; expected an object"),
        ('[{"label": "a"},\n{"label": }]', "line 2, column 11: this is not JSON"),
        ('{"label": "a"}\n{"label": "b"', "line 2, column 14: this is not JSON"),
        ('[{"label": "a"}', "this is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "1" * 5000 + "]", r"l\.json"),
        ('[{"label": "a"}, {"id": 1}]', "row 1, column 'id': there is no name of a sample"),
        ('[{"label": true}]', "row 1, column 'label': true is not a label"),
        ('[{"label": [["a"]]}]', r"row 1, column 'label': \[\"a\"\] is not a label"),
        ('[{"label": {"a": 1}}]', "row 1, column 'label': .* is not a label"),
        ('[{"label": [NaN]}]', "row 1, column 'label': NaN is not a label"),
        ('[{"label": "a", "file": ["b"]}]', "row 1, column 'file': expected text, found a list"),
        ('[{"x": 1}]', "no column of candidates .* its columns are 'x'"),
        ('[{"label": "a\\u0000"}]', "no text file can hold"),
    ],
)
def test_what_is_wrong_is_named(make, content, message):
    with pytest.raises(DataError, match=message):
        read_annotations(make("l.json", content))


def test_ten_megabytes_in_one_line(make):
    records = [
        {"file": f"{i}.png", "candidates": [f"c{i % 50}", f"c{i % 49}"], "note": "x" * 60}
        for i in range(80_000)
    ]
    path = make("l.json", records)
    assert path.stat().st_size > 9_500_000
    assert b"\n" not in path.read_bytes()
    began = time.process_time()
    found = read_annotations(path)
    assert time.process_time() - began < 15  # about a second, on a machine with nothing else to do
    assert len(found) == 80_000
    assert found.names[-1] == "79999.png"


@pytest.mark.parametrize(
    "content",
    [
        {"a.png": ["cat", "lynx"], "b.png": ["dog"]},
        {"a.png": "cat|lynx", "b.png": "dog"},
        '{"a.png": ["cat", "lynx"]}\n{"b.png": ["dog"]}\n',
        '{\n  "a.png": ["cat", "lynx"],\n  "b.png": ["dog"], "c.png": []\n}',
    ],
)
def test_samples_as_keys(make, votes_of, content):
    found = read_annotations(make("l.json", content))
    assert votes_of(found) == {"a.png": {"cat": 1, "lynx": 1}, "b.png": {"dog": 1}}
    assert found.files == ("a.png", "b.png")
    assert found.origins[0] == "l.json, key 'a.png'"
    assert "one key per sample" in found.summary


def test_objects_with_columns_are_no_mapping(make):
    with pytest.raises(DataError, match="no column of candidates"):
        read_annotations(make("l.json", {"id": "1", "tags": ["a"]}))
    with pytest.raises(DataError, match="no column of candidates"):
        read_annotations(make("l.jsonl", '{"a": ["x"]}\n{"a": ["y"]}\n'))
