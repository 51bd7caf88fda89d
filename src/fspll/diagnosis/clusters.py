"""Clusters as they come in: one for every sample, by number or name."""

from __future__ import annotations

from typing import Any

import numpy as np

from fspll._common.arguments import is_number
from fspll._common.errors import InputError, InputTypeError


def read_clusters(clusters: Any, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct clusters and, for every sample, which of them is its own."""
    expected = f"clusters names one cluster for each of the {n} candidate sets"
    try:
        found = np.asarray(clusters)
        if found.dtype == object and found.ndim == 1:
            found = np.array(found.tolist())
    except ValueError:  # what NumPy has to say of lists of different lengths
        raise InputError(f"{expected}, not lists of different lengths") from None
    if found.shape != (n,):
        raise InputError(f"{expected}, an array of shape ({n},), not one of shape {found.shape}")
    if found.dtype.kind not in "biuUT":
        for row, name in enumerate(found.tolist()):
            if not isinstance(name, str) and not (is_number(name) and name == name // 1):
                raise InputTypeError(
                    f"clusters are whole numbers or names, but row {row} holds {name!r:.60}"
                )
    names, inverse = np.unique(found, return_inverse=True)
    if len(names) > n_classes:
        raise InputError(
            f"{len(names)} clusters cannot each have a class of their own out of {n_classes}; "
            f"merge clusters or name all classes"
        )
    return names, inverse
