"""The network that MAML adapts: Conv4 and a head, normalized by the batch at hand."""

from __future__ import annotations

import pytest
import torch

from fspll._common.errors import InputError
from fspll.embeddings import (
    Conv4,
    Conv4Classifier,
    build_network,
    load_checkpoint,
    save_checkpoint,
)


@pytest.fixture
def images():
    return torch.rand(6, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def test_it_is_conv4_with_a_linear_head(images):
    network = build_network("conv4-classifier", seed=0, width=4, size=16, n_way=3)
    features = network.embedding(images)
    expected = features @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(network(images), expected)
    assert network(images).shape == (6, 3)
    assert network.n_features == 4
    assert network.settings == {"in_channels": 1, "width": 4, "size": 16, "n_way": 3}
    plain = Conv4(1, 4, 16)
    plain.load_state_dict(network.embedding.state_dict(), strict=False)
    torch.testing.assert_close(plain(images), features)


def test_the_batch_at_hand_normalizes_in_training_and_in_test(images):
    network = build_network("conv4-classifier", seed=0, width=4, size=16)
    scores = network(images)
    for _ in range(3):
        network(5 * images + 2)  # leaves no trace
    network.eval()
    assert torch.equal(network(images), scores)
    assert not torch.allclose(network(images[:3]), scores[:3])  # another batch, other statistics


def test_no_statistics_are_kept():
    assert not [name for name in Conv4Classifier(width=2).state_dict() if "running" in name]
    assert not list(Conv4Classifier(width=2).buffers())


def test_through_a_file(tmp_path, images):
    network = build_network("conv4-classifier", seed=0, width=4, size=16, n_way=7)
    save_checkpoint(tmp_path / "model.safetensors", network, input_spec=None)
    again = load_checkpoint(tmp_path / "model.safetensors").network
    assert isinstance(again, Conv4Classifier)
    assert again.settings == network.settings
    assert torch.equal(again(images), network(images))


def test_refused():
    with pytest.raises(
        InputError, match="n_way of conv4-classifier must be a whole number of 1 or more, not 0"
    ):
        Conv4Classifier(n_way=0)
    with pytest.raises(InputError, match=r"size of conv4 must be .* 16 or more, not 8"):
        Conv4Classifier(size=8)
