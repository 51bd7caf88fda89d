"""EfficientNet-Lite up to its features, rewritten so that the processor waits less for memory.

Four things make it faster than the network it is made of, with the same features up to rounding:
batch norms are part of the convolutions; a convolution, its ReLU6 and the addition after it are one
pass over memory where torch has such kernels; padding that differs between two sides is part of the
kernel; and few pictures are computed at a time, so that feature maps stay in the cache.

Shapes: n pictures, C channels, H rows, W columns, S pixels per side, m features.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad
from torch.nn.utils.fusion import fuse_conv_bn_eval

# (pixel - 127) / 128 for pixels from 0 to 255, as the lite variants were trained. The builder's own
# example has the mean and standard deviation of ImageNet's colors instead. On 200 photos of 8
# meta-training classes, 64 pixels per side, the share of right answers among the 1000 classes of
# ImageNet is .32 with these numbers and .15 with those; that of the nearest of 8 class means, 5
# photos each, .78 and .67.
_MEAN, _STD = 127 / 255, 128 / 255
# Pictures at a time for each thread, of 2, 4, 8 and 16 the fastest on one thread and on two.
_BATCH = 4
# Raise it when the same picture gets other features, be it by rounding: part of the fingerprint.
_REVISION = 2
_TOLERANCE = 1e-4  # of the check of torch's own kernels


class PhotoNetwork(nn.Module):
    """EfficientNet-Lite up to the average of its last feature map.

    It takes pictures in [0, 1] of shape (n, 3, S, S), scales their values itself, and computes what
    the package's network computes in eval mode, without dropout and classifier.

    Parameters
    ----------
    model : nn.Module
        The package's network. Its weights are copied.
    resampling : str
        How its pictures are resized, which is part of what it is.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: Any, resampling: str = "bicubic") -> None:
        super().__init__()
        self.layers = nn.Sequential(
            FusedConvolution(model._conv_stem, model._bn0, active=True),
            *(_Block(block) for block in model._blocks),
            FusedConvolution(model._conv_head, model._bn1, active=True),
        )
        self.resampling = resampling
        self.n_features = int(model._conv_head.out_channels)
        self.register_buffer("mean", torch.tensor(_MEAN))
        self.register_buffer("std", torch.tensor(_STD))
        self.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, m) features of (n, 3, S, S) pictures."""
        at_a_time = _BATCH * torch.get_num_threads()
        return torch.cat([self.embed(part) for part in images.split(at_a_time)])

    def embed(self, images: Tensor) -> Tensor:
        """Return the same, computed for all pictures at once."""
        images = images.contiguous(memory_format=torch.channels_last)
        return self.layers((images - self.mean) / self.std).mean(dim=(2, 3))

    def extra_repr(self) -> str:
        """Return what else decides the features: the encoder's fingerprint contains it."""
        return f"resampling={self.resampling!r}, revision={_REVISION}"


