"""Which sample a task is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fspll._common.errors import InputError
from fspll.labeling.label_studio import SampleIndex


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("IMG_507.jpg", "IMG_507.jpg"),
        ("/data/upload/1/dae11086-IMG_507.jpg", "IMG_507.jpg"),
        ("http://localhost:8080/data/upload/1/dae11086-IMG_507.jpg", "IMG_507.jpg"),
        ("/data/upload/1/1c1e966d-my_cat_1_%C3%A9.jpg", "my cat (1) é.jpg"),
        ("/data/local-files/?d=pets/my%20cat%20%281%29%20%C3%A9.jpg", "my cat (1) é.jpg"),
        ("s3://bucket/pets/e.png", "e.png"),
        ("https://example.org/e.png?width=100", "e.png"),
        ("upload/1/dae11086-IMG_507.jpg", "IMG_507.jpg"),
        ("C:\\pets\\cats\\b.png", "cats/b.png"),
        ("/data/local-files/?d=pets/dogs/b.png", "dogs/b.png"),
        # Two samples have this name, and no folder tells which is meant.
        ("/data/upload/1/dae11086-b.png", None),
        ("/data/local-files/?d=birds/b.png", None),
        ("/data/upload/1/dae1108-e.png", None),
        ("E.PNG", None),
        ("", None),
        ("/", None),
    ],
)
def test_files(result, value, name):
    row = SampleIndex(result).find({"data": {"image": value, "other": "f.png"}}, "image")
    assert (row is None and name is None) or result.names[row] == name


def test_the_name_in_our_own_tasks_decides(result):
    index = SampleIndex(result)
    task = {"data": {"image": "http://127.0.0.1/secret/picture/3", "sample": "e.png"}}
    assert index.find(task, "image") == 4
    assert index.find({"data": {"image": "f.png", "sample": "another's"}}, "image") == 5


def test_without_a_key_all_fields_must_agree(result):
    index = SampleIndex(result)
    assert index.find({"data": {"a": "e.png", "b": "pets/e.png", "c": "note", "d": 7}}) == 4
    assert index.find({"data": {"a": "e.png", "b": "f.png"}}) is None
    assert index.find({"data": {"a": "e.png", "b": "f.png"}}, "missing") is None


def test_pictures_and_what_the_labels_called_them(result):
    files = ("/data/upload/3/aaaaaaaa-x.jpg", "/data/upload/3/bbbbbbbb-x.jpg", *result.names[2:])
    found = replace(
        result,
        names=("a", "b", "c", "d", "e", "f"),
        files=files,
        pictures=tuple(Path("pets", f"{letter}.tif") for letter in "abcdef"),
    )
    index = SampleIndex(found)
    assert [index.find({"data": {"i": one}}, "i") for one in files] == list(range(6))
    assert index.find({"data": {"i": "http://host/pets/c.tif"}}, "i") == 2
    assert index.find({"data": {"i": "/data/upload/9/cccccccc-x.jpg"}}, "i") is None


def test_texts(result):
    texts = ("It does not  start", "Where is it?", "yes/no", "again", "again", "last")
    found = replace(result, texts=texts, names=tuple(f"row {n}" for n in range(2, 8)))
    index = SampleIndex(found)
    assert index.find({"data": {"text": " It does not start\n"}}, "text") == 0
    assert index.find({"data": {"text": "no"}}, "text") is None
    assert index.find({"data": {"text": "again"}}, "text") is None
    assert index.find({"data": {"text": "again", "sample": "row 6"}}, "text") == 4


def test_long_fields_take_no_time(result):
    index = SampleIndex(result)
    for value in ("/" * 1_000_000, "http://a" + "/data" * 200_000, "a/" * 500_000 + "e.png"):
        index.find({"data": {"image": value}}, "image")


@pytest.mark.parametrize("task", [None, 7, [], {}, {"data": None}, {"data": ["e.png"]}])
def test_what_is_no_task(result, task):
    with pytest.raises(InputError, match="a task of Label Studio is an object with its fields in"):
        SampleIndex(result).find(task)
