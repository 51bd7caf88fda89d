"""How an encoder goes into a model file and comes back.

A network of a registered architecture is kept by its tensors, any other registered encoder by its
name, and an adapted encoder by its head and by whatever keeps the encoder below it. A file can name
what is registered where it is read, and nothing else: it never causes the import of another module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fspll._common.devices import choose_device
from fspll._common.errors import CheckpointError, InputError, InputTypeError
from fspll.embeddings.checkpoints import (
    Checkpoint,
    network_from_tensors,
    network_to_tensors,
    save_checkpoint,
)
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.head import AdaptedEncoder
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.networks.architectures import describe_network
from fspll.embeddings.registry import ENCODERS, load_embedding

_BASE = "base."  # before the names of the tensors below a head


def describe_encoder(encoder: Encoder) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the description of which :func:`restore_encoder` makes it again.

    Returns
    -------
    tensors : dict of str to Tensor
        Empty for an encoder that is kept by its name, and for a user's own, which cannot be kept.
    description : dict
        As JSON can hold it: ``name``, ``network`` (what :func:`network_to_tensors` says of it, or
        None) and ``installed`` (whether the name is that of a registered encoder); for an adapted
        encoder also ``base``, the description of the encoder below the head.

    Examples
    --------
    >>> tensors, description = describe_encoder(load_embedding("omniglot-conv4"))
    >>> description["name"], description["network"]["architecture"], len(tensors)
    ('omniglot-conv4', 'conv4', 24)
    """
    name = encoder.registered_name
    if isinstance(encoder, NetworkEncoder) and _can_be_built(encoder):
        adapted = isinstance(encoder, AdaptedEncoder)
        tensors, network = network_to_tensors(
            encoder.network,
            None if adapted else encoder.input_spec,
            encoder.metadata.get("training"),
        )
        description = {"name": encoder.name, "network": network, "installed": False}
        if isinstance(encoder, AdaptedEncoder):
            below, description["base"] = describe_encoder(encoder.base)
            tensors |= {_BASE + name: tensor for name, tensor in below.items()}
        return tensors, description
    return {}, {"name": name or encoder.name, "network": None, "installed": name is not None}


def _can_be_built(encoder: NetworkEncoder) -> bool:
    """Tell whether the tensors say it all: the class of a registered encoder may do more."""
    if encoder.registered_name is not None and type(encoder) is not NetworkEncoder:
        return False
    try:
        describe_network(encoder.network)
    except InputTypeError:
        return False
    return True


def restore_encoder(
    tensors: Mapping[str, Tensor],
    description: Mapping[str, Any],
    device: str | torch.device,
    source: str,
) -> Encoder:
    """Return the encoder that :func:`describe_encoder` described.

    Parameters
    ----------
    tensors, description
        As they were returned.
    device : str or torch.device
        Where to compute; the automatic choice where this machine does not have it.
    source : str
        The file, for messages.

    Raises
    ------
    CheckpointError
        When the description is damaged, or of an encoder that is not registered here.
    MissingPackageError
        When the encoder needs a package that is not installed.

    Examples
    --------
    >>> described = describe_encoder(load_embedding("omniglot-conv4"))
    >>> restore_encoder(*described, device="cpu", source="model.fspll").name
    'omniglot-conv4'
    """
    try:
        name, network = description["name"], description["network"]
    except KeyError as error:
        raise CheckpointError(f"{source} is damaged: it lacks {error}") from error
    if not isinstance(name, str):
        raise CheckpointError(f"{source} is damaged: the name of its embedding is no text")
    try:
        target = choose_device(device)
    except InputError:  # saved on another machine
        target = choose_device("auto")
    if network is not None and "base" in description:
        head = {name: one for name, one in tensors.items() if not name.startswith(_BASE)}
        below = {n.removeprefix(_BASE): t for n, t in tensors.items() if n.startswith(_BASE)}
        module, _ = network_from_tensors(head, network, source=source)
        base = _restore_base(below, description["base"], target, source)
        return AdaptedEncoder(base, module, name, device=target, metadata=network)
    if network is not None:
        module, input_spec = network_from_tensors(tensors, network, source=source)
        return NetworkEncoder(module, input_spec, name, device=target, metadata=network)
    # Earlier files do not say it of every registered encoder.
    if description.get("installed", name in ENCODERS.names()) is not True:
        raise CheckpointError(
            f"{source} was saved with an embedding of your own ({name}), which a file cannot "
            f"hold; give it again (embedding=...)"
        )
    if name not in ENCODERS:
        raise CheckpointError(
            f"{source} needs the encoder {name!r}, which is not registered here; install the "
            f"package that it comes with, or give the encoder (embedding=...)"
        )
    try:
        return load_embedding(name, target)
    except CheckpointError:
        raise
    except InputError as error:  # the package that registers it cannot be imported
        raise CheckpointError(f"{source} needs the encoder {name!r}: {error}") from error


# -------------------------------------------------------------------- heads in checkpoint files


def save_encoder(path: Path | str, encoder: NetworkEncoder) -> None:
    """Write an encoder to a checkpoint file, with what keeps the encoder below a head.

    Raises
    ------
    InputError
        When the encoder below is one of the user's own, which a file cannot hold.
    """
    training = encoder.metadata.get("training")
    if not isinstance(encoder, AdaptedEncoder):
        save_checkpoint(path, encoder.network, input_spec=encoder.input_spec, training=training)
        return
    tensors, base = describe_encoder(encoder.base)
    if base["network"] is None and not base["installed"]:
        raise InputError(
            f"{encoder.base.name!r} is an encoder of your own, which a file cannot hold; register "
            "it, or give the name or the checkpoint of another one"
        )
    head = encoder.network
    save_checkpoint(path, head, input_spec=None, training=training, extra=tensors, base=base)


def restore_head(
    found: Checkpoint, name: str, device: str | torch.device, source: str
) -> AdaptedEncoder:
    """Return the encoder of a checkpoint file that :func:`save_encoder` wrote for a head."""
    base = _restore_base(found.extra, found.metadata["base"], device, source)
    return AdaptedEncoder(base, found.network, name, device=device, metadata=found.metadata)


def _restore_base(
    tensors: Mapping[str, Tensor], description: Any, device: str | torch.device, source: str
) -> Encoder:
    if not isinstance(description, dict):
        raise CheckpointError(f"{source} is damaged: it does not say which encoder it adapts")
    return restore_encoder(tensors, description, device, source)
