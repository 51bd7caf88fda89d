"""What to ask first: gains against brute force, and the reasons that are given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fspll.candidates import Candidates, corrupt_mask
from fspll.labeling import label
from fspll.labeling.reasons import find_undecided
from fspll.labeling.review import Groups, choose_questions


def groups_of(truth, mask, sure=0.97):
    n_classes = mask.shape[1]
    member = np.full((len(truth), n_classes), (1 - sure) / (n_classes - 1))
    member[np.arange(len(truth)), truth] = sure
    return Groups(member, member.copy(), mask.astype(float))


def posterior(groups):
    """All one-to-one namings of the groups, each as likely as the sets say; then all labels."""
    n, n_classes = groups.weight.shape
    namings = list(itertools.permutations(range(n_classes)))
    logs = np.zeros(len(namings))
    for at, naming in enumerate(namings):
        for i in range(n):
            chance = (groups.weight[i] > 0).sum() / n_classes
            for g, c in enumerate(naming):
                r = min(groups.member[i, g], 0.98)
                logs[at] += np.log(r * groups.weight[i, c] + (1 - r) * chance)
    total = np.zeros((n_classes, n_classes))
    for naming, weight in zip(namings, np.exp(logs - logs.max()), strict=True):
        for g, c in enumerate(naming):
            total[g, c] += weight
    naming = total / total.sum(axis=1, keepdims=True)
    share = groups.by_features @ (0.999 * naming + 0.001 * np.eye(n_classes)) * groups.weight
    return share / share.sum(axis=1, keepdims=True)


def brute_gain(groups, row):
    share = posterior(groups)
    before = share.max(axis=1).sum()
    after = 0.0
    for c in np.flatnonzero(share[row] > 0):
        weight = groups.weight.copy()
        weight[row] = np.eye(weight.shape[1])[c]
        then = posterior(Groups(groups.by_features, groups.member, weight)).max(axis=1).sum()
        after += share[row, c] * then
    return after - before


def test_the_first_gain_is_the_expected_one():
    truth = np.repeat(np.arange(3), 2)
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=bool)
    groups = groups_of(truth, mask)
    confidence = posterior(groups).max(axis=1)
    (row, gain, after), *_ = choose_questions(confidence, groups)
    gains = [brute_gain(groups, i) for i in range(6)]
    assert gain == pytest.approx(gains[row], abs=0.02)
    assert gain > max(gains) - 0.05
    assert after == pytest.approx((confidence.sum() + gain) / 6)


def test_outlying_samples_do_not_put_the_label_of_a_large_group_in_doubt():
    """Some hundred samples and a few that lie apart share a label, and the hundreds have it."""
    truth = np.repeat([0, 1, 2], [300, 6, 8])
    mask = np.eye(3, dtype=bool)[truth]
    mask[np.arange(300), 1 + np.arange(300) % 2] = True
    mask[300:306] = [True, False, False]
    mask[300, 1] = True
    mask[-1, 1] = True
    groups = groups_of(truth, mask)
    confidence = posterior(groups).max(axis=1)
    (row, gain, after), *_ = choose_questions(confidence, groups)
    assert gain == pytest.approx(brute_gain(groups, row), abs=0.02)
    assert after == pytest.approx((confidence.sum() + gain) / len(truth))


def test_one_question_for_two_groups_that_nothing_tells_apart():
    truth = np.repeat(np.arange(4), 5)
    mask = np.zeros((20, 4), dtype=bool)
    mask[truth < 2, :2] = True
    mask[truth >= 2, 2:] = True
    groups = groups_of(truth, mask)
    chosen = choose_questions(np.full(20, 0.5), groups)
    first, second = chosen[:2]
    assert {truth[first[0]] // 2, truth[second[0]] // 2} == {0, 1}
    assert first[1] > 4
    assert second[1] > 4
    assert second[2] > 0.95
    assert all(gain < 0.6 for _, gain, _ in chosen[2:])


def test_a_sample_whose_group_rules_its_candidates_out_is_worth_its_own_doubt():
    truth = np.repeat(np.arange(4), 5)
    mask = np.zeros((20, 4), dtype=bool)
    mask[truth < 2, :2] = True  # two groups whose names are open
    mask[truth >= 2, 2:] = True
    mask[0] = [False, False, True, True]  # lies in one of them, with candidates of the others
    groups = groups_of(truth, mask)
    groups.by_features[0] = [1.0, 0.0, 0.0, 0.0]
    confidence = np.full(20, 0.5)
    confidence[0] = 1e-12
    gains = {row: gain for row, gain, _ in choose_questions(confidence, groups)}
    assert gains[0] == pytest.approx(1.0, abs=0.01)


def test_without_groups_a_question_is_worth_its_own_doubt():
    chosen = choose_questions(np.array([0.9, 1.0, 0.4, 0.995, 0.7]), None)
    assert [row for row, _, _ in chosen] == [2, 4, 0]
    assert [gain for _, gain, _ in chosen] == pytest.approx([0.6, 0.3, 0.1])
    assert chosen[-1][2] == pytest.approx((3.995 + 1.0) / 5)
    assert len(choose_questions(np.full(500, 0.5), None, at_most=7)) == 7


def test_one_answer_by_the_list_settles_what_is_open():
    """Five classes, of which two always come together."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 4)
    X = rng.normal(size=(5, 8))[truth] * 3 + rng.normal(size=(20, 8)) * 0.3
    mask = corrupt_mask(truth, 5, 1, 1, rng)
    mask[:, 3:] = (truth >= 3)[:, None]
    mask[truth >= 3, :3] = False
    first = label((X, mask))
    question = first.review[0]
    assert truth[question.index] >= 3
    assert question.gain > 3
    assert question.reason == "3 and 4 always come together: no sample tells them apart"
    answers = {f"row {question.index}": truth[question.index]}
    assert (label((X, mask), answers=answers).labels == truth).all()


