"""What every baseline promises: scikit-learn's contract, scaling, refusals, any valid task."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import fspll.baselines
from fspll._common.errors import CandidateError, InputError
from fspll.baselines import (
    BASELINES,
    CC,
    CROWDLAB,
    PALOC,
    PLECOC,
    PLKNN,
    POP,
    PRODEN,
    DawidSkene,
    MajorityVote,
)
from fspll.baselines.base import _statistics, random_generator
from fspll.candidates import Candidates, corrupt

METHODS = [
    *(PLECOC(random_state=0), PALOC(), PLKNN(), MajorityVote(), DawidSkene(), CROWDLAB()),
    # Few epochs, for speed.
    PRODEN(n_epochs=12, hidden=(30,), random_state=0),
    CC(n_epochs=12, hidden=(30,), random_state=0),
    POP(n_epochs=12, hidden=(30,), threshold=0.01, random_state=0),
]
LEFT_OUT = {"check_array_api_input"}  # needs an environment variable before scipy is imported


def named(estimator):
    return type(estimator).__name__


@pytest.fixture(params=METHODS, ids=named)
def method(request):
    return clone(request.param)


def task(n_way=5, n_shot=5, r=2, seed=0, noise=1.0, n_query=15, n_features=16):
    """Return a few-shot task of Gaussian classes: X, candidate sets, X and labels to predict."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(n_way, n_features))
    y, truth = np.repeat(np.arange(n_way), n_shot), np.repeat(np.arange(n_way), n_query)
    X = centers[y] + noise * rng.normal(size=(len(y), n_features))
    queries = centers[truth] + noise * rng.normal(size=(len(truth), n_features))
    return X, corrupt(y, 1, r, rng, classes=range(n_way)), queries, truth


# -------------------------------------------------------------------- scikit-learn's contract


@parametrize_with_checks(METHODS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_no_other_check_is_left_out(method):
    with warnings.catch_warnings():
        # It fits estimators on deliberately odd data; the test above has warnings as errors.
        warnings.simplefilter("ignore")
        results = check_estimator(method, on_fail=None, on_skip=None)
    other = {result["check_name"] for result in results if result["status"] != "passed"}
    assert len(results) > 40
    assert other <= LEFT_OUT


def test_public_names():
    assert dir(fspll.baselines) == sorted(fspll.baselines.__all__)
    classes = {name: BASELINES.get(name) for name in BASELINES}
    partial_label = ["PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF", "PL-KNN", "PRODEN", "CC", "POP"]
    assert list(classes) == [*partial_label, "Majority-Vote", "Dawid-Skene", "CROWDLAB"]
    for name, kind in classes.items():
        assert kind.__name__ == name.replace("-", "")
        assert kind.uses_judgments == (name not in partial_label)
        assert getattr(fspll.baselines, kind.__name__) is kind
    assert {kind.__name__ for kind in classes.values()} | {"BASELINES"} == set(dir(fspll.baselines))
    with pytest.raises(AttributeError, match=r"'fspll\.baselines' has no attribute 'PLMAGIC'"):
        fspll.baselines.PLMAGIC  # noqa: B018


def test_pickled_and_cloned(method):
    X, sets, queries, _ = task()
    method.fit(X, sets)
    again = pickle.loads(pickle.dumps(method))
    assert np.array_equal(again.decision_function(queries), method.decision_function(queries))
    assert np.array_equal(
        clone(method).fit(X, sets).decision_function(queries), method.decision_function(queries)
    )


def test_decisions_of_two_classes_have_one_column(method):
    X, sets, queries, _ = task(n_way=2, r=0)
    method.fit(X, sets)
    decision = method.decision_function(queries)
    assert decision.shape == (len(queries),)
    assert np.array_equal(method.predict(queries), (decision > 0).astype(int))


# -------------------------------------------------------------------- candidate sets


@pytest.mark.parametrize("n_shot", [5, 10])
def test_ambiguous_tasks_are_solved_above_chance(method, n_shot):
    """Three candidates of five classes always intersect: no clean split of the classes exists."""
    scores = []
    for seed in range(12):
        X, sets, queries, truth = task(n_shot=n_shot, seed=seed)
        scores.append(clone(method).fit(X, sets).score(queries, truth))
    # Chance is 0.2; each mean of 12 tasks has a standard error below 0.04.
    assert np.mean(scores) > (0.3 if n_shot == 5 else 0.4)


def test_ordinary_labels_are_learned(method):
    X, sets, queries, truth = task(r=0)
    method.fit(X, sets)
    assert method.score(queries, truth) > 0.9
    assert np.mean(method.labels_ == np.repeat(np.arange(5), 5)) == 1


def test_labels_and_names(method):
    X, sets, queries, _ = task()
    names = np.array(["e", "d", "c", "b", "a"])
    numbers = method.fit(X, sets)
    named_sets = [{str(names[j]) for j in sets.names(i)} for i in range(len(sets))]
    text = clone(method).set_params(classes=names.tolist()).fit(X, named_sets)
    assert text.classes_.tolist() == names.tolist()
    assert text.predict(queries).tolist() == names[numbers.predict(queries)].tolist()
    assert text.labels_.tolist() == names[numbers.labels_].tolist()
    assert all(label in s for label, s in zip(text.labels_, named_sets, strict=True))


def test_a_class_that_is_nobodys_candidate_is_never_predicted(method):
    X, sets, queries, _ = task(n_way=4)
    wide = np.insert(sets.mask, 1, False, axis=1)
    scores = method.fit(X, wide).decision_function(queries)
    assert (scores[:, 1] == -np.inf).all()
    assert np.isfinite(np.delete(scores, 1, axis=1)).all()
    alone = clone(method).fit(X, sets)
    assert np.delete(scores, 1, axis=1) == pytest.approx(alone.decision_function(queries), rel=1e-9)


# -------------------------------------------------------------------- any valid task


@st.composite
def tasks(draw):
    n, d, n_classes = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-160, 1e-3, 1.0, 1e5, 1e140]))
    kind = draw(st.sampled_from(["plain", "duplicates", "constant", "one place", "whole numbers"]))
    if kind == "duplicates":
        X = X[rng.integers(n, size=n)]
    elif kind == "constant":
        X[:, 0] = 0.1
    elif kind == "one place":
        X[:] = X[0]
    elif kind == "whole numbers":
        X = np.round(rng.normal(size=(n, d)))
    share = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    mask = rng.random((n, n_classes)) < share
    mask[np.arange(n), rng.integers(n_classes, size=n)] = True
    queries = np.vstack([X, X + X.std(), -X, rng.normal(size=(2, d)), np.full((1, d), -1e140)])
    return X, mask, queries


