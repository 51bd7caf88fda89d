"""NumPy's files, ``.npy`` and ``.npz``, which are not trusted.

NumPy's own reader unpickles on request, unpacks whatever a member holds, and meets damage with
nearly any exception. Here a header is compared with the bytes that are there before an array is
made of them.
"""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path

import numpy as np

from fspll._common.errors import DataError, FsPLLError
from fspll._common.reading import check_plain_file, check_size, read_file
from fspll.datasets.archives import ZipSource

_ZIP, _EMPTY_ZIP, _ARRAY = b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY"
_KIND = "a NumPy file"
_HEADER = 1 << 16  # bytes that hold the header of an array of numbers
_HINT = "it holds Python objects or is not a NumPy file; save plain numbers and texts"


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file, or that of an ``.npy`` file as "X".

    Numbers come in this machine's byte order, with 32 or 64 bits where they are floats. Members of
    an ``.npz`` file that are no arrays are left out.
    """
    content = read_file(path, _KIND)
    if content.startswith(_ARRAY):
        return {"X": _read_array(content, str(path), f"{path.name}, 'X'")}
    if not content.startswith((_ZIP, _EMPTY_ZIP)):
        reason = "it is empty" if not content else _HINT
        raise DataError(f"{path} cannot be read: {reason}")
    del content  # the archive is read from the disk, member by member
    arrays = {}
    try:
        # What it unpacks to counts, in all, and not what each member does.
        with ZipSource(path, max_member=sys.maxsize, max_total=sys.maxsize) as source:
            check_size(str(path), source.size)
            for name in source.names:
                member = source.read(name)
                if member.startswith(_ARRAY):
                    key = name.removesuffix(".npy")
                    where = f"{path.name}, {key!r}"
                    arrays[key] = _read_array(member, f"member {name!r} of {path}", where)
    except DataError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return arrays


def map_array(path: Path) -> np.ndarray:
    """Return the array of an ``.npy`` file, of which only what is looked at is read.

    Float32 or float64 in this machine's byte order and by rows: anything else would be copied.
    """
    size = check_plain_file(path, _KIND).st_size
    with path.open("rb") as file:
        begin = file.read(_HEADER)
    if not begin.startswith(_ARRAY):
        raise DataError(f"{path} is no .npy file, as features that are memory-mapped must be")
    shape, by_columns, dtype, start = _read_header(begin, size, str(path))
    if dtype not in (np.float32, np.float64) or by_columns:
        raise DataError(
            f"{path} holds {dtype} by {'columns' if by_columns else 'rows'}; features that are "
            "memory-mapped must be float32 or float64 by rows: save "
            "np.ascontiguousarray(X, dtype=np.float32)"
        )
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start, shape)


def _read_header(
    content: bytes, size: int, source: str
) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, order, type and first byte of an ``.npy`` file that begins like this.

    ``size`` is that of the whole file, which must hold as much as the header declares.
    """
    try:
        file = io.BytesIO(content)
        version = np.lib.format.read_magic(file)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, by_columns, dtype = read_header(file)
        if dtype.hasobject:
            raise DataError(f"{source} cannot be read: {_HINT}")
        if version > (3, 0) or any(size < 0 for size in shape):
            raise ValueError("its header is damaged")
        if math.prod(shape) * dtype.itemsize > size - file.tell():
            raise ValueError(f"it declares an array of shape {shape}, but is shorter")
        return shape, by_columns, dtype, file.tell()
    except FsPLLError:
        raise
    except Exception as error:  # NumPy's reader of headers documents none
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{source} is not a whole array: {reason}") from error


def _read_array(content: bytes, source: str, where: str) -> np.ndarray:
    """Return the array of the bytes of an ``.npy`` file."""
    shape, by_columns, dtype, begin = _read_header(content, len(content), source)
    count = math.prod(shape)
    try:
        flat = np.frombuffer(content, dtype, count, begin) if count else np.empty(0, dtype)
        flat = native(flat, copy=True)
        if flat.dtype.kind == "U":
            _check_letters(flat, where)
        return flat.reshape(shape, order="F" if by_columns else "C")
    except FsPLLError:
        raise
    except Exception as error:  # whatever the type of a damaged header leads to
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{source} is not a whole array: {reason}") from error


def native(values: np.ndarray, *, copy: bool = False) -> np.ndarray:
    """Return numbers as the rest of the package computes with them.

    Torch and SciPy take no other byte order than this machine's, and neither half nor extended
    precision everywhere.

    >>> native(np.ones(2, dtype=">f4")).dtype, native(np.ones(2, dtype="f2")).dtype
    (dtype('float32'), dtype('float32'))
    """
    dtype = values.dtype.newbyteorder("=")
    if dtype.kind == "f":
        dtype = np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    with np.errstate(over="ignore"):  # infinite then, and refused as such
        return values.astype(dtype, copy=copy)


def _check_letters(texts: np.ndarray, where: str) -> None:
    codes = texts.view(np.uint32)
    if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any():
        raise DataError(f"{where} holds a code of no letter; its texts are damaged")
