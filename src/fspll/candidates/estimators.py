"""What every estimator of the package does alike: reading X, and scoring.

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
from sklearn.utils.validation import check_consistent_length, validate_data

from fspll._common.arguments import is_flag, is_number
from fspll._common.errors import InputError, InputTypeError
from fspll.candidates.labels import SET_TYPES, label_column
from fspll.candidates.sets import Candidates

_ROWS_AT_ONCE = 1 << 16


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
    for start in range(0, len(X), _ROWS_AT_ONCE):  # X may be a file that memory does not hold
        strange = np.argwhere(~np.isfinite(X[start : start + _ROWS_AT_ONCE]))
        if len(strange):
            row, feature = strange[0]
            name = "NaN" if np.isnan(X[start + row, feature]) else "infinity"
            raise InputError(
                f"Input X contains {name} at row {start + row}, feature {feature}; every feature "
                f"must be a known number"
            )
    limit = largest_coordinate(X.shape[1], X.dtype)
    largest = max(-X.min(), X.max())
    if largest > limit:
        raise InputError(
            f"the largest feature is {largest:.3g}, too large to take distances in "
            f"{X.dtype}; multiply the features by a number that brings them closer to 1"
        )
    return X


def largest_coordinate(n_features: int, dtype: Any) -> float:
    """Return the magnitude up to which squared distances of vectors do not overflow."""
    return np.sqrt(np.finfo(dtype).max / n_features) / 4


def check_lengths(n_samples: int, candidates: Candidates) -> None:
    """Raise unless there is one candidate set per sample."""
    if len(candidates) != n_samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has "
            f"{n_samples} rows but y has {len(candidates)} candidate sets"
        )


def read_target(y: Any, classes: np.ndarray) -> np.ndarray | Candidates:
    """Return what predictions are scored against: true labels of shape (n,), or candidate sets.

    Parameters
    ----------
    y : labels of shape (n,), or candidate sets as in :meth:`fspll.candidates.Candidates.read`
        Sets may name labels that are no class of the estimator, as a held-out fold can; no
        prediction hits those.
    classes : array of shape (l,)
        The classes of the estimator, for the columns of a mask.
    """
    if not _holds_candidate_sets(y):
        return label_column(np.asarray(y) if hasattr(y, "__array__") else y)
    return Candidates.read(y, classes if _is_bare_mask(y) else None)


def score_predictions(
    target: np.ndarray | Candidates, predicted: np.ndarray, sample_weight: Any = None
) -> float:
    """Return the share of predictions that are right, or that are among the candidates.

    Parameters
    ----------
    target : array of shape (n,) or Candidates
        What :func:`read_target` returned.
    predicted : array of shape (n,)
        Predicted labels; None, where an estimator abstains, is never a hit.
    sample_weight : array of shape (n,), optional

    Examples
    --------
    >>> sets = read_target([{"a", "b"}, {"a"}], np.array(["a", "b"]))
    >>> score_predictions(sets, np.array(["b", "b"]))
    0.5
    """
    if isinstance(target, Candidates):
        check_lengths(len(predicted), target)
        column = {label: index for index, label in enumerate(target.classes.tolist())}
        sets = np.split(target.matrix.indices, target.matrix.indptr[1:-1])
        hits = [
            column.get(label) in row for label, row in zip(predicted.tolist(), sets, strict=True)
        ]
    elif predicted.dtype == object:
        with own_errors():
            check_consistent_length(target, predicted)
        hits = [a == b for a, b in zip(predicted, target, strict=True)]
    else:
        with own_errors():
            return float(accuracy_score(target, predicted, sample_weight=sample_weight))
    with own_errors():
        return float(accuracy_score(np.ones(len(hits), bool), hits, sample_weight=sample_weight))


def _holds_candidate_sets(y: Any) -> bool:
    if isinstance(y, Candidates) or sparse.issparse(y):
        return True
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        if y.ndim == 2:
            return y.shape[1] > 1
    return isinstance(y, Iterable) and any(isinstance(label, SET_TYPES) for label in y)


def _is_bare_mask(y: Any) -> bool:
    """Tell a 0/1 mask whose columns have no names from everything else that holds sets."""
    if isinstance(y, Candidates) or hasattr(y, "columns"):
        return False
    if sparse.issparse(y):
        return True
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        return y.ndim == 2 and all(is_number(value) for value in y[:1].ravel())
    return all(isinstance(row, list | tuple | np.ndarray) and all(map(is_flag, row)) for row in y)
