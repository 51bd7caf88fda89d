"""A person's answers stay with their samples, and in their folder, whatever a run does."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fspll._common.errors import DataError, InputError, InputTypeError
from fspll.annotations.answers import Answer, Answers, read_answers
from fspll.labeling import label, read_audit
from fspll.labeling.answering import find_samples

X = np.array([[0.0, 1.0], [0.1, 1.0], [0.2, 1.1], [5.0, 2.0], [5.1, 2.1], [5.2, 2.0]])
SETS = [["a", "b"]] * 6


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill_in(path, answers):
    """Write into the column ``answer``, as a person does."""
    found = rows(path)
    for row in found:
        row["answer"] = answers.get(row["sample"], row["answer"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)


@pytest.fixture
def numbered(annotate):
    """Return annotations whose samples have no names but those of their rows."""

    def numbered(X, sets=None):
        sets = [["a", "b"]] * len(X) if sets is None else sets
        names = tuple(f"row {row + 2}" for row in range(len(X)))
        return annotate(sets, names=names, features=np.asarray(X))

    return numbered


# -------------------------------------------------------------------- which sample is meant


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([("row 2", "h0")], ["row 2"]),  # where it was
        ([("row 9", "h1")], ["row 3"]),  # moved
        ([("row 3", "h0"), ("row 2", "h1")], ["row 2", "row 3"]),  # exchanged
        ([("row 2", "gone")], [None]),  # a row is no name
        ([("row 2", "")], ["row 2"]),  # an old file: there is only the name
        ([("a.png", "gone")], ["a.png"]),  # another picture of the same name
        ([("b.png", "h3")], ["a.png"]),  # the same picture under another name
        ([("a.png", "gone"), ("b.png", "h3")], [None, "a.png"]),
        ([("x", "twice"), ("y", "twice"), ("z", "twice")], ["row 5", "row 6", None]),
        ([("row 6", "twice"), ("x", "twice")], ["row 6", "row 5"]),
        ([("row 7", "gone")], ["row 7"]),  # whose content is not known now
        ([("nobody", ""), ("nobody", "gone")], [None, None]),
    ],
)
def test_which_sample_is_meant(wanted, found):
    names = ("row 2", "row 3", "a.png", "row 5", "row 6", "row 7")
    assert find_samples(wanted, names, ("h0", "h1", "h3", "twice", "twice", "")) == found


def test_answers_follow_rows_that_move(numbered, tmp_path):
    first = label(numbered(X))
    first.save(tmp_path)
    fill_in(tmp_path / "review.csv", {"row 2": "b", "row 5": "a"})
    answers = read_answers(tmp_path / "review.csv")
    moved = np.concatenate([[[9.0, 9.0]], X[::-1]])
    found = label(numbered(moved), answers=answers)
    assert found.answers == {"row 8": "b", "row 5": "a"}
    assert [one for one in found.notes if "moved" in one] == [
        "1 answer moved with its sample: 'row 2' is 'row 8' now"
    ]
    # The same numbers in another type are the same sample.
    assert label(numbered(moved.astype(">f8")), answers=answers).answers == found.answers


def test_answers_of_rows_that_vanish_are_reported_kept_and_come_back(numbered, tmp_path):
    label(numbered(X)).save(tmp_path)
    fill_in(tmp_path / "review.csv", {"row 2": "b", "row 5": "a"})
    answers = read_answers(tmp_path / "review.csv")
    fewer = label(numbered(X[1:]), answers=answers)
    assert fewer.answers == {"row 4": "a"}
    assert "1 answer not used, as the sample is not here now; kept for when it is: 'row 2'" in (
        fewer.notes
    )
    fewer.save(tmp_path)
    kept = read_answers(tmp_path / "answers.csv")
    assert label(numbered(X), answers=kept).answers == {"row 2": "b", "row 5": "a"}


def test_an_answer_for_a_changed_sample_of_the_same_name_is_pointed_out(annotate):
    data = annotate(SETS, features=X)
    first = label(data)
    answers = Answers((Answer("s0", "b", first.contents[0]), Answer("s1", "b", first.contents[1])))
    changed = X.copy()
    changed[0] += 0.01
    found = label(annotate(SETS, features=changed), answers=answers)
    assert found.answers == {"s0": "b", "s1": "b"}
    assert found.notes == [
        "1 answer taken for samples whose content has changed since; check it: 's0'"
    ]


def test_contents_are_pictures_texts_and_vectors_and_not_labels(annotate, tmp_path):
    def length(texts):
        return [[float(len(text))] for text in texts]

    texts = ("x", "xx", "yyyyy")
    first = label(annotate([["a"], ["a", "b"], ["b"]], texts=texts), encoder=length)
    other = label(annotate([["b"], ["a"], ["a", "b"]], texts=texts), encoder=length)
    assert first.contents == other.contents
    assert len(set(first.contents)) == 3
    assert all(one.startswith("sha256-") for one in first.contents)


def test_a_name_that_never_was_is_still_an_error(annotate):
    data = annotate(SETS, features=X)
    with pytest.raises(InputError, match="answers are given for samples that do not exist: 's9'"):
        label(data, answers={"s9": "a"})


def test_answers_are_a_mapping(annotate):
    data = annotate(SETS, features=X)
    with pytest.raises(
        InputTypeError, match=r"answers map samples to labels, .*, not \[\('s0', 'a'"
    ):
        label(data, answers=[("s0", "a")])


def test_a_later_file_counts(annotate):
    sources = [Answers((Answer("s0", "a"), Answer("s1", "a"))), Answers((Answer("s0", "b"),))]
    assert label(annotate(SETS, features=X), answers=sources).answers == {"s0": "b", "s1": "a"}


# -------------------------------------------------------------------- the folder keeps them


def test_a_filled_in_review_list_is_not_lost_by_the_next_result(annotate, tmp_path):
    found = label(annotate(SETS, features=X))
    found.save(tmp_path)
    fill_in(tmp_path / "review.csv", {"s0": "b", "s3": "a"})
    found.save(tmp_path)
    assert read_answers(tmp_path / "answers.csv") == {"s0": "b", "s3": "a"}
    found.save(tmp_path, overwrite=True)
    assert read_answers(tmp_path / "answers.csv") == {"s0": "b", "s3": "a"}
    found.save(tmp_path, forget_answers=True)
    assert not (tmp_path / "answers.csv").exists()


def test_answers_of_another_data_set_stay_in_the_folder(annotate, tmp_path):
    data = annotate(SETS, features=X)
    label(data, answers={"s0": "b"}).save(tmp_path)
    other = annotate([["x"], ["y"]], names=("t0", "t1"), features=X[:2] + 100)
    label(other, answers={"t0": "y"}).save(tmp_path)
    assert read_answers(tmp_path / "answers.csv") == {"t0": "y", "s0": "b"}


def test_rows_of_the_same_name_and_other_content_are_kept_apart(numbered, tmp_path):
    label(numbered(X), answers={"row 2": "b"}).save(tmp_path)
    label(numbered(X + 1), answers={"row 2": "a"}).save(tmp_path)
    kept = read_answers(tmp_path / "answers.csv")
    assert {(one.sample, one.label) for one in kept.records} == {("row 2", "a"), ("row 2", "b")}
    assert label(numbered(X), answers=kept).answers == {"row 2": "b"}
    assert label(numbered(X + 1), answers=kept).answers == {"row 2": "a"}


def test_answers_that_cannot_be_read_are_not_replaced(annotate, tmp_path):
    found = label(annotate(SETS, features=X))
    found.save(tmp_path)
    broken = (tmp_path / "review.csv").read_bytes() + b'"never closed\n'
    (tmp_path / "review.csv").write_bytes(broken)
    for overwrite in (False, True):
        with pytest.raises(DataError) as raised:
            found.save(tmp_path, overwrite=overwrite)
        assert "a double quote is opened and never closed" in str(raised.value)
        assert "may hold a person's answers, so it is not replaced" in str(raised.value)
    assert (tmp_path / "review.csv").read_bytes() == broken
    found.save(tmp_path, forget_answers=True)
    assert (tmp_path / "review.csv").read_bytes() != broken


def test_an_audit_keeps_answers_of_samples_that_are_gone(annotate, tmp_path):
    data = annotate(SETS, features=X)
    label(data, audit=6).save(tmp_path)
    fill_in(tmp_path / "audit.csv", {"s0": "b", "s4": "b"})
    fewer = label(data.take(np.arange(1, 6)), audited=read_audit(tmp_path / "audit.csv"))
    assert fewer.audit.given == {"s4": "b"}
    assert (
        "1 audited label not used, as the sample is not here now; kept for when it is: 's0'"
        in fewer.notes
    )
    fewer.save(tmp_path)
    again = label(data, audited=read_audit(tmp_path / "audit.csv"))
    assert again.audit.given == {"s0": "b", "s4": "b"}


def test_an_audit_follows_rows_that_move(numbered, tmp_path):
    label(numbered(X), audit=6).save(tmp_path)
    fill_in(tmp_path / "audit.csv", {"row 2": "b"})
    moved = numbered(np.concatenate([[[9.0, 9.0]], X]))
    found = label(moved, audited=read_audit(tmp_path / "audit.csv"))
    assert found.audit.given == {"row 3": "b"}
    assert found.answers == {"row 3": "b"}


def test_audit_answers_that_came_meanwhile_are_kept(annotate, tmp_path):
    data = annotate(SETS, features=X)
    found = label(data, audit=3)
    found.save(tmp_path)
    asked, *_ = rows(tmp_path / "audit.csv")
    fill_in(tmp_path / "audit.csv", {asked["sample"]: "b"})
    found.save(tmp_path)
    assert read_audit(tmp_path / "audit.csv").given == {asked["sample"]: "b"}
    label(data.take(np.arange(6)[::-1]), audit=2).save(tmp_path)
    assert read_audit(tmp_path / "audit.csv").given == {asked["sample"]: "b"}
