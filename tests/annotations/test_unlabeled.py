"""Samples without candidates: left out and counted, given every label, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from fspll._common.errors import DataError, InputError
from fspll.annotations import read_annotations
from fspll.labeling import label

TABLE = "id,label\na,cat|dog\nb,\nc,dog\nd,|\n"
TASKS = [
    {"id": n, "data": {"image": f"{n}.png"}, "annotations": [{"result": result}]}
    for n, result in enumerate(
        [
            [],
            [{"from_name": "animal", "value": {"choices": ["cat"]}}],
            [{"from_name": "animal", "value": {"choices": ["cat", "dog"]}}],
        ]
    )
]


def test_they_are_left_out_and_counted(make, votes_of):
    found = read_annotations(make("l.csv", TABLE))
    assert votes_of(found) == {"a": {"cat": 1, "dog": 1}, "c": {"dog": 1}}
    assert found.origins == ("l.csv, row 2", "l.csv, row 4")
    assert found.summary.endswith(", 2 samples without candidates left out")


def test_they_may_have_any_label(make, votes_of):
    found = read_annotations(make("l.csv", TABLE), unlabeled="use")
    every = {"cat": 1, "dog": 1}
    assert votes_of(found) == {"a": every, "b": every, "c": {"dog": 1}, "d": every}
    assert found.summary.endswith(", 2 samples without candidates may have any label")


def test_they_are_refused_where_that_is_asked_for(make):
    with pytest.raises(
        DataError,
        match=r"l\.csv, row 3: there are no candidates \(this is so for 2 samples\); leave such "
        r"samples out with unlabeled='skip', or let them have any label with unlabeled='use'",
    ):
        read_annotations(make("l.csv", TABLE), unlabeled="error")
    with pytest.raises(InputError, match="unlabeled must be 'skip', 'use' or 'error', not 'drop'"):
        read_annotations(make("l.csv", TABLE), unlabeled="drop")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "id,label\na,\nb,[]\n"),
        ("l.csv", "id,label_1,label_2\na,,\nb,,\n"),
        ("l.json", [{"id": "a", "label": None}, {"id": "b", "label": []}]),
    ],
)
def test_no_candidates_at_all(make, name, content):
    with pytest.raises(DataError, match=r"l\..*: there are no candidates at all, for 2 samples"):
        read_annotations(make(name, content))


def test_one_of_several_people_said_nothing(make, votes_of):
    path = make("l.csv", "id,rater,label\na,1,cat\na,2,\nb,1,\nb,2,\nc,1,dog\nc,2,cat\n")
    found = read_annotations(path, combine="majority")
    assert votes_of(found) == {"a": {"cat": 1}, "c": {"cat": 1, "dog": 1}}
    assert found.judgments.rows.tolist() == [0, 1, 1]
    assert ", 1 sample without candidates left out" in found.summary
    wide = make("w.csv", "id,rater1,rater2\na,x,y\nb,,\nc,,y\n")
    assert votes_of(read_annotations(wide)) == {"a": {"x": 1, "y": 1}, "c": {"y": 1}}
    used = read_annotations(wide, unlabeled="use")
    assert votes_of(used)["b"] == {"x": 1, "y": 1}
    assert used.judgments.rows.tolist() == [0, 0, 2]


def test_vectors_belong_to_all_rows(make):
    X = np.arange(8.0).reshape(4, 2)
    found = read_annotations(make("l.csv", TABLE), features=X)
    np.testing.assert_array_equal(found.features, X[[0, 2]])
    found = read_annotations(make("l.csv", TABLE), features=X, unlabeled="use")
    np.testing.assert_array_equal(found.features, X)


def test_rows_of_a_mask(tmp_path, votes_of):
    path = tmp_path / "s.npz"
    np.savez(path, y=np.array([[0, 1], [0, 0], [1, 1]]), X=np.eye(3))
    found = read_annotations(path)
    assert votes_of(found) == {"row 0": {"1": 1}, "row 2": {"0": 1, "1": 1}}
    np.testing.assert_array_equal(found.features, np.eye(3)[[0, 2]])
    np.savez(path, y=np.array(["a", " ", "b"]))
    assert read_annotations(path).names == ("row 0", "row 2")
    with pytest.raises(DataError, match=r"s\.npz, row 1: there are no candidates"):
        read_annotations(path, unlabeled="error")


def test_tasks_of_label_studio_without_a_choice(make, votes_of):
    path = make("l.json", TASKS)
    found = read_annotations(path)
    assert found.names == ("1.png", "2.png")
    assert found.summary.endswith("1 task without a choice left out")
    assert read_annotations(path, unlabeled="use").names == ("0.png", "1.png", "2.png")
    with pytest.raises(DataError, match=r"l\.json, task 0: there are no candidates"):
        read_annotations(path, unlabeled="error")
    flat = [
        {"id": 1, "image": "a.png", "animal": "cat", "annotation_id": 1},
        {"id": 2, "image": "b.png", "animal": None, "annotation_id": 2},
    ]
    found = read_annotations(make("m.json", flat), candidates="animal")
    assert found.summary.endswith("1 annotation without a choice left out")


def test_a_sample_that_may_be_anything_gets_a_label(make):
    rows = [f"s{i},{'' if i % 10 == 9 else 'ab'[i % 2]}" for i in range(40)]
    X = np.arange(40)[:, None] % 2 * 5.0 + np.linspace(0, 0.1, 40)[:, None]
    path = make("l.csv", "\n".join(["id,label", *rows]) + "\n")
    found = label(read_annotations(path, features=X, unlabeled="use"))
    assert found.labels.tolist() == ["ab"[i % 2] for i in range(40)]