# -------------------------------------------------------------------- reasons


def explain(sets, confidence, by_features, naming, answered=None):
    candidates = Candidates.read(sets)
    n = len(candidates)
    mass = np.asarray(candidates.mask.sum(axis=0), dtype=float)
    top = candidates.mask.argmax(axis=1)
    second = candidates.n_classes - 1 - candidates.mask[:, ::-1].argmax(axis=1)
    answered = np.zeros(n, dtype=bool) if answered is None else answered
    return find_undecided(
        candidates, np.asarray(confidence), top, second, mass, by_features, naming, answered
    )


def test_inseparable_labels_are_named():
    (one,) = explain([{"cat", "lynx"}, {"dog"}], [0.5, 1.0], None, None)
    assert (one.index, one.kind, one.labels) == (0, "inseparable", ("cat", "lynx"))
    assert one.reason == "cat and lynx always come together: no sample tells them apart"


def test_open_names_few_samples_and_places_between():
    sets = [{"a", "b"}, {"a", "c"}, {"b", "c"}]
    place = np.full((3, 3), 1 / 3)
    naming = np.array([[0.5, 0.48, 0.02]] * 3)
    found = explain(sets, [0.6, 0.95, 0.6], place, naming)
    assert [(one.index, one.kind) for one in found] == [(0, "naming"), (2, "naming")]
    assert found[0].reason == "the sets leave open whether its group is a or b"
    found = explain(sets, [0.6, 0.95, 0.6], place, np.eye(3))
    assert [one.reason for one in found] == ["lies between a and b", "lies between b and c"]
    (few,) = explain([{"a", "b"}, {"a", "b"}, {"a", "c"}], [1, 1, 0.5], None, None)
    assert few.kind == "few"
    assert few.reason.startswith("hardly any sample of c is known")


def test_a_sample_among_others_contradicts_its_set_even_if_sure():
    place = np.array([[0.995, 0.005], [0.5, 0.5]])
    found = explain([{"b"}, {"a", "b"}], [1.0, 0.95], place, np.eye(2))
    (one,) = found
    assert (one.index, one.kind) == (0, "contradiction")
    assert one.reason == "lies among samples of a, which is not among its candidates (b)"
    assert not explain([{"b"}, {"a", "b"}], [1.0, 0.95], place, np.eye(2), np.array([True, True]))


def test_a_mislabeled_sample_is_found_and_listed_for_review():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 8)
    X = rng.normal(size=(3, 8))[truth] * 6 + rng.normal(size=(24, 8)) * 0.3
    mask = corrupt_mask(truth, 3, 0.5, 1, rng)
    mask[5] = [False, True, False]
    found = label((X, mask))
    assert [(one.index, one.kind) for one in found.undecided] == [(5, "contradiction")]
    assert [one.index for one in found.review] == [5]
    assert found.review[0].gain == pytest.approx(1 - found.confidence[5])
    # Where nothing is held out, what the answer gains cannot be computed.
    found = label((X, mask), rectifier="evidence")
    assert [(one.index, one.kind) for one in found.undecided] == [(5, "contradiction")]
    assert [(one.index, one.gain) for one in found.review] == [(5, 0.0)]
