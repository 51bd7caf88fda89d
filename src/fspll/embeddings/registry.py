"""Encoders by name, and the encoder for whatever a user has: one registry for every room."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fspll._common.errors import CheckpointError, InputError, InputTypeError, MissingPackageError
from fspll._common.registry import Registry
from fspll.embeddings.encoders.base import CustomEncoder, Encoder, EncoderEntry

if TYPE_CHECKING:
    import torch

    from fspll.embeddings.encoders.network import NetworkEncoder
    from fspll.embeddings.inputs import InputSpec

WEIGHTS = Path(__file__).parent / "weights"
_TAKES = {"image": "pictures", "text": "texts", "vector": "vectors", None: "any samples"}


def packaged_networks(folder: Path) -> dict[str, EncoderEntry]:
    """Return an entry for every checkpoint in a folder, named after its file."""
    return {
        path.stem: EncoderEntry(
            partial(load_network, path), partial(_describe_file, path), modality="image"
        )
        for path in sorted(folder.glob("*.safetensors"))
    }


def load_network(
    path: Path | str, name: str | None = None, *, device: str | torch.device = "auto"
) -> NetworkEncoder:
    """Return the encoder of a checkpoint file, named after the file unless a name is given."""
    from fspll.embeddings.checkpoints import load_checkpoint
    from fspll.embeddings.encoders.network import NetworkEncoder

    path = Path(path).expanduser()
    found = load_checkpoint(path)
    if "base" in found.metadata:
        from fspll.embeddings.stored import restore_head

        return restore_head(found, name or path.stem, device, str(path))
    return NetworkEncoder(
        found.network, found.input_spec, name or path.stem, device=device, metadata=found.metadata
    )


def _describe_file(path: Path) -> tuple[str, str, str]:
    from fspll.embeddings.checkpoints import read_metadata

    try:
        metadata = read_metadata(path)
        size, channels = (metadata["input_spec"][key] for key in ("size", "channels"))
        plan = metadata["training"]["plan"]
        data, steps = metadata["training"]["data"], metadata["training"]["steps"]
        extra = ", ".join(map(str, plan["r"]))
        return (
            str(metadata["architecture"]),
            f"{'gray' if channels == 1 else 'color'} pictures, as {size}x{size}",
            f"{data}, {plan['regime']}, r = {extra}, {steps} steps",
        )
    except (CheckpointError, KeyError, TypeError):
        return "?", "?", "an unreadable file"


# What a name stands for: an EncoderEntry; or, from other packages, a class or function that makes
# an encoder (called with ``device=`` where it takes that), or the encoder itself.
ENCODERS: Registry[Any] = Registry(
    "encoder",
    "fspll.encoders",
    {
        **packaged_networks(WEIGHTS),
        "efficientnet-lite0": "fspll.embeddings.encoders.photos:LITE0_ENTRY",
        "efficientnet-lite2": "fspll.embeddings.encoders.photos:LITE2_ENTRY",
        "text": "fspll.embeddings.encoders.text:ENTRY",
        "text-multilingual": "fspll.embeddings.encoders.multilingual:ENTRY",
    },
    aliases={"photos": "efficientnet-lite0"},
    expected="an object with a method 'encode', or a class or function that makes one",
    accepts=lambda thing: (
        isinstance(thing, EncoderEntry) or callable(thing) or hasattr(thing, "encode")
    ),
)
"""Every known encoder; other packages add theirs through the group ``fspll.encoders``."""


def load_embedding(
    spec: Any,
    device: str | torch.device = "auto",
    *,
    input_spec: InputSpec | None = None,
) -> Encoder:
    """Return the encoder for whatever names or makes one.

    Parameters
    ----------
    spec : str, path, nn.Module, callable or object with ``encode``
        A name in :data:`ENCODERS` (``fspll models`` lists them), the path of a checkpoint file, a
        network, a function from samples to an array (n, m), or an object whose method ``encode``
        is such a function. An :class:`Encoder` of this package comes back as it is.
    device : str or torch.device, default="auto"
        Where a network computes.
    input_spec : InputSpec, optional
        For an ``nn.Module``: what pictures are turned into. A checkpoint brings its own.

    Examples
    --------
    >>> encoder = load_embedding("omniglot-conv4", device="cpu")
    >>> encoder.encode([[[0.0] * 28] * 28]).shape
    (1, 64)
    >>> load_embedding(lambda texts: [[len(text)] for text in texts]).encode(["ab"]).tolist()
    [[2.0]]
    """
    if isinstance(spec, str) and (name := ENCODERS.find(spec)) is not None:
        return _make(name, device)
    if isinstance(spec, str | Path):
        return load_network(_checkpoint(spec), device=device)
    if isinstance(spec, type):
        raise InputTypeError(f"embedding is the class {spec.__name__}; pass an instance of it")

    from torch import nn

    from fspll.embeddings.encoders.network import NetworkEncoder

    if isinstance(spec, NetworkEncoder | CustomEncoder):
        return spec
    if isinstance(spec, nn.Module) and not hasattr(spec, "encode"):
        return NetworkEncoder(spec, input_spec, device=device)
    if callable(getattr(spec, "encode", spec)):
        return CustomEncoder(spec)
    raise InputTypeError(
        "embedding must be a name, a path, an nn.Module, a callable or an object with a method "
        f"'encode', not a {type(spec).__name__}"
    )


def _make(name: str, device: str | torch.device) -> Encoder:
    entry = ENCODERS.get(name)
    make = entry.make if isinstance(entry, EncoderEntry) else entry
    if hasattr(make, "encode") and not isinstance(make, type):
        made = make
    else:
        takes_device = "device" in inspect.signature(make).parameters
        made = make(device=device) if takes_device else make()
    encoder = load_embedding(made, device)
    if encoder is not made:
        encoder.name = str(getattr(made, "name", None) or name)
    encoder.registered_name = name
    return encoder


def _checkpoint(spec: str | Path) -> Path:
    path = Path(spec).expanduser()
    means_a_file = isinstance(spec, Path) or len(path.parts) > 1 or path.is_file()
    if means_a_file or path.suffix == ".safetensors":
        return path
    raise InputError(
        f"{ENCODERS.unknown(spec, _with_extras())}; the path of a checkpoint file may be given as "
        "well"
    )


def _with_extras() -> str:
    """Return the names of all encoders, with how to install what some of them lack."""
    return ", ".join(
        one.name
        if one.missing is None
        else f"{one.name} (pip install 'fspll[{one.missing.extra}]')"
        for one in list_encoders()
    )


class EncoderInfo(NamedTuple):
    """What a list of encoders says about one of them."""

    name: str
    network: str
    takes: str
    trained_on: str
    missing: MissingPackageError | None  # how to install what it needs
    modality: str | None = None  # "image", "text", "vector", or None for any samples


def list_encoders() -> list[EncoderInfo]:
    """Return what is known about every registered encoder, without making any.

    >>> [one.network for one in list_encoders() if one.name == "omniglot-conv4"]
    ['conv4']
    """
    return [EncoderInfo(name, *_describe(name)) for name in ENCODERS]


def _describe(name: str) -> tuple[str, str, str, MissingPackageError | None, str | None]:
    try:
        entry = ENCODERS.get(name)
    except InputError as error:
        return "?", "?", str(error), None, None
    if isinstance(entry, EncoderEntry):
        return *entry.about(), entry.missing(), entry.modality
    kind = entry if hasattr(entry, "__name__") else type(entry)
    modality = getattr(entry, "modality", None)
    about = f"see the package {kind.__module__.partition('.')[0]}"
    return kind.__name__, _TAKES.get(modality, "?"), about, None, modality
