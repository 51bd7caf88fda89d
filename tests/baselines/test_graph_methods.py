"""PL-AGGD and PL-LEAF as estimators: the public programs' results, odd tasks, few-shot tasks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from fspll._common.errors import InputError
from fspll.baselines import PLAGGD, PLLEAF
from fspll.candidates import Candidates, corrupt_mask
from fspll.datasets.partial_label import load_partial_label_split

ESTIMATORS = [PLAGGD(), PLLEAF(), PLLEAF(solver="reference")]
# What scikit-learn itself leaves out unless an environment variable is set.
LEFT_OUT = {"check_array_api_input"}


def few_shot_task(seed, n_way=5, n_shot=5, r=1, spread=0.5):
    """Return X, mask, new samples and their truth: Gaussian classes, every set with r extras."""
    rng = np.random.default_rng(seed)
    centers = spread * rng.normal(size=(n_way, 64))
    truth, new_truth = np.repeat(np.arange(n_way), n_shot), np.repeat(np.arange(n_way), 15)
    X = centers[truth] + rng.normal(size=(len(truth), 64))
    new = centers[new_truth] + rng.normal(size=(len(new_truth), 64))
    return X, corrupt_mask(truth, n_way, 1.0, r, rng), new, new_truth


# -------------------------------------------------------------------- scikit-learn's contract


@parametrize_with_checks([PLAGGD(n_iterations=3), *ESTIMATORS[1:]])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_no_other_check_is_left_out(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(clone(estimator), on_fail=None, on_skip=None)
    other = {r["check_name"]: r for r in results if r["status"] != "passed"}
    assert set(other) <= LEFT_OUT, other
    assert len(results) > 40


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PLAGGD(n_neighbors=0), "n_neighbors must be a whole number of 1 or more, not 0"),
        (PLAGGD(n_iterations=-1), "n_iterations must be a whole number of 0 or more, not -1"),
        (PLAGGD(ridge=0), "ridge must be a number above 0, not 0"),
        (PLAGGD(label_weight=0.0), "label_weight must be a number above 0, not 0.0"),
        (PLAGGD(feature_weight=-1.0), "feature_weight must be a number of 0 or more, not -1.0"),
        (PLLEAF(n_neighbors=2.5), "n_neighbors must be a whole number of 1 or more, not 2.5"),
        (PLLEAF(C1=np.nan), "C1 must be a number above 0, not nan"),
        (PLLEAF(C2="much"), "C2 must be a number of 0 or more, not 'much'"),
        (PLLEAF(epsilon=-0.1), "epsilon must be a number of 0 or more, not -0.1"),
        (PLLEAF(solver="fast"), "solver must be one of exact, reference, not 'fast'"),
    ],
)
def test_bad_parameters(estimator, message):
    with pytest.raises(InputError, match=message):
        estimator.fit([[0.0], [1.0]], [0, 1])


# -------------------------------------------------------------------- the public programs


@pytest.fixture
def lost(real_data):
    return load_partial_label_split(real_data("pll/lost_reference_split.mat"))


def test_aggd_gives_the_public_programs_confidences(lost, real_data):
    """The reference was computed on features as they come, by an interior point method."""
    train, test = lost
    with np.load(real_data("pll/aggd_reference.npz")) as file:
        reference = dict(file)
    for turns, tolerance in ((0, 1e-5), (10, 1e-4), (20, 1e-4)):
        clf = PLAGGD(n_iterations=turns, scale="none").fit(train.X, train.candidates)
        assert clf.sigma_ == pytest.approx(5572.2134052, rel=1e-10)
        assert np.abs(clf.confidence_ - reference[f"Y{turns}"]).max() < tolerance
        outputs = clf.decision_function(test.X)
        known = np.isfinite(outputs)
        assert np.abs(outputs - reference[f"test_out{turns}"])[known].max() < tolerance
        expected = {0: 0.700535, 10: 0.713012, 20: 0.716578}[turns]
        assert clf.score(test.X, test.true_labels) == pytest.approx(expected, abs=1e-6)


def test_leaf_gives_the_public_programs_outputs(lost, real_data):
    train, test = lost
    with np.load(real_data("pll/leaf_reference.npz")) as file:
        reference = dict(file)
    clf = PLLEAF(solver="reference", scale="none").fit(train.X, train.candidates)
    assert np.abs(clf.confidence_ - reference["Y0"]).max() < 1e-5
    outputs = clf.decision_function(test.X)
    known = np.isfinite(outputs)
    assert np.abs(outputs - reference["test_out"])[known].max() < 1e-5
    assert clf.score(test.X, test.true_labels) == pytest.approx(0.704100, abs=1e-6)


def test_exact_leaf_is_below_a_general_minimizer(lost):
    """245.676364725 is where L-BFGS ended after 903 steps on this split."""
    from fspll.baselines.kernel_ridge import training_kernel
    from fspll.baselines.margin_regression import MarginProblem
    from fspll.baselines.pl_leaf import candidate_margin

    train, test = lost
    clf = PLLEAF(scale="none").fit(train.X, train.candidates)
    K, _ = training_kernel(train.X)
    margin = candidate_margin(train.candidates.mask)
    problem = MarginProblem(K, clf.confidence_, margin, 10.0, 1.0, 0.1)
    assert problem.objective(clf.beta_, K @ clf.beta_, clf.bias_, 10.0) <= 245.676364725
    assert clf.n_iter_ < 60
    assert clf.score(test.X, test.true_labels) == pytest.approx(0.695187, abs=1e-6)


# -------------------------------------------------------------------- few-shot tasks


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_few_shot_tasks_are_far_above_chance(estimator):
    """Chance is 0.2; over 60 such tasks PL-AGGD has 0.72 and PL-LEAF 0.69, both ± 0.03."""
    scores = []
    for seed in range(8):
        X, mask, new, truth = few_shot_task(seed)
        scores.append(clone(estimator).fit(X, mask).score(new, truth))
    assert np.mean(scores) > 0.55


def test_the_public_leaf_stays_at_chance_in_few_shot_tasks():
    chosen = []
    for seed in range(4):
        X, mask, new, _ = few_shot_task(seed)
        chosen.append(len(set(PLLEAF(solver="reference").fit(X, mask).predict(new))))
    assert min(chosen) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_thirty_ways(estimator):
    X, mask, new, truth = few_shot_task(0, n_way=30, n_shot=10, r=2, spread=1.0)
    clf = clone(estimator).fit(X, mask)
    assert clf.score(new, truth) > 0.9
    assert clf.n_neighbors_ == 10


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_order_of_samples_and_classes_does_not_matter(estimator):
    X, mask, new, _ = few_shot_task(3)
    expected = clone(estimator).fit(X, mask).decision_function(new)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(X)), rng.permutation(5)
    moved = clone(estimator).fit(X[rows], mask[rows][:, columns]).decision_function(new)
    np.testing.assert_allclose(moved, expected[:, columns], atol=2e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_a_class_that_is_nobodys_candidate(estimator):
    X, mask, new, _ = few_shot_task(2)
    wide = np.insert(mask, 2, False, axis=1)
    clf = clone(estimator).fit(X, wide)
    outputs = clf.decision_function(new)
    assert np.isneginf(outputs[:, 2]).all()
    assert 2 not in clf.predict(new)
    if isinstance(estimator, PLAGGD):
        expected = clone(estimator).fit(X, mask).decision_function(new)
        np.testing.assert_allclose(np.delete(outputs, 2, axis=1), expected, atol=1e-6)


def test_certain_labels_make_aggd_a_kernel_regression():
    X, _, new, _ = few_shot_task(0)
    truth = np.repeat(np.arange(5), 5)
    first, last = (PLAGGD(n_iterations=t).fit(X, truth) for t in (0, 20))
    assert last.labels_.tolist() == truth.tolist()
    assert last.confidence_.tolist() == np.eye(5)[truth].tolist()
    np.testing.assert_allclose(last.decision_function(new), first.decision_function(new))
    # Confidences of sum one give outputs of sum one.
    np.testing.assert_allclose(last.decision_function(new).sum(axis=1), 1, atol=1e-9)


# -------------------------------------------------------------------- any valid task


@st.composite
def tasks(draw):
    """Sizes from one sample on; duplicates, constant features, full sets, singletons, gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, n_classes = draw(st.integers(1, 14)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** draw(st.sampled_from([-150, -6, 0, 4, 140]))
    kind = draw(st.sampled_from(["any", "duplicates", "constant feature", "equal", "whole"]))
    if kind == "duplicates":
        X = X[rng.integers(n, size=n)]
    elif kind == "constant feature":
        X[:, 0] = 0.1
    elif kind == "equal":
        X[:] = X[0]
    elif kind == "whole":
        X = rng.integers(2, size=(n, d)).astype(float)
    mask = rng.random((n, n_classes)) < draw(st.sampled_from([0.0, 0.4, 1.0]))
    mask[np.arange(n), rng.integers(draw(st.integers(1, n_classes)), size=n)] = True
    return X, mask


@pytest.mark.parametrize("estimator", [*ESTIMATORS, PLAGGD(scale="none"), PLLEAF(scale="minmax")])
@given(task=tasks())
@settings(max_examples=40, deadline=None)
def test_any_valid_task_is_learned(estimator, task):
    X, mask = task
    clf = clone(estimator).fit(X, Candidates.from_mask(mask))
    assert np.isfinite(clf.confidence_).all()
    assert (clf.confidence_ >= 0).all()
    assert not clf.confidence_[~mask].any()
    np.testing.assert_allclose(clf.confidence_.sum(axis=1), 1, atol=1e-9)
    assert mask[np.arange(len(X)), clf.labels_].all()
    assert clf.n_neighbors_ == min(10, len(X) - 1)
    outputs = clf.decision_function(np.concatenate([X, -X, X + 1.0]))
    assert not np.isnan(outputs).any()
    assert mask.any(axis=0)[clf.predict(X)].all()


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_one_and_two_samples(estimator):
    one = clone(estimator).fit([[3.0, 1.0]], [{"a", "c"}])
    np.testing.assert_allclose(one.confidence_, [[0.5, 0.5]])
    assert one.predict([[0.0, 0.0]]).tolist() == ["a"]
    two = clone(estimator).fit([[3.0, 1.0], [0.0, 1.0]], [{"a", "c"}, {"c"}])
    assert two.labels_.tolist() == ["c", "c"]  # each is all that the other can be made of
