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


def test_agreement_with_the_outcome(pets, tmp_path):
    found = label(pets, answers={"c": "bird", "a": "dog"})
    # The outcome is dog, dog, bird, cat: Ann said cat, dog, cat, cat, and Ben dog, dog, yak, cat.
    assert found.labels.tolist() == ["dog", "dog", "bird", "cat"]
    assert [(one.name, one.judgments, one.agreed) for one in found.annotators] == [
        ("Ann", 4, 2.0),
        ("Ben", 4, 3.0),
    ]
    found.save(tmp_path / "out")
    assert (tmp_path / "out" / "annotators.csv").read_text(encoding="utf-8-sig").split() == [
        "annotator,judgments,agreed,agreement",
        "Ann,4,2,0.5000",
        "Ben,4,3,0.7500",
    ]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '<section id="annotators">' in page
    assert "Ann" in page
    # A later result without annotators leaves none of this behind.
    label((pets.features, pets.candidates)).save(tmp_path / "out")
    assert not (tmp_path / "out" / "annotators.csv").exists()
    assert 'id="annotators"' not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_outvoted_labels_count_as_disagreement(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("sample,annotator,label\na,Ann,x\na,Ben,x\na,Eva,z\nb,Ann,y\nb,Ben,y\n")
    read = read_annotations(path, combine="majority", features=np.array([[0.0], [1.0]]))
    agreed = {one.name: one.agreement for one in label(read).annotators}
    assert agreed == {"Ann": 1.0, "Ben": 1.0, "Eva": 0.0}
