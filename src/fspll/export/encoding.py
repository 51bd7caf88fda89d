"""From what a graph takes to features: pixels, tokens or vectors, through an encoder's network.

Shapes: n samples, m features, t tokens.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.head import AdaptedEncoder
from fspll.embeddings.encoders.network import NetworkEncoder, parameter_dtype
from fspll.embeddings.encoders.photos import PhotoEncoder
from fspll.embeddings.encoders.text import TextEncoder
from fspll.embeddings.inputs import InputSpec
from fspll.export.pixels import Pixels

DECODE = (
    "Decode each picture to 8-bit RGB, turned the way its camera says and laid on white where it "
    "is transparent; pictures of one call have one size, and the graph resizes them."
)
TOKENIZE = (
    "Cut the texts into tokens with the tokenizer in the metadata (the package tokenizers reads "
    "it): tokens are its ids, mask its attention mask."
)
VECTORS = "Give the features in the order in which the model was fitted."


@dataclass(frozen=True)
class GraphInput:
    """One input of a graph.

    Attributes
    ----------
    name : str
    dtype : torch.dtype
    shape : tuple of str or int
        Names stand for sizes that the caller chooses.
    values : str
        What they mean and where they lie.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[str | int, ...]
    values: str

    def example(self) -> Tensor:
        """Return zeros that the graph is traced with; sizes to choose differ from each other."""
        free = iter((2, 61, 53))
        return torch.zeros(
            [next(free) if isinstance(size, str) else size for size in self.shape],
            dtype=self.dtype,
        )


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a graph gets its features.

    Attributes
    ----------
    network : nn.Module
        From the inputs to features (n, m).
    inputs : list of GraphInput
    before : str
        What has to be done outside of the graph.
    about : dict
        What else the metadata should say.
    """

    network: nn.Module
    inputs: list[GraphInput]
    before: str
    about: dict[str, Any] = field(default_factory=dict)


def vectors(n_features: int, dtype: torch.dtype, about: dict[str, Any]) -> Encoding:
    """Return the encoding of a classifier of vectors: the graph takes features as they are."""
    taken = GraphInput("features", dtype, ("n", n_features), "finite numbers")
    return Encoding(nn.Identity(), [taken], VECTORS, about)


def encoding_of(encoder: Encoder) -> Encoding:
    """Return how a graph computes what ``encoder`` does.

    Raises
    ------
    InputError
        For an encoder whose code this package does not know.
    """
    if isinstance(encoder, AdaptedEncoder):
        below = encoding_of(encoder.base)
        return replace(below, network=_Chain(below.network, _Network(encoder.network)))
    if isinstance(encoder, TextEncoder):
        return _texts(encoder)
    # A class of another package may prepare its samples in its own way.
    if isinstance(encoder, NetworkEncoder) and type(encoder) in (NetworkEncoder, PhotoEncoder):
        if encoder.input_spec is not None:
            return _pictures(encoder, encoder.input_spec)
        if encoder.modality == "vector":
            network: Any = encoder.network
            width = getattr(network, "n_inputs", network.n_features)
            return replace(vectors(width, torch.float32, {}), network=_Network(network))
    raise InputError(
        f"the encoder {encoder.name!r} cannot be exported: it is not known what it does to samples "
        "before its network; export a classifier of its features instead"
    )


def _pictures(encoder: NetworkEncoder, spec: InputSpec) -> Encoding:
    photos = isinstance(encoder, PhotoEncoder)
    cubic = photos and encoder.network.resampling == "bicubic"
    pixels = Pixels(spec, photos=photos, cubic=cubic)
    shape = ("n", "height", "width", 3)
    taken = GraphInput("pixels", torch.uint8, shape, "RGB from 0 to 255")
    about = {"resized_to": spec.size, "channels": spec.channels, "polarity": spec.polarity}
    return Encoding(_Chain(pixels, _Network(encoder.network)), [taken], DECODE, about)


def _texts(encoder: TextEncoder) -> Encoding:
    tokens = GraphInput("tokens", torch.int64, ("n", "t"), "ids of the tokenizer")
    mask = GraphInput("mask", torch.int64, ("n", "t"), "1 for a token, 0 for padding")
    about = {"tokenizer": encoder.tokenizer.to_str()}
    return Encoding(_Sentences(encoder.network), [tokens, mask], TOKENIZE, about)


class _Chain(nn.Module):
    """A network of any number of inputs, and one that takes its features."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.second(self.first(*inputs))


class _Network(nn.Module):
    """A copy of an encoder's network on the CPU, in eval mode, with float32 features."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(network).cpu().eval()
        self.dtype = parameter_dtype(network)
        # Networks that work through a batch in parts say how to take it whole.
        self.embed = getattr(self.network, "embed", self.network)

    def forward(self, samples: Tensor) -> Tensor:
        return self.embed(samples.to(self.dtype)).to(torch.float32)


class _Sentences(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = deepcopy(network).cpu().eval()

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.network(tokens, mask.to(torch.bool)).to(torch.float32)
