"""FsPLLClassifier on many samples: sparse all the way, and the same behavior otherwise."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fspll import FsPLLClassifier
from fspll._common.errors import InputError
from fspll.rectifiers import base, is_large
from fspll.rectifiers.sparse import centering, entries, prediction
from fspll.rectifiers.sparse.prediction import ClassGeometry, all_probabilities, most_probable

RULES = pytest.mark.parametrize("rectifier", ["evidence", "fspll", "none"])


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(base, "DENSE_ENTRIES", 1000)


def test_what_is_large():
    assert not is_large(8192, 8192)
    assert is_large(8193, 2)
    assert is_large(100, 1 << 20)


@RULES
def test_fit_and_predict(clusters, everything_is_large, rectifier):
    features, candidates, truth = clusters(700, 10, noise=0.6)
    names = np.array([f"class {c}" for c in range(10)])
    fitted = FsPLLClassifier(rectifier=rectifier, classes=names)
    fitted.fit(features[:600], candidates[:600])
    assert sparse.issparse(fitted.confidence_)
    assert fitted.confidence_.nnz == candidates[:600].nnz
    assert np.allclose(fitted.confidence_.sum(axis=1), 1, atol=1e-5)
    assert fitted.n_neighbors_ == (0 if rectifier == "none" else 10)
    assert fitted.prototypes_.shape == (10, 16)
    assert (fitted.predict(features[600:]) == names[truth[600:]]).mean() > 0.95
    assert fitted.score(features[600:], names[truth[600:]]) > 0.95
    if rectifier != "none":
        assert (fitted.labels_ == names[truth[:600]]).mean() > 0.95


@RULES
def test_predictions_are_the_most_probable(clusters, everything_is_large, rectifier):
    features, candidates, _ = clusters(300, 10, noise=1.5)
    fitted = FsPLLClassifier(rectifier=rectifier).fit(features, candidates)
    probabilities = fitted.predict_proba(features)
    assert probabilities.shape == (300, 10)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(fitted.predict(features), probabilities.argmax(axis=1))
    fitted.reject = float(np.median(probabilities.max(axis=1)))
    abstains = np.array([label is None for label in fitted.predict(features)])
    assert np.array_equal(abstains, probabilities.max(axis=1) < fitted.reject)


def test_probabilities_of_new_samples_are_calibrated(clusters, everything_is_large):
    features, candidates, truth = clusters(4000, 40, noise=1.2)
    fitted = FsPLLClassifier().fit(features[:2000], candidates[:2000])
    sure = fitted.predict_proba(features[2000:]).max(axis=1)
    right = (fitted.predict(features[2000:]) == truth[2000:]).mean()
    assert 0.6 < right < 0.98
    assert sure.mean() == pytest.approx(right, abs=0.05)


def test_the_papers_rule_as_the_dense_one(clusters, monkeypatch):
    # Three of five labels: all sets overlap, so that the neighborhoods are the same.
    features, candidates, _ = clusters(200, 5, r=2, dtype=np.float64)
    dense = FsPLLClassifier(rectifier="fspll", n_neighbors=4).fit(features, candidates)
    monkeypatch.setattr(base, "DENSE_ENTRIES", 10)
    large = FsPLLClassifier(rectifier="fspll", n_neighbors=4).fit(features, candidates)
    assert np.allclose(dense.confidence_, large.confidence_.toarray(), atol=1e-9)
    assert np.allclose(dense.predict_proba(features), large.predict_proba(features), atol=1e-9)
    assert np.array_equal(dense.labels_, large.labels_)


def test_no_dense_array_is_built(clusters):
    n, n_classes = 3000, 60_000
    rng = np.random.default_rng(0)
    labels = np.stack([np.arange(n) % 100, *rng.integers(100, n_classes, (2, n))], axis=1)
    rows = np.repeat(np.arange(n), 3)
    flags = np.ones(3 * n, dtype=bool)
    sets = sparse.csr_array((flags, (rows, labels.ravel())), shape=(n, n_classes))
    features = rng.normal(size=(100, 8))[np.arange(n) % 100] + 0.1 * rng.normal(size=(n, 8))
    tracemalloc.start()
    fitted = FsPLLClassifier(n_neighbors=5, n_iterations=2).fit(features, sets)
    peak = tracemalloc.get_traced_memory()[1]  # of NumPy's arrays
    tracemalloc.stop()
    assert peak < n * n_classes / 2  # bytes: even a dense mask would take twice as much
    assert (fitted.labels_ == np.arange(n) % 100).mean() > 0.99
    with pytest.raises(InputError, match="60000 classes are more than 67108864 numbers"):
        fitted.predict_proba(features)
    assert (fitted.predict(features[:50]) == np.arange(50)).all()


def test_what_many_samples_do_not_take(clusters, everything_is_large):
    features, candidates, _ = clusters(100, 10)
    with pytest.raises(InputError, match="X_unlabeled is for up to"):
        FsPLLClassifier().fit(features, candidates, X_unlabeled=features)


# -------------------------------------------------------------------- prediction in blocks


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_blocks_change_nothing(monkeypatch, metric, at_once):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(20, 3))
    allowed = np.array([True, True, False, True, True, False, True])
    places = ClassGeometry(rng.normal(size=(7, 3)), allowed, 2.5, metric)
    monkeypatch.setattr(prediction, "_CLASSES_AT_ONCE", at_once)
    monkeypatch.setattr(prediction, "_DISTANCES_AT_ONCE", 2 * at_once)
    best, probability = most_probable(queries, places)
    away = np.linalg.norm(queries[:, None] - places.prototypes, axis=2)
    power = 1 if metric == "euclidean" else 2
    shares = np.where(allowed, np.exp(-2.5 * away**power), 0)
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.array_equal(best, shares.argmax(axis=1))
    assert np.allclose(probability, shares.max(axis=1), rtol=1e-10)
    assert np.allclose(all_probabilities(queries, places), shares, atol=1e-12)


def test_far_from_everything_stays_finite():
    places = ClassGeometry(np.eye(3, dtype=np.float32), np.ones(3, dtype=bool), 1e6, "sqeuclidean")
    _, probability = most_probable(np.full((1, 3), 1e18, dtype=np.float32), places)
    assert np.isfinite(probability).all()


@RULES
def test_a_memory_mapped_file_is_neither_copied_nor_written(clusters, tmp_path, rectifier):
    features, candidates, _ = clusters(9000, 30, m=1024, r=1)
    np.save(tmp_path / "X.npy", features)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = FsPLLClassifier(rectifier=rectifier).fit(features, candidates)
    tracemalloc.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            # A block is then small beside all features.
            patch.setattr(centering, "_SAMPLES_AT_ONCE", 1 << 10)
            patch.setattr(entries, "SAMPLES_AT_ONCE", 1 << 10)
            patch.setattr(entries, "ENTRIES_AT_ONCE", 1 << 10)
            found = FsPLLClassifier(rectifier=rectifier).fit(mapped, candidates)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < features.nbytes
    assert np.array_equal(found.labels_, expected.labels_)
    assert np.allclose(found.confidence_.data, expected.confidence_.data, atol=1e-5)
