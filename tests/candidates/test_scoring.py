"""Scores of estimators against true labels and against candidate sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from fspll import FsPLLClassifier
from fspll.baselines import BASELINES, PLKNN
from fspll.candidates import Candidates, corrupt
from fspll.candidates.estimators import read_target, score_predictions

ESTIMATORS = [FsPLLClassifier(), *(BASELINES.get(name)() for name in BASELINES)]
for estimator in ESTIMATORS:
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
CLASSES = np.array(["a", "b", "c"])
PREDICTED = np.array(["a", "c", "c", "b"])
# Hits: the first, the third and the fourth.
FORMS = {
    "sets": [{"a", "b"}, {"b"}, {"c"}, {"a", "b", "c"}],
    "lists": [["a", "b"], ["b"], ["c"], ["a", "b", "c"]],
    "mask": np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]),
    "lists of flags": [[True, True, False], [False, True, False], [False, False, True], [True] * 3],
    "sparse": sparse.csr_array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]),
    "read before, in another order": Candidates.read(
        [{"a", "b"}, {"b"}, {"c"}, {"a", "b", "c"}], classes=["c", "b", "a"]
    ),
    "labels unknown to the estimator": [{"a", "z"}, {"y"}, {"c"}, {"b", "x"}],
}


def data(seed=0, n=60):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(3, 4))[y] * 2 + rng.normal(size=(n, 4)), y


@pytest.mark.parametrize("form", FORMS)
def test_hits_in_every_form(form):
    target = read_target(FORMS[form], CLASSES)
    assert score_predictions(target, PREDICTED) == 0.75
    assert score_predictions(target, PREDICTED, [1, 5, 1, 1]) == pytest.approx(3 / 8)


def test_abstaining_is_no_hit():
    predicted = np.array(["a", None, None, "b"], dtype=object)
    assert score_predictions(read_target(FORMS["sets"], CLASSES), predicted) == 0.5
    assert score_predictions(read_target(list("abca"), CLASSES), predicted) == 0.25


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("form", ["sets", "mask"])
def test_cross_validation_on_candidate_sets(estimator, form):
    X, y = data()
    candidates = corrupt(y, 1.0, 1, np.random.default_rng(1), classes=range(3))
    given = candidates.mask if form == "mask" else [set(np.flatnonzero(m)) for m in candidates.mask]
    cv = KFold(3)
    scores = cross_val_score(estimator, X, given, cv=cv)
    predicted = cross_val_predict(estimator, X, given, cv=cv)
    hits = candidates.mask[np.arange(len(y)), predicted]
    expected = [hits[test].mean() for _, test in cv.split(X)]
    np.testing.assert_allclose(scores, expected)
    assert 0.5 < np.mean(scores) <= 1


@pytest.mark.parametrize("form", ["sets", "mask"])
def test_sets_of_one_score_as_true_labels(form):
    X, y = data()
    X = X / 4 + np.random.default_rng(2).normal(size=X.shape)  # hard enough to err
    ones = np.eye(3, dtype=int)[y] if form == "mask" else [{int(label)} for label in y]
    plain = cross_val_score(PLKNN(), X, y, cv=KFold(4))
    np.testing.assert_array_equal(cross_val_score(PLKNN(), X, ones, cv=KFold(4)), plain)
    assert 0 < plain.mean() < 1
