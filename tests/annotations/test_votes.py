"""Several people on one sample: who counts, what is kept, and what is refused."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fspll._common.errors import DataError
from fspll.annotations import read_annotations
from fspll.annotations.collecting import Opinion, Options, collect

LONG = "image,rater,label\na,1,cat\nb,1,dog\na,2,lynx|cat\na,3,lynx\na,4,yak\n"


def test_union_and_majority(make, votes_of):
    path = make("l.csv", LONG)
    union = {"a": {"cat": 2, "lynx": 2, "yak": 1}, "b": {"dog": 1}}
    assert votes_of(read_annotations(path)) == union
    assert votes_of(read_annotations(path, combine="union")) == union
    majority = read_annotations(path, combine="majority")
    assert votes_of(majority) == {"a": {"cat": 2, "lynx": 2}, "b": {"dog": 1}}
    assert majority.classes == ("cat", "dog", "lynx")  # nobody's label is no class
    assert majority.candidates.names(0) == ["cat", "lynx"]
    assert majority.origins == ("l.csv, rows 2, 4, 5, 6", "l.csv, row 3")


def test_an_annotator_counts_once_for_a_label(make, votes_of):
    path = make("l.csv", "sample,annotator,label\na,1,cat\na,1,cat\na,1,dog\na,2,cat|cat\n")
    assert votes_of(read_annotations(path)) == {"a": {"cat": 2, "dog": 1}}


@pytest.mark.parametrize("column", ["labeled_by", "labelled_by", "labeler", "Labeller"])
def test_both_spellings_name_the_annotator(make, votes_of, column):
    path = make("l.csv", f"sample,{column},label\na,1,cat\na,2,dog\n")
    assert votes_of(read_annotations(path)) == {"a": {"cat": 1, "dog": 1}}


def test_repeated_names_need_an_annotator_or_a_rule(make, votes_of):
    path = make("l.csv", "sample,label\na,cat\nb,dog\na,cat\n")
    with pytest.raises(
        DataError, match=r"l\.csv, row 2 and row 4 both name the sample 'a'; .*comb"
    ):
        read_annotations(path)
    assert votes_of(read_annotations(path, combine="union")) == {"a": {"cat": 2}, "b": {"dog": 1}}


def test_equal_file_names_in_different_folders_are_different(make):
    found = read_annotations(make("l.csv", "file,label\nx/a.png,cat\ny/a.png,dog\n"))
    assert found.names == ("x/a.png", "y/a.png")


def test_contradicting_descriptions_are_refused(make):
    path = make("l.csv", "sample,file,annotator,label\na,1.png,x,cat\na,2.png,y,cat\n")
    with pytest.raises(
        DataError, match=r"row 2 and row 3 .* a different file: '1.png' and '2.png'"
    ):
        read_annotations(path)


def test_a_column_an_annotator(make, votes_of):
    text = "file,label_1,Label 2,label-3\na,cat,cat|dog,\nb,,dog,fox\n"
    found = read_annotations(make("l.csv", text))
    assert votes_of(found) == {"a": {"cat": 2, "dog": 1}, "b": {"dog": 1, "fox": 1}}
    named = read_annotations(
        make("m.csv", "file,Ann,Ben\na,x,x\nb,x,y\n"), candidates=["Ann", "Ben"], combine="majority"
    )
    assert votes_of(named) == {"a": {"x": 2}, "b": {"x": 1, "y": 1}}
    assert named.origins == ("m.csv, row 2", "m.csv, row 3")


def test_columns_of_one_annotator_are_that_persons_candidates(make, votes_of):
    path = make("l.csv", "file,annotator,label_1,label_2\na,Ann,x,x\na,Ben,x,y\n")
    assert votes_of(read_annotations(path)) == {"a": {"x": 2, "y": 1}}


def test_rows_that_repeat_under_several_columns(make, votes_of):
    path = make("l.csv", "file,label_1,label_2\na,x,y\na,x,x\n")
    with pytest.raises(DataError, match="row 2 and row 3 both name"):
        read_annotations(path)
    assert votes_of(read_annotations(path, combine="union")) == {"a": {"x": 3, "y": 1}}


def test_names_that_no_file_can_hold(make):
    for bad in (r"\u0000", r"\ud800"):
        for record in (f'{{"sample": "x{bad}", "label": "a"}}', f'{{"label": "x{bad}"}}'):
            with pytest.raises(DataError, match=r"row 1: .* no text file can hold"):
                read_annotations(make("l.jsonl", record))


OPINIONS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.lists(st.sampled_from("wxyz"), min_size=1, unique=True),
        st.sampled_from(["1", "2", "3", None]),
    ),
    min_size=1,
)


@settings(max_examples=200, deadline=None)
@given(said=OPINIONS, combine=st.sampled_from(["union", "majority"]))
def test_votes_agree_with_counting_by_hand(said, combine):
    opinions = [
        Opinion(name, labels, f"row {i}", who) for i, (name, labels, who) in enumerate(said)
    ]
    found = collect("l.csv", opinions, Options(combine=combine))
    voters: dict[str, dict[str, set]] = {}
    for i, (name, labels, who) in enumerate(said):
        for label in labels:
            voters.setdefault(name, {}).setdefault(label, set()).add(who or f"unknown {i}")
    for row, name in enumerate(found.names):
        counts = {label: len(people) for label, people in voters[name].items()}
        if combine == "majority":
            counts = {k: v for k, v in counts.items() if v == max(counts.values())}
        kept = found.votes[[row]]
        assert dict(zip(found.candidates.names(row), kept.data.tolist(), strict=True)) == counts
    assert list(found.names) == list(voters)
    known = {(name, who, label) for name, labels, who in said for label in labels}
    several = any(
        len({who for other, who, _ in known if other == name}) > 1 for name in found.names
    )
    if any(who is None for _, _, who in said) or not several:
        assert found.judgments is None
        return
    judged = found.judgments
    told = {
        (found.names[row], judged.names[who], found.classes[label] if label >= 0 else None)
        for row, who, label in zip(judged.rows, judged.annotators, judged.labels, strict=True)
    }
    assert told == {(*who, label if label in found.classes else None) for *who, label in known}
    if combine == "union":
        assert (judged.counts(*found.votes.shape) != found.votes).nnz == 0


def test_many_samples_and_classes_stay_sparse(make):
    """A dense array of these votes would take 12 GB."""
    rng = np.random.default_rng(0)
    n, n_classes = 30_000, 50_000
    labels = rng.integers(n_classes, size=(n, 2))
    path = make(
        "l.csv", "sample,label\n" + "".join(f"s{i},c{a}|c{b}\n" for i, (a, b) in enumerate(labels))
    )
    began = time.process_time()
    found = read_annotations(path)
    assert time.process_time() - began < 20
    assert found.votes.shape == (n, len(np.unique(labels)))
    assert found.votes.nnz == sum(len({a, b}) for a, b in labels.tolist())
