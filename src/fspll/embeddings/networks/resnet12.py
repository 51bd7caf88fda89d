"""ResNet-12: the larger network of the few-shot literature.

Shapes: n images, C channels, S pixels per side, m features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll._common.errors import InputError

SLOPE = 0.1


class ResNet12(nn.Module):
    """Embed images with four residual blocks of three convolutions, then average the last map.

    The network of K. Lee et al., "Meta-Learning with Differentiable Convex Optimization" (2019),
    a wider form of the one in B. Oreshkin, P. Rodriguez and A. Lacoste, "TADAM" (2018). Each block
    is three times a 3x3 convolution and batch norm, with leaky ReLU (slope 0.1) between them; a
    1x1 convolution with batch norm is the shortcut; their sum goes through leaky ReLU and a 2x2
    max-pool. The global average of the last map gives 640 features whatever the image size.

    Departures: there is no DropBlock, which regularizes long training on many images and is the
    identity at test time; and the last leaky ReLU of a block stands after the pooling, which is
    the same function because leaky ReLU is increasing. As in Conv4, convolutions have no bias,
    tensors are channels-last, and untrained batch norm does nothing in eval mode.

    Parameters
    ----------
    in_channels : int, default=3
        1 for gray images, 3 for color.
    widths : sequence of int, default=(64, 160, 320, 640)
        Filters of each block; every block halves the image.

    Attributes
    ----------
    n_features : int
        m, the last width.
    """

    architecture: ClassVar[str] = "resnet12"

    def __init__(self, in_channels: int = 3, widths: Sequence[int] = (64, 160, 320, 640)) -> None:
        super().__init__()
        check_count("in_channels of resnet12", in_channels, 1)
        if isinstance(widths, str) or not isinstance(widths, Sequence) or not widths:
            raise InputError(f"widths of resnet12 must be a list of whole numbers, not {widths!r}")
        for width in widths:
            check_count("every item of widths of resnet12", width, 1)
        self.settings: dict[str, Any] = {"in_channels": in_channels, "widths": list(widths)}
        self.n_features = widths[-1]
        befores = [in_channels, *widths[:-1]]
        self.blocks = nn.Sequential(
            *(ResidualBlock(before, after) for before, after in zip(befores, widths, strict=True))
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, m) of images (n, C, S, S), S at least 16 for four blocks."""
        images = images.contiguous(memory_format=torch.channels_last)
        return self.blocks(images).mean(dim=(2, 3))


class ResidualBlock(nn.Module):
    """Three convolutions beside a shortcut, then a max-pool that halves the side."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            _convolution(before, after, 3),
            nn.BatchNorm2d(after),
            nn.LeakyReLU(SLOPE),
            _convolution(after, after, 3),
            nn.BatchNorm2d(after),
            nn.LeakyReLU(SLOPE),
            _convolution(after, after, 3),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Sequential(_convolution(before, after, 1), nn.BatchNorm2d(after))
        self.finish = nn.Sequential(nn.MaxPool2d(2), nn.LeakyReLU(SLOPE))

    def forward(self, maps: Tensor) -> Tensor:
        """Return (n, after, S // 2, S // 2) for maps (n, before, S, S)."""
        return self.finish(self.path(maps) + self.shortcut(maps))


def _convolution(before: int, after: int, kernel: int) -> nn.Conv2d:
    layer = nn.Conv2d(before, after, kernel, padding=kernel // 2, bias=False)
    # He initialization for this slope; it matters with twelve layers.
    # (Weights on the meta device have no values, and drawing them costs a second of imports.)
    if not layer.weight.is_meta:
        nn.init.kaiming_normal_(layer.weight, a=SLOPE, mode="fan_out", nonlinearity="leaky_relu")
    return layer
