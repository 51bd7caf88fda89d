"""The photo networks: what the package's compute, with kernels of torch that may be absent."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from fspll.embeddings.encoders import photo_network
from fspll.embeddings.encoders.photo_network import (
    FusedConvolution,
    PhotoNetwork,
    fused_kernels_work,
)
from fspll.embeddings.encoders.photos import (
    LITE0,
    LITE2,
    load_model,
    missing_package,
    photo_encoder,
    prepare_photos,
)

MODELS = [
    pytest.param(
        model,
        id=model.name,
        marks=pytest.mark.skipif(
            missing_package(model) is not None, reason=f"{model.carrier} is not installed"
        ),
    )
    for model in (LITE0, LITE2)
]


@pytest.fixture(params=["fused", "plain"])
def kernels(request, monkeypatch):
    """Run a test with torch's fused kernels, and without."""
    if request.param == "plain":
        monkeypatch.setattr(photo_network, "fused_kernels_work", lambda: False)
    elif not fused_kernels_work():
        pytest.skip("torch has no fused kernels here")
    return request.param


def make_parts(kernel, padding, stride, groups=1):
    """Return a convolution of 4 channels that pads as the package's do, and a batch norm."""
    generator = torch.Generator().manual_seed(0)
    convolution = nn.Conv2d(4, 4, kernel, stride, groups=groups, bias=False)
    convolution.static_padding = nn.ZeroPad2d(padding) if any(padding) else nn.Identity()
    norm = nn.BatchNorm2d(4).eval()
    tensors = convolution.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var
    for tensor in tensors:
        tensor.data = torch.rand(tensor.shape, generator=generator) + 0.5
    return convolution, norm


@pytest.mark.parametrize(
    ("kernel", "padding", "stride", "groups"),
    [
        (1, (0, 0, 0, 0), 1, 1),
        (3, (1, 1, 1, 1), 1, 4),
        (3, (0, 1, 0, 1), 2, 4),
        (5, (1, 2, 1, 2), 2, 4),
        (5, (2, 2, 2, 2), 2, 1),
    ],
)
def test_one_convolution_is_all_of_them(kernels, kernel, padding, stride, groups):
    convolution, norm = make_parts(kernel, padding, stride, groups)
    maps = torch.randn(3, 4, 12, 12, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = norm(convolution(convolution.static_padding(maps)))
        found = FusedConvolution(convolution, norm, active=False)(maps)
        clipped = FusedConvolution(convolution, norm, active=True)(maps)
        added = FusedConvolution(convolution, norm, active=False)(maps, expected + 1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(clipped, expected.clamp(0, 6), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(added, 2 * expected + 1, rtol=1e-5, atol=1e-5)
    assert expected.min() < 0
    assert expected.max() > 6 or kernel == 1


def test_folding_by_hand(kernels):
    """Weight 3, mean 1, standard deviation 2, scale 4, shift 5: x becomes (3x - 1) / 2 * 4 + 5."""
    convolution, norm = nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0)
    convolution.static_padding = nn.Identity()
    for tensor, value in (
        (convolution.weight, 3),
        (norm.running_mean, 1),
        (norm.running_var, 4),
        (norm.weight, 4),
        (norm.bias, 5),
    ):
        nn.init.constant_(tensor, value)
    x = torch.tensor([-3.0, 0.0, 0.25]).view(1, 1, 1, 3)
    with torch.inference_mode():
        found = FusedConvolution(convolution, norm, active=False)(x)
        clipped = FusedConvolution(convolution, norm, active=True)(x + 0.5)
    torch.testing.assert_close(found.flatten(), torch.tensor([-15.0, 3.0, 4.5]))
    torch.testing.assert_close(clipped.flatten(), torch.tensor([0.0, 6.0, 6.0]))


@pytest.mark.parametrize("model", MODELS)
def test_it_computes_what_the_package_does(model, kernels):
    own = load_model(model)
    noise = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), np.uint8)
    images = prepare_photos(noise, model.spec)
    with torch.inference_mode():
        # Pixels from 0 to 255, less 127, by 128.
        expected = own.extract_features((images * 255 - 127) / 128).mean(dim=(2, 3))
        found = PhotoNetwork(own).eval()(images)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert expected.abs().max() > 1


def test_kernels_that_compute_something_else_are_not_used(monkeypatch):
    if not fused_kernels_work():
        pytest.skip("torch has no fused kernels here")
    real = photo_network._fused
    monkeypatch.setattr(photo_network, "_fused", lambda *args: real(*args) + 1e-3)
    assert not fused_kernels_work.__wrapped__()

    def absent(*args):
        raise AttributeError("'_OpNamespace' 'mkldnn' object has no attribute")

    monkeypatch.setattr(photo_network, "_fused", absent)
    assert not fused_kernels_work.__wrapped__()
    monkeypatch.setattr(photo_network, "_fused", real)
    assert fused_kernels_work.__wrapped__()


def test_what_the_kernels_cannot_do_is_left_to_torch(monkeypatch):
    """Gradients, other number types, and graphs that are recorded."""
    convolution, norm = make_parts(3, (0, 1, 0, 1), 2)
    layer = FusedConvolution(convolution, norm, active=False).requires_grad_(False)
    maps = torch.ones(1, 4, 8, 8)
    expected = layer(maps)

    def refuse(*args):
        raise AssertionError("the fused kernels were called")

    monkeypatch.setattr(photo_network, "_fused", refuse)
    leaf = maps.clone().requires_grad_()
    layer(leaf).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.abs().sum() > 0
    in_double = deepcopy(layer).double()
    torch.testing.assert_close(in_double(maps.double()).float(), expected)
    recorded = torch.export.export(layer, (maps,)).module()
    torch.testing.assert_close(recorded(maps), expected)


@pytest.mark.parametrize("model", MODELS[:1])
def test_features_of_earlier_versions_are_not_mixed_in(model, monkeypatch):
    encoder = photo_encoder(model, device="cpu")
    before = encoder.fingerprint
    monkeypatch.setattr(photo_network, "_REVISION", 1)
    assert encoder.fingerprint != before
