"""The default rule for many samples: right labels, honest confidence, limits, invariances."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from scipy import sparse

from fspll.candidates import corrupt_mask
from fspll.rectifiers import EvidenceRule, FsPLLRule, infer_labels
from fspll.rectifiers.sparse.entries import best_labels
from fspll.rectifiers.sparse.evidence import infer_labels_sparse
from fspll.rectifiers.sparse.paper import rectify_sparse

CHOSEN = EvidenceRule(n_neighbors=10)


def right(confidence, truth):
    return (best_labels(confidence) == truth).mean()


def calibration_error(confidence, truth):
    """Mean difference between confidence and share of right labels, over 15 bins."""
    sure = np.maximum.reduceat(confidence.data, confidence.indptr[:-1])
    hit = best_labels(confidence) == truth
    bins = np.minimum((sure * 15).astype(int), 14)
    return sum(
        abs(hit[bins == b].mean() - sure[bins == b].mean()) * (bins == b).mean()
        for b in np.unique(bins)
    )


def flat_classes(n, n_classes, seed=0):
    """Classes that spread along directions of their own: means tell little, neighbors much."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    axes = rng.normal(size=(n_classes, 24, 3))
    features = rng.normal(size=(n_classes, 24))[truth] + 0.2 * rng.normal(size=(n, 24))
    features += 2 * np.einsum("nmk,nk->nm", axes[truth], rng.normal(size=(n, 3)))
    return features, sparse.csr_array(corrupt_mask(truth, n_classes, 1.0, 3, rng)), truth


def test_round_classes_as_often_right_as_the_dense_rule(clusters):
    features, candidates, truth = clusters(3000, 60, m=32, noise=2.0)
    dense = infer_labels(torch.from_numpy(features), torch.from_numpy(candidates.toarray()), CHOSEN)
    there = (dense.confidence.argmax(dim=-1).numpy() == truth).mean()
    found = infer_labels_sparse(features, candidates, **asdict(CHOSEN)).confidence
    paper = rectify_sparse(features, candidates, **asdict(FsPLLRule(10))).confidence
    assert 0.8 < there < 0.99
    assert right(found, truth) > there - 0.01
    assert right(found, truth) > right(paper, truth) - 0.002
    assert calibration_error(found, truth) < 0.04


def test_flat_classes_by_their_neighbors():
    features, candidates, truth = flat_classes(2000, 40)
    found = infer_labels_sparse(features, candidates, **asdict(CHOSEN)).confidence
    assert right(found, truth) > 0.95
    assert (
        right(rectify_sparse(features, candidates, **asdict(FsPLLRule(10))).confidence, truth) < 0.8
    )


def test_very_unequal_classes():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(20), [1200, *[30] * 19])
    features = rng.normal(size=(20, 24))[truth] + 1.5 * rng.normal(size=(len(truth), 24))
    candidates = sparse.csr_array(corrupt_mask(truth, 20, 1.0, 3, rng))
    found = infer_labels_sparse(features, candidates, **asdict(CHOSEN)).confidence
    assert right(found, truth) > 0.93


def test_neighbors_without_meaning_are_not_believed():
    # Features that know nothing of the classes: nothing can be told, and nothing must be claimed.
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 40, 2000)
    candidates = sparse.csr_array(corrupt_mask(truth, 40, 1.0, 3, rng))
    found = infer_labels_sparse(rng.normal(size=(2000, 8)), candidates, **asdict(CHOSEN)).confidence
    sure = np.maximum.reduceat(found.data, found.indptr[:-1])
    assert sure.mean() < 0.5


def test_rows_sum_to_one_on_the_candidates_only(clusters):
    features, candidates, _ = clusters(500, 20)
    found = infer_labels_sparse(features, candidates, **asdict(CHOSEN)).confidence
    assert np.array_equal(found.indices, candidates.indices)  # no decoy is left
    assert np.array_equal(found.indptr, candidates.indptr)
    assert np.allclose(found.sum(axis=1), 1, atol=1e-5)


