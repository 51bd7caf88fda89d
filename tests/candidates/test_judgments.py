"""Who said what: triples that are checked once, counted, cut down and compared with an outcome."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fspll._common.errors import InputError
from fspll.candidates import Candidates, Judgments, Observed

# Ann says c of row 0 and {a, b} of row 2; Ben says b of row 0; Eva says a of row 2.
SAID = Judgments([2, 0, 2, 0, 2], [0, 1, 2, 0, 0], [1, 1, 0, 2, 0], ("Ann", "Ben", "Eva"))


def triples(said):
    return list(zip(said.rows.tolist(), said.annotators.tolist(), said.labels.tolist()))  # noqa: B905


def test_triples_are_kept_in_order():
    assert triples(SAID) == [(0, 0, 2), (0, 1, 1), (2, 0, 0), (2, 0, 1), (2, 2, 0)]
    assert len(SAID) == 5
    assert SAID.n_annotators == 3
    assert repr(SAID) == "Judgments(5 labels by 3 annotators)"


def test_several_labels_of_one_annotator_share_one_judgment():
    assert SAID.shares.tolist() == [1.0, 1.0, 0.5, 0.5, 1.0]
    assert SAID.per_sample(4).tolist() == [2, 0, 2, 0]


def test_counts_are_votes():
    assert SAID.counts(4, 3).toarray().tolist() == [[0, 1, 1], [0, 0, 0], [2, 1, 0], [0, 0, 0]]
    with pytest.raises(InputError, match="a judgment of row 2, but there are 2 samples"):
        SAID.counts(2, 3)
    with pytest.raises(InputError, match="a judgment of label 2, but there are 2 classes"):
        SAID.counts(3, 2)


def test_take_counts_the_samples_anew():
    assert triples(SAID.take([2, 1])) == [(0, 0, 0), (0, 0, 1), (0, 2, 0)]
    assert triples(SAID.take([1, 0])) == [(1, 0, 2), (1, 1, 1)]
    assert triples(SAID.take(np.array([True, True, False]))) == [(0, 0, 2), (0, 1, 1)]
    assert triples(SAID.take([0, 0])) == [(0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 1)]
    assert SAID.take([]).names == SAID.names


@given(
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2))),
    st.lists(st.integers(0, 5)),
)
def test_take_picks_the_rows_of_the_counts(said, rows):
    columns = np.array(sorted(said), dtype=int).reshape(-1, 3).T
    judged = Judgments(*columns, ("a", "b", "c", "d"))
    taken = judged.take(rows).counts(len(rows), 3).toarray()
    assert np.array_equal(taken, judged.counts(6, 3).toarray()[rows])


def test_columns_can_be_moved_and_dropped():
    moved = SAID.relabel([1, 3, -1])
    assert triples(moved) == [(0, 0, -1), (0, 1, 3), (2, 0, 1), (2, 0, 3), (2, 2, 1)]
    assert triples(moved.relabel([0, 1, 2, 3])) == triples(moved)
    assert triples(moved.known()) == triples(moved)[1:]
    assert SAID.known() is SAID
    with pytest.raises(InputError, match="2 columns are given for judgments up to label 2"):
        SAID.relabel([0, 1])


def test_two_dropped_labels_of_one_judgment_both_stay():
    moved = SAID.relabel([-1, -1, 0])
    assert triples(moved)[2:4] == [(2, 0, -1), (2, 0, -1)]
    assert moved.shares.tolist() == [1.0, 1.0, 0.5, 0.5, 1.0]


def test_agreement_with_an_outcome():
    found = SAID.agreement([2, 0, 0])
    assert found.judged.tolist() == [2, 1, 1]
    assert found.agreed.tolist() == [1.5, 0.0, 1.0]
    assert found.share.tolist() == [0.75, 0.0, 1.0]
    # A label that is no class agrees with nothing, not even with an outcome that is none.
    assert SAID.relabel([-1, 1, 2]).agreement([2, 0, -1]).agreed.tolist() == [1.0, 0.0, 0.0]
    assert np.isnan(SAID.take([0]).agreement([1]).share[2])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0], [0, 1], [0], "ab"), "names of annotators must be a list of texts"),
        (([0], [0], [0], ("x", "x")), "two annotators are called 'x'"),
        (([0], [0, 1], [0], ("x", "y")), "of one length, not 1, 2, 1"),
        (([-1], [0], [0], ("x",)), "rows of judgments must be 0 or more, not -1"),
        (([0], [1], [0], ("x",)), "there are 1 annotators, but one judgment is by 1"),
        (([0], [0], [-2], ("x",)), "must be columns or -1, not -2"),
        (([0, 0], [0, 0], [1, 1], ("x",)), "'x' gives the label 1 to row 0 twice"),
        (([0.5], [0], [1], ("x",)), "rows must be whole numbers in one dimension, not float64"),
    ],
)
def test_what_is_refused(parts, message):
    with pytest.raises(InputError, match=message):
        Judgments(*parts)


# -------------------------------------------------------------------- as part of what is observed


SETS = Candidates.read([{"b", "c"}, {"a"}, {"a", "b"}])


def test_observed_keeps_judgments_and_settled_rows():
    observed = Observed.read(SETS, judgments=SAID, settled=[False, True, False])
    assert observed.judgments is SAID
    assert observed.settled.tolist() == [False, True, False]
    assert observed.votes is None
    plain = Observed.read(SETS, judgments=SAID.take([1]), settled=np.zeros(3, dtype=bool))
    assert plain.judgments is None
    assert plain.settled is None


def test_observed_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="a judgment of row 2, but there are 1 samples"):
        Observed.read(SETS.take([0]), judgments=SAID)
    with pytest.raises(InputError, match="label -1, which is none of the classes"):
        Observed.read(SETS, judgments=SAID.relabel([0, 1, -1]))
    with pytest.raises(TypeError, match="judgments must be Judgments, not list"):
        Observed.read(SETS, judgments=[(0, 0, 0)])
    with pytest.raises(InputError, match=r"of shape \(3,\), not bool of shape \(2,\)"):
        Observed.read(SETS, settled=[True, False])
    with pytest.raises(InputError, match="row 2 is settled, but it has 2 candidates"):
        Observed.read(SETS, settled=[False, True, True])
