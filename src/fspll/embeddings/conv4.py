"""Conv4: the small convolutional network of the few-shot literature.

Shapes: n images, C channels, S pixels a side, m features.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll._common.errors import InputError
from fspll.embeddings.normpool import NormPoolReLU

N_BLOCKS = 4


class Conv4(nn.Module):
    """Embed images with four blocks of convolution, batch norm, ReLU and max-pooling.

    The network of O. Vinyals et al., "Matching Networks for One Shot Learning" (2016), in the form
    of J. Snell, K. Swersky and R. Zemel, "Prototypical Networks for Few-shot Learning" (2017):
    every block is a 3x3 convolution with 64 filters, batch norm, ReLU and a 2x2 max-pool, and the
    last map is flattened. 28x28 gray images give 64 features, 84x84 color images 1600.

    Three departures make it faster and leave the function as it was:

    - the convolutions have no bias, because the batch norm behind them subtracts it again (in eval
      mode too, as soon as the running mean has taken the bias in);
    - batch norm and ReLU act after the max-pool, where a quarter of the values is left: the maximum
      commutes with every non-decreasing function (:mod:`fspll.embeddings.normpool`);
    - weights and maps are kept in the channels-last memory format.

    Before any training, batch norm's running statistics are 0 and 1, so an untrained network in
    eval mode does not normalize at all; its features are usable but small.

    Parameters
    ----------
    in_channels : int, default=1
        1 for gray images, 3 for color.
    width : int, default=64
        Filters of every block.
    size : int, default=28
        Pixels a side of the square input, at least 16 so that four poolings leave a pixel.

    Attributes
    ----------
    n_features : int
        m, ``width * (size // 16) ** 2``.

    Examples
    --------
    >>> Conv4()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64])
    """

    architecture: ClassVar[str] = "conv4"

    def __init__(self, in_channels: int = 1, width: int = 64, size: int = 28) -> None:
        super().__init__()
        check_count("in_channels of conv4", in_channels, 1)
        check_count("width of conv4", width, 1)
        check_count("size of conv4", size, 2**N_BLOCKS)
        self.settings: dict[str, Any] = {"in_channels": in_channels, "width": width, "size": size}
        self.n_features = width * (size // 2**N_BLOCKS) ** 2
        widths = [in_channels] + [width] * N_BLOCKS
        self.blocks = nn.Sequential(*(_block(before, after) for before, after in pairwise(widths)))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, m) of images (n, C, S, S)."""
        channels, size = self.settings["in_channels"], self.settings["size"]
        if images.shape[1:] != (channels, size, size):
            raise InputError(
                f"this conv4 takes images of shape (n, {channels}, {size}, {size}), "
                f"not {tuple(images.shape)}"
            )
        images = images.contiguous(memory_format=torch.channels_last)
        return self.blocks(images).flatten(1)


def _block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False), NormPoolReLU(after)
    )
