"""Confidences on candidate simplexes: against plain loops and a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from fspll.baselines import PLAGGD, PLLEAF
from fspll.baselines.graph import (
    difference_grams,
    nearest_others,
    simplex_weights,
    unit_rows,
    weight_matrix,
)
from fspll.baselines.simplex import CandidateSimplexes, graph_confidence, smooth_confidence
from fspll.candidates import Candidates, corrupt_mask


def random_mask(rng, n, n_classes, p=0.4):
    mask = rng.random((n, n_classes)) < p
    mask[np.arange(n), rng.integers(n_classes, size=n)] = True
    return mask


def random_graph(rng, n, k):
    """Return W with k random others in each row, some of them of weight zero."""
    neighbors = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    weights = rng.dirichlet(np.ones(k), size=n)
    weights[:, 0] = 0
    return weight_matrix(neighbors, weights / weights.sum(axis=1, keepdims=True))


def projected_row(z):
    """Project one row on the simplex, as a textbook has it."""
    ordered = sorted(z, reverse=True)
    theta = None
    total = 0.0
    for r, value in enumerate(ordered, start=1):
        total += value
        if value - (total - 1) / r > 0:
            theta = (total - 1) / r
    return [max(value - theta, 0.0) for value in z]


def objective(W, Y, pull, F):
    return float(np.sum((Y - W @ Y) ** 2) + pull * np.sum((Y - F) ** 2))


def general_solution(W, mask, pull, F):
    """Minimize over all candidates' entries at once, as one general quadratic program."""
    rows, columns = np.nonzero(mask)
    A = np.eye(len(mask)) - W.toarray()
    H = np.kron(A.T @ A + pull * np.eye(len(mask)), np.eye(mask.shape[1]))
    at = rows * mask.shape[1] + columns
    H = H[np.ix_(at, at)]
    linear = pull * F[rows, columns]
    sums = (rows == np.arange(len(mask))[:, None]).astype(float)
    found = minimize(
        lambda y: y @ H @ y - 2 * linear @ y,
        (mask / mask.sum(axis=1, keepdims=True))[rows, columns],
        jac=lambda y: 2 * (H @ y - linear),
        bounds=[(0, 1)] * len(rows),
        constraints=[LinearConstraint(sums, 1, 1)],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    Y = np.zeros(mask.shape)
    Y[rows, columns] = found.x
    return Y


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-8, 1.0, 1e3]))
@settings(max_examples=60, deadline=None)
def test_projection_is_that_of_a_loop(seed, size):
    rng = np.random.default_rng(seed)
    mask = random_mask(rng, 6, 5)
    Z = rng.normal(size=(6, 5)) * size
    Z[0] = Z[0, 0]  # ties
    simplexes = CandidateSimplexes(mask)
    Y = simplexes.scatter(simplexes.project(simplexes.gather(Z)))
    expected = np.zeros_like(Z)
    for row in range(6):
        expected[row, mask[row]] = projected_row(Z[row, mask[row]].tolist())
    np.testing.assert_allclose(Y, expected, atol=1e-15 * max(1, 8 * size))
    assert not Y[~mask].any()


def test_projection_is_that_of_a_general_solver():
    rng = np.random.default_rng(0)
    mask, Z = random_mask(rng, 5, 4), rng.normal(size=(5, 4))
    simplexes = CandidateSimplexes(mask)
    Y = simplexes.scatter(simplexes.project(simplexes.gather(Z)))
    alone = np.arange(5)[:, None]
    nowhere = weight_matrix(alone, np.ones((5, 1)))  # W = I: only the pull is left
    np.testing.assert_allclose(Y, general_solution(nowhere, mask, 1.0, Z), atol=1e-7)


def test_padding_counts_for_nothing():
    mask = np.array([[True, False, True], [False, True, False]])
    simplexes = CandidateSimplexes(mask)
    rubbish = np.array([[0.3, 0.3], [0.2, 99.0]])
    assert simplexes.project(rubbish).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert simplexes.scatter(rubbish).tolist() == [[0.3, 0, 0.3], [0, 0.2, 0]]
    # Moving all of the first row to its better candidate gains 0.5 * 4; the second cannot move.
    assert simplexes.gap(simplexes.gather(simplexes.uniform), np.array([[1.0, 5], [7, 0]])) == 2.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pull", [0.0, 0.2, 1.0, 30.0])
def test_confidences_are_those_of_a_general_solver(seed, pull):
    rng = np.random.default_rng(seed)
    n, n_classes = 9, 4
    W, mask = random_graph(rng, n, 4), random_mask(rng, n, n_classes)
    mask[0] = [True, False, False, False]  # unique also without a pull
    F = rng.normal(size=(n, n_classes))
    simplexes = CandidateSimplexes(mask)
    Y, gap = smooth_confidence(W, simplexes, simplexes.uniform, pull=pull, target=F)
    trusted = general_solution(W, mask, pull, F)
    best = objective(W, trusted, pull, F)
    # A gap of nothing but rounding is allowed where the graph fits without any error.
    assert abs(objective(W, Y, pull, F) - best) <= 1e-6 * best + 1e-10
    assert 0 <= gap < 1e-8
    np.testing.assert_allclose(Y, trusted, atol=1e-4)
    np.testing.assert_allclose(Y.sum(axis=1), 1, atol=1e-12)
    assert (Y >= 0).all()
    assert not Y[~mask].any()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("label_weight", [0.5, 1.0, 4.0])
