"""The paper's rule entry by entry, against the dense rule and against a loop of the grouped one."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fspll._common.errors import CandidateError, InputError
from fspll.rectifiers import FsPLLRule, rectify
from fspll.rectifiers.equations import METRICS
from fspll.rectifiers.sparse.entries import best_labels
from fspll.rectifiers.sparse.paper import rectify_sparse


def dense(features, mask, chosen):
    return rectify(torch.from_numpy(features), torch.from_numpy(np.asarray(mask)), chosen)


def loop_rectify(e, mask, k, weight, rounds, metric):
    """Eq. (1) to (3) one number at a time, with neighbors among those that share a label."""
    n, n_classes = mask.shape
    near = []
    for i in range(n):
        away = [
            (((e[i] - e[j]) ** 2).sum(), j)
            for j in range(n)
            if j != i and (mask[i] & mask[j]).any()
        ]
        near.append([j for _, j in sorted(away)[:k]])
    q = mask.astype(float)
    for _ in range(rounds):
        p = [
            sum(q[i, c] * e[i] for i in range(n)) / max(q[:, c].sum(), 1e-300)
            for c in range(n_classes)
        ]
        soft = np.zeros_like(q)
        for i in range(n):
            square = {c: ((e[i] - p[c]) ** 2).sum() for c in np.flatnonzero(mask[i])}
            power = 0.5 if metric == "euclidean" else 1.0
            values = {c: math.exp(-(s**power)) for c, s in square.items()}
            for c, value in values.items():
                soft[i, c] = value / sum(values.values())
        q = soft.copy()
        for i in range(n):
            for c in np.flatnonzero(mask[i]):
                for j in near[i]:
                    q[i, c] += weight * soft[j, c] / len(near[i])
    return q


@st.composite
def problems(draw, *, share=False):
    """Features without ties; with ``share``, a label that everybody has."""
    n, n_classes, m = draw(st.integers(1, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    mask = rng.random((n, n_classes)) < draw(st.sampled_from([0.15, 0.5, 1.0]))
    mask[np.arange(n), 0 if share else rng.integers(0, n_classes, n)] = True
    features = rng.normal(size=(n, m))
    chosen = FsPLLRule(
        n_neighbors=draw(st.integers(0, 5)),
        manifold_weight=draw(st.sampled_from([0.0, 0.5, 2.0])),
        n_iterations=draw(st.integers(0, 4)),
        metric=draw(st.sampled_from(METRICS)),
    )
    return features, mask, chosen


@given(problems(share=True))
@settings(max_examples=150, deadline=None)
def test_where_everybody_shares_a_label_it_is_the_dense_rule(problem):
    features, mask, chosen = problem
    expected = dense(features, mask, chosen)
    found = rectify_sparse(features, sparse.csr_array(mask), **asdict(chosen))
    assert np.allclose(found.confidence.toarray(), expected.confidence, rtol=1e-9, atol=1e-9)
    assert np.allclose(found.prototypes, expected.prototypes, rtol=1e-9, atol=1e-9)
    assert found.present.tolist() == expected.present.tolist()


@given(problems())
@settings(max_examples=100, deadline=None)
def test_otherwise_it_is_the_loop_of_the_grouped_rule(problem):
    features, mask, chosen = problem
    expected = loop_rectify(
        features,
        mask,
        chosen.n_neighbors,
        chosen.manifold_weight,
        chosen.n_iterations,
        chosen.metric,
    )
    found = rectify_sparse(features, sparse.csr_array(mask), **asdict(chosen)).confidence
    assert np.allclose(found.toarray(), expected, rtol=1e-9, atol=1e-9)
    assert found.nnz == mask.sum()


@given(problems())
@settings(max_examples=50, deadline=None)
def test_without_neighbors_it_is_the_dense_rule(problem):
    features, mask, chosen = problem
    chosen = FsPLLRule(0, 0.5, chosen.n_iterations, chosen.metric)
    found = rectify_sparse(features, sparse.csr_array(mask), **asdict(chosen))
    expected = dense(features, mask, chosen)
    assert np.allclose(found.confidence.toarray(), expected.confidence, rtol=1e-9, atol=1e-9)


def test_the_neighborhood_differs_from_the_papers_where_strangers_are_near():
    # The nearest sample of the first shares nothing with it: the dense rule listens to nobody.
    features = np.array([[0.0], [0.1], [1.0]])
    mask = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    chosen = FsPLLRule(n_neighbors=1, n_iterations=1)
    alone = dense(features, mask, chosen).confidence
    heard = rectify_sparse(features, sparse.csr_array(mask), **asdict(chosen)).confidence.toarray()
    assert alone[0].sum() == pytest.approx(1)
    assert heard[0].sum() == pytest.approx(1.5)


def test_singletons_give_the_plain_means():
    features = np.random.default_rng(0).normal(size=(20, 3))
    labels = np.arange(20) % 4
    found = rectify_sparse(features, sparse.csr_array(np.eye(4, dtype=bool)[labels]))
    means = np.stack([features[labels == c].mean(axis=0) for c in range(4)])
    assert np.allclose(found.prototypes, means, atol=1e-12)
    assert np.array_equal(best_labels(found.confidence), labels)


def test_a_class_that_nobody_has():
    mask = sparse.csr_array(np.array([[1, 0, 1], [1, 0, 0]], dtype=bool))
    found = rectify_sparse(np.array([[4.0], [6.0]]), mask)
    assert found.present.tolist() == [True, False, True]
    assert found.prototypes[1].tolist() == [0]
    assert found.confidence.shape == (2, 3)


def test_clusters_are_told_apart(clusters):
    features, candidates, truth = clusters(3000, 60, noise=1.0)
    found = rectify_sparse(features, candidates)
    assert (best_labels(found.confidence) == truth).mean() > 0.97
    assert found.confidence.dtype == np.float32


def test_far_from_the_origin(clusters):
    features, candidates, _ = clusters(400, 20, dtype=np.float64)
    near = rectify_sparse(features, candidates).confidence
    far = rectify_sparse(features + 1e6, candidates).confidence
    assert np.allclose(near.data, far.data, atol=1e-6)


def test_distances_of_large_scale_leave_no_nan(clusters):
    features, candidates, _ = clusters(300, 10)
    found = rectify_sparse(features * np.float32(1e4), candidates)
    assert np.isfinite(found.confidence.data).all()
    assert np.isfinite(found.prototypes).all()


def test_progress_is_reported(clusters):
    features, candidates, _ = clusters(60, 10)
    heard = []
    rectify_sparse(features, candidates, n_iterations=2, progress=heard.append)
    assert heard == ["neighbors", "round", "round"]


def test_wrong_input_is_refused():
    mask = sparse.csr_array(np.array([[1, 0], [0, 1]], dtype=bool))
    with pytest.raises(InputError, match=r"shape \(3, 2\) do not fit 2 candidate sets"):
        rectify_sparse(np.zeros((3, 2)), mask)
    with pytest.raises(InputError, match="NaN or infinite"):
        rectify_sparse(np.array([[0.0], [np.nan]]), mask)
    with pytest.raises(CandidateError, match="row 1 of candidates is empty"):
        rectify_sparse(np.zeros((2, 2)), sparse.csr_array(np.array([[1, 0], [0, 0]])))
