"""Checks that several files of this folder share."""

from __future__ import annotations

import numpy as np

from fspll._common.errors import InputError


def require_features(
    features: np.ndarray, n_samples: int, owner: str, *, first_index: int = 0
) -> None:
    """Refuse what is not a finite numeric matrix with one row a sample."""
    if features.dtype.kind not in "fiub" or features.ndim != 2:
        raise InputError(
            f"{owner} must return a numeric array of shape (n_samples, n_features), "
            f"not {features.dtype} of shape {features.shape}"
        )
    if len(features) != n_samples:
        raise InputError(f"{owner} returned {len(features)} rows for {n_samples} samples")
    if features.shape[1] == 0:
        raise InputError(f"{owner} returned no features: its result has shape {features.shape}")
    finite = np.isfinite(features).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{owner} returned NaN or infinite features for sample "
            f"{first_index + int(finite.argmin())}"
        )
