"""Kernel ridge regression: against the explicit system."""

from __future__ import annotations

import numpy as np
import pytest

from fspll.baselines import kernel_ridge
from fspll.baselines.kernel_ridge import KernelRidge, kernel_outputs, training_kernel


def test_the_kernel_is_as_wide_as_the_mean_distance():
    X = np.array([[0.0], [1.0], [4.0]])
    K, sigma = training_kernel(X)
    assert sigma == pytest.approx((1 + 4 + 3) / 3)
    assert K[0, 2] == pytest.approx(np.exp(-(4**2) / (2 * sigma**2)))
    assert (K.diagonal() == 1).all()


@pytest.mark.parametrize("X", [np.ones((1, 2)), np.ones((3, 2))])
def test_equal_samples_have_a_kernel(X):
    K, sigma = training_kernel(X)
    assert sigma == 1
    assert (K == 1).all()


@pytest.mark.parametrize("ridge", [1e-3, 0.05, 1.0, 100.0])
def test_the_regression_solves_the_bordered_system(ridge):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 3)), rng.normal(size=(12, 4))
    K, sigma = training_kernel(X)
    system = np.block([[K + ridge * np.eye(12), np.ones((12, 1))], [np.ones((1, 12)), 0]])
    expected = np.linalg.solve(system, np.vstack([Y, np.zeros(4)]))
    alpha, bias, outputs = KernelRidge(K.copy(), ridge).fit(Y)
    np.testing.assert_allclose(alpha, expected[:-1], atol=1e-9)
    np.testing.assert_allclose(bias, expected[-1], atol=1e-10)
    np.testing.assert_allclose(outputs, K @ alpha + bias, atol=1e-10)
    np.testing.assert_allclose(kernel_outputs(X, X, sigma, alpha, bias), outputs, atol=1e-10)


def test_a_shift_of_the_targets_goes_to_the_bias():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(8, 3))
    regression = KernelRidge(training_kernel(X)[0], 0.1)
    alpha, bias, _ = regression.fit(Y)
    moved, moved_bias, _ = regression.fit(Y + 5)
    np.testing.assert_allclose(moved, alpha, atol=1e-12)
    np.testing.assert_allclose(moved_bias, bias + 5, atol=1e-12)


def test_duplicates_and_no_ridge_are_no_trouble():
    X = np.repeat(np.arange(4.0)[:, None], 5, axis=0)
    Y = np.eye(4)[X[:, 0].astype(int)]
    alpha, bias, outputs = KernelRidge(training_kernel(X)[0], 0.0).fit(Y)
    assert np.isfinite(alpha).all()
    assert np.isfinite(bias).all()
    np.testing.assert_allclose(outputs, Y, atol=1e-6)


def test_blocks_of_new_samples(monkeypatch):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(6, 2)), rng.normal(size=(11, 2))
    alpha, bias = rng.normal(size=(6, 3)), rng.normal(size=3)
    whole = kernel_outputs(new, X, 1.5, alpha, bias)
    monkeypatch.setattr(kernel_ridge, "_ENTRIES_AT_ONCE", 13)
    np.testing.assert_allclose(kernel_outputs(new, X, 1.5, alpha, bias), whole, atol=1e-14)
    by_hand = [
        sum(np.exp(-np.sum((x - t) ** 2) / 4.5) * a for t, a in zip(X, alpha, strict=True)) + bias
        for x in new
    ]
    np.testing.assert_allclose(whole, by_hand, atol=1e-13)


def test_far_away_only_the_bias_is_left():
    bias = np.array([0.25, 0.75])
    with np.errstate(all="raise", under="ignore"):
        outputs = kernel_outputs(
            np.full((1, 1), 1e150), np.zeros((2, 1)), 1e-250, np.ones((2, 2)), bias
        )
    assert outputs.tolist() == [[0.25, 0.75]]
