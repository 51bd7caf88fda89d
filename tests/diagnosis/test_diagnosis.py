"""What candidate sets decide: by hand, the documented ceilings, what is printed, bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fspll._common.errors import CandidateError, InputError, InputTypeError
from fspll.candidates import Candidates, corrupt_mask
from fspll.diagnosis import Diagnosis, Question, ceiling, diagnose

PAIR = [{"a", "b"}, {"a", "b"}]


# -------------------------------------------------------------------- by hand


def test_one_question_settles_two_clusters():
    found = diagnose(PAIR, ["x", "y"])
    assert found.ceiling == 0.5
    assert found.undecided == [["a", "b"]]
    assert found.always_together == [["a", "b"]]
    assert found.ask == [Question(sample=0, candidates=["a", "b"], ceiling_after=1.0)]
    assert found.clusters.tolist() == ["x", "y"]


def test_the_larger_doubt_is_asked_first_about_its_shortest_set():
    y = [{"a", "b"}, {"a", "b"}, {"c", "d", "e"}, {"c", "d"}, {"c", "d"}, {"e"}]
    found = diagnose(y, [0, 1, 2, 2, 3, 4])
    assert found.ceiling == pytest.approx((1 + 1.5 + 1) / 6)
    assert found.undecided == [["a", "b"], ["c", "d"]]
    assert [question.sample for question in found.ask] == [3, 0]
    assert [question.ceiling_after for question in found.ask] == pytest.approx([5 / 6, 1])


def test_clusters_decide_what_always_comes_together():
    y = [{"a", "b"}, {"a", "b"}, {"b"}]
    assert diagnose(y, [0, 1, 1]).ceiling == 1
    assert diagnose(y, [0, 1, 1]).ask == []
    assert diagnose(y, [0, 0, 1]).undecided == []


def test_likelier_candidates_come_first():
    # The matchings are ac, ba, bc and ca.
    found = diagnose([{"a", "b", "c"}, {"a", "c"}], [0, 1], classes=["a", "b", "c"])
    assert found.marginals.tolist() == [[0.25, 0.5, 0.25], [0.5, 0, 0.5]]
    assert found.ceiling == 0.5
    assert found.ask[0].candidates == ["b", "a", "c"]


def test_fewer_clusters_than_classes():
    found = diagnose([{"a", "b"}, {"b", "c"}], [0, 1], classes=["a", "b", "c", "d"])
    # The matchings are ab, ac and bc.
    assert np.allclose(found.marginals, [[2 / 3, 1 / 3, 0, 0], [0, 1 / 3, 2 / 3, 0]])
    assert found.ceiling == pytest.approx(2 / 3)
    assert found.undecided == [["a", "b", "c"]]
    assert found.never_candidates == ["d"]
    assert (found.n_samples, found.n_clusters, found.n_classes) == (2, 2, 4)


def test_a_sample_in_the_wrong_cluster_contradicts():
    y = [{"a"}, {"a", "b"}, {"b"}, {"b"}, {"b", "a"}, {"a", "c"}]
    found = diagnose(y, [0, 0, 0, 1, 1, 1], classes=["a", "b", "c"])
    assert found.contradictions == [2, 5]  # with 0 = b and 1 = a: rows 0 and 3, as many
    assert found.undecided == [["a", "b"]]
    assert found.ask[0].ceiling_after > 0.99


def test_a_contradiction_leaves_the_other_clusters_decided():
    labels = np.repeat(np.arange(4), 5)
    mask = np.eye(4, dtype=bool)[labels]
    mask[7] = [False, False, True, False]
    found = diagnose(mask, labels)
    assert found.contradictions == [7]
    assert found.ceiling == pytest.approx(1, abs=1e-6)
    assert found.undecided == []
    assert found.ask == []


def test_eps_says_how_far_a_majority_is_trusted():
    y = [{"a"}, {"a"}, {"b"}]
    for eps in (0.01, 0.2):
        found = diagnose(y, [0, 0, 0], eps=eps)
        assert found.contradictions == [2]
        assert found.marginals[0].tolist() == pytest.approx([1 / (1 + eps), eps / (1 + eps)])
        assert ceiling(Candidates.read(y).mask, [0, 0, 0], eps=eps) == found.ceiling


def test_large_contradicting_clusters_do_not_vanish():
    # 0.01 to the power of 1,000 is no floating-point number.
    labels = np.repeat([0, 1], 1000)
    mask = np.eye(2, dtype=bool)[np.repeat([0, 1, 0, 1], 500)]
    found = diagnose(mask, labels)
    assert found.marginals.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert len(found.contradictions) == 1000


def test_clear_labels_decide_everything():
    found = diagnose(["x", "y", "x"], [4, -1, 4])
    assert found.marginals.tolist() == [[0, 1], [1, 0]]
    assert (found.ceiling, found.undecided, found.ask) == (1, [], [])


def test_the_number_of_questions_is_kept():
    y = [{f"{i}", f"{i}'"} for i in range(7) for _ in range(2)]
    for n_ask in (0, 1, 5, 9):
        found = diagnose(y, range(14), n_ask=n_ask)
        assert len(found.ask) == min(n_ask, 7)


# -------------------------------------------------------------------- the documented ceilings


PAGE = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
DOCUMENTED = [
    (int(n_way), int(n_shot), r, float(mean), float(error))
    for n_way, n_shot, cells in re.findall(r"^\| (\d+)-way (\d+)-shot \|(.*)$", PAGE, re.MULTILINE)
    for r, (mean, error) in enumerate(re.findall(r"(\d?\.\d+) ± (\.\d+)", cells), start=1)
]


def test_the_documented_table_is_read():
    assert len(DOCUMENTED) == 18


@pytest.mark.parametrize(("n_way", "n_shot", "r", "documented", "its_error"), DOCUMENTED)
def test_the_documented_ceilings(n_way, n_shot, r, documented, its_error):
    labels = np.repeat(np.arange(n_way), n_shot)
    rng = np.random.default_rng(1)  # other tasks than those of the page
    found = [ceiling(corrupt_mask(labels, n_way, 1, r, rng), labels) for _ in range(150)]
    error = np.hypot(np.std(found) / np.sqrt(len(found)), its_error)
    assert abs(np.mean(found) - documented) <= 4 * error + 0.001


# -------------------------------------------------------------------- printing


def test_printing_says_it_in_sentences():
    y = [{"a", "b"}, {"a", "b"}, {"c"}, {"c"}, {"a", "b"}]
    found = diagnose(y, [0, 1, 2, 2, 2], classes=["a", "b", "c", "d"])
    assert str(found).splitlines() == [
        "5 samples in 3 clusters, 4 classes",
        "given the clusters, no method can expect more than 79.8% of the labels to be right",
        "no labeling of the clusters agrees with all sets; the best contradicts 1, where the true "
        "label is missing or the cluster is wrong: row 4",
        "cannot be told apart, given the clusters: a, b",
        "always together, cannot be told apart by any sample: a, b",
        "never a candidate: d",
        "ask for the label of row 0 (a or b): up to 99.7% right",
    ]


def test_samples_have_names_where_these_are_known():
    y = [{"a", "b"}, {"a", "b"}, {"c"}, {"c"}, {"a", "b"}]
    lines = diagnose(y, [0, 1, 2, 2, 2]).describe(["p", "q", "r", "s", "t"])
    assert lines[2].endswith("the cluster is wrong: t")
    assert lines[-1].startswith("ask for the label of p (a or b)")


def test_printing_when_all_is_decided():
    assert str(diagnose(["x", "x"], [0, 0])).splitlines() == [
        "2 samples in 1 cluster, 1 class",
        "given the clusters, the candidate sets decide every label",
    ]


def test_printing_of_sampled_and_of_long_lists(monkeypatch):
    monkeypatch.setattr("fspll.diagnosis.solving.STEPS_TO_COUNT", 0)
    found = diagnose(np.ones((12, 12), dtype=bool), np.arange(12), n_ask=2)
    lines = str(found).splitlines()
    assert f"{found.ceiling:.1%} (± {found.ceiling_error:.1%}, sampled)" in lines[1]
    assert lines[2] == (
        "cannot be told apart, given the clusters: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    )
    assert lines[4].startswith("ask for the label of row ")
    assert lines[5].startswith("then ask for the label of row ")


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("clusters", "error", "message"),
    [
        (
            [0, 1, 2],
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape (3,)",
        ),
        (
            np.full((2, 2), 0.5),
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape (2, 2)",
        ),
        (
            None,
            InputError,
            "clusters names one cluster for each of the 2 candidate sets, an array of shape (2,), "
            "not one of shape ()",
        ),
        (
            [0.0, 0.5],
            InputTypeError,
            "clusters are whole numbers or names, but row 1 holds 0.5",
        ),
        (
            [float("nan"), 1],
            InputTypeError,
            "clusters are whole numbers or names, but row 0 holds nan",
        ),
        (
            ["x", None],
            InputTypeError,
            "clusters are whole numbers or names, but row 1 holds None",
        ),
    ],
)
def test_clusters_that_are_none(clusters, error, message):
    for call in (
        lambda: diagnose(PAIR, clusters),
        lambda: ceiling(np.ones((2, 2), dtype=bool), clusters),
    ):
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message


def test_more_clusters_than_classes():
    message = (
        "3 clusters cannot each have a class of their own out of 2; merge clusters or name all "
        "classes"
    )
    for call in (
        lambda: diagnose([*PAIR, {"a"}], [0, 1, 2]),
        lambda: ceiling(np.ones((3, 2), dtype=bool), [0, 1, 2]),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert str(caught.value) == message


def test_empty_sets_and_masks_that_are_none():
    empty = "row 1 of candidates is empty; every sample needs at least one candidate label"
    for call in (
        lambda: diagnose([{"a"}, set()], [0, 0]),
        lambda: ceiling(np.array([[True], [False]]), [0, 0]),
        lambda: ceiling(np.array([[1], [0]]), [0, 0]),
    ):
        with pytest.raises(CandidateError) as caught:
            call()
        assert str(caught.value) == empty
    with pytest.raises(CandidateError, match="holds 0 and 1 only, but 2 was found at row 0"):
        ceiling(np.array([[2, 1]]), [0])
    with pytest.raises(CandidateError, match="there are no samples"):
        ceiling(np.ones((0, 2), dtype=bool), [])


@pytest.mark.parametrize("eps", [0, 1, -0.5, float("nan"), "small"])
def test_eps_is_a_chance(eps):
    with pytest.raises(InputError) as caught:
        diagnose(PAIR, [0, 1], eps=eps)
    assert str(caught.value) == f"eps is a chance, above 0 and below 1, not {eps!r}"


@pytest.mark.parametrize("n_ask", [-1, 1.0, True, None])
def test_questions_are_counted(n_ask):
    with pytest.raises(InputError) as caught:
        diagnose(PAIR, [0, 1], n_ask=n_ask)
    assert str(caught.value) == (f"n_ask must be a whole number of 0 or more, not {n_ask!r}")


def test_names_of_clusters_may_be_objects():
    found = diagnose(PAIR, np.array(["one", "two"], dtype=object))
    assert isinstance(found, Diagnosis)
    assert found.clusters.tolist() == ["one", "two"]
