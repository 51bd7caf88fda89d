"""PL-ECOC: its splits of the classes, the decoding, and the ladder when no split is usable."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.svm import SVC

from fspll.baselines import PLECOC
from fspll.baselines.dichotomies import (
    _grow,
    all_columns,
    draw_columns,
    draw_weighted_columns,
    members,
    weighted_signs,
)
from fspll.baselines.pl_ecoc import decode, performance
from fspll.candidates import corrupt_mask
from fspll.datasets.partial_label import load_partial_label_mat


def random_sets(n, n_classes, r, seed=0):
    rng = np.random.default_rng(seed)
    return corrupt_mask(rng.integers(n_classes, size=n), n_classes, 1, r, rng)


# -------------------------------------------------------------------- dichotomies


def test_all_columns():
    columns = all_columns(4)
    assert columns.shape == (7, 4)
    assert not columns[:, -1].any()
    assert columns.any(axis=1).all()
    assert len(np.unique(columns, axis=0)) == 7
    assert all_columns(1).shape == (0, 1)


def test_members_by_a_plain_loop():
    mask, columns = random_sets(30, 6, 2), all_columns(6)
    positive, negative = members(mask, columns)
    for i, row in enumerate(mask):
        for t, column in enumerate(columns):
            assert positive[i, t] == all(column[j] for j in np.flatnonzero(row))
            assert negative[i, t] == all(not column[j] for j in np.flatnonzero(row))


@pytest.mark.parametrize(("n", "n_classes", "r"), [(25, 5, 1), (60, 10, 2), (300, 30, 3)])
def test_drawn_columns_are_usable_and_different(n, n_classes, r):
    mask, wanted, least = random_sets(n, n_classes, r), ceil(10 * log2(n_classes)), ceil(n / 10)
    columns = draw_columns(mask, wanted, least, np.random.default_rng(0))
    assert 0 < len(columns) <= wanted
    positive, negative = members(mask, columns)
    assert positive.any(axis=0).all()
    assert negative.any(axis=0).all()
    assert ((positive | negative).sum(axis=0) >= least).all()
    assert len(np.unique(columns, axis=0)) == len(columns)
    assert not columns[:, -1].any()
    again = draw_columns(mask, wanted, least, np.random.default_rng(0))
    assert np.array_equal(again, columns)


def test_columns_grow_around_samples():
    """Twenty labels a set out of sixty: a coin hardly ever leaves a set whole."""
    mask = np.zeros((40, 60), dtype=bool)
    mask[:20, :25] = mask[20:, 30:] = True
    mask[np.arange(40), np.arange(40) % 5 + np.repeat([0, 30], 20)] = False
    grown = _grow(mask, 10, np.random.default_rng(0))
    positive, negative = members(mask, grown)
    assert positive.any(axis=0).all()
    assert negative.any(axis=0).all()
    assert len(draw_columns(mask, 5, 4, np.random.default_rng(0))) == 5


def test_sets_that_all_intersect_have_no_column():
    for n_classes in (5, 14):
        mask = random_sets(40, n_classes, n_classes // 2)
        assert draw_columns(mask, 20, 2, np.random.default_rng(0)).shape == (0, n_classes)
        weighted = draw_weighted_columns(mask, 20, np.random.default_rng(0))
        assert len(weighted) >= 10
        for column in weighted:
            lean = weighted_signs(mask, column)
            by_hand = [(column[row].sum() - (~column)[row].sum()) / row.sum() for row in mask]
            assert lean == pytest.approx(by_hand)
            assert lean.min() < 0 < lean.max()


# -------------------------------------------------------------------- decoding


def coded(m=20, n_classes=6, n_columns=13, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.choice([-1, 1], size=(n_classes, n_columns))
    weights = rng.random((n_classes, n_columns))
    weights[0, :5] = 0
    return size * rng.normal(size=(m, n_columns)), code, weights / weights.sum(1, keepdims=True)


@pytest.mark.parametrize("size", [0.0, 1e-8, 1.0, 50.0, 1e4, 1e200])
def test_decoding_by_a_plain_loop(size):
    outputs, code, weights = coded(size=size)
    outputs[::2] /= 1e3  # rows that need care stand beside others
    loss = decode(outputs, code, weights)
    for i in range(len(outputs)):
        for j in range(len(code)):
            terms = [-outputs[i, t] * code[j, t] for t in range(code.shape[1])]
            assert loss[i, j] == pytest.approx(logsumexp(terms, b=weights[j]), rel=1e-12, abs=1e-14)


def test_decoding_by_hand():
    loss = decode(np.array([[1.0, -2.0]]), np.array([[1, 1], [-1, 1]]), np.full((2, 2), 0.5))
    by_hand = [(np.exp(-1) + np.exp(2)) / 2, (np.exp(1) + np.exp(2)) / 2]
    assert np.exp(loss[0]) == pytest.approx(by_hand)


def test_a_flipped_column_with_its_machine_changes_nothing():
    outputs, code, weights = coded()
    sign = np.ones(13)
    sign[[2, 5, 11]] = -1
    assert decode(outputs * sign, code * sign, weights) == pytest.approx(
        decode(outputs, code, weights), rel=1e-13
    )
    sets = random_sets(20, 6, 2)
    assert np.array_equal(
        performance(outputs * sign, sets, code * sign), performance(outputs, sets, code)
    )


def test_performance_by_a_plain_loop():
    outputs, code, _ = coded(m=30)
    sets = random_sets(30, 6, 2)
    outputs[sets[:, 3]] = -1e-3 * code[3]  # every machine fails on the fourth class
    found = performance(outputs, sets, code)
    assert found.sum(axis=1) == pytest.approx(1)
    assert found[3] == pytest.approx(1 / 13)
    for j in (0, 1, 2, 4, 5):
        share = [np.mean(np.sign(outputs[sets[:, j], t]) == code[j, t]) for t in range(13)]
        assert found[j] == pytest.approx(np.array(share) / sum(share))


# -------------------------------------------------------------------- the estimator


def samples(sets, seed=0, n_features=8):
    """Return a sample for each candidate set, near the mean of its classes' places."""
    rng = np.random.default_rng(seed)
    return sets @ rng.normal(size=(sets.shape[1], n_features)) + rng.normal(
        size=(len(sets), n_features)
    )


