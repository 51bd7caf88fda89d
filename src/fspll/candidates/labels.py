"""Labels: what may be one, in which order they stand, and how they become a matrix.

Shapes: n samples, l classes. Labels are text or numbers, never both at once: 1 and "1" would look
the same to a reader and be different to the computer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from fspll._common.arguments import is_number
from fspll._common.errors import CandidateError, InputTypeError

SET_TYPES = (set, frozenset, list, tuple, np.ndarray)
HOW_TO_BE_CLEAR = (
    "pass a NumPy array for a 0/1 mask, or a list of Python sets such as [{0, 2}, {1}] for "
    "candidate sets"
)


# -------------------------------------------------------------------- what may be a label


def label_kind(label: Any, where: str) -> str:
    """Return "text" or "numbers"; refuse everything else, and numbers that are not finite."""
    if isinstance(label, str):
        return "text"
    if not is_number(label):
        raise InputTypeError(
            f"{where} holds {label!r} of type {type(label).__name__}; labels are text or numbers"
        )
    # An integer too long for a float is finite; `math.isfinite` could not take it.
    if not isinstance(label, int) and not math.isfinite(label):
        name = "NaN" if label != label else "infinity"
        raise CandidateError(f"{where} holds {name}; labels must be known")
    return "numbers"


def sorted_labels(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return the distinct labels in order; all must be text or all must be numbers."""
    kinds: dict[str, tuple[int, Any]] = {}
    for number, row in enumerate(rows):
        for label in row:
            kinds.setdefault(label_kind(label, f"row {number}"), (number, label))
    if len(kinds) > 1:
        (row_a, a), (row_b, b) = kinds.values()
        raise InputTypeError(
            f"labels mix text and numbers: {a!r} in row {row_a}, {b!r} in row {row_b}; use one kind"
        )
    if not kinds:  # only empty rows; the constructor names the first
        return np.arange(1)
    return np.array(sorted({label for row in rows for label in row}))


def label_column(labels: Any) -> np.ndarray:
    """Return ordinary labels, one per sample, as an array of shape (n,)."""
    if not isinstance(labels, np.ndarray):
        labels = plain_list(labels)
        sorted_labels([[label] for label in labels])  # before NumPy makes 1 and "1" the same
        labels = np.asarray(labels)
    if labels.ndim != 1 and (labels.ndim != 2 or labels.shape[1] != 1):
        raise CandidateError(
            f"labels come as a one-dimensional array, not one of shape {labels.shape}; "
            f"{HOW_TO_BE_CLEAR}"
        )
    labels = column_or_1d(labels, warn=True)
    if labels.dtype == object:
        sorted_labels([[label] for label in labels])
    elif labels.dtype.kind not in "biufU":
        raise InputTypeError(f"labels are text or numbers, not {labels.dtype}")
    elif labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise CandidateError(
            f"Input y contains NaN or infinity, first at row "
            f"{np.flatnonzero(~np.isfinite(labels))[0]}; labels must be known"
        )
    return labels


