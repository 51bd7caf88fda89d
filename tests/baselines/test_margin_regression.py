"""PL-LEAF's regression: conditions of the minimum, a general minimizer, the public program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fspll.baselines.kernel_ridge import training_kernel
from fspll.baselines.margin_regression import MarginProblem, public_steps, solve_regression
from fspll.baselines.pl_leaf import candidate_margin


def make_problem(n=25, n_classes=5, seed=0, C1=10.0, C2=1.0, epsilon=0.1):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    mask = rng.random((n, n_classes)) < 0.3
    mask[np.arange(n), truth] = True
    X = rng.normal(size=(n_classes, 6))[truth] + rng.normal(size=(n, 6))
    Y = rng.random((n, n_classes)) * mask
    Y /= Y.sum(axis=1, keepdims=True)
    return MarginProblem(training_kernel(X)[0], Y, candidate_margin(mask), C1, C2, epsilon)


def value(p, B, b):
    return p.objective(B, p.K @ B, b, p.C1)


def by_quasi_newton(p):
    """Minimize over theta, B = K^(-1/2) theta, by L-BFGS."""
    n, n_classes = p.Y.shape
    eigenvalues, V = np.linalg.eigh(p.K)
    root = V * np.sqrt(np.maximum(eigenvalues, 0))

    def evaluate(x):
        theta, b = x[: n * n_classes].reshape(n, n_classes), x[n * n_classes :]
        f = root @ theta + b
        E = p.Y - f
        u = np.linalg.norm(E, axis=1)
        excess = np.maximum(u - p.epsilon, 0)
        slope = -(2 * p.C1 * excess / u)[:, None] * E - p.C2 * p.Z
        height = 0.5 * np.sum(theta**2) + p.C1 * np.sum(excess**2) - p.C2 * np.sum(p.Z * f)
        return height, np.concatenate([(theta + root.T @ slope).ravel(), slope.sum(axis=0)])

    start = np.zeros((n + 1) * n_classes)
    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options).fun


def test_the_margin_of_a_candidate_set():
    mask = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)
    third = 1 / 3
    expected = [[1, -third, -third, -third], [0.5, 0.5, -0.5, -0.5], [0.25] * 4]
    np.testing.assert_allclose(candidate_margin(mask), expected)
    assert candidate_margin(np.ones((2, 1), dtype=bool)).tolist() == [[1], [1]]


@pytest.mark.parametrize("settings", [{}, {"C2": 0.0}, {"C2": 10.0}, {"epsilon": 0.6}, {"C1": 0.1}])
def test_the_minimum_is_stationary(settings):
    p = make_problem(**settings)
    B, b, steps = solve_regression(p)
    f = p.K @ B + b
    np.testing.assert_allclose(B, p.weights(f)[:, None] * (p.Y - f) + p.C2 * p.Z, atol=1e-6)
    np.testing.assert_allclose(B.sum(axis=0), 0, atol=1e-9)
    assert 1 < steps < 300
    again = solve_regression(replace(p, K=p.K.copy()), overwrite_kernel=True)
    assert np.array_equal(again[0], B)
    lowest = by_quasi_newton(p)
    assert value(p, B, b) <= lowest + 1e-9 * max(1, abs(lowest))


def test_nothing_nearby_is_lower():
    p = make_problem(seed=1)
    B, b, _ = solve_regression(p)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            other = B + size * rng.normal(size=B.shape), b + size * rng.normal(size=b.shape)
            assert value(p, *other) >= value(p, B, b)


def test_all_samples_inside_the_tube_still_learn():
    """The public program returns zeros here, the same outputs for every sample."""
    p = make_problem(epsilon=1.5)
    B, _, _ = solve_regression(p)
    assert np.abs(B).max() > 0.1
    zeros, _, steps = public_steps(p)
    assert not zeros.any()
    assert steps == 0


def test_without_tube_and_margin_it_is_ridge_regression():
    p = make_problem(C2=0.0, epsilon=0.0)
    B, b, _ = solve_regression(p)
    n = len(p.K)
    system = np.block([[p.K + np.eye(n) / 20, np.ones((n, 1))], [np.ones((1, n)), 0]])
    expected = np.linalg.solve(system, np.vstack([p.Y, np.zeros(5)]))
    np.testing.assert_allclose(B, expected[:-1], atol=1e-9)
    np.testing.assert_allclose(b, expected[-1], atol=1e-9)
    np.testing.assert_allclose(public_steps(p)[0], B, atol=1e-9)


def test_one_sample():
    p = make_problem(n=1)
    for solve in (solve_regression, public_steps):
        B, b, _ = solve(p)
        np.testing.assert_allclose(B, 0, atol=1e-12)
        assert b.argmax() == p.Y[0].argmax()
