"""PL-KNN: who the neighbors are, and how they vote."""

from __future__ import annotations

import numpy as np
import pytest

from fspll.baselines import PLKNN, pl_knn
from fspll.candidates import corrupt


def test_votes_by_hand():
    X, y = [[0.0], [1.0], [3.0], [100.0]], [{"a", "b"}, {"b"}, {"a", "c"}, {"c"}]
    clf = PLKNN(n_neighbors=3, scale="none").fit(X, y)
    # Distances 1, 0 and 2 of the three nearest: weights 2/3, 1 and 1/3.
    assert clf.decision_function([[1.0]])[0] == pytest.approx([1, 5 / 3, 1 / 3])
    # Itself left out, the first sample hears 1 - 1/104, 1 - 3/104 and 1 - 100/104.
    assert clf.labels_.tolist() == ["b", "b", "a", "c"]


def test_a_single_neighbor_has_a_vote():
    clf = PLKNN(n_neighbors=1).fit([[0.0], [1.0]], ["a", "b"])
    assert clf.predict([[0.2], [0.9]]).tolist() == ["a", "b"]
    assert PLKNN().fit([[0.0]], [{"b", "c"}]).labels_.tolist() == ["b"]


def test_duplicates_are_neighbors_of_each_other():
    X = np.zeros((4, 2))
    clf = PLKNN(n_neighbors=3).fit(X, [{0, 1}, {1}, {1}, {0, 2}])
    # All distances are zero, so everybody counts one.
    assert clf.decision_function(X[:1])[0].tolist() == [1, 3, 0]  # of equal ones the first three
    assert clf.labels_.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("k", [1, 4, 100])
def test_by_a_plain_loop(k, monkeypatch):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    sets = corrupt(rng.integers(5, size=40), 1, 1, rng, classes=range(5))
    clf = PLKNN(n_neighbors=k, scale="none").fit(X, sets)
    found = clf.decision_function(new)
    for x, votes in zip(new, found, strict=True):
        distance = np.linalg.norm(X - x, axis=1)
        near = np.argsort(distance)[:k]
        weight = 1 - distance[near] / distance[near].sum() if k > 1 else np.ones(1)
        assert votes == pytest.approx(sum(w * sets.mask[r] for w, r in zip(weight, near)))  # noqa: B905
    # A shortlist and small portions, as with many samples, change nothing.
    monkeypatch.setattr(pl_knn, "_ALL_UP_TO", 0)
    monkeypatch.setattr(pl_knn, "_VALUES_AT_ONCE", 100)
    monkeypatch.setattr(pl_knn, "_SPARE", 2)
    portions = PLKNN(n_neighbors=k, scale="none").fit(X, sets)
    assert portions.decision_function(new) == pytest.approx(found, rel=1e-12)
    assert np.array_equal(portions.labels_, clf.labels_)
