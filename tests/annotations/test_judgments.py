"""Files that say who labeled what: whose each label is, and where that is not known."""

from __future__ import annotations

import json

import pytest

from fspll.annotations import read_annotations


def said(found):
    """Return the labels that each annotator gave to each sample."""
    judged = found.judgments
    told: dict[tuple[str, str], list[str]] = {}
    for row, who, label in zip(judged.rows, judged.annotators, judged.labels, strict=True):
        name = found.classes[label] if label >= 0 else None
        told.setdefault((found.names[row], judged.names[who]), []).append(name)
    return told


LONG = "image,rater,label\na,1,cat\nb,1,dog\na,2,lynx|cat\na,3,lynx\na,4,yak\n"


def test_a_row_per_annotator(make):
    found = read_annotations(make("l.csv", LONG))
    assert said(found) == {
        ("a", "1"): ["cat"],
        ("b", "1"): ["dog"],
        ("a", "2"): ["cat", "lynx"],
        ("a", "3"): ["lynx"],
        ("a", "4"): ["yak"],
    }
    assert said(found.take([1])) == {("b", "1"): ["dog"]}


def test_outvoted_judgments_stay(make):
    found = read_annotations(make("l.csv", LONG), combine="majority")
    assert found.classes == ("cat", "dog", "lynx")
    assert said(found)["a", "4"] == [None]
    assert said(found)["a", "1"] == ["cat"]


def test_a_given_column(make):
    path = make("l.csv", "image,who,label\na,x,cat\na,y,dog\n")
    assert said(read_annotations(path, annotator="who")) == {
        ("a", "x"): ["cat"],
        ("a", "y"): ["dog"],
    }
    assert read_annotations(path, combine="union").judgments is None  # nobody said who labeled


@pytest.mark.parametrize("column", ["user", "User ID", "username"])
def test_users_are_annotators_where_samples_repeat(make, column):
    found = read_annotations(make("l.csv", f"image,{column},label\na,x,cat\na,y,dog\n"))
    assert set(said(found)) == {("a", "x"), ("a", "y")}
    # Who wrote a text need not be known, and did not label it.
    posts = read_annotations(make("m.csv", f"id,{column},label\n1,,cat\n2,y,dog\n"))
    assert posts.judgments is None


def test_a_column_per_annotator(make):
    text = "file,label_1,Label 2,label-3\na,cat,cat|dog,\nb,,dog,fox\n"
    assert said(read_annotations(make("l.csv", text))) == {
        ("a", "label_1"): ["cat"],
        ("a", "Label 2"): ["cat", "dog"],
        ("b", "Label 2"): ["dog"],
        ("b", "label-3"): ["fox"],
    }
    path = make("m.csv", "file,Ann,Ben\na,x,x\nb,x,y\n")
    assert said(read_annotations(path, candidates=["Ann", "Ben"]))["b", "Ben"] == ["y"]


def test_columns_of_candidates_are_nobodys(make):
    text = "file,candidate_1,candidate_2\na,cat,dog\nb,dog,fox\n"
    assert read_annotations(make("l.csv", text)).judgments is None


def test_rows_that_repeat_under_several_columns_are_nobodys(make):
    path = make("l.csv", "file,label_1,label_2\na,x,y\na,x,x\n")
    assert read_annotations(path, combine="union").judgments is None


def test_one_row_per_sample_changes_nothing(make):
    path = make("l.csv", "file,annotator,label\na,Ann,cat|dog\nb,Ben,dog\n")
    assert read_annotations(path).judgments is None


def export(*accounts):
    results = [{"from_name": "kind", "value": {"choices": [label]}} for label in "xyx"]
    annotations = [
        {"result": [result]} | ({} if account is None else {"completed_by": account})
        for account, result in zip(accounts, results, strict=True)
    ]
    return json.dumps([{"id": 1, "data": {"image": "a.png"}, "annotations": annotations}])


def test_accounts_of_label_studio(make, votes_of):
    found = read_annotations(make("e.json", export(1, {"id": 2, "email": "b@c.d"}, {"id": 3})))
    assert said(found) == {("a.png", "1"): ["x"], ("a.png", "b@c.d"): ["y"], ("a.png", "3"): ["x"]}
    again = read_annotations(make("f.json", export(1, 2, 1)))
    assert votes_of(again) == {"a.png": {"x": 1, "y": 1}}  # nobody votes twice for a label


@pytest.mark.parametrize("accounts", [(1, 1, 1), (1, None, 2)])
def test_accounts_that_do_not_tell_people_apart(make, votes_of, accounts):
    found = read_annotations(make("e.json", export(*accounts)))
    assert found.judgments is None
    assert votes_of(found) == {"a.png": {"x": 2, "y": 1}}


def test_accounts_of_json_min(make):
    records = [
        {"id": 1, "image": "a.png", "kind": "x", "annotator": 4, "annotation_id": 1},
        {"id": 1, "image": "a.png", "kind": "y", "annotator": 5, "annotation_id": 2},
        {"id": 2, "image": "b.png", "kind": "y", "annotator": 5, "annotation_id": 3},
    ]
    found = read_annotations(make("e.json", json.dumps(records)))
    assert said(found) == {("a.png", "4"): ["x"], ("a.png", "5"): ["y"], ("b.png", "5"): ["y"]}
