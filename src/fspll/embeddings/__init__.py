"""Embeddings: networks, their files, and how pictures become features."""

from fspll.embeddings.architectures import ARCHITECTURES, build_network, describe_network
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
    Embedding,
    Encoder,
    FunctionEncoder,
    available_models,
    load_embedding,
)
from fspll.embeddings.inputs import InputSpec, image_tensor, prepare_images
from fspll.embeddings.photos import PhotoEncoder, photo_encoder
from fspll.embeddings.resnet12 import ResNet12
from fspll.embeddings.untrained import untrained_encoder

__all__ = [
    "ARCHITECTURES",
    "Checkpoint",
    "Conv4",
    "Conv4Classifier",
    "Embedding",
    "Encoder",
    "FunctionEncoder",
    "InputSpec",
    "PHOTOS",
    "PhotoEncoder",
    "ResNet12",
    "available_models",
    "build_network",
    "describe_network",
    "image_tensor",
    "load_checkpoint",
    "load_embedding",
    "network_from_tensors",
    "network_to_tensors",
    "photo_encoder",
    "prepare_images",
    "read_metadata",
    "save_checkpoint",
    "untrained_encoder",
]