class _Block(nn.Module):
    """Widen, filter every channel alone, narrow; add the input where the package does."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        steps = []
        if hasattr(block, "_expand_conv"):
            steps.append(FusedConvolution(block._expand_conv, block._bn0, active=True))
        steps.append(FusedConvolution(block._depthwise_conv, block._bn1, active=True))
        self.steps = nn.Sequential(*steps)
        self.narrow = FusedConvolution(block._project_conv, block._bn2, active=False)
        first = getattr(block, "_expand_conv", block._depthwise_conv)
        same_width = first.in_channels == block._project_conv.out_channels
        self.adds_input = block.id_skip and same_width and max(block._depthwise_conv.stride) == 1

    def forward(self, maps: Tensor) -> Tensor:
        return self.narrow(self.steps(maps), maps if self.adds_input else None)


class FusedConvolution(nn.Module):
    """A convolution and the batch norm after it, in eval mode, as one convolution with a bias.

    Parameters
    ----------
    convolution : nn.Conv2d
        Without a bias; its attribute ``static_padding`` pads its input.
    norm : nn.BatchNorm2d
        Its statistics are used as they are.
    active : bool
        Whether a ReLU6 follows.
    """

    def __init__(self, convolution: Any, norm: Any, *, active: bool) -> None:
        super().__init__()
        # In double precision, so that rounding happens once.
        parts = (deepcopy(part).double().eval() for part in (convolution, norm))
        folded: Any = fuse_conv_bn_eval(*parts).float()
        weight = folded.weight.detach()
        left, right, top, bottom = getattr(folded.static_padding, "padding", (0, 0, 0, 0))
        # A stride of 2 may pad one side more than the other. Zeros before the first row and column
        # of the kernel do the same without a padded copy of the maps.
        weight = pad(weight, (right - left, 0, bottom - top, 0))
        self.weight = nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
        self.bias = nn.Parameter(folded.bias.detach())
        self.padding, self.stride, self.groups = [bottom, right], list(folded.stride), folded.groups
        self.active = active

    def forward(self, maps: Tensor, other: Tensor | None = None) -> Tensor:
        """Return the maps convolved; without a ReLU6, others of that shape may be added."""
        if _may_fuse(maps):
            return _fused(self, maps, other)
        return _plain(self, maps, other)

    def extra_repr(self) -> str:
        """Return what the weights do not say."""
        return (
            f"{tuple(self.weight.shape)}, padding={self.padding}, stride={self.stride}, "
            f"groups={self.groups}, active={self.active}"
        )


def _plain(layer: Any, maps: Tensor, other: Tensor | None) -> Tensor:
    found = conv2d(maps, layer.weight, layer.bias, layer.stride, layer.padding, groups=layer.groups)
    if other is not None:
        return found + other
    return found.clamp(0, 6) if layer.active else found


def _fused(layer: Any, maps: Tensor, other: Tensor | None) -> Tensor:
    """Compute the same in one pass, with the kernels behind torch's compiler."""
    about = layer.weight, layer.bias, layer.padding, layer.stride, [1, 1], layer.groups
    after: Any = ("hardtanh", [0.0, 6.0], "") if layer.active else ("none", [], "")
    kernels = torch.ops.mkldnn._convolution_pointwise
    if other is None:
        return kernels(maps, *about, *after)
    return kernels.binary(maps, other, *about, "add", 1.0, None, [], None)


def _may_fuse(maps: Tensor) -> bool:
    """Tell whether these maps are for the fused kernels: no gradients, and no graph is recorded."""
    return (
        type(maps) is Tensor
        and maps.device.type == "cpu"
        and maps.dtype == torch.float32
        and not maps.requires_grad
        and not torch.jit.is_tracing()
        and not torch.compiler.is_compiling()
        and fused_kernels_work()
    )


@cache
def fused_kernels_work() -> bool:
    """Tell whether torch has fused kernels here, and they compute what they should.

    Their names are not part of torch's public interface, so what they return is checked once.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    wave = torch.arange(2 * 16 * 9 * 9, dtype=torch.float32).sin()
    maps = wave.view(2, 16, 9, 9).contiguous(memory_format=torch.channels_last)
    same = {"bias": wave[:16], "stride": [1, 1]}
    each = {"weight": 9 * wave[:144].view(16, 1, 3, 3), "padding": [1, 1], "groups": 16}
    all_ = {"weight": wave[:256].view(16, 16, 1, 1), "padding": [0, 0], "groups": 1}
    try:
        with torch.inference_mode():
            for layer, other in (
                (SimpleNamespace(**same, **each, active=True), None),
                (SimpleNamespace(**same, **all_, active=False), None),
                (SimpleNamespace(**same, **all_, active=False), maps),
            ):
                found, expected = (f(layer, maps, other) for f in (_fused, _plain))
                if not torch.allclose(found, expected, rtol=0, atol=_TOLERANCE):
                    return False
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True
