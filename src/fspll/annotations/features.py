"""Which feature vectors can be used, and what NumPy files call them.

Shapes: n samples, m features. Rows of arrays are counted from 0, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError

FEATURE_NAMES = ("X", "x", "features", "embeddings", "data")
SAMPLE_NAMES = ("names", "samples", "files")


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
