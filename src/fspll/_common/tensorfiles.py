"""Tensors with JSON metadata in one safetensors file: how every model of the package is kept.

The header of a file has three entries: ``format`` (what kind of model this is), ``format_version``
and ``metadata`` (JSON). Nothing is ever unpickled. Equal contents make equal files, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fspll._common.errors import CheckpointError, InputTypeError
from fspll._common.files import write_beside
from fspll._common.reading import check_plain_file
from fspll._common.version import __version__
from fspll._common.words import printable

TYPES = {  # what a file calls them
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.complex64: "C64",
    torch.bool: "BOOL",
}


@dataclass(frozen=True)
class FileFormat:
    """A kind of model file.

    Attributes
    ----------
    name : str
        What the header says, e.g. ``"fspll-embedding"``.
    version : int
        Newer files are refused, older ones are read.
    noun : str
        For messages, e.g. ``"an embedding"``.
    """

    name: str
    version: int
    noun: str

    def write(
        self, path: Path | str, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
    ) -> None:
        """Write a file, beside the target first and then renamed."""
        header = {
            "format": self.name,
            "format_version": str(self.version),
            "metadata": json.dumps(as_json(metadata)),
        }
        contents = {name: plain(tensor) for name, tensor in tensors.items()}
        with write_beside(path) as beside:
            save_file(contents, beside, metadata=header)

    def read(
        self, path: Path | str, *, with_tensors: bool = True
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors and the metadata of a file of this kind.

        Raises
        ------
        CheckpointError
            When the file is missing, damaged, of another kind or of a newer format.
        """
        path = Path(path)
        try:
            if path.exists():
                check_plain_file(path, "a model file", error=CheckpointError)
                if printable(str(path)) != str(path):
                    raise CheckpointError(f"{path} cannot be opened: its name is not UTF-8 text")
            with safe_open(path, framework="pt") as file:
                metadata = self._parse_header(file.metadata() or {}, path)
                # Copies: the tensors of an open file are views of the mapped file itself.
                names = list(file.keys()) if with_tensors else []
                return {name: file.get_tensor(name).clone() for name in names}, metadata
        except FileNotFoundError as error:
            raise CheckpointError(f"there is no model file {path}") from error
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        except SafetensorError as error:
            raise CheckpointError(f"{path} {_what_is_wrong(path)} ({error})") from error

    def _parse_header(self, header: Mapping[str, str], path: Path) -> dict[str, Any]:
        if header.get("format") != self.name:
            raise CheckpointError(
                f"{path} is a safetensors file, but not {self.noun} that fspll saved"
            )
        version = header.get("format_version", "")
        if not version.isdecimal() or len(version) > 9:
            raise CheckpointError(f"{path} is damaged: its format version is {version[:20]!r}")
        if int(version) > self.version:
            raise CheckpointError(
                f"{path} has format version {version}, but this fspll {__version__} reads up to "
                f"{self.version}; install a newer fspll"
            )
        try:
            metadata = json.loads(header.get("metadata", ""))
        except (ValueError, RecursionError) as error:  # the latter: brackets without end
            raise CheckpointError(f"{path} is damaged: its metadata is not JSON") from error
        if not isinstance(metadata, dict):
            raise CheckpointError(f"{path} is damaged: its metadata is not a JSON object")
        return metadata


def save_file(
    contents: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors in the safetensors format: the same bytes for the same contents.

    The function of this name in the safetensors package shuffles the metadata, writes to a
    temporary file of its own that a killed process leaves behind, and lets nobody but the owner
    read the result.

    Parameters
    ----------
    contents : mapping of str to Tensor
        Contiguous, on the CPU.
    path : Path
    metadata : mapping of str to str, optional
    """
    header: dict[str, Any] = {"__metadata__": dict(sorted((metadata or {}).items()))}
    # Wide types first: every tensor then begins at a multiple of its own width.
    ordered = sorted(contents, key=lambda name: (-contents[name].element_size(), name))
    end = 0
    for name in ordered:
        tensor = contents[name]
        if tensor.dtype not in TYPES:
            raise InputTypeError(f"{name} is {tensor.dtype}, which a model file cannot hold")
        start, end = end, end + tensor.nbytes
        kind, shape = TYPES[tensor.dtype], list(tensor.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in ordered:
            file.write(tensor_bytes(contents[name]))


def tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the values of a contiguous tensor on the CPU as bytes, little-endian."""
    if sys.byteorder == "big" and tensor.element_size() > 1:
        width = tensor.element_size()
        tensor = tensor.reshape(-1).view(torch.uint8).reshape(-1, width).flip(1)
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Hash names, and values byte by byte, in the order of the names."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(tensor_bytes(tensors[name].detach().cpu().contiguous()))
    return found.hexdigest()


def format_of(path: Path | str) -> str | None:
    """Return the name of a model file's format; None where it cannot be read."""
    try:
        if not Path(path).is_file():
            return None
        with safe_open(path, framework="pt") as file:
            return (file.metadata() or {}).get("format")
    except (OSError, SafetensorError):
        return None  # whoever reads the file says what is wrong


def as_json(metadata: Mapping[str, Any], what: str = "the settings") -> dict[str, Any]:
    """Send metadata through JSON and back, so that what is used now is what a reader will find."""
    try:
        return json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{what} cannot be written as JSON: {error}") from error


def plain(tensor: Tensor) -> Tensor:
    """Copy to contiguous memory of its own on the CPU; safetensors takes no other tensors."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _what_is_wrong(path: Path) -> str:
    """Say in words why safetensors refused a file, from its first bytes."""
    with path.open("rb") as file:
        start = file.read(9)
    if not start:
        return "is empty"
    if start[8:] == b"{":  # eight bytes of header length, then the JSON header itself
        return "is damaged or cut short"
    if start.startswith((b"PK", b"\x80")):
        return "looks like a pickle or a torch.save file, which fspll never loads"
    return "is not a safetensors file"
