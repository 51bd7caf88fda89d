"""The fused step equals its three parts, forwards, backwards and in its running statistics."""

import pytest
import torch
from torch import nn

from fspll.embeddings.networks.normpool import NormPoolReLU

SHAPES = [(4, 3, 8, 8), (3, 2, 7, 9), (2, 1, 2, 2), (5, 4, 28, 28)]


def three_parts(fused: NormPoolReLU) -> nn.Sequential:
    norm = nn.BatchNorm2d(fused.num_features).to(fused.weight.dtype)
    norm.load_state_dict(fused.state_dict())
    return nn.Sequential(norm, nn.ReLU(), nn.MaxPool2d(2)).train(fused.training)


def make(channels: int, dtype: torch.dtype, sign: float = 1.0) -> NormPoolReLU:
    generator = torch.Generator().manual_seed(0)
    fused = NormPoolReLU(channels).to(dtype)
    with torch.no_grad():
        fused.weight.copy_(torch.rand(channels, generator=generator) + 0.1)
        fused.weight[0] *= sign
        fused.bias.copy_(torch.randn(channels, generator=generator))
    return fused


def maps(shape, dtype, layout=torch.channels_last):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return (3 * x + 5).contiguous(memory_format=layout).requires_grad_()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)])
def test_equals_three_parts(shape, layout, dtype, tolerance):
    fused, x = make(shape[1], dtype), maps(shape, dtype, layout)
    parts = three_parts(fused)
    ours, theirs = fused(x), parts(x)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    grad = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=dtype)
    got = torch.autograd.grad(ours, [x, fused.weight, fused.bias], grad)
    expected = torch.autograd.grad(theirs, [x, parts[0].weight, parts[0].bias], grad)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=10 * tolerance)
    torch.testing.assert_close(dict(fused.state_dict()), dict(parts[0].state_dict()))


def test_gradients_against_finite_differences():
    fused, x = make(2, torch.float64), maps((3, 2, 4, 6), torch.float64)
    fused.momentum = 0.0  # the running statistics are not part of the function
    assert torch.autograd.gradcheck(fused, (x,))


@pytest.mark.parametrize("way", ["eval", "negative scale", "no running statistics"])
def test_other_ways_equal_three_parts_and_can_be_differentiated_twice(way):
    fused = make(3, torch.float64, -1.0 if way == "negative scale" else 1.0)
    x = maps((4, 3, 6, 6), torch.float64)
    fused.train(way != "eval")
    parts = three_parts(fused)
    if way == "no running statistics":
        for norm in (fused, parts[0]):
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = norm.num_batches_tracked = None
    torch.testing.assert_close(fused(x), parts(x))
    (first,) = torch.autograd.grad(fused(x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.isfinite().all()
    assert second.abs().sum() > 0


def test_the_fast_way_refuses_to_be_differentiated_twice():
    fused, x = make(3, torch.float64), maps((4, 3, 6, 6), torch.float64)
    (first,) = torch.autograd.grad(fused(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.square().sum().backward()
