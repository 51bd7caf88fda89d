"""Vectors in tables: columns of the table of labels, and tables of their own."""

from __future__ import annotations

import numpy as np
import pytest

from fspll._common.errors import DataError, InputError
from fspll.annotations import read_annotations

TABLE = "id,f1,f2,f3,label\na,1,2,3,cat\nb,4,5,6.5,dog\n"
X = np.array([[1, 2, 3], [4, 5, 6.5]])


@pytest.mark.parametrize(
    ("columns", "places"),
    [
        ("f1:f3", [0, 1, 2]),
        ("f1,f3", [0, 2]),
        (["f3", "f1"], [2, 0]),
        (["f1:f2", "f3"], [0, 1, 2]),
        ("F2", [1]),
    ],
)
def test_columns_of_the_table(make, columns, places):
    found = read_annotations(make("l.csv", TABLE), features_columns=columns)
    np.testing.assert_array_equal(found.features, X[:, places])
    assert "feature" in found.summary or "vectors from" in found.summary


def test_columns_with_several_rows_per_sample(make):
    path = make("l.csv", "id,rater,x,label\na,1,0.5,cat\na,2,0.5,dog\nb,1,2,dog\n")
    found = read_annotations(path, features_columns="x")
    np.testing.assert_array_equal(found.features, [[0.5], [2.0]])
    path = make("l.csv", "id,rater,x,label\na,1,0.5,cat\na,2,0.6,dog\n")
    with pytest.raises(DataError, match="row 2 and row 3 give the sample 'a' different vectors"):
        read_annotations(path, features_columns="x")


def test_lists_of_numbers(make):
    rows = [{"label": "a", "v": [1, 2]}, {"label": "b", "v": [3, 4.5]}]
    found = read_annotations(make("l.json", rows), features_columns="v")
    np.testing.assert_array_equal(found.features, [[1, 2], [3, 4.5]])
    rows[1]["v"] = [3]
    with pytest.raises(DataError, match=r"l\.json, column 'v': the vectors differ in length"):
        read_annotations(make("l.json", rows), features_columns="v")


def test_decimal_commas(make):
    path = make("l.csv", "id;x;y;label\na;0,5;1;cat\nb;1,25;2;dog\n")
    found = read_annotations(path, features_columns="x:y")
    np.testing.assert_array_equal(found.features, [[0.5, 1], [1.25, 2]])


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (TABLE, "f1:nix", "no column 'nix'"),
        (TABLE, "f3:f1", "the column 'f1' comes before 'f3'"),
        (TABLE, "id", "row 2, column 'id': 'a' is no number; vectors need one in every cell"),
        (TABLE.replace("6.5", ""), "f1:f3", "row 3, column 'f3': '' is no number"),
        (TABLE.replace("6.5", "inf"), "f1:f3", "features must be finite"),
    ],
)
def test_columns_that_are_no_vectors(make, content, columns, message):
    with pytest.raises(DataError, match=message):
        read_annotations(make("l.csv", content), features_columns=columns)


def test_one_way_only(make):
    with pytest.raises(InputError, match="give one of features and features_columns"):
        read_annotations(make("l.csv", TABLE), features=X, features_columns="f1")


@pytest.mark.parametrize(
    "content",
    [
        "sample,u,v\nb,3,4\na,1,2\nz,5,6\n",
        "u,v\n1,2\n3,4\n",
        "1,2\n3,4\n",
        ",u,v\n0,1,2\n1,3,4\n",
        ",u,v\nb,3,4\na,1,2\n",
        "u;v\n1,0;2\n3,0;4,0\n",
    ],
)
def test_a_table_of_vectors(make, content):
    labels = make("l.csv", "id,label\na,cat\nb,dog\n")
    found = read_annotations(labels, features=make("v.csv", content))
    np.testing.assert_array_equal(found.features, [[1, 2], [3, 4]])
    assert found.summary.endswith("2 features from v.csv")


def test_a_table_of_vectors_that_does_not_fit(make):
    labels = make("l.csv", "id,label\na,cat\nb,dog\n")
    with pytest.raises(DataError, match=r"v\.csv has no vector for the sample 'b' \(l\.csv, row 3"):
        read_annotations(labels, features=make("v.csv", "id,u\na,1\n"))
    with pytest.raises(DataError, match=r"v\.csv has 1 row but l\.csv has 2 samples"):
        read_annotations(labels, features=make("v.csv", "u,v\n1,2\n"))
    with pytest.raises(DataError, match=r"v\.csv, row 2, column 'u': 'one' is no number"):
        read_annotations(labels, features=make("v.csv", "u,v\none,2\n3,4\n"))
