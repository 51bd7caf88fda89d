"""Random networks as a baseline: normalized, reproducible, and free of labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll._common.errors import InputError
from fspll.embeddings import InputSpec, build_network, image_tensor, untrained_encoder

SPEC = InputSpec(16, 1, "bright-ink")


@pytest.fixture(scope="module")
def drawings():
    rng = np.random.default_rng(0)
    drawings = np.zeros((40, 16, 16), dtype=np.uint8)
    drawings[:, 4:12, 4:12] = rng.integers(0, 256, (40, 8, 8))
    return drawings


def make(drawings, seed=0):
    return untrained_encoder("conv4", drawings, SPEC, seed=seed, width=6, size=16)


def test_the_statistics_are_those_of_the_pictures(drawings):
    """In eval mode the features of these pictures are those of batch normalization itself."""
    encoder = make(drawings)
    network = build_network("conv4", seed=0, width=6, size=16)
    expected = network.train()(image_tensor(drawings)).detach().numpy()
    features = encoder.encode(drawings)
    # Running variances are unbiased, batch variances are not: a part in 2n.
    np.testing.assert_allclose(features, expected, rtol=0.1, atol=0.05)
    fresh = build_network("conv4", seed=0, width=6, size=16).eval()
    raw = fresh(image_tensor(drawings)).detach().numpy()
    assert not np.allclose(features, raw, rtol=0.1, atol=0.05)
    convolution, norm, *_ = encoder.network.blocks[0]
    mean = convolution(image_tensor(drawings)).detach().mean(dim=(0, 2, 3))
    torch.testing.assert_close(norm.running_mean, mean, rtol=1e-4, atol=1e-5)
    assert norm.momentum == fresh.blocks[0][1].momentum
    assert not encoder.network.training


def test_weights_are_those_of_the_seed(drawings):
    one, same, other = make(drawings), make(drawings), make(drawings, seed=1)
    np.testing.assert_array_equal(one.encode(drawings), same.encode(drawings))
    assert not np.allclose(one.encode(drawings), other.encode(drawings))
    weight = build_network("conv4", seed=0, width=6, size=16).blocks[2][0].weight
    assert torch.equal(one.network.blocks[2][0].weight, weight)
    assert (one.name, one.input_spec) == ("conv4-untrained", SPEC)


def test_a_network_without_statistics(drawings):
    encoder = untrained_encoder("conv4-classifier", drawings, SPEC, width=4, size=16, n_way=3)
    assert encoder.encode(drawings).shape == (40, 3)


def test_refused(drawings):
    with pytest.raises(InputError, match="there is no architecture 'conv9'"):
        untrained_encoder("conv9", drawings, SPEC)
