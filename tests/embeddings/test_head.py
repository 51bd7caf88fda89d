"""Adapted encoders: in checkpoints, in model files, and in the cache of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll import FsPLLClassifier
from fspll._common.errors import CheckpointError, InputError
from fspll.embeddings import (
    AdaptedEncoder,
    CustomEncoder,
    InputSpec,
    NetworkEncoder,
    Whitening,
    build_network,
    embed_images,
    encode_cached,
    load_embedding,
    save_checkpoint,
    save_encoder,
)

PICTURES = np.random.default_rng(0).integers(0, 256, (6, 16, 16), dtype=np.uint8)


def make_base():
    return NetworkEncoder(
        build_network("conv4", width=8, size=16, seed=0), InputSpec(16, 1), "base", device="cpu"
    )


def make_adapted(base=None):
    head = Whitening(8, power=0.5, scale=2.0)
    head.mean.fill_(0.1)
    head.matrix.copy_(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))
    return AdaptedEncoder(base or make_base(), head, device="cpu")


def test_features_are_those_of_the_head_on_those_of_the_base():
    adapted = make_adapted()
    below = torch.from_numpy(make_base().encode(PICTURES))
    assert np.allclose(adapted.encode(PICTURES), adapted.network(below).numpy(), atol=1e-6)
    assert (adapted.modality, adapted.name) == ("image", "base, adapted")
    assert adapted.fingerprint not in (None, make_base().fingerprint)


def test_a_checkpoint_is_whole(tmp_path):
    adapted = make_adapted()
    adapted.metadata = {"training": {"data": "characters"}}
    save_encoder(tmp_path / "head.safetensors", adapted)
    found = load_embedding(tmp_path / "head.safetensors", device="cpu")
    assert isinstance(found, AdaptedEncoder)
    assert np.array_equal(found.encode(PICTURES), adapted.encode(PICTURES))
    assert found.fingerprint == adapted.fingerprint
    assert found.metadata["training"] == {"data": "characters"}
    assert found.base.input_spec == InputSpec(16, 1)


def test_heads_stand_on_heads(tmp_path):
    twice = make_adapted(make_adapted())
    save_encoder(tmp_path / "twice.safetensors", twice)
    found = load_embedding(tmp_path / "twice.safetensors", device="cpu")
    assert np.array_equal(found.encode(PICTURES), twice.encode(PICTURES))


def test_a_registered_encoder_is_kept_by_its_name(tmp_path):
    base = CustomEncoder(lambda samples: [[1.0] * 8] * len(samples), "mine")
    with pytest.raises(InputError, match="'mine' is an encoder of your own, which a file cannot"):
        save_encoder(tmp_path / "own.safetensors", make_adapted(base))
    assert not list(tmp_path.iterdir())
    base.registered_name = "lost-package"
    save_encoder(tmp_path / "named.safetensors", make_adapted(base))
    with pytest.raises(CheckpointError, match="needs the encoder 'lost-package', which is not reg"):
        load_embedding(tmp_path / "named.safetensors")


def test_a_damaged_description_is_said(tmp_path):
    path = tmp_path / "head.safetensors"
    save_checkpoint(path, Whitening(8), input_spec=None, base={"name": "base"})
    with pytest.raises(CheckpointError, match=r"head.safetensors is damaged: it lacks 'network'"):
        load_embedding(path)


def test_a_model_file_carries_head_and_base(tmp_path):
    sets = [{"a", "b"}, {"a"}, {"b"}, {"a", "b"}, {"b"}, {"a"}]
    clf = FsPLLClassifier(embedding=make_adapted()).fit(PICTURES, sets)
    clf.save(tmp_path / "model.fspll")
    found = FsPLLClassifier.load(tmp_path / "model.fspll")
    assert isinstance(found.embedding, AdaptedEncoder)
    assert np.allclose(found.predict_proba(PICTURES), clf.predict_proba(PICTURES))


def test_another_head_finds_the_encoded_samples(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pictures = list(PICTURES)
    base = make_base()
    encode_cached(base, pictures)
    adapted = make_adapted(base)
    found = encode_cached(adapted, pictures)
    assert found.n_cached == len(pictures)
    assert np.allclose(found.features, adapted.encode(PICTURES), atol=1e-6)


def test_image_sets_go_through_the_head(monkeypatch, tmp_path):
    from fspll.datasets import load_glyphs

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = load_glyphs(3, 2, size=16)
    adapted = make_adapted()
    assert torch.allclose(
        embed_images(adapted, data), torch.from_numpy(adapted.encode(data.images)), atol=1e-5
    )
