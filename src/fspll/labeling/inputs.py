"""What a caller of the library may give to be labeled, as annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from fspll._common.errors import InputTypeError
from fspll.annotations.frames import is_frame
from fspll.annotations.reading import read_annotations
from fspll.annotations.samples import Annotations
from fspll.candidates.estimators import check_lengths
from fspll.candidates.sets import Candidates
from fspll.embeddings.pictures import is_pil_image


def read_data(data: Any) -> tuple[Annotations, np.ndarray]:
    """Return annotations, and their classes as the user has them: names, or numbers."""
    if is_frame(data):
        data = read_annotations(data)
    if isinstance(data, Annotations):
        return data, np.array(data.classes)
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputTypeError(
            "label takes Annotations, as read_annotations returns them, a data frame of candidates "
            "and samples, or a pair (X, candidates)"
        )
    X, y = data
    candidates = Candidates.read(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    check_lengths(n, candidates)
    is_names = not hasattr(X, "dtype") and n and isinstance(X[0], str | Path)
    given = tuple(map(str, X)) if is_names else None
    names = tuple(f"row {row}" for row in range(n))
    return (
        Annotations(
            names=given if given is not None and _are_files(X, given) else names,
            classes=tuple(map(str, candidates.classes.tolist())),
            votes=sparse.csr_array(candidates.matrix.astype(float)),
            origins=names,
            files=given,
            texts=given if given is not None and isinstance(X[0], str) else None,
            features=None if is_names else _as_array(X),
        ),
        candidates.classes,
    )


def _as_array(X: Any) -> np.ndarray:
    """Return samples as one array: of numbers, or of PIL images."""
    if isinstance(X, list | tuple) and X and is_pil_image(X[0]):
        pictures = np.empty(len(X), dtype=object)
        pictures[:] = X
        return pictures
    return X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else np.asarray(X)


def _are_files(X: Any, names: tuple[str, ...]) -> bool:
    return all(isinstance(one, Path) for one in X) and len(set(names)) == len(names)
