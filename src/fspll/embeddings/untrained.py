"""A network that has learned nothing: the honest zero of every comparison."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fspll.embeddings.architectures import build_network
from fspll.embeddings.encoder import Encoder
from fspll.embeddings.inputs import InputSpec, prepare_images


def untrained_encoder(
    architecture: str, calibrate_on: Any, input_spec: InputSpec, *, seed: int = 0, **settings: Any
) -> Encoder:
    """Return an encoder with random weights and batch statistics taken from some pictures.

    Running statistics of a new network are 0 and 1, so that in eval mode its features would not be
    normalized at all. One pass over pictures of the same kind sets them; no label is read.

    Parameters
    ----------
    architecture : str
        A name of :data:`fspll.embeddings.ARCHITECTURES`.
    calibrate_on : pictures
        Some hundreds are enough.
    input_spec : InputSpec
        What pictures are turned into.
    seed : int
        Of the random weights.
    **settings
        For the network's constructor.
    """
    network = build_network(architecture, seed=seed, **settings)
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # keep this one pass and nothing of the initial 0 and 1
    network.train()
    with torch.no_grad():
        network(prepare_images(calibrate_on, input_spec))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return Encoder(network.eval(), input_spec, f"{architecture}-untrained")
