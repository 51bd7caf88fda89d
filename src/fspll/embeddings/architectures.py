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
    kind = find_architecture(architecture)
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


def find_architecture(name: str) -> type[Conv4] | type[ResNet12] | type[Conv4Classifier]:
    """Return the class of a network by its name; a wrong name lists the right ones."""
    kind = ARCHITECTURES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"no architecture is called {name!r}; there are {_listed(ARCHITECTURES)}")
    return kind


def network_for_images(
    architecture: str, in_channels: int, size: int, *, seed: int | None = None, **settings: Any
) -> nn.Module:
    """Build a network for images of a size; only architectures that depend on it are given it.

    >>> network_for_images("conv4", 3, 32, width=8).settings
    {'in_channels': 3, 'width': 8, 'size': 32}
    >>> network_for_images("resnet12", 3, 32, widths=[4, 8]).settings
    {'in_channels': 3, 'widths': [4, 8]}
    """
    settings["in_channels"] = in_channels
    if "size" in inspect.signature(find_architecture(architecture)).parameters:
        settings["size"] = size
    return build_network(architecture, seed=seed, **settings)


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
