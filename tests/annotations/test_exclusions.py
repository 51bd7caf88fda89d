"""Columns that say which labels a sample does not have."""

from __future__ import annotations

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations


def test_what_is_left(make, votes_of):
    path = make(
        "l.csv",
        "id,candidates,excluded\na,cat|lynx,\nb,,cat\nc,cat|lynx|dog,not lynx\nd,dog,fox|cat\n",
    )
    found = read_annotations(path)
    assert votes_of(found) == {
        "a": {"cat": 1, "lynx": 1},
        "b": {"dog": 1, "fox": 1, "lynx": 1},
        "c": {"cat": 1, "dog": 1},
        "d": {"dog": 1},
    }
    assert ", exclusions from 'excluded', " in found.summary
    narrow = read_annotations(path, classes=["cat", "dog", "lynx", "fox", "yak"])
    assert votes_of(narrow)["b"] == {"dog": 1, "fox": 1, "lynx": 1, "yak": 1}


def test_candidates_tell_what_a_comma_between_exclusions_means(make, votes_of):
    rows = [f"{n},cat|lynx|dog,fox{n}" for n in range(10)]
    path = make("l.csv", "\n".join(["id,candidates,excluded", 'a,,"cat, lynx"', *rows]))
    assert votes_of(read_annotations(path))["a"].keys() == {"dog", *(f"fox{n}" for n in range(10))}


def test_exclusions_alone(make, votes_of):
    path = make("l.csv", "id,not\na,cat\nb,dog\nc,\n")
    found = read_annotations(path, classes=["cat", "dog", "fox"])
    assert votes_of(found) == {"a": {"dog": 1, "fox": 1}, "b": {"cat": 1, "fox": 1}}
    assert found.summary.endswith("1 sample without candidates left out")
    other = make("m.csv", "id,never\na,cat\nb,dog\n")
    assert votes_of(read_annotations(other, excluded="never")) == {
        "a": {"dog": 1},
        "b": {"cat": 1},
    }


def test_nothing_is_left(make):
    path = make("l.csv", "id,label,exclude\na,cat,\nb,dog,dog\n")
    with pytest.raises(DataError, match=r"l\.csv, row 3: every candidate is excluded"):
        read_annotations(path)


def test_a_label_that_begins_with_not_is_a_label(make):
    path = make("l.csv", "id,label\na,spam\nb,not spam\n")
    assert read_annotations(path).classes == ("not spam", "spam")
