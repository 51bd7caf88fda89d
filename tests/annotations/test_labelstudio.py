"""Exports of Label Studio, in the shapes that it writes."""

from __future__ import annotations

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations


def choices(*labels, name="animal"):
    return {
        "id": "Dx_aB9",
        "from_name": name,
        "to_name": "image",
        "type": "choices",
        "origin": "manual",
        "value": {"choices": list(labels)},
    }


BOX = {
    "from_name": "box",
    "to_name": "image",
    "type": "rectanglelabels",
    "value": {"x": 1.0, "y": 2.0, "width": 3.0, "height": 4.0, "rectanglelabels": ["eye"]},
}


def annotation(number, *results, by=1, **more):
    return {
        "id": number,
        "completed_by": by,
        "result": list(results),
        "was_cancelled": False,
    } | more


def task(number, data, *annotations):
    return {
        "id": number,
        "data": data,
        "annotations": list(annotations),
        "predictions": [{"result": [choices("wrong")], "model_version": "m"}],
        "created_at": "2024-01-01T00:00:00Z",
        "project": 3,
    }


FULL = [
    task(
        11,
        {"image": "/data/upload/3/1f-a.png", "text": "one"},
        annotation(1, BOX, choices("cat", "lynx")),
        annotation(2, choices("cat"), by={"id": 7, "email": "a@b.c"}),
        annotation(3, choices("yak"), was_cancelled=True),
    ),
    task(
        12,
        {"image": "/data/local-files/?d=set%201/b.png", "text": "two"},
        annotation(4, choices("dog")),
    ),
    task(13, {"image": "c.png", "text": "three"}),
    task(14, {"image": "d.png", "text": "four"}, annotation(5, choices("yak"), was_cancelled=True)),
    task(15, {"image": "e.png", "text": "five"}, annotation(6)),
]
EXPECTED = {"/data/upload/3/1f-a.png": {"cat": 2, "lynx": 1}, "set 1/b.png": {"dog": 1}}


def test_full_export(make, votes_of):
    for found in (
        read_annotations(make("e.json", FULL)),
        read_annotations(make("e.txt", FULL), format="label-studio"),
    ):
        assert votes_of(found) == EXPECTED
        assert found.files == found.names
        assert found.texts is None
    assert found.origins == ("e.txt, task 11", "e.txt, task 12")


def test_fields_of_the_task_are_columns(make):
    found = read_annotations(make("e.json", FULL), sample="text", text="text", combine="majority")
    assert found.names == found.texts == ("one", "two")
    assert found.files == ("/data/upload/3/1f-a.png", "set 1/b.png")
    assert found.classes == ("cat", "dog")
    with pytest.raises(DataError, match="no column 'nix'; its columns are 'image', 'text'"):
        read_annotations(make("e.json", FULL), text="nix")


def test_texts_without_a_name_are_called_by_their_task(make):
    tasks = [task(5, {"text": "hello"}, annotation(1, choices("a", name="mood")))]
    found = read_annotations(make("e.json", tasks), text="text")
    assert (found.names, found.texts, found.files) == (("task 5",), ("hello",), None)


def test_votes_of_one_account_are_votes_all_the_same(make, votes_of):
    tasks = [task(1, {"image": "a"}, annotation(1, choices("x")), annotation(2, choices("x")))]
    assert votes_of(read_annotations(make("e.json", tasks))) == {"a": {"x": 2}}


def test_several_controls(make, votes_of):
    both = annotation(1, choices("cat"), choices("sad", "shy", name="mood"))
    path = make("e.json", [task(1, {"image": "a"}, both)])
    with pytest.raises(DataError, match="several <Choices>: 'animal', 'mood'; say which"):
        read_annotations(path)
    assert votes_of(read_annotations(path, candidates="mood")) == {"a": {"sad": 1, "shy": 1}}
    with pytest.raises(DataError, match="no <Choices> called 'nix'; it has 'animal', 'mood'"):
        read_annotations(path, candidates="nix")


