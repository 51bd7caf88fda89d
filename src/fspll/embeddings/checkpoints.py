"""Networks in files: safetensors with JSON metadata, never a pickle.

A checkpoint file holds the network's tensors under ``network.``, whatever else the caller wants to
keep (an optimizer's state, say) under ``extra.``, in the shape of :mod:`fspll._common.tensorfiles`.
The same tensors and metadata can be part of another file: see :func:`network_to_tensors` and
:func:`network_from_tensors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fspll._common.errors import CheckpointError, InputError
from fspll._common.tensorfiles import FileFormat, as_json, digest, plain
from fspll._common.version import __version__
from fspll._common.words import counted
from fspll.embeddings.inputs import InputSpec
from fspll.embeddings.networks.architectures import build_network, describe_network

FORMAT = FileFormat("fspll-embedding", version=1, noun="an embedding")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network read from a file.

    Attributes
    ----------
    network : nn.Module
        In eval mode, on the CPU.
    input_spec : InputSpec or None
        The pictures it was trained on; None when the writer did not say.
    metadata : dict
        ``package_version``, ``architecture``, ``settings``, ``input_spec``, ``training``,
        ``sha256``.
    extra : dict of str to Tensor
        What the writer kept besides the network.
    """

    network: nn.Module
    input_spec: InputSpec | None
    metadata: dict[str, Any]
    extra: dict[str, Tensor] = field(default_factory=dict)


def save_checkpoint(
    path: Path | str,
    network: nn.Module,
    *,
    input_spec: InputSpec | None,
    training: Mapping[str, Any] | None = None,
    extra: Mapping[str, Tensor] | None = None,
    base: Mapping[str, Any] | None = None,
) -> None:
    """Write a network to a file, beside it first and then renamed.

    Parameters
    ----------
    path : path
        The file; an old one is replaced once the new one is whole.
    network : nn.Module
        Of a registered architecture, on any device.
    input_spec : InputSpec or None
        The pictures it was trained on; None leaves their preparation to the reader.
    training : mapping, optional
        How it was trained; anything that JSON can hold.
    extra : mapping of str to Tensor, optional
        Further tensors to keep in the same file.
    base : mapping, optional
        For a head: what :func:`fspll.embeddings.describe_encoder` says of the encoder below it,
        whose tensors are then the ``extra`` ones.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tiny.safetensors"
    ...     save_checkpoint(path, build_network("conv4", width=4), input_spec=InputSpec(28, 1))
    ...     load_checkpoint(path).input_spec
    InputSpec(size=28, channels=1, polarity=None)
    """
    tensors, metadata = network_to_tensors(network, input_spec, training)
    contents = {f"network.{name}": tensor for name, tensor in tensors.items()}
    contents |= {f"extra.{name}": tensor for name, tensor in (extra or {}).items()}
    if base is not None:
        metadata["base"] = as_json(base, "the description of the encoder")
    FORMAT.write(path, contents, metadata)


def load_checkpoint(path: Path | str) -> Checkpoint:
    """Read a network that :func:`save_checkpoint` wrote.

    Raises
    ------
    CheckpointError
        When the file is missing, damaged, of another kind, of a newer format, or does not hold
        the network its metadata describes; the message names the file.
    """
    tensors, metadata = FORMAT.read(path)
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "extra": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    network, input_spec = network_from_tensors(parts["network"], metadata, source=str(path))
    return Checkpoint(network, input_spec, metadata, parts["extra"])


def read_metadata(path: Path | str) -> dict[str, Any]:
    """Return a checkpoint's metadata without reading its tensors."""
    return FORMAT.read(path, with_tensors=False)[1]


def network_to_tensors(
    network: nn.Module, input_spec: InputSpec | None, training: Mapping[str, Any] | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Take a network apart into tensors and metadata that any safetensors file can hold.

    Returns
    -------
    tensors : dict of str to Tensor
        Contiguous copies on the CPU; safetensors takes no others.
    metadata : dict
        JSON-able; :func:`network_from_tensors` needs it as it is.
    """
    architecture, settings = describe_network(network)
    tensors = {name: plain(tensor) for name, tensor in network.state_dict().items()}
    metadata = {
        "package_version": __version__,
        "architecture": architecture,
        "settings": settings,
        "input_spec": None if input_spec is None else input_spec.to_dict(),
        "training": dict(training or {}),
        "sha256": digest(tensors),
    }
    return tensors, as_json(metadata, "the training settings")


def network_from_tensors(
    tensors: Mapping[str, Tensor], metadata: Any, *, source: str = "the model"
) -> tuple[nn.Module, InputSpec | None]:
    """Put a network together again from what :func:`network_to_tensors` returned.

    Parameters
    ----------
    tensors, metadata
        As they were returned.
    source : str
        Where they come from, for messages: usually the file's path.

    Returns
    -------
    network : nn.Module
        In eval mode, on the CPU.
    input_spec : InputSpec or None
    """
    needed = {"architecture", "settings", "input_spec"}
    if not isinstance(metadata, dict) or not needed <= set(metadata):
        raise CheckpointError(f"{source} does not say which network it holds")
    architecture, settings = metadata["architecture"], metadata["settings"]
    wanted = metadata["input_spec"]
    try:
        input_spec = None if wanted is None else InputSpec.from_dict(wanted)
        if not isinstance(settings, dict) or {"architecture", "seed"} & set(settings):
            raise InputError(f"its settings are {settings!r}")
        # On the meta device nothing is allocated or drawn: settings of a broken file cannot fill
        # the memory, and torch's global generator does not move.
        with torch.device("meta"):
            network = build_network(architecture, **settings)
    except (InputError, RuntimeError, TypeError) as error:  # the last two: sizes torch cannot hold
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"{source} holds a network that cannot be built: {reason}") from error
    _check_tensors(tensors, network.state_dict(), f"{source} is not a whole {architecture}")
    if metadata.get("sha256") not in (None, digest(tensors)):
        raise CheckpointError(f"{source} is damaged: its weights do not match their checksum")
    network.load_state_dict({name: plain(tensor) for name, tensor in tensors.items()}, assign=True)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network.eval(), input_spec


def _check_tensors(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], complaint: str
) -> None:
    """Refuse tensors whose names, shapes, types or values the network cannot have."""
    missing, surplus = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing:
        count = counted(len(missing), "tensor is", "tensors are")
        raise CheckpointError(f"{complaint}: {count} missing, e.g. {missing[0]}")
    if surplus:
        count = counted(len(surplus), "tensor is", "tensors are")
        raise CheckpointError(f"{complaint}: {count} foreign, e.g. {surplus[0]}")
    for name, tensor in found.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise CheckpointError(
                f"{complaint}: {name} should be {_described(expected[name])}, "
                f"but is {_described(tensor)}"
            )
        if not tensor.isfinite().all():
            raise CheckpointError(f"{complaint}: {name} holds NaN or infinite weights")


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
