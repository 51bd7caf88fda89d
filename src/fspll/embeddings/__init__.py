"""Embeddings: networks, their files, and how pictures become features."""

from fspll.embeddings.architectures import (
    ARCHITECTURES,
    build_network,
    describe_network,
    find_architecture,
    network_for_images,
)
from fspll.embeddings.cached import Encoded, Unreadable, encode_cached
from fspll.embeddings.checkpoints import (
    Checkpoint,
    load_checkpoint,
    network_from_tensors,
    network_to_tensors,
    read_metadata,
    save_checkpoint,
)
from fspll.embeddings.conv4 import Conv4
from fspll.embeddings.conv4_classifier import Conv4Classifier
from fspll.embeddings.encoder import (
    PHOTOS,
    TEXT,
    Embedding,
    Encoder,
    FunctionEncoder,
    available_models,
    load_embedding,
)
from fspll.embeddings.inputs import InputSpec, image_tensor, prepare_images
from fspll.embeddings.photos import PhotoEncoder, photo_encoder
from fspll.embeddings.resnet12 import ResNet12
from fspll.embeddings.standardize import Standardize, standardizer
from fspll.embeddings.text import TextEncoder, text_encoder
from fspll.embeddings.untrained import untrained_encoder

# Like the other networks, it can be built again from a file.
ARCHITECTURES[Standardize.architecture] = Standardize  # type: ignore[assignment]

__all__ = [
    "ARCHITECTURES",
    "Checkpoint",
    "Conv4",
    "Conv4Classifier",
    "Embedding",
    "Encoded",
    "Encoder",
    "FunctionEncoder",
    "InputSpec",
    "PHOTOS",
    "PhotoEncoder",
    "ResNet12",
    "Standardize",
    "TEXT",
    "TextEncoder",
    "Unreadable",
    "available_models",
    "build_network",
    "describe_network",
    "encode_cached",
    "find_architecture",
    "image_tensor",
    "load_checkpoint",
    "load_embedding",
    "network_for_images",
    "network_from_tensors",
    "network_to_tensors",
    "photo_encoder",
    "prepare_images",
    "read_metadata",
    "save_checkpoint",
    "standardizer",
    "text_encoder",
    "untrained_encoder",
]