def test_both_methods_problems_against_a_general_solver(seed, label_weight):
    """The quadratics of PL-LEAF, and of PL-AGGD's first turn, as the methods set them up."""
    rng = np.random.default_rng(100 + seed)
    truth = rng.integers(4, size=12)
    X = 2 * np.eye(4, 6)[truth] + rng.normal(size=(12, 6))
    mask = corrupt_mask(truth, 4, 1.0, 1, rng)
    unit, n_neighbors = unit_rows(X), 4
    neighbors = nearest_others(unit, n_neighbors)
    grams = difference_grams(unit, neighbors)
    W = weight_matrix(neighbors, simplex_weights(grams))

    leaf = PLLEAF(n_neighbors=n_neighbors, scale="none").fit(X, Candidates.from_mask(mask))
    equal = mask / mask.sum(axis=1, keepdims=True)
    best = objective(W, general_solution(W, mask, 0.0, equal), 0.0, equal)
    assert best > 1e-3  # so that a relative gap means something
    assert abs(objective(W, leaf.confidence_, 0.0, equal) - best) <= 1e-6 * best

    def aggd(n_iterations):
        method = PLAGGD(
            n_neighbors=n_neighbors,
            n_iterations=n_iterations,
            label_weight=label_weight,
            scale="none",
        )
        return method.fit(X, Candidates.from_mask(mask))

    before, after = aggd(0), aggd(1)
    np.testing.assert_allclose(before.confidence_, leaf.confidence_, atol=1e-12)
    outputs = before.decision_function(X)
    labels = difference_grams(before.confidence_, neighbors)
    W = weight_matrix(neighbors, simplex_weights(grams + label_weight * labels))
    pull = 1.0 / label_weight
    best = objective(W, general_solution(W, mask, pull, outputs), pull, outputs)
    assert best > 1e-3
    assert abs(objective(W, after.confidence_, pull, outputs) - best) <= 1e-6 * best


@pytest.mark.parametrize("pull", [0.0, 1.0])
def test_the_gap_is_certified(pull):
    """It is computed here anew, from its definition, at a size where products are sparse."""
    rng = np.random.default_rng(0)
    n, n_classes = 300, 8
    W, mask = random_graph(rng, n, 6), random_mask(rng, n, n_classes, p=0.2)
    F = rng.dirichlet(np.ones(n_classes), size=n)
    simplexes = CandidateSimplexes(mask)
    Y, gap = smooth_confidence(W, simplexes, simplexes.uniform, pull=pull, target=F)
    residual = Y - W @ Y
    gradient = 2 * (residual - W.T @ residual + pull * (Y - F))
    plain = sum(
        gradient[i] @ Y[i] - min(gradient[i, j] for j in np.flatnonzero(mask[i])) for i in range(n)
    )
    assert gap == pytest.approx(plain, abs=1e-11)
    assert plain < 1e-8
    # From elsewhere to the same place.
    corner = np.eye(n_classes)[mask.argmax(axis=1)]
    again, _ = smooth_confidence(W, simplexes, corner, pull=pull, target=F)
    np.testing.assert_allclose(Y, again, atol=2e-4)


def test_a_chain_passes_its_only_certain_label_on():
    neighbors = np.array([[1], [0], [1], [2]])
    mask = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]], dtype=bool)
    Y = graph_confidence(weight_matrix(neighbors, np.ones((4, 1))), CandidateSimplexes(mask))
    np.testing.assert_allclose(Y, np.eye(3)[[0, 0, 0, 0]], atol=1e-4)


def test_what_the_graph_leaves_open_is_shared_equally():
    neighbors = np.array([[1], [0], [3], [2]])
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 1]], dtype=bool)
    Y = graph_confidence(weight_matrix(neighbors, np.ones((4, 1))), CandidateSimplexes(mask))
    np.testing.assert_allclose(Y[:2], [[0.5, 0.5, 0, 0]] * 2, atol=1e-4)
    np.testing.assert_allclose(Y[2:], [[0, 0, 1, 0]] * 2, atol=1e-4)


def test_one_sample_shares_equally():
    W = weight_matrix(np.empty((1, 0), dtype=int), np.empty((1, 0)))
    Y = graph_confidence(W, CandidateSimplexes(np.array([[True, False, True]])))
    np.testing.assert_allclose(Y, [[0.5, 0, 0.5]], atol=1e-12)
