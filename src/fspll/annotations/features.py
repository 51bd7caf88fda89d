"""NumPy files, and feature vectors for the samples of a table.

Shapes: n samples, m features. Rows of arrays are counted from 0, as NumPy does.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll.annotations.samples import Annotations

FEATURE_NAMES = ("X", "x", "features", "embeddings", "data")
SAMPLE_NAMES = ("names", "samples", "files")
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file, or that of an ``.npy`` file as "X"."""
    if path.is_dir() or not path.exists():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}")
    try:
        # Opened here: of a damaged file, NumPy leaves its own handle open.
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"X": loaded}
            with loaded:
                return {name: loaded[name] for name in loaded.files}
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0]
        if "pickle" in reason:
            reason = "it holds Python objects or is not a NumPy file; save plain numbers and texts"
        raise DataError(f"{path} cannot be read: {reason}") from error


def load_features(source: Any, annotations: Annotations, table: str) -> Annotations:
    """Give a table's samples their vectors.

    Parameters
    ----------
    source : path or array
        An array of shape (n, m), an ``.npy`` file, or an ``.npz`` file. With ``names`` in it the
        vectors are found by name; otherwise there is one per sample, in the order of the samples.
    annotations : Annotations
        The samples.
    table : str
        The file they come from, for messages.
    """
    if not isinstance(source, str | Path):
        X = check_features(np.asarray(source), "features")
        return replace(annotations, features=_in_order("features", X, annotations, table))
    path = Path(source)
    arrays = load_arrays(path)
    key = first_of(arrays, FEATURE_NAMES) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if key is None:
        raise DataError(
            f"{path} has no array 'X'; it has {', '.join(map(repr, arrays)) or 'none at all'}"
        )
    X = check_features(arrays[key], f"{path.name}, {key!r}")
    names = texts_of(path, arrays, SAMPLE_NAMES)
    if names is None:
        return replace(annotations, features=_in_order(path.name, X, annotations, table))
    if len(names) != len(X):
        raise DataError(f"{path} has {len(X)} vectors but {len(names)} names")
    row = {name: number for number, name in enumerate(names)}
    if len(row) < len(names):
        twice = next(name for n, name in enumerate(names) if row[name] != n)
        raise DataError(f"{path} names {twice!r} more than once")
    for name, origin in zip(annotations.names, annotations.origins, strict=True):
        if name not in row:
            raise DataError(f"{path} has no vector for the sample {name!r} ({origin})")
    return replace(annotations, features=X[[row[name] for name in annotations.names]])


def check_features(values: np.ndarray, where: str) -> np.ndarray:
    """Return finite features of shape (n, m); whole numbers become float64."""
    if values.dtype.kind not in "buif":
        raise DataError(f"{where} holds {values.dtype}, not numbers")
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{where} must be of shape (samples, features), not {values.shape}")
    X = values if values.dtype.kind == "f" else values.astype(np.float64)
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(X[row])))
        raise DataError(
            f"{where}, row {row}, column {column} is {X[row, column]}; features must be finite"
        )
    return X


def _in_order(source: str, X: np.ndarray, annotations: Annotations, table: str) -> np.ndarray:
    if len(X) != len(annotations):
        raise DataError(
            f"{source} has {len(X)} rows but {table} has {len(annotations)} samples; there must be "
            "one vector per sample, in the order in which the samples are first named"
        )
    return X


def first_of(arrays: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the first of the names that is there."""
    return next((name for name in names if name in arrays), None)


def texts_of(
    path: Path, arrays: Mapping[str, np.ndarray], names: Sequence[str]
) -> list[str] | None:
    """Return a list of texts under one of the names, if there is one; numbers become text."""
    key = first_of(arrays, names)
    if key is None:
        return None
    values = arrays[key]
    if values.ndim != 1 or values.dtype.kind not in "Uiu":
        raise DataError(
            f"{path.name}, {key!r} of shape {values.shape} holds {values.dtype}; expected a list "
            "of texts"
        )
    return [str(value).strip() for value in values.tolist()]
