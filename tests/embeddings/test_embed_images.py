"""Kept embeddings: found again, never mistaken, made again when damaged."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fspll._common.errors import InputError
from fspll._common.files import user_cache_dir
from fspll.datasets import ImageSet
from fspll.embeddings import (
    InputSpec,
    NetworkEncoder,
    build_network,
    embed_images,
    standardizer,
)

SPEC = InputSpec(16, 1, "bright-ink")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10, 16, 16), dtype=np.uint8)
    return ImageSet("noise", images, np.repeat(np.arange(5), 2), tuple("abcde"))


def make_encoder():
    network = build_network("conv4", seed=0, width=4, size=16)
    return NetworkEncoder(network.eval(), SPEC, device="cpu")


@pytest.fixture
def encoder():
    return make_encoder()


def kept():
    return sorted((user_cache_dir() / "features").glob("*"))


def blocks_in(path):
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT COUNT(*) FROM features").fetchone()
    connection.close()
    return count


def never(*arguments, **options):
    pytest.fail("the network was asked again")


def test_features_are_those_of_the_encoder(encoder, data):
    features = embed_images(encoder, data)
    assert features.shape == (10, 4)
    expected = encoder.encode(data.images, polarity="bright-ink")
    np.testing.assert_array_equal(features.numpy(), expected)
    assert len(kept()) == 1


def test_a_second_call_does_not_run_the_network(encoder, data, monkeypatch):
    first = embed_images(encoder, data)
    monkeypatch.setattr(NetworkEncoder, "encode", never)
    assert torch.equal(embed_images(encoder, data), first)
    # The same weights in another object.
    assert torch.equal(embed_images(make_encoder(), data), first)


def test_a_change_of_a_weight_or_a_pixel_is_noticed(encoder, data):
    first = embed_images(encoder, data)
    pixels = data.images.copy()
    pixels[7, 3, 3] ^= 0xFF
    changed = replace(data, images=pixels)
    other = embed_images(encoder, changed)
    assert torch.equal(other[:7], first[:7])
    assert not torch.equal(other[7], first[7])
    with torch.no_grad():
        encoder.network.blocks[3][1].bias[2] += 1
    moved = embed_images(encoder, data)
    torch.testing.assert_close(moved[:, 2] - first[:, 2], torch.ones(10))
    encoder.network.blocks[0][1].running_mean += 0.5  # no parameter, but part of the function
    assert not torch.equal(embed_images(encoder, data), moved)
    assert len(kept()) == 3  # one file per network ...
    assert sum(map(blocks_in, kept())) == 4  # ... and one of them with two sets of images


def test_a_change_of_the_input_or_of_a_layer_without_weights_is_noticed(data):
    def encoder(layer, spec=SPEC):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Flatten(), nn.Linear(256, 3), layer)
        return NetworkEncoder(network, spec, device="cpu")

    first = embed_images(encoder(nn.ReLU()), data)
    assert not torch.equal(embed_images(encoder(nn.Tanh()), data), first)
    inverted = embed_images(encoder(nn.ReLU(), replace(SPEC, polarity="dark-ink")), data)
    assert not torch.equal(inverted, first)


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", None], ids=["empty", "stump", "cut"])
def test_a_damaged_file_is_made_again(encoder, data, damage, monkeypatch):
    first = embed_images(encoder, data)
    (path,) = kept()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5] if damage is None else damage)
    assert torch.equal(embed_images(encoder, data), first)
    embed_images(encoder, data)  # what was found broken in the middle of a run is made by the next
    assert kept() == [path]  # and nothing else is left behind
    monkeypatch.setattr(NetworkEncoder, "encode", never)
    assert torch.equal(embed_images(encoder, data), first)


def test_photos_and_networks_without_a_spec():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    photos = ImageSet("photos", images, np.arange(6), tuple("abcdef"))
    network = build_network("conv4", seed=0, in_channels=3, width=4, size=16).eval()
    with_spec = embed_images(NetworkEncoder(network, InputSpec(16, 3), device="cpu"), photos)
    without = embed_images(NetworkEncoder(network, device="cpu"), photos)
    torch.testing.assert_close(with_spec, without)


def test_progress_is_reported(encoder, data):
    reported = []
    embed_images(encoder, data, lambda done, total: reported.append((done, total)))
    assert reported == [(10, 10)]


def test_a_large_set_is_kept_in_blocks_and_an_interrupted_run_goes_on(encoder, monkeypatch):
    """The blocks are the batches of the encoder, so that not even rounding tells where it began."""
    images = np.random.default_rng(0).integers(0, 256, (600, 16, 16), dtype=np.uint8)
    data = ImageSet("many", images, np.zeros(600, dtype=int), ("a",))
    expected = encoder.encode(images, polarity="bright-ink")
    encode, seen = NetworkEncoder.encode, []

    def stopping(self, X, *arguments, **options):
        seen.append(len(X))
        if len(seen) == 2:
            raise KeyboardInterrupt
        return encode(self, X, *arguments, **options)

    monkeypatch.setattr(NetworkEncoder, "encode", stopping)
    with pytest.raises(KeyboardInterrupt):
        embed_images(encoder, data)
    reported = []
    found = embed_images(encoder, data, lambda done, total: reported.append((done, total)))
    assert seen == [256, 256, 256, 88]  # the first block was not computed again
    assert reported == [(256, 600), (512, 600), (600, 600)]
    np.testing.assert_array_equal(found.numpy(), expected)


def test_a_users_own_encoder_gets_the_whole_set(data):
    class Mean:
        def encode(self, samples):
            calls.append(len(samples))
            return samples.reshape(len(samples), -1).mean(axis=1, keepdims=True)

    calls = []
    np.testing.assert_allclose(embed_images(Mean(), data)[:, 0], data.images.mean(axis=(1, 2)))
    embed_images(Mean(), data)
    assert calls == [10, 10]
    assert kept() == []


def test_encoders_of_other_things_are_refused(data):
    with pytest.raises(InputError, match="'standardize' is an encoder of vectors, not of images"):
        embed_images(standardizer(np.eye(3)), data)
