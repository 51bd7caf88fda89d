"""Embeddings: encoders by name, networks and their files, features that are computed once.

>>> from fspll.embeddings import ENCODERS, load_embedding
>>> "omniglot-conv4" in ENCODERS
True
>>> load_embedding("omniglot-conv4", device="cpu").network.n_features
64
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fspll.embeddings.checkpoints import (
        Checkpoint,
        load_checkpoint,
        read_metadata,
        save_checkpoint,
    )
    from fspll.embeddings.encoders.base import CustomEncoder, Encoder, EncoderEntry
    from fspll.embeddings.encoders.network import NetworkEncoder, untrained_encoder
    from fspll.embeddings.encoders.vectors import standardizer
    from fspll.embeddings.features import Encoded, Unreadable, embed_images, encode_cached
    from fspll.embeddings.inputs import InputSpec, image_tensor, prepare_images
    from fspll.embeddings.networks.architectures import (
        ARCHITECTURES,
        build_network,
        describe_network,
        network_for_images,
    )
    from fspll.embeddings.networks.conv4 import Conv4, Conv4Classifier
    from fspll.embeddings.networks.resnet12 import ResNet12
    from fspll.embeddings.networks.standardize import Standardize
    from fspll.embeddings.registry import ENCODERS, list_encoders, load_embedding
    from fspll.embeddings.stored import describe_encoder, restore_encoder

# Where each public name lives. They are imported when first used: names of encoders can be listed
# and checked without waiting for torch.
_HOME = {
    "ARCHITECTURES": "networks.architectures",
    "Checkpoint": "checkpoints",
    "Conv4": "networks.conv4",
    "Conv4Classifier": "networks.conv4",
    "CustomEncoder": "encoders.base",
    "ENCODERS": "registry",
    "Encoded": "features",
    "Encoder": "encoders.base",
    "EncoderEntry": "encoders.base",
    "InputSpec": "inputs",
    "NetworkEncoder": "encoders.network",
    "ResNet12": "networks.resnet12",
    "Standardize": "networks.standardize",
    "Unreadable": "features",
    "build_network": "networks.architectures",
    "describe_encoder": "stored",
    "describe_network": "networks.architectures",
    "embed_images": "features",
    "encode_cached": "features",
    "image_tensor": "inputs",
    "list_encoders": "registry",
    "load_checkpoint": "checkpoints",
    "load_embedding": "registry",
    "network_for_images": "networks.architectures",
    "prepare_images": "inputs",
    "read_metadata": "checkpoints",
    "restore_encoder": "stored",
    "save_checkpoint": "checkpoints",
    "standardizer": "encoders.vectors",
    "untrained_encoder": "encoders.network",
}

__all__ = [
    "ARCHITECTURES",
    "Checkpoint",
    "Conv4",
    "Conv4Classifier",
    "CustomEncoder",
    "ENCODERS",
    "Encoded",
    "Encoder",
    "EncoderEntry",
    "InputSpec",
    "NetworkEncoder",
    "ResNet12",
    "Standardize",
    "Unreadable",
    "build_network",
    "describe_encoder",
    "describe_network",
    "embed_images",
    "encode_cached",
    "image_tensor",
    "list_encoders",
    "load_checkpoint",
    "load_embedding",
    "network_for_images",
    "prepare_images",
    "read_metadata",
    "restore_encoder",
    "save_checkpoint",
    "standardizer",
    "untrained_encoder",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"fspll.embeddings.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fspll.embeddings' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
