"""Conv4: the small convolutional network of the few-shot literature, and with a head for MAML.

Shapes: n images, C channels, S pixels per side, m features.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from fspll._common.arguments import check_count
from fspll._common.errors import InputError
from fspll.embeddings.networks.normpool import NormPoolReLU

N_BLOCKS = 4


class Conv4(nn.Module):
    """Embed images with four blocks of convolution, batch norm, ReLU and max-pooling.

    The network of O. Vinyals et al., "Matching Networks for One Shot Learning" (2016), in the form
    of J. Snell, K. Swersky and R. Zemel, "Prototypical Networks for Few-shot Learning" (2017):
    every block is a 3x3 convolution with 64 filters, batch norm, ReLU and a 2x2 max-pool, and the
    last map is flattened. 28x28 gray images give 64 features, 84x84 color images 1600.

    Four departures make it faster and leave the function as it was:

    - the convolutions have no bias, because the batch norm behind them subtracts it again (in eval
      mode too, as soon as the running mean has taken the bias in);
    - batch norm and ReLU act after the max-pool, where a quarter of the values is left: the maximum
      commutes with every non-decreasing function (:mod:`fspll.embeddings.networks.normpool`);
    - in training, the maps of the first convolution are never whole in memory
      (:mod:`fspll.embeddings.networks.firstblock`);
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
        Pixels per side of the square input, at least 16 so that four poolings leave a pixel.

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
        convolution, norm_pool = cast(nn.Sequential, self.blocks[0])
        x = cast(NormPoolReLU, norm_pool).after(cast(nn.Conv2d, convolution), images)
        return self.blocks[1:](x).flatten(1)


class Conv4Classifier(nn.Module):
    """Conv4 features and one linear layer to ``n_way`` scores: what MAML adapts to each task.

    Batch norm always uses the statistics of the batch at hand, in training and in test, as in C.
    Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep
    Networks" (2017): the queries of a task are normalized together.

    Parameters
    ----------
    in_channels, width, size : int
        As for :class:`Conv4`.
    n_way : int, default=5
        Classes per task.

    Examples
    --------
    >>> Conv4Classifier(n_way=3)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    architecture: ClassVar[str] = "conv4-classifier"

    def __init__(
        self, in_channels: int = 1, width: int = 64, size: int = 28, n_way: int = 5
    ) -> None:
        super().__init__()
        check_count(f"n_way of {self.architecture}", n_way, 1)
        self.embedding = Conv4(in_channels, width, size)
        for module in self.embedding.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.track_running_stats = False
                module.running_mean = module.running_var = module.num_batches_tracked = None
        self.n_features = self.embedding.n_features
        self.settings: dict[str, Any] = {**self.embedding.settings, "n_way": n_way}
        self.head = nn.Linear(self.n_features, n_way)

    def forward(self, images: Tensor) -> Tensor:
        """Return scores (n, n_way) of images (n, C, S, S)."""
        return self.head(self.embedding(images))


def _block(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False), NormPoolReLU(after)
    )
