"""One column per label: which columns hold marks, and what they say."""

from __future__ import annotations

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations

EXPECTED = {"a": {"cat": 1, "lynx": 1}, "b": {"dog": 1}, "c": {"cat": 1}}


@pytest.mark.parametrize(
    "content",
    [
        "id,cat,dog,lynx\na,1,0,1\nb,0,1,0\nc,1,0,0\n",
        "id,cat,dog,lynx\na,x,,X\nb,,x,\nc,x,,\n",
        "id;cat;dog;lynx\na;TRUE;FALSE;TRUE\nb;FALSE;TRUE;FALSE\nc;TRUE;FALSE;FALSE\n",
        "id,cat,dog,lynx\na,yes,no,yes\nb,no,yes,-\nc,yes,no,\n",
        "id,label_cat,label_dog,label_lynx\na,1,0,1\nb,0,1,0\nc,1,0,0\n",
        "id,note,score,cat,dog,lynx\na,hm,3,1,0,1\nb,,2,0,1,0\nc,,9,1,0,0\n",
    ],
)
def test_marks_are_found_and_said(make, votes_of, content):
    found = read_annotations(make("l.csv", content))
    assert votes_of(found) == EXPECTED
    assert ", 3 columns of marks, '" in found.summary


def test_a_person_per_row(make, votes_of):
    path = make("l.csv", "id,rater,cat,dog\na,1,x,\na,2,x,x\nb,1,,x\nb,2,,\n")
    assert votes_of(read_annotations(path)) == {"a": {"cat": 2, "dog": 1}, "b": {"dog": 1}}


def test_marks_where_columns_are_named(make, votes_of):
    path = make("l.csv", "id,sharp,cat,dog\na,x,x,\nb,x,,x\nc,,x,x\n")
    assert votes_of(read_annotations(path))["a"] == {"cat": 1, "sharp": 1}
    found = read_annotations(path, candidates=["cat", "dog"])
    assert votes_of(found) == {"a": {"cat": 1}, "b": {"dog": 1}, "c": {"cat": 1, "dog": 1}}


def test_zeros_and_ones_may_be_labels(make, votes_of):
    path = make("l.csv", "id,Ann,Ben\na,0,1\nb,1,1\n")
    message = "2 columns such as 'Ann' hold only 0 and 1; give marks=True if 1 marks a label"
    with pytest.raises(DataError, match=message):
        read_annotations(path, candidates=["Ann", "Ben"])
    assert votes_of(read_annotations(path, candidates=["Ann", "Ben"], marks=False)) == {
        "a": {"0": 1, "1": 1},
        "b": {"1": 2},
    }
    assert votes_of(read_annotations(path, candidates=["Ann", "Ben"], marks=True)) == {
        "a": {"Ben": 1},
        "b": {"Ann": 1, "Ben": 1},
    }
    people = make("p.csv", "id,rater1,rater2\na,0,1\nb,1,1\n")
    assert votes_of(read_annotations(people)) == {"a": {"0": 1, "1": 1}, "b": {"1": 2}}
    with pytest.raises(DataError, match="columns such as 'class_1' hold only 0 and 1"):
        read_annotations(make("q.csv", "id,class_1,class_2\na,0,1\nb,1,1\n"))


def test_what_is_no_mark(make):
    path = make("l.csv", "id,cat,dog\na,1,perhaps\nb,0,1\n")
    with pytest.raises(DataError, match="nor several columns of marks"):
        read_annotations(path)
    with pytest.raises(DataError, match="row 2, column 'dog': 'perhaps' is no mark; expected 1 or"):
        read_annotations(path, candidates=["cat", "dog"], marks=True)
    with pytest.raises(DataError, match="no column of candidates"):
        read_annotations(make("m.csv", "id,cat,dog\na,1,0\nb,0,1\n"), marks=False)


def test_letters_that_differ_are_labels(make):
    with pytest.raises(DataError, match="nor several columns of marks"):
        read_annotations(make("l.csv", "id,Ann,Ben\na,x,y\nb,y,x\n"))
