"""Embeddings: encoders by name, networks and their files, features that are computed once.

>>> from fspll.embeddings import ENCODERS, load_embedding
>>> "omniglot-conv4" in ENCODERS
True
>>> load_embedding("omniglot-conv4", device="cpu").network.n_features
64
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fspll._common.lazy import lazy_names

if TYPE_CHECKING:
    from fspll.embeddings.checkpoints import (
        Checkpoint,
        load_checkpoint,
        read_metadata,
        save_checkpoint,
    )
    from fspll.embeddings.encoders.base import CustomEncoder, Encoder, EncoderEntry
    from fspll.embeddings.encoders.head import AdaptedEncoder
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
    from fspll.embeddings.networks.whitening import Whitening
    from fspll.embeddings.registry import ENCODERS, list_encoders, load_embedding
    from fspll.embeddings.stored import describe_encoder, restore_encoder, save_encoder

# So that names of encoders can be listed and checked without waiting for torch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "checkpoints": "Checkpoint load_checkpoint read_metadata save_checkpoint",
        "encoders.base": "CustomEncoder Encoder EncoderEntry",
        "encoders.head": "AdaptedEncoder",
        "encoders.network": "NetworkEncoder untrained_encoder",
        "encoders.vectors": "standardizer",
        "features": "Encoded Unreadable embed_images encode_cached",
        "inputs": "InputSpec image_tensor prepare_images",
        "networks.architectures": "ARCHITECTURES build_network describe_network network_for_images",
        "networks.conv4": "Conv4 Conv4Classifier",
        "networks.resnet12": "ResNet12",
        "networks.standardize": "Standardize",
        "networks.whitening": "Whitening",
        "registry": "ENCODERS list_encoders load_embedding",
        "stored": "describe_encoder restore_encoder save_encoder",
    },
)

__all__ = [
    "ARCHITECTURES",
    "AdaptedEncoder",
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
    "Whitening",
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
    "save_encoder",
    "standardizer",
    "untrained_encoder",
]
