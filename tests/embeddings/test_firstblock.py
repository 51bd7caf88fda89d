"""The first block without its map: the same as convolution, batch norm, max-pool and ReLU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import max_pool2d, relu

from fspll.embeddings.networks import firstblock
from fspll.embeddings.networks.normpool import NormPoolReLU


@pytest.fixture
def block():
    generator = torch.Generator().manual_seed(0)

    def make(channels: int) -> tuple[nn.Conv2d, NormPoolReLU]:
        convolution, norm = nn.Conv2d(channels, 5, 3, padding=1, bias=False), NormPoolReLU(5)
        with torch.no_grad():
            convolution.weight.copy_(torch.randn(convolution.weight.shape, generator=generator))
            norm.weight.copy_(torch.rand(5, generator=generator) + 0.5)
            norm.bias.copy_(torch.randn(5, generator=generator))
        return convolution, norm

    return make


def three_parts(convolution: nn.Conv2d, norm: NormPoolReLU, images: torch.Tensor) -> torch.Tensor:
    return relu(max_pool2d(nn.BatchNorm2d.forward(norm, convolution(images)), 2))


@pytest.mark.parametrize("shape", [(7, 1, 28, 28), (6, 3, 17, 20), (1, 2, 8, 8), (40, 3, 6, 6)])
@pytest.mark.parametrize("values", [1, 2_000, 1 << 20])
@pytest.mark.parametrize("level", [0.0, 30.0])
def test_equals_the_parts(block, shape, values, level, monkeypatch):
    monkeypatch.setattr(firstblock, "_MAP_VALUES", values)
    images = torch.rand(shape, generator=torch.Generator().manual_seed(1)) + level
    images = images.contiguous(memory_format=torch.channels_last)
    convolution, norm = block(shape[1])
    exact = [copy.deepcopy(one).double() for one in (convolution, norm)]
    found = norm.after(convolution, images)
    expected = three_parts(*exact, images.double())
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(2))
    (found * weights).sum().backward()
    (expected * weights.double()).sum().backward()
    # At 30 the values of the map are that much larger than their differences.
    close = {"rtol": 1e-4, "atol": 1e-5 if level == 0 else 3e-4}
    torch.testing.assert_close(found.double(), expected, **close)
    for ours, theirs in zip((convolution, norm), exact, strict=True):
        for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            scale = other.grad.abs().max()
            assert (one.grad - other.grad).abs().max() < close["atol"] * 10 * scale, name
        for one, other in zip(ours.buffers(), theirs.buffers(), strict=True):
            torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-4)


def test_the_sums_of_patches():
    images = torch.rand((3, 2, 5, 4), generator=torch.Generator().manual_seed(0))
    gram, total = firstblock.patch_sums(images)
    patches = nn.functional.unfold(images.double(), 3, padding=1)  # channels, rows, columns
    patches = patches.view(3, 2, 9, 20).permute(0, 3, 2, 1).reshape(60, 18)
    torch.testing.assert_close(gram, patches.T @ patches, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(total, patches.sum(dim=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", ["eval", "no running statistics", "negative scale", "no gradient"])
def test_other_ways_take_the_parts(block, way, monkeypatch):
    def refuse(*_):
        raise AssertionError("the fast way was taken")

    monkeypatch.setattr(firstblock.FirstBlock, "apply", refuse)
    convolution, norm = block(1)
    images = torch.rand(4, 1, 8, 8)
    if way == "eval":
        norm.eval()
    elif way == "no running statistics":
        norm.running_mean = norm.running_var = None
    elif way == "negative scale":
        norm.weight.data[2] = -1.0
    with torch.set_grad_enabled(way != "no gradient"):
        expected = three_parts(convolution, copy.deepcopy(norm), images)
        torch.testing.assert_close(norm.after(convolution, images), expected)