def test_labels_are_never_split(make):
    tasks = [task(1, {"image": "a"}, annotation(1, choices("a|b", "c, d", "n/a")))]
    assert read_annotations(make("e.json", tasks)).classes == ("a|b", "c, d", "n/a")


def test_older_exports_say_completions(make, votes_of):
    old = {"id": 1, "data": {"image": "a"}, "completions": [{"result": [choices("x")]}]}
    assert votes_of(read_annotations(make("e.json", [old]))) == {"a": {"x": 1}}


def test_tasks_whose_numbers_repeat(make):
    tasks = [task(1, {"text": t}, annotation(1, choices("x"))) for t in ("a", "b")]
    found = read_annotations(make("e.json", tasks), text="text")
    assert found.names == ("task 1 of the file", "task 2 of the file")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task(1, {"image": "a"})], "has no annotation with <Choices>; nothing was labeled"),
        ([task(1, {"image": "a"}, annotation(1, BOX))], "has no annotation with <Choices>"),
        ([task(9, {"image": "a"}, 5)], "task 9: annotations hold no results"),
        ([task(9, {"image": "a"}, annotation(1, choices({})))], "task 9: {} is not a label"),
        (
            [
                task(n, d, annotation(n, choices("x")))
                for n, d in enumerate([{"image": "a"}, {"t": 1}])
            ],
            "task 1, column 'image': there is no",
        ),
    ],
)
def test_what_is_wrong_is_named(make, tasks, message):
    with pytest.raises(DataError, match=message):
        read_annotations(make("e.json", tasks))


def test_another_file_under_that_name(make):
    with pytest.raises(DataError, match="is no export of Label Studio"):
        read_annotations(make("e.json", [{"label": "a"}]), format="label-studio")


# -------------------------------------------------------------------- JSON-MIN


def flat(number, task_id, value, **more):
    about = {"annotator": 1, "annotation_id": number, "created_at": "2024", "lead_time": 2.5}
    return {"image": f"{task_id}.png", "id": task_id, "animal": value, **about, **more}


def test_min_export(make, votes_of):
    records = [
        flat(1, 7, {"choices": ["cat", "lynx"]}),
        flat(2, 7, "cat", text="same"),
        flat(3, 8, "dog|wolf"),
        flat(4, 9, None),
    ]
    del records[1]["text"]
    found = read_annotations(make("m.json", records))
    assert votes_of(found) == {"7.png": {"cat": 2, "lynx": 1}, "8.png": {"dog|wolf": 1}}
    assert found.origins == ("m.json, rows 1, 2", "m.json, row 3")
    assert found.files == found.names


def test_min_export_with_single_choices_only(make, votes_of):
    path = make("m.json", [flat(1, 7, "cat"), flat(2, 8, "dog")])
    assert votes_of(read_annotations(path)) == {"7.png": {"cat": 1}, "8.png": {"dog": 1}}


def test_min_export_whose_choices_cannot_be_told(make, votes_of):
    path = make("m.json", [flat(1, 7, "cat", mood="sad")])
    with pytest.raises(DataError, match=r"not clear which column holds the choices; .*'mood'; say"):
        read_annotations(path)
    assert votes_of(read_annotations(path, candidates="mood")) == {"7.png": {"sad": 1}}
    both = [flat(1, 7, {"choices": ["a", "b"]}, mood={"choices": ["c", "d"]})]
    with pytest.raises(DataError, match="not clear which"):
        read_annotations(make("n.json", both))
    with pytest.raises(DataError, match="no column 'nix'"):
        read_annotations(path, candidates="nix")
    with pytest.raises(DataError, match="give one control"):
        read_annotations(path, candidates=["animal", "mood"])


def test_min_export_without_any_choice(make):
    with pytest.raises(DataError, match="has no choice in 'animal'; nothing was labeled"):
        read_annotations(make("m.json", [flat(1, 7, None)]), candidates="animal")
