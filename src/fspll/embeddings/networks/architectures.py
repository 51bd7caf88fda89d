"""The networks that can be built by name, and so be saved in a file and built again from it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from fspll._common.errors import InputError, InputTypeError
from fspll._common.registry import Registry

# Each is an nn.Module class with the class attribute ``architecture`` (its name here) and, on its
# instances, ``n_features`` and ``settings`` (the constructor's arguments, as JSON can hold them).
ARCHITECTURES: Registry[type[nn.Module]] = Registry(
    "architecture",
    "fspll.architectures",
    {
        "conv4": "fspll.embeddings.networks.conv4:Conv4",
        "resnet12": "fspll.embeddings.networks.resnet12:ResNet12",
        "conv4-classifier": "fspll.embeddings.networks.conv4:Conv4Classifier",
        "standardize": "fspll.embeddings.networks.standardize:Standardize",
        "whitening": "fspll.embeddings.networks.whitening:Whitening",
    },
)
"""Every known network; a checkpoint names one of them."""


def build_network(architecture: str, *, seed: int | None = None, **settings: Any) -> nn.Module:
    """Build a network of a registered architecture with fresh weights.

    Parameters
    ----------
    architecture : str
        A name in :data:`ARCHITECTURES`, such as "conv4", "resnet12" or "conv4-classifier".
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
    kind = ARCHITECTURES.get(architecture)
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
    if "size" in inspect.signature(ARCHITECTURES.get(architecture)).parameters:
        settings["size"] = size
    return build_network(architecture, seed=seed, **settings)


def describe_network(network: nn.Module) -> tuple[str, dict[str, Any]]:
    """Return the architecture's name and settings, such that ``build_network`` makes it again.

    >>> describe_network(build_network("conv4", width=8))
    ('conv4', {'in_channels': 1, 'width': 8, 'size': 28})
    """
    name: Any = getattr(network, "architecture", None)
    known = isinstance(name, str) and name in ARCHITECTURES
    if known and ARCHITECTURES.get(name) is type(network):
        return name, dict(network.settings)  # type: ignore[arg-type]
    raise InputTypeError(
        f"a {type(network).__name__} cannot be saved; "
        f"only the architectures {_listed(ARCHITECTURES)} can be built again from a file"
    )


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
