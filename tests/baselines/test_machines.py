"""Support vector machines that share a kernel, against scikit-learn's, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from fspll.baselines import machines
from fspll.baselines.batched_svm import solve_together
from fspll.baselines.machines import KernelMachines


def problems(n=60, count=25, seed=0, weighted=False):
    """Return samples, some of them twice, and two-class problems on parts of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[::7] = X[0]
    made = []
    for size in rng.integers(2, n + 1, size=count):
        signs = rng.choice([-1, 1], size=size)
        signs[:2] = 1, -1
        weights = rng.uniform(0.1, 1, size=size) if weighted else None
        made.append((rng.permutation(n)[:size], signs, weights))
    return X, made


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("way", ["together", "one by one", "without a kept kernel"])
def test_every_machine_is_libsvms(kernel, weighted, way, monkeypatch):
    if way != "together":
        monkeypatch.setattr(machines, "_SMALL", 0)
    if way == "without a kept kernel":
        monkeypatch.setattr(machines, "_KEEP_UP_TO", 0)
        monkeypatch.setattr(machines, "_VALUES_AT_ONCE", 100)
    X, made = problems(weighted=weighted)
    new = np.random.default_rng(1).normal(size=(9, 5))
    together = KernelMachines(X, kernel, 1.5)
    on_training = together.train([*made, None])
    outputs = together.outputs(new)
    assert outputs.shape == (9, len(made) + 1)
    assert (outputs[:, -1] == 0).all()
    for t, (who, signs, weights) in enumerate(made):
        svm = SVC(C=1.5, kernel=kernel, gamma="auto", tol=1e-6).fit(X[who], signs, weights)
        # libsvm stops when no condition is missed by more than 0.001.
        within = 5e-3 if way == "together" else 2e-2
        assert outputs[:, t] == pytest.approx(svm.decision_function(new), abs=within)
        assert on_training[:, t] == pytest.approx(svm.decision_function(X), abs=within)


def test_the_dual_optimum_is_reached():
    X, made = problems(n=40, count=12)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 5)
    for who, signs, _ in made:
        cost = np.ones((1, len(who)))
        v, _, unsolved = solve_together(K, who[None], signs[None], cost)
        svm = SVC(C=1, kernel="precomputed", tol=1e-9).fit(K[np.ix_(who, who)], signs)
        best = np.zeros(len(who))
        best[svm.support_] = svm.dual_coef_[0]
        found, least = (u @ K[np.ix_(who, who)] @ u / 2 - signs @ u for u in (v[0], best))
        assert len(unsolved) == 0
        assert abs(v.sum()) < 1e-9
        assert ((signs * v[0] >= 0) & (signs * v[0] <= 1)).all()
        assert found == pytest.approx(least, rel=1e-6)


def test_company_does_not_matter():
    X, made = problems()
    all_at_once = KernelMachines(X, "rbf", 1.0)
    all_at_once.train(made)
    for t in (0, 7, 24):
        alone = KernelMachines(X, "rbf", 1.0)
        alone.train([made[t]])
        assert alone.outputs(X)[:, 0] == pytest.approx(all_at_once.outputs(X)[:, t], abs=1e-12)


def test_hard_problems_are_left_to_libsvm(monkeypatch):
    monkeypatch.setattr("fspll.baselines.batched_svm._MOST_STEPS", 1)
    X, made = problems()
    K = X @ X.T
    who, signs, _ = made[0]
    *_, unsolved = solve_together(K, who[None], signs[None], np.full((1, len(who)), 100.0))
    assert unsolved.tolist() == [0]
    together = KernelMachines(X, "linear", 100.0)
    together.train(made[:1])
    svm = SVC(C=100.0, kernel="linear").fit(X[who], signs)
    assert together.outputs(X)[:, 0] == pytest.approx(svm.decision_function(X), abs=0.02)


def test_few_support_vectors_are_kept_sparse():
    X, _ = problems()
    pairs = [(np.array([i, i + 1]), np.array([1, -1]), None) for i in range(0, 56, 3)]
    together = KernelMachines(X, "rbf", 1.0)
    outputs = together.train(pairs)
    assert not isinstance(together.coefficients, np.ndarray)
    assert outputs == pytest.approx(together.outputs(X), abs=1e-12)


def test_nothing_to_train():
    together = KernelMachines(np.zeros((3, 2)), "rbf", 1.0)
    assert together.train([None, None]).tolist() == [[0, 0]] * 3
    assert together.outputs(np.ones((2, 2))).tolist() == [[0, 0]] * 2
    assert KernelMachines(np.zeros((3, 2)), "rbf", 1.0).train([]).shape == (3, 0)
