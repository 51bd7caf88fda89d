"""What held-out samples say: the check, sets that lack their truth, and labels outside them."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from fspll._common.errors import InputError
from fspll.candidates import Candidates, Judgments, corrupt_mask
from fspll.labeling import label
from fspll.labeling.reasons import find_undecided
from fspll.labeling.wording import check_sentence, condition, expectation, separation_warning

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def small(take_truth_out):
    """Four clouds of 15; the sets of four samples lack their truth."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 4
    X = 6 * rng.normal(size=(4, 5))[truth] + rng.normal(size=(60, 5))
    rows = np.array([3, 17, 30, 44])
    return X, truth, take_truth_out(corrupt_mask(truth, 4, 1.0, 1, rng), truth, rows, rng), rows


def test_clean_digits_have_no_contradictions(digits):
    X, truth, mask = digits
    found = label((X, mask))
    assert not [one for one in found.undecided if one.kind == "contradiction"]
    assert found.check.separates
    assert separation_warning(found) is None
    assert abs(found.check.hits - found.check.expected) < 0.03
    assert abs(found.expected_accuracy - (found.labels == truth).mean()) < 0.02
    assert condition(found) == "if every candidate set contains its true label"
    assert found.missing.max() < 1e-6
    assert not found.outside.any()


def test_sets_that_lack_their_truth_are_found(stripped):
    X, truth, mask, rows = stripped
    found = label((X, mask))
    against = {one.index: one for one in found.undecided if one.kind == "contradiction"}
    assert set(against) == set(np.flatnonzero(found.missing > 0.5).tolist())
    assert np.mean([row in against for row in rows]) > 0.85
    assert np.mean([row in rows for row in against]) > 0.85
    named = [one.labels[0] == truth[row] for row, one in against.items()]
    assert np.mean(named) > 0.85
    assert 0.06 < found.missing.mean() < 0.14
    assert abs(found.check.hits - found.check.expected) < 0.03
    assert "of the candidate sets seem to lack their true label" in expectation(found)
    # They are asked about like any other sample: by how doubtful the label is.
    gains = {one.index: one.gain for one in found.review}
    for row in set(against) & set(gains):
        assert gains[row] >= 1 - found.confidence[row] - 1e-9
    assert len(set(against) & set(gains)) > 60


def test_labels_outside_the_sets(stripped, tmp_path):
    X, truth, mask, _ = stripped
    inside, found = label((X, mask)), label((X, mask), outside=True)
    assert (inside.labels == truth).mean() < 0.9
    assert (found.labels == truth).mean() > 0.95  # more than sets contain their truth
    assert abs(found.expected_accuracy - (found.labels == truth).mean()) < 0.03
    best = found.classifier.model_.posterior.numpy()
    np.testing.assert_array_equal(found.labels, best.argmax(axis=1))
    np.testing.assert_allclose(found.confidence, best.max(axis=1))
    np.testing.assert_array_equal(found.outside, ~mask[np.arange(800), found.labels])
    assert 60 < found.outside.sum() < 100
    row = int(np.flatnonzero(found.outside)[0])
    assert found.runner_up[row] in np.flatnonzero(mask[row])
    assert found.candidates.names(row) == np.flatnonzero(mask[row]).tolist()
    found.save(tmp_path)
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        said = [line["outside"] for line in csv.DictReader(file)]
    assert said == ["yes" if one else "" for one in found.outside]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"{found.outside.sum()} labels are outside the candidate sets." in page
    assert "The label given is still one of the set" not in page


def test_an_answer_is_never_doubted(small):
    X, truth, mask, rows = small
    found = label((X, mask))
    assert found.missing[rows].min() > 0.5
    answers = {f"row {row}": int(truth[row]) for row in rows}
    found = label((X, mask), answers=answers, outside=True)
    assert found.missing[rows].max() == 0
    assert found.confidence[rows].min() > 0.999
    assert not found.outside[rows].any()


def test_outside_needs_probabilities_of_all_classes(small):
    X, _, mask, _ = small
    with pytest.raises(InputError, match="outside=True does not go with method='PL-KNN'"):
        label((X, mask), method="PL-KNN", outside=True)
    found = label((X, mask), rectifier="evidence", outside=True)
    assert not found.outside.any()
    assert found.notes[-1].startswith("outside=True had no effect")
    assert found.check is None
    assert check_sentence(found) is None
    assert found.missing.tolist() == [0] * 60


def test_the_sentences(small):
    X, _, mask, _ = small
    found = label((X, mask))
    figures = {"n_samples": 500, "hits": 0.87, "expected": 0.85, "chance": 0.4}
    check = replace(found.check, **figures, decides=True)
    said = (
        "Check without true labels: of 500 held-out samples 87% had their most probable label "
        "among their candidates (expected 85%, at random 40%)."
    )
    assert check_sentence(replace(found, check=check)) == said
    assert check_sentence(replace(found, check=replace(check, decides=False))) == (
        said + " These are too few to tell whether the features separate your labels."
    )
    poor = replace(found, check=replace(check, gain=0.0))
    assert separation_warning(poor) == (
        "These features do not separate your labels: are these the right features?"
    )
    assert separation_warning(replace(poor, encoder="omniglot-conv4")) == (
        "These features do not separate your labels: is `omniglot-conv4` the right encoder?"
    )
    assert condition(replace(found, answered=np.ones(60, dtype=bool))) == ""
    assert condition(replace(found, missing=np.full(60, 0.08))) == (
        "(about 8% of the candidate sets seem to lack their true label)"
    )


def test_people_who_agree_on_a_mistake_are_the_condition(annotate):
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 15, axis=0) + rng.normal(size=(30, 2))
    both = np.repeat(np.arange(30), 2)
    said = Judgments(both, np.tile([0, 1], 30), both // 15, ("Ann", "Ben"))
    sets = [["a"]] * 15 + [["b"]] * 15
    found = label(annotate(sets, features=X, judgments=said))
    assert expectation(found).endswith("unless people and features make the same mistakes")


def test_labels_that_no_features_could_separate_are_not_held_against_them(annotate):
    X = np.repeat([[0.0], [9.0]], 20, axis=0) + np.linspace(0, 0.5, 40)[:, None]
    found = label(annotate([["cat", "lynx"]] * 40, features=X))
    assert not found.check.decides
    assert separation_warning(found) is None


def test_a_rival_outside_the_set_is_named():
    candidates = Candidates.read([{"a"}, {"a", "b"}, {"a", "b"}, {"b"}], ["a", "b", "c"])
    posterior = np.array([[0.7, 0, 0.3], [0.6, 0.3, 0.1], [0.3, 0.2, 0.5001], [0.0, 0.8, 0.0]])
    top, second = np.array([0, 0, 0, 1]), np.array([-1, 1, 1, -1])
    confidence = posterior[np.arange(4), top]
    none = np.zeros(4, dtype=bool)
    found = find_undecided(
        candidates, confidence, top, second, np.full(3, 9.0), None, None, none, posterior
    )
    assert [one.reason for one in found] == [
        "lies between a and c, which is not among its candidates",
        "lies between a and b",
        "lies among samples of c, which is not among its candidates (a, b)",
        "b is its only candidate, but not sure",
    ]
    assert [one.kind for one in found] == ["between", "between", "contradiction", "between"]