@pytest.mark.parametrize(
    "estimator",
    [
        *METHODS,
        PLECOC(random_state=0, kernel="linear", C=100.0),
        PLECOC(random_state=0, n_columns=1, scale="none"),
        PALOC(kernel="linear", mu=0.25, scale="minmax"),
        PLKNN(n_neighbors=1, scale="none"),
        PRODEN(random_state=0, n_epochs=5, hidden=(), scale="none"),
        CC(random_state=0, n_epochs=5, hidden=(20, 20), batch_size=1, scale="minmax"),
        POP(random_state=0, n_epochs=5, hidden=(20,), n_warm_up=0, window=1, threshold=0.9),
    ],
    ids=repr,
)
@settings(max_examples=40, deadline=None)
@given(data=tasks())
def test_any_valid_task(estimator, data):
    X, mask, queries = data
    sets = Candidates.from_mask(mask)  # an array of one column would be read as labels
    clf = clone(estimator).fit(X, sets)
    assert mask[np.arange(len(X)), clf.labels_].all()
    scores = clf._checked_scores(queries)
    present = mask.any(axis=0)
    assert np.isfinite(scores[:, present]).all()
    assert present[clf.predict(queries)].all()
    again = clone(estimator).fit(X, sets)
    assert np.array_equal(again.predict(queries), clf.predict(queries))


# -------------------------------------------------------------------- scaling


def test_scaling_uses_the_training_samples(method):
    X, sets, queries, _ = task()
    factor, shift = np.geomspace(1e-3, 1e3, 16), np.linspace(-5, 5, 16)
    method.fit(X, sets)
    assert method.mean_ == pytest.approx(X.mean(axis=0))
    assert method.scale_ == pytest.approx(X.std(axis=0))
    for scale in ("standard", "minmax"):
        plain = clone(method).set_params(scale=scale).fit(X, sets)
        turned = clone(method).set_params(scale=scale).fit(X * factor + shift, sets)
        assert np.array_equal(turned.predict(queries * factor + shift), plain.predict(queries))
    raw = clone(method).set_params(scale="none").fit(X, sets)
    assert (raw.mean_ == 0).all()
    assert (raw.scale_ == 1).all()


