"""Labels that may be the same: reported with counts, merged or renamed on request."""

from __future__ import annotations

import numpy as np
import pytest

from fspll import label
from fspll._common.errors import DataError, InputTypeError
from fspll.annotations import read_annotations
from fspll.annotations.variants import find_similar, similar_note
from fspll.labeling import Audit


@pytest.fixture
def labels_of(make):
    """Return a function that reads a table with each label as often as is said."""

    def read(counts, **options):
        cells = [one for one, count in counts.items() for _ in range(count)]
        lines = [f's{n},"{cell}"' for n, cell in enumerate(cells)]
        return read_annotations(make("l.csv", "\n".join(["id,candidates", *lines])), **options)

    return read


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        ({"cat": 3, "Cat": 5, "dog": 4}, [[("Cat", 5), ("cat", 3)]]),
        ({"snow leopard": 2, "Snow  Leopard": 1, "snow-leopard": 1}, [3]),
        ({"Ours noir": 4, "Ours nior": 1, "Ours brun": 4}, [[("Ours noir", 4), ("Ours nior", 1)]]),
        ({"e\u0301clair": 1, "\u00e9clair": 2}, [2]),
        ({"tabby": 6, "taby": 1, "Tabby": 2, "tabbyy": 1}, [4]),
        ({"tiger": 4, "tager": 1}, [2]),
        ({"tiger": 4, "tager": 3}, []),  # about as frequent: two names
        ({"cat": 9, "bat": 1}, []),  # short words differ by one letter
        ({"class 1": 9, "class 2": 1, "room101": 4, "room102": 1}, []),
        ({"tiger": 9, "tigress": 1, "lion": 9, "loin": 1}, [2]),
        ({"grade a": 9, "grade b": 1}, []),
    ],
)
def test_what_is_similar(labels_of, counts, groups):
    found = find_similar(labels_of(counts))
    assert len(found) == len(groups)
    for one, wanted in zip(found, groups, strict=True):
        assert wanted in (one, len(one))


def test_it_is_said_with_counts(labels_of):
    found = labels_of({"cat": 3, "Cat": 5, "dog": 4, "doggy": 1})
    assert similar_note(found) == (
        "labels that may be the same: 'Cat' (5) and 'cat' (3); merge_similar=True makes them one, "
        "and rename=FILE says what to call them"
    )
    assert similar_note(labels_of({"cat": 3, "dog": 4})) is None


def test_similar_labels_become_one(labels_of, make, votes_of):
    found = labels_of({"cat": 1, "Cat|dog": 2, "CAT|cat": 1}, merge_similar=True)
    assert found.classes == ("Cat", "dog")
    assert votes_of(found)["s3"] == {"Cat": 1}  # once, though written twice
    assert found.renamed == {"cat": "Cat", "CAT": "Cat"}
    assert found.summary.endswith("'cat' is 'Cat', 'CAT' is 'Cat'")
    path = make(
        "v.csv",
        "id,rater,label\na,1,Cat\na,2,cat\na,3,dog\na,4,dog\na,5,cat\nb,1,dog\nb,2,dog\n",
    )
    found = read_annotations(path, merge_similar=True, combine="majority")
    assert votes_of(found)["a"] == {"Cat": 3}  # the majority is counted afterwards
    assert find_similar(found) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv", "from,to\nkat,cat\nhund,dog\n"),
        ("r.csv", "wrong;right\nkat;cat\nhund;dog\n"),
        ("r.tsv", "id\told\tnew\n1\tkat\tcat\n2\thund\tdog\n"),
        ("r.json", {"kat": "cat", "hund": "dog"}),
    ],
)
def test_a_file_of_new_names(labels_of, make, votes_of, name, content):
    counts = {"kat|hund": 1, "cat|kat": 1, "fox": 1}
    found = labels_of(counts, rename=make(name, content))
    sets = votes_of(found)
    assert sets == {"s0": {"cat": 1, "dog": 1}, "s1": {"cat": 1}, "s2": {"fox": 1}}
    both = labels_of(counts, rename={"kat": "Fox", "hund": "FOX"}, merge_similar=True)
    assert both.classes == ("Fox", "cat")
    assert both.renamed == {"kat": "Fox", "hund": "Fox", "FOX": "Fox", "fox": "Fox"}


def test_a_mask_and_exclusions_are_renamed(tmp_path, make, votes_of):
    path = tmp_path / "m.npz"
    np.savez(path, y=np.array([[1, 1, 0], [0, 0, 1]]), classes=["cat", "Cat", "dog"])
    assert votes_of(read_annotations(path, merge_similar=True)) == {
        "row 0": {"Cat": 1},
        "row 1": {"dog": 1},
    }
    table = make("x.csv", "id,candidates,excluded\na,kat|dog,\nb,kat|dog,cat\n")
    found = read_annotations(table, rename={"kat": "cat"})
    assert votes_of(found) == {"a": {"cat": 1, "dog": 1}, "b": {"dog": 1}}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.csv", "a,b,c\nx,y,z\n", "r.csv needs the columns 'from' and 'to'; its columns are"),
        ("r.csv", "from,to\nx,y\nx,z\n", "r.csv renames 'x' to 'y' and 'z'"),
        ("r.csv", "from,to\nx,y\ny,z\n", "'x' becomes 'y', which becomes 'z'; give the last name"),
        ("r.json", "[1]", "r.json must hold one object"),
        ("r.json", "{", "r.json cannot be read as JSON"),
        ("r.json", {"x": 3}, "'x' cannot be called 3; give texts"),
    ],
)
def test_what_is_no_renaming(labels_of, make, name, content, message):
    with pytest.raises(DataError, match=message):
        labels_of({"x": 1}, rename=make(name, content))
    with pytest.raises(InputTypeError, match="rename must be a file or a mapping"):
        labels_of({"x": 1}, rename=3)


def test_answers_given_before_follow(labels_of):
    counts = {"kat": 6, "dog": 6}
    X = np.repeat([[0.0], [5.0]], 6, axis=0) + np.linspace(0, 0.1, 12)[:, None]
    found = labels_of(counts, rename={"kat": "cat"}, features=X)
    audit = Audit(("s1",), ("kat",), ("kat",))
    result = label(found, answers={"s0": "kat"}, audited=audit)
    assert result.answers == {"s0": "cat", "s1": "cat"}
    assert result.audit.n_right == 1
    assert result.classes.tolist() == ["cat", "dog"]
    assert not [note for note in result.notes if "only answers have" in note]


def test_an_answer_that_is_no_label_says_what_may_be_meant(labels_of):
    found = labels_of({"cat": 6, "dog": 6}, features=np.arange(12.0)[:, None])
    notes = label(found, answers={"s0": "Cta", "s1": "yak"}).notes
    assert "labels that only answers have: Cta (did you mean 'cat'?), yak" in notes
