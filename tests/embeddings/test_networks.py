"""The networks: their sizes, and the fast forms against the textbook ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d, leaky_relu, max_pool2d, relu

from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings import (
    Conv4,
    ResNet12,
    build_network,
    describe_network,
    network_for_images,
)


class TextbookConv4(nn.Module):
    """Convolution with bias, batch norm, ReLU, pool: the order of the papers."""

    def __init__(self, fast: Conv4, bias: float) -> None:
        super().__init__()
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        for convolution, norm, *_ in fast.blocks:
            after, before = convolution.weight.shape[:2]
            slow = nn.Conv2d(before, after, 3, padding=1)
            with torch.no_grad():
                slow.weight.copy_(convolution.weight)
                slow.bias.fill_(bias)
            self.convolutions.append(slow)
            self.norms.append(nn.BatchNorm2d(after))
            self.norms[-1].load_state_dict(norm.state_dict())
            # Where the running mean would be after long training: the bias is part of the mean.
            self.norms[-1].running_mean += bias

    def forward(self, x):
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = max_pool2d(relu(norm(convolution(x))), 2)
        return x.flatten(1)


@pytest.fixture(params=["positive scales", "scales of both signs"])
def pair(request):
    """Return a fast Conv4 with awkward batch norms, its textbook twin, and images."""
    fast = build_network("conv4", in_channels=2, width=6, size=33, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for block in fast.blocks:
            scale = torch.randn(6, generator=generator)
            # Negative scales are what would break a pool placed before the batch norm.
            positive = request.param == "positive scales"
            block[1].weight.copy_(scale.abs() + 0.1 if positive else scale)
            block[1].bias.copy_(torch.randn(6, generator=generator))
    images = torch.rand(8, 2, 33, 33, generator=generator)
    return fast.double(), TextbookConv4(fast, bias=0.7).double(), images.double()


@pytest.mark.parametrize(
    ("architecture", "settings", "shape", "n_features"),
    [
        ("conv4", {}, (1, 28, 28), 64),
        ("conv4", {"in_channels": 3, "size": 84}, (3, 84, 84), 1600),
        ("conv4", {"width": 8, "size": 16}, (1, 16, 16), 8),
        ("resnet12", {}, (3, 32, 32), 640),
        ("resnet12", {"in_channels": 1, "widths": [4, 5, 6, 7]}, (1, 28, 28), 7),
    ],
)
def test_feature_size(architecture, settings, shape, n_features):
    network = build_network(architecture, seed=0, **settings)
    assert network.n_features == n_features
    with torch.inference_mode():
        assert network(torch.rand(2, *shape)).shape == (2, n_features)


def test_conv4_equals_textbook_in_train_and_eval_mode(pair):
    fast, textbook, images = pair
    for _ in range(3):
        torch.testing.assert_close(fast(images), textbook(images))
    fast.eval()
    textbook.eval()
    torch.testing.assert_close(fast(images[:3]), textbook(images[:3]))
    assert fast(images[:3]).abs().max() > 0.1


def test_conv4_gradients_equal_textbook(pair):
    fast, textbook, images = pair
    weights = torch.randn(8, fast.n_features, generator=torch.Generator().manual_seed(2)).double()
    slow_images = images.clone().requires_grad_()
    images.requires_grad_()
    (fast(images) * weights).sum().backward()
    (textbook(slow_images) * weights).sum().backward()
    torch.testing.assert_close(images.grad, slow_images.grad)
    assert images.grad.abs().max() > 0
    for block, convolution, norm in zip(
        fast.blocks, textbook.convolutions, textbook.norms, strict=True
    ):
        torch.testing.assert_close(block[0].weight.grad, convolution.weight.grad)
        torch.testing.assert_close(block[1].weight.grad, norm.weight.grad)
        torch.testing.assert_close(block[1].bias.grad, norm.bias.grad)
        # Why the bias can go: nothing depends on it.
        torch.testing.assert_close(convolution.bias.grad, torch.zeros(6).double())


def test_resnet12_equals_a_plain_loop():
    network = build_network("resnet12", in_channels=1, widths=[3, 4, 5, 6], seed=0)
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    x = images
    for block in network.blocks:
        layers = list(block.path)
        y = leaky_relu(layers[1](layers[0](x)), 0.1)
        y = leaky_relu(layers[4](layers[3](y)), 0.1)
        y = layers[7](layers[6](y))
        x = max_pool2d(leaky_relu(y + block.shortcut(x), 0.1), 2)
    torch.testing.assert_close(network(images), adaptive_avg_pool2d(x, 1).flatten(1))


def test_seed_decides_the_weights_and_leaves_the_global_generator():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (build_network("conv4", seed=seed, width=4) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one.blocks[2][0].weight, same.blocks[2][0].weight)
    assert not torch.equal(one.blocks[2][0].weight, other.blocks[2][0].weight)


@pytest.mark.parametrize("network", [Conv4(3, 5, 40), ResNet12(1, (2, 3))])
def test_description_builds_the_same_network(network):
    architecture, settings = describe_network(network)
    again = build_network(architecture, **settings)
    shapes = {name: tensor.shape for name, tensor in network.state_dict().items()}
    assert shapes == {name: tensor.shape for name, tensor in again.state_dict().items()}


@pytest.mark.parametrize(
    ("architecture", "settings", "message"),
    [
        ("conv5", {}, r"there is no architecture 'conv5'"),
        (4, {}, r"there is no architecture 4"),
        ("conv4", {"depth": 4}, r"no setting 'depth'; it has 'in_channels', 'width', 'size'"),
        ("conv4", {"size": 15}, r"size of conv4 must be a whole number of 16 or more, not 15"),
        ("conv4", {"width": 0}, r"width of conv4 must be a whole number of 1 or more, not 0"),
        ("conv4", {"in_channels": True}, r"in_channels of conv4 .* not True"),
        ("resnet12", {"widths": []}, r"widths of resnet12 must be a list of whole numbers"),
        ("resnet12", {"widths": [8, 0.5]}, r"every item of widths of resnet12 .* not 0.5"),
    ],
)
def test_bad_settings(architecture, settings, message):
    with pytest.raises(InputError, match=message):
        build_network(architecture, **settings)


def test_an_architecture_is_given_the_size_of_images_where_it_depends_on_it():
    conv4 = network_for_images("conv4", 2, 33, seed=0, width=6)
    same = build_network("conv4", in_channels=2, size=33, seed=0, width=6)
    assert conv4.settings == same.settings
    assert all(map(torch.equal, conv4.state_dict().values(), same.state_dict().values()))
    assert network_for_images("resnet12", 2, 33, widths=[4]).settings["in_channels"] == 2
    with pytest.raises(InputError, match="there is no architecture 'vgg'"):
        network_for_images("vgg", 1, 28)


def test_conv4_refuses_images_of_another_size():
    with pytest.raises(InputError, match=r"\(n, 1, 28, 28\), not \(2, 1, 32, 32\)"):
        Conv4()(torch.zeros(2, 1, 32, 32))


def test_only_registered_networks_can_be_described():
    with pytest.raises(InputTypeError, match=r"a Linear cannot be saved; only .*'conv4'"):
        describe_network(nn.Linear(2, 2))
