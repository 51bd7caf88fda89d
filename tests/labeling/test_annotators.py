"""Annotators who are known: what is handed on of what they said."""

from __future__ import annotations

import numpy as np
import pytest

from fspll import label
from fspll.annotations import read_annotations

ROWS = """sample,annotator,label
a,Ann,cat
a,Ben,dog
b,Ann,dog
b,Ben,dog
c,Ann,cat
c,Ben,yak
d,Ann,cat
d,Ben,cat
"""


@pytest.fixture
def pets(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(ROWS)
    return read_annotations(path, features=np.array([[0.0], [5.0], [0.1], [0.2]]))


def triples(said):
    return list(zip(said.rows.tolist(), said.annotators.tolist(), said.labels.tolist()))  # noqa: B905


def test_what_annotators_said_is_handed_on(pets):
    observed = label(pets).observed
    assert triples(observed.judgments) == triples(pets.judgments)
    assert observed.judgments.names == ("Ann", "Ben")
    assert observed.settled is None


def test_answers_settle_rows_and_leave_what_was_said(pets):
    observed = label(pets, answers={"c": "bird", "a": "dog"}).observed
    assert observed.settled.tolist() == [True, False, True, False]
    # The columns are bird, cat, dog now: a bird was added, and nothing can be a yak any more.
    assert observed.candidates.classes.tolist() == ["bird", "cat", "dog"]
    assert triples(observed.judgments) == [
        (0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 2), (2, 0, 1), (3, 0, 1), (3, 1, 1)
    ]  # fmt: skip