def test_statistics_of_odd_features():
    X = np.array([[0.1, 1e150, 0.0, 3e-320], [0.1, -1e150, 4.0, 0.0], [0.1, 0.0, 2.0, 0.0]])
    mean, scale = _statistics(X, "standard")
    assert mean[:3] == pytest.approx([0.1, 0.0, 2.0])
    assert mean[0] == 0.1  # exactly, so that the feature becomes zero
    assert scale[:3] == pytest.approx([1.0, 1e150 * (2 / 3) ** 0.5, (8 / 3) ** 0.5])
    low, width = _statistics(X, "minmax")
    assert low[:3].tolist() == [0.1, -1e150, 0.0]
    assert width[:3].tolist() == [1.0, 2e150, 4.0]


# -------------------------------------------------------------------- refusals

GOOD_X, GOOD_Y = [[0.0, 1.0], [1.0, 0.0]], [{"a"}, {"a", "b"}]


@pytest.mark.parametrize(
    ("X", "y", "kind", "message"),
    [
        (GOOD_X, ["a"], InputError, "inconsistent numbers of samples: X has 2 rows but y has 1"),
        ([[0, 1], [1, np.nan]], GOOD_Y, InputError, "Input X contains NaN at row 1, feature 1; ev"),
        ([[np.inf], [1.0]], GOOD_Y, InputError, "contains infinity at row 0, feature 0"),
        ([[1e200], [1.0]], GOOD_Y, InputError, "too large to take distances in float64"),
        ([1.0, 2.0], GOOD_Y, InputError, "Expected 2D array, got 1D array instead"),
        ([["x"], ["y"]], GOOD_Y, InputError, "could not convert string to float: 'x'"),
        (GOOD_X, [{"a"}, set()], CandidateError, "row 1 of candidates is empty"),
        (GOOD_X, None, CandidateError, "requires y to be passed, but the target y is None"),
    ],
)
def test_fit_refuses(method, X, y, kind, message):
    with pytest.raises(kind, match=message):
        method.fit(X, y)
    assert not hasattr(method, "classes_")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PLKNN(scale="log"), "scale must be one of standard, minmax, none, not 'log'"),
        (PLKNN(n_neighbors=0), "n_neighbors must be a whole number of 1 or more, not 0"),
        (PLECOC(C=0), "C must be a number above 0, not 0"),
        (PLECOC(kernel="poly"), "kernel must be one of rbf, linear, not 'poly'"),
        (PLECOC(n_columns=1.5), "n_columns must be a whole number of 1 or more, not 1.5"),
        (PLECOC(random_state="lucky"), "random_state must be a whole number of 0 or more, a gen"),
        (PALOC(mu=-1), "mu must be a number of 0 or more, not -1"),
        (PALOC(C=float("inf")), "C must be a number above 0, not inf"),
        (PALOC(kernel=None), "kernel must be one of rbf, linear, not None"),
        (PRODEN(hidden=300), "hidden must be a tuple of whole numbers of 1 or more, not 300"),
        (CC(hidden=(300, 0)), r"hidden must be a tuple of .* 1 or more, not \(300, 0\)"),
        (CC(n_epochs=0), "n_epochs must be a whole number of 1 or more, not 0"),
        (CC(batch_size=0.5), "batch_size must be a whole number of 1 or more, not 0.5"),
        (PRODEN(learning_rate=0), "learning_rate must be a number above 0, not 0"),
        (PRODEN(weight_decay=-1), "weight_decay must be a number of 0 or more, not -1"),
        (PRODEN(random_state=-1), "random_state must be a whole number of 0 or more, a generator"),
        (POP(n_warm_up=-1), "n_warm_up must be a whole number of 0 or more, not -1"),
        (POP(window=0), "window must be a whole number of 1 or more, not 0"),
        (POP(threshold=2), "threshold must be at most 1, not 2"),
        (POP(growth=np.nan), "growth must be a number of 0 or more, not nan"),
    ],
)
def test_unusable_parameters(estimator, message):
    with pytest.raises(InputError, match=message):
        estimator.fit(GOOD_X, GOOD_Y)
    assert not hasattr(estimator, "classes_")


def test_score_against_true_labels(method):
    method.fit(GOOD_X, GOOD_Y)
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        method.score(GOOD_X, ["a"])
    assert method.score(GOOD_X, ["new", "other"], sample_weight=[1, 7]) == 0


def test_unfitted(method):
    with pytest.raises(NotFittedError, match="instance is not fitted yet"):
        method.predict(GOOD_X)


def test_random_states():
    by_seed = random_generator(3).integers(100, size=5)
    assert np.array_equal(random_generator(np.random.default_rng(3)).integers(100, size=5), by_seed)
    old = [random_generator(np.random.RandomState(3)).integers(100, size=5) for _ in range(2)]
    assert np.array_equal(*old)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    random_generator(None).integers(100)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
