"""The networks this package can build and save, by name."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings.conv4 import Conv4
from fspll.embeddings.conv4_classifier import Conv4Classifier
from fspll.embeddings.resnet12 import ResNet12

ARCHITECTURES: dict[str, type[Conv4] | type[ResNet12] | type[Conv4Classifier]] = {
    network.architecture: network for network in (Conv4, ResNet12, Conv4Classifier)
}


def build_network(architecture: str, *, seed: int | None = None, **settings: Any) -> nn.Module:
    """Build a network of a registered architecture with fresh weights.

    Parameters
    ----------
    architecture : {"conv4", "resnet12", "conv4-classifier"}
        Name of the architecture.
    seed : int, optional
        Seed of the initial weights; torch's global generator is left as it was. Without a seed
        the weights come from the global generator, as for any torch module.
    **settings
        Arguments of the architecture's constructor, e.g. ``in_channels=3``.

    Returns
    -------
    nn.Module
        With ``n_features``, ``architecture`` and ``settings`` (JSON-able) as attributes.

    Examples
    --------
    >>> network = build_network("conv4", in_channels=3, size=84, seed=0)
    >>> network.n_features, network.settings
    (1600, {'in_channels': 3, 'width': 64, 'size': 84})
    """
    kind = ARCHITECTURES.get(architecture) if isinstance(architecture, str) else None
    if kind is None:
        raise InputError(
            f"no architecture is called {architecture!r}; there are {_listed(ARCHITECTURES)}"
        )
    known = list(inspect.signature(kind).parameters)
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise InputError(
            f"{architecture} has no setting {_listed(unknown)}; it has {_listed(known)}"
        )
    if seed is None:
        return kind(**settings)
    # The weights are drawn on the CPU, so no accelerator's generator needs to be kept.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return kind(**settings)


def describe_network(network: nn.Module) -> tuple[str, dict[str, Any]]:
    """Return the architecture's name and settings, such that ``build_network`` makes it again."""
    for name, kind in ARCHITECTURES.items():
        if type(network) is kind:
            return name, dict(network.settings)
    raise InputTypeError(
        f"a {type(network).__name__} cannot be saved; "
        f"only the architectures {_listed(ARCHITECTURES)} can be built again from a file"
    )


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