def refuse_continuous(labels: np.ndarray) -> None:
    """Refuse fractions as labels: a target of regression was passed by mistake."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise CandidateError(
            "Unknown label type: continuous; labels are class names or whole numbers (name the "
            "classes with classes=... if these are their names)"
        )


def as_classes(classes: Any) -> np.ndarray:
    """Return the classes, in the order given, as an array of shape (l,)."""
    if isinstance(classes, str | bytes | set | frozenset) or not isinstance(classes, Iterable):
        raise InputTypeError(
            f"classes must be a list or array of labels in order, not of type "
            f"{type(classes).__name__}"
        )
    names = plain_list(classes)
    if not names:
        raise CandidateError("classes is empty; at least one class is needed")
    kinds = {label_kind(name, "classes"): name for name in names}
    if len(kinds) > 1:
        a, b = kinds.values()
        raise InputTypeError(f"classes mix text and numbers: {a!r} and {b!r}; use one kind")
    # An array of objects would sort and compare one by one, and could not be saved.
    keep = isinstance(classes, np.ndarray) and classes.dtype != object
    return np.asarray(classes if keep else names)


def check_classes(classes: np.ndarray, n_columns: int) -> None:
    """Raise unless there is one class per column and none comes twice."""
    if len(classes) != n_columns:
        raise CandidateError(
            f"classes name {len(classes)} labels but the candidates have {n_columns} columns"
        )
    names, counts = np.unique(classes, return_counts=True)
    if (counts > 1).any():
        raise CandidateError(f"classes name {names[counts > 1].tolist()[0]!r} more than once")


# -------------------------------------------------------------------- labels to matrices


def rows_of_labels(sets: Iterable[Any]) -> list[list[Any]]:
    """Return one list of labels per sample; a bare label becomes a list of one."""
    rows = []
    for number, row in enumerate(plain_list(sets)):
        labels = row.tolist() if isinstance(row, np.ndarray) else row
        labels = plain_list(labels) if isinstance(labels, SET_TYPES) else [labels]
        for label in labels:
            label_kind(label, f"row {number}")
        rows.append(list(dict.fromkeys(labels)))
    return rows


def plain_list(values: Any) -> list[Any]:
    """Return the items, NumPy's scalars as Python's; a text is no list of letters here."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputTypeError(
            f"candidate sets cannot be read from {type(values).__name__}; {HOW_TO_BE_CLEAR}"
        )
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def rows_to_matrix(rows: Sequence[Sequence[Any]], classes: np.ndarray) -> sparse.csr_array:
    """Turn lists of labels into a bool matrix of shape (n, l); an unknown label is an error."""
    column = {label: index for index, label in enumerate(classes.tolist())}
    indices: list[int] = []
    for number, row in enumerate(rows):
        try:
            indices.extend(sorted(column[label] for label in row))
        except (KeyError, TypeError):
            label = next(x for x in row if not _known(x, column))
            shown = ", ".join(map(repr, list(column)[:6])) + (", ..." if len(column) > 6 else "")
            raise CandidateError(
                f"row {number} has the label {label!r}, which is not one of the classes {shown}"
            ) from None
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    flags = np.ones(len(indices), dtype=bool)
    return sparse.csr_array((flags, indices, indptr), shape=(len(rows), len(classes)))


def _known(label: Any, column: dict[Any, int]) -> bool:
    try:
        return label in column
    except TypeError:  # unhashable
        return False


def mask_to_matrix(mask: Any) -> sparse.csr_array:
    """Check an ``(n, l)`` 0/1 mask, dense or sparse, and return it as a bool matrix."""
    if not sparse.issparse(mask):
        mask = np.asarray(mask)
    if mask.ndim != 2:
        raise CandidateError(f"a mask of candidates must be 2-D (n, l), not {mask.ndim}-D")
    if sparse.issparse(mask):
        # The coordinates of a sparse matrix of any format, repeated ones still apart.
        mask = sparse.coo_array(mask)
        values = mask.data
    else:
        values = mask
    strange = np.argwhere(~_is_zero_or_one(values))
    if len(strange):
        first = tuple(strange[0])
        row = mask.coords[0][first] if sparse.issparse(mask) else first[0]
        found = values[first]
        found = found.item() if isinstance(found, np.generic) else found
        raise CandidateError(
            f"a mask of candidates holds 0 and 1 only, but {found!r} was found at row {row}; "
            f"{HOW_TO_BE_CLEAR}"
        )
    # Bool before the repeated coordinates are added up: small integers could overflow.
    matrix = sparse.csr_array(mask.astype(bool))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _is_zero_or_one(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return (values == 0) | (values == 1)
    if values.dtype == object:
        flags = [is_number(value) and (value == 0 or value == 1) for value in values.ravel()]
        return np.array(flags, dtype=bool).reshape(values.shape)
    return np.zeros(values.shape, dtype=bool)