def test_origin_scale_and_rotation_change_nothing(clusters):
    features, candidates, _ = clusters(600, 20, dtype=np.float64)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
    here = infer_labels_sparse(features, candidates, **asdict(CHOSEN))
    there = infer_labels_sparse(1e5 * features @ turn + 1e6, candidates, **asdict(CHOSEN))
    assert np.allclose(here.confidence.data, there.confidence.data, atol=1e-3)
    assert there.spread == pytest.approx(1e10 * here.spread, rel=1e-3)
    assert np.allclose(
        1e5 * here.prototypes.numpy() @ turn + 1e6, there.prototypes.numpy(), rtol=1e-4
    )


def test_the_same_seed_gives_the_same(clusters):
    features, candidates, _ = clusters(600, 20, noise=1.5)
    first, again = (infer_labels_sparse(features, candidates, **asdict(CHOSEN)) for _ in range(2))
    assert np.array_equal(first.confidence.data, again.confidence.data)


def test_labels_that_always_come_together_share_evenly():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 50)
    mask = np.eye(4, dtype=bool)[truth]
    mask[:100, :2] = True  # nobody ever has the first or the second alone
    features = 5.0 * np.eye(4)[truth] + 0.1 * rng.normal(size=(200, 4))
    found = infer_labels_sparse(
        features, sparse.csr_array(mask), **asdict(CHOSEN)
    ).confidence.toarray()
    assert np.allclose(found[:100, :2], 0.5)
    assert np.allclose(found[100:].max(axis=1), 1)


@pytest.mark.parametrize(
    ("features", "mask"),
    [
        pytest.param([[1.0]], [[1]], id="one sample, one class"),
        pytest.param([[1.0], [2.0]], [[1, 1], [1, 1]], id="full sets, no decoy possible"),
        pytest.param([[1.0]] * 6, [[1, 1, 0], [0, 1, 1]] * 3, id="equal samples"),
        pytest.param([[0.0], [1.0]], [[1, 0, 0], [0, 0, 1]], id="a class that nobody has"),
        pytest.param([[0.0], [1.0], [1.1]], [[1, 0], [0, 1], [0, 1]], id="ordinary labels"),
    ],
)
@pytest.mark.parametrize("k", [0, 1, 10])
def test_edges(features, mask, k):
    mask = np.array(mask, dtype=bool)
    model = infer_labels_sparse(features, sparse.csr_array(mask), **asdict(EvidenceRule(k)))
    found = model.confidence
    assert np.isfinite(found.data).all()
    assert np.allclose(found.sum(axis=1), 1)
    assert model.prototypes.isfinite().all()
    assert model.spread > 0
    assert model.has_support.any()
    assert model.present.tolist() == mask.any(axis=0).tolist()
    assert not model.prototypes[~model.present].any()


def test_balance_makes_classes_even():
    rng = np.random.default_rng(0)
    truth = np.arange(1000) % 4
    mask = np.eye(4, dtype=bool)[truth]
    mask[:, 0] = True  # a label that everybody might have
    mask[truth == 0, 1] = True
    features = 0.3 * rng.normal(size=(4, 8))[truth] + rng.normal(size=(1000, 8))
    mass = {}
    for balance in (False, True):
        chosen = EvidenceRule(n_neighbors=5, class_balance=balance)
        found = infer_labels_sparse(features, sparse.csr_array(mask), **asdict(chosen)).confidence
        mass[balance] = np.ptp(found.sum(axis=0))
    assert mass[True] < 0.9 * mass[False]


def test_progress_is_reported(clusters):
    features, candidates, _ = clusters(60, 10)
    heard = []
    infer_labels_sparse(features, candidates, **asdict(EvidenceRule(2, 2)), progress=heard.append)
    assert heard == ["neighbors", "round", "round"]


def test_votes_decide_where_features_do_not(clusters):
    """Two of three annotators said the truth; features are all alike."""
    features, candidates, truth = clusters(600, 5, r=1, noise=3.0)
    votes = np.where(candidates.indices == np.repeat(truth, 2), 2.0, 1.0)
    alike = np.ones_like(features)
    with_votes = infer_labels_sparse(alike, candidates, votes=votes, n_neighbors=0)
    assert (with_votes.confidence.toarray().argmax(axis=1) == truth).all()
    sure = infer_labels_sparse(features, candidates, votes=votes).confidence.toarray()
    bare = infer_labels_sparse(features, candidates).confidence.toarray()
    chosen = np.arange(600), truth
    assert sure[chosen].mean() > bare[chosen].mean()
