"""Files with encoders, written before encoders had a registry, load and predict as they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fspll import FsPLLClassifier
from fspll.embeddings import load_embedding
from fspll.embeddings.encoders import photos, text
from fspll.labeling import load_model

FILES = Path(__file__).parents[1] / "files" / "before-registries"
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def inputs():
    with np.load(FILES / "inputs.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", ["network", "standardized"])
def test_networks(inputs, name):
    clf = FsPLLClassifier.load(FILES / f"{name}.fspll")
    X = inputs["images"][:4] if name == "network" else inputs["Q"]
    expected = EXPECTED[name]
    np.testing.assert_allclose(clf.predict_proba(X), expected["proba"], atol=1e-6)
    assert clf.predict(X).tolist() == expected["predicted"]
    assert clf.labels_.tolist() == expected["labels"]
    np.testing.assert_allclose(clf.confidence_, expected["confidence"], atol=1e-9)


def test_a_checkpoint(inputs):
    encoder = load_embedding(FILES / "network.safetensors", "cpu")
    assert (encoder.name, encoder.metadata["training"]) == ("network", {"note": "untrained"})
    inside = FsPLLClassifier.load(FILES / "network.fspll").embedding
    np.testing.assert_array_equal(
        encoder.encode(inputs["images"]), inside.encode(inputs["images"], device="cpu")
    )


@pytest.mark.skipif(text.missing_package() is not None, reason="the extra 'text' is absent")
@pytest.mark.parametrize("load", [FsPLLClassifier.load, load_model])
def test_texts(load):
    clf = load(FILES / "text.fspll")
    expected = EXPECTED["text"]
    np.testing.assert_allclose(clf.predict_proba(expected["texts"]), expected["proba"], atol=1e-6)


@pytest.mark.skipif(photos.missing_package() is not None, reason="the extra 'photos' is absent")
@pytest.mark.parametrize("load", [FsPLLClassifier.load, load_model])
def test_photos(inputs, load):
    clf = load(FILES / "photos.fspll")
    pixels = (inputs["images"][4:6] * 255).astype(np.uint8)
    np.testing.assert_allclose(clf.predict_proba(pixels), EXPECTED["photos"]["proba"], atol=1e-6)
