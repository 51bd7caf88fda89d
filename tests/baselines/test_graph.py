"""Neighbors and their weights: against plain loops and a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from fspll.baselines import graph
from fspll.baselines.graph import (
    difference_grams,
    nearest_others,
    simplex_weights,
    unit_rows,
    weight_matrix,
)


def nearest_by_loop(X, k):
    return [
        sorted((float(np.sum((X[i] - X[j]) ** 2)), j) for j in range(len(X)) if j != i)[:k]
        for i in range(len(X))
    ]


def general_weights(G):
    k = len(G)
    G = G / max(np.trace(G) / k, 1e-300)
    found = minimize(
        lambda w: w @ G @ w,
        np.full(k, 1 / k),
        jac=lambda w: 2 * G @ w,
        bounds=[(0, 1)] * k,
        constraints=[LinearConstraint(np.ones((1, k)), 1, 1)],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 500},
    )
    return found.x


def test_unit_rows():
    X = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 0.0], [0.0, -1e-200]])
    np.testing.assert_allclose(unit_rows(X), [[0.6, 0.8], [0, 0], [1, 0], [0, -1]])


@pytest.mark.parametrize("block", [1 << 22, 50])
@pytest.mark.parametrize("kind", ["normal", "whole", "far"])
def test_neighbors_are_those_of_a_loop(kind, block, monkeypatch):
    monkeypatch.setattr(graph, "_ENTRIES_AT_ONCE", block)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    if kind == "whole":
        X = rng.integers(3, size=(40, 3)).astype(float)  # many ties and duplicates
    if kind == "far":
        X = 1e6 + X.round(3)
    for k in (1, 7, 39):
        expected = [[j for _, j in row] for row in nearest_by_loop(X, k)]
        assert nearest_others(X, k).tolist() == expected


def test_few_samples_have_few_neighbors():
    assert nearest_others(np.zeros((1, 2)), 10).shape == (1, 0)
    assert nearest_others(np.array([[0.0], [1.0]]), 10).tolist() == [[1], [0]]
    assert nearest_others(np.zeros((4, 2)), 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]


def test_grams_are_those_of_a_loop(monkeypatch):
    monkeypatch.setattr(graph, "_ENTRIES_AT_ONCE", 60)
    X = np.random.default_rng(0).normal(size=(12, 4))
    neighbors = nearest_others(X, 3)
    for i, G in enumerate(difference_grams(X, neighbors)):
        D = X[i] - X[neighbors[i]]
        np.testing.assert_allclose(G, D @ D.T, atol=1e-13)


@pytest.mark.parametrize("d", [20, 6, 2, 1])
def test_weights_are_optimal(d):
    """Fewer features than neighbors make the Gram matrices singular."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(30, d))
    grams = difference_grams(X, nearest_others(X, 6))
    weights = simplex_weights(grams)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    for G, w in zip(grams, weights, strict=True):
        unit = np.trace(G) / len(G)
        # Optimality: the gradient 2Gw is the same on the support and nowhere lower.
        assert (G @ w).min() >= w @ G @ w - 1e-9 * unit
        trusted = general_weights(G)
        assert w @ G @ w <= trusted @ G @ trusted + 1e-9 * unit
        if d > 6:
            np.testing.assert_allclose(w, trusted, atol=1e-5)


def test_weights_do_not_depend_on_the_start():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    grams = difference_grams(X, nearest_others(X, 10))
    weights = simplex_weights(grams)
    assert (weights == 0).any()
    start = rng.random(weights.shape) * (rng.random(weights.shape) < 0.5)
    start[0] = 0
    np.testing.assert_allclose(simplex_weights(grams, start), weights, atol=1e-9)
    np.testing.assert_allclose(simplex_weights(1e9 * grams), weights, atol=1e-9)


def test_single_exchanges_end_where_whole_ones_do(monkeypatch):
    X = np.random.default_rng(1).normal(size=(50, 9))
    grams = difference_grams(X, nearest_others(X, 8))
    expected = simplex_weights(grams)
    monkeypatch.setattr(graph, "_FULL_FLIPS", -1)
    np.testing.assert_allclose(simplex_weights(grams), expected, atol=1e-9)


def test_duplicates_share_the_weight():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    neighbors = nearest_others(X, 3)
    weights = simplex_weights(difference_grams(X, neighbors))
    np.testing.assert_allclose(weights[0], [0.5, 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(weights[3], [1 / 3] * 3, atol=1e-9)
    equal = simplex_weights(np.zeros((2, 4, 4)))
    np.testing.assert_allclose(equal, 0.25)


def test_weight_matrix():
    neighbors, weights = np.array([[2, 1], [0, 2], [1, 0]]), np.array([[0.7, 0.3]] * 3)
    W = weight_matrix(neighbors, weights)
    assert W.toarray().tolist() == [[0, 0.3, 0.7], [0.7, 0, 0.3], [0.3, 0.7, 0]]
    W.sort_indices()
    W.data[:] = 0
    assert neighbors.tolist() == [[2, 1], [0, 2], [1, 0]]
    assert weights.tolist() == [[0.7, 0.3]] * 3
