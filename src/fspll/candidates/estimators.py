"""What every estimator of the package does alike: reading X, and scoring against true labels.

Shapes: n samples, d features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import validate_data

from fspll._common.errors import InputError, InputTypeError
from fspll.candidates import Candidates
from fspll.candidates.labels import SET_TYPES, label_column


@contextmanager
def own_errors() -> Iterator[None]:
    """Pass scikit-learn's complaints on, in its own words, as errors of this package."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
    except TypeError as error:
        raise InputTypeError(str(error)) from error


def checked_vectors(
    estimator: BaseEstimator,
    X: Any,
    *,
    fitting: bool,
    dtype: Sequence[type] = (np.float64, np.float32),
) -> np.ndarray:
    """Check X in scikit-learn's way, with its messages, and that distances can be taken.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose X this is: its number and names of features are set when ``fitting`` and compared
        otherwise.
    X : array of shape (n, d)
    fitting : bool
    dtype : sequence of types
        X keeps a type that is named here and becomes the first one otherwise.
    """
    with own_errors():
        X = validate_data(estimator, X, reset=fitting, dtype=list(dtype), ensure_all_finite=False)
    strange = np.argwhere(~np.isfinite(X))
    if len(strange):
        row, feature = strange[0]
        name = "NaN" if np.isnan(X[row, feature]) else "infinity"
        raise InputError(
            f"Input X contains {name} at row {row}, feature {feature}; every feature must be a "
            f"known number"
        )
    limit = largest_coordinate(X.shape[1], X.dtype)
    if np.abs(X).max() > limit:
        raise InputError(
            f"X holds {np.abs(X).max():.3g}, too large to take distances in {X.dtype}; "
            f"scale the features, e.g. with StandardScaler"
        )
    return X


def largest_coordinate(n_features: int, dtype: Any) -> float:
    """Return the magnitude up to which squared distances of vectors do not overflow."""
    return np.sqrt(np.finfo(dtype).max / n_features) / 4


def check_lengths(n_samples: int, candidates: Candidates) -> None:
    """Raise unless there is one candidate set a sample."""
    if len(candidates) != n_samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has "
            f"{n_samples} rows but y has {len(candidates)} candidate sets"
        )


def true_labels(y: Any) -> np.ndarray:
    """Return true labels as an array of shape (n,); refuse candidate sets."""
    if _holds_candidate_sets(y):
        raise InputTypeError(
            "score compares with true labels; candidate sets do not say which label is right"
        )
    return label_column(np.asarray(y) if hasattr(y, "__array__") else y)


def accuracy(truth: np.ndarray, predicted: np.ndarray, sample_weight: Any = None) -> float:
    """Return the share of hits."""
    with own_errors():
        return accuracy_score(truth, predicted, sample_weight=sample_weight)


def _holds_candidate_sets(y: Any) -> bool:
    if isinstance(y, Candidates) or sparse.issparse(y):
        return True
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        if y.ndim == 2:
            return y.shape[1] > 1
    return isinstance(y, Iterable) and any(isinstance(label, SET_TYPES) for label in y)