def test_the_whole_method_by_a_plain_loop():
    sets = random_sets(80, 14, 1)
    X, new = samples(sets), samples(random_sets(15, 14, 1, seed=1))
    clf = PLECOC(random_state=0, scale="none").fit(X, sets)
    assert (clf.fallback_level_, clf.n_columns_) == (1, ceil(10 * log2(14)))
    code = clf.coding_matrix_
    machines = []
    for column in code.T:
        sides = [{column[j] for j in np.flatnonzero(row)} for row in sets]
        who = [i for i, side in enumerate(sides) if len(side) == 1]
        assert len(who) >= 8
        svm = SVC(C=1, gamma=1 / 8, tol=1e-5).fit(X[who], [min(sides[i]) for i in who])
        machines.append(svm)
    f_train = np.array([svm.decision_function(X) for svm in machines]).T
    share = [[np.mean((f_train[sets[:, j]] > 0) == (code[j] > 0), axis=0)] for j in range(14)]
    H = np.concatenate(share)
    H /= H.sum(axis=1, keepdims=True)
    loss = [
        [sum(H[j, t] * np.exp(-f[t] * code[j, t]) for t in range(code.shape[1])) for j in range(14)]
        for f in np.array([svm.decision_function(new) for svm in machines]).T
    ]
    assert clf.decision_function(new) == pytest.approx(-np.log(loss), abs=0.02)
    assert clf.performance_ == pytest.approx(H, abs=0.02)


@pytest.mark.parametrize(
    ("n", "n_classes", "r", "level", "n_columns"),
    [(60, 14, 1, 1, 39), (25, 5, 0, 2, 15), (25, 5, 2, 3, 10), (25, 5, 4, 4, 0), (9, 2, 0, 2, 1)],
)
def test_the_fallback_levels(n, n_classes, r, level, n_columns):
    sets = random_sets(n, n_classes, r)
    clf = PLECOC(random_state=0).fit(samples(sets), sets)
    assert (clf.fallback_level_, clf.n_columns_) == (level, n_columns)
    assert clf.coding_matrix_.shape == clf.performance_.shape == (n_classes, n_columns)
    assert set(np.unique(clf.coding_matrix_)) <= {-1, 1}


def test_classes_with_the_same_code_need_other_splits():
    # Only {0, 1, 2} against {3} is decided by whole sets; it cannot tell 0, 1 and 2 apart.
    sets = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    X = samples(sets)
    assert PLECOC(random_state=0).fit(X, sets).fallback_level_ == 3
    one = PLECOC(random_state=0, n_columns=1).fit(X, sets)
    assert (one.fallback_level_, one.n_columns_) == (2, 1)


def test_absent_classes_have_no_code():
    sets = np.insert(random_sets(30, 5, 1), 2, False, axis=1)
    clf = PLECOC(random_state=0).fit(samples(sets), sets)
    assert (clf.coding_matrix_[2] == 0).all()
    assert (np.delete(clf.coding_matrix_, 2, axis=0) != 0).all()


def test_the_seed_decides():
    sets = random_sets(80, 14, 1)
    X = samples(sets)
    first, same, other = (PLECOC(random_state=seed).fit(X, sets) for seed in (0, 0, 1))
    assert np.array_equal(first.coding_matrix_, same.coding_matrix_)
    assert not np.array_equal(first.coding_matrix_, other.coding_matrix_)


@pytest.mark.parametrize(("name", "least"), [("lost.mat", 0.47), ("MSRCv2.mat", 0.30)])
def test_real_data(real_data, name, least):
    """Half of the samples to learn from; two splits, whose mean varies by about 0.04."""
    data = load_partial_label_mat(real_data(f"pll/{name}"))
    scores = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(data))
        train, test = order[: len(data) // 2], order[len(data) // 2 :]
        clf = PLECOC(random_state=seed).fit(data.X[train], data.candidates.take(train))
        scores.append(clf.score(data.X[test], data.true_labels[test]))
    assert np.mean(scores) > least
