"""Candidate sets in ``.mat`` and ``.npz`` files, mostly with feature vectors.

Shapes: n samples, m features, l classes. Rows of arrays are counted from 0, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from fspll._common.compressed import compressed_problem
from fspll._common.errors import DataError
from fspll._common.reading import check_rows
from fspll._common.words import counted
from fspll.annotations.collecting import Opinion, Options, collect, keep_most, keep_used
from fspll.annotations.features import (
    FEATURE_NAMES,
    SAMPLE_NAMES,
    check_features,
    first_of,
    texts_of,
)
from fspll.annotations.numpyfiles import load_arrays
from fspll.annotations.samples import Annotations
from fspll.annotations.splitting import Splitter
from fspll.annotations.variants import merge_columns

_CANDIDATE_NAMES = ("candidates", "votes", "mask", "partial_target", "labels", "Y", "y")
_SPARSE_NAMES = ("indptr", "indices", "shape")
_CLASS_NAMES = ("classes", "class_names")


def read_mat(path: Path, options: Options) -> Annotations:
    """Read ``data`` and ``partial_target`` of a ``.mat`` file.

    The classes are named by ``options.classes``, in the order of the label matrix, or "0",
    "1" and so on.
    """
    from fspll.datasets.partial_label import load_partial_label_mat

    loaded = load_partial_label_mat(path)
    check_rows(str(path), len(loaded))
    matrix = loaded.candidates.matrix
    votes = matrix.astype(np.float64)
    classes, votes = _class_names(path, options.classes, votes)
    return _assemble(path, votes, classes, names=None, X=loaded.X, options=options)


def read_npz(path: Path, options: Options) -> Annotations:
    """Read candidates, and features where there are any, from an ``.npz`` file.

    ``candidates`` (or ``mask``, ``y``, ...) is a 0/1 mask of shape (n, l), counts in ``votes``, or
    n texts or whole numbers; a large mask may come in the parts of a sparse one, ``indptr``,
    ``indices`` and ``shape``. ``X`` of shape (n, m), ``names`` (n,) and ``classes`` (l,) are
    optional.
    """
    arrays = load_arrays(path)
    check_rows(str(path), max((len(one) for one in arrays.values() if one.ndim), default=0))
    name = first_of(arrays, _CANDIDATE_NAMES)
    stored = texts_of(path, arrays, _CLASS_NAMES)
    names = texts_of(path, arrays, SAMPLE_NAMES)
    in_parts = name is None and all(part in arrays for part in _SPARSE_NAMES)
    # The counts of a sparse mask are called data as well.
    key = first_of(arrays, FEATURE_NAMES[: -1 if in_parts else None])
    X = None if key is None else check_features(arrays[key], f"{path.name}, {key!r}")
    if name is not None and arrays[name].ndim == 1:
        found = _read_column(path, name, arrays[name], names, stored, options)
        return replace(
            found,
            features=None if X is None else _fitting(path, X, found),
            understood=(*found.understood, *_widths(X)),
        )
    if name is not None:
        votes = _dense_votes(path, name, arrays[name])
    elif in_parts:
        votes = _sparse_votes(path, arrays)
    else:
        raise DataError(
            f"{path} has no array of candidates (such as 'candidates' or 'y'); it has "
            f"{', '.join(map(repr, arrays)) or 'none at all'}"
        )
    classes, votes = _class_names(path, options.classes or stored, votes)
    return _assemble(path, votes, classes, names=names, X=X, options=options)


def read_sets(path: Path) -> tuple[list[str] | None, list[str], sparse.csr_array]:
    """Read names, if there are any, classes, and candidates (n, l) of an ``.npz`` file, any n.

    The candidates are a mask of 0 and 1, best in the parts of a sparse one, as
    ``scipy.sparse.save_npz`` writes them; nothing is made per sample but what the file holds.
    """
    arrays = load_arrays(path)
    name = first_of(arrays, _CANDIDATE_NAMES)
    if name is not None:
        votes = _dense_votes(path, name, arrays[name])
    elif all(part in arrays for part in _SPARSE_NAMES):
        votes = _sparse_votes(path, arrays)
    else:
        raise DataError(
            f"{path} has no mask of candidates; it has "
            f"{', '.join(map(repr, arrays)) or 'no arrays at all'}"
        )
    names = texts_of(path, arrays, SAMPLE_NAMES)
    if names is not None and (len(names) != votes.shape[0] or len(set(names)) != len(names)):
        raise DataError(f"{path} must have {votes.shape[0]} different names, one per sample")
    classes, votes = _class_names(path, texts_of(path, arrays, _CLASS_NAMES), votes)
    return names, classes, votes.astype(bool)


def _widths(X: np.ndarray | None) -> tuple[str, ...]:
    return () if X is None else (counted(X.shape[1], "feature"),)


def _fitting(path: Path, X: np.ndarray, annotations: Annotations) -> np.ndarray:
    if len(X) != len(annotations):
        rows = counted(len(X), "row")
        samples = counted(len(annotations), "sample")
        raise DataError(f"{path} has {rows} of features but {samples}")
    return X


def _read_column(
    path: Path,
    key: str,
    column: np.ndarray,
    names: list[str] | None,
    stored: list[str] | None,
    options: Options,
) -> Annotations:
    """Read one text or whole number per sample; numbers count the stored classes, if any."""
    if column.dtype.kind not in "Uiu":
        raise DataError(
            f"{path.name}, {key!r} of shape {column.shape} holds {column.dtype}; expected texts, "
            "whole numbers, or a 0/1 mask of shape (samples, classes)"
        )
    values = column.tolist()
    if names is not None and len(names) != len(values):
        samples = counted(len(values), "sample")
        raise DataError(f"{path} has {samples} but {counted(len(names), 'name')}")
    if stored is not None and column.dtype.kind != "U":
        for row, value in enumerate(values):
            if not 0 <= value < len(stored):
                raise DataError(
                    f"{path.name}, row {row} of {key!r} is {value}, but there are {len(stored)} "
                    "classes"
                )
        values = [[stored[value]] for value in values]
    splitter = Splitter.choose(
        options.delimiter, values, f"{path.name}, {key!r}", labels=stored or options.classes or ()
    )

    def opinion(row: int) -> Opinion:
        labels = splitter.labels(values[row], f"{path.name}, row {row} of {key!r}")
        return Opinion(f"row {row}" if names is None else names[row], labels, f"row {row}")

    understood = (f"labels from {key!r}", str(splitter))
    return collect(path.name, map(opinion, range(len(values))), options, understood=understood)


def _dense_votes(path: Path, key: str, mask: np.ndarray) -> sparse.csr_array:
    if mask.ndim != 2 or mask.dtype.kind not in "buif":
        raise DataError(
            f"{path.name}, {key!r} of shape {mask.shape} holds {mask.dtype}; expected a 0/1 mask "
            "of shape (samples, classes)"
        )
    if 0 in mask.shape:
        raise DataError(f"{path}: {key!r} has no {'rows' if mask.shape[0] == 0 else 'columns'}")
    return _checked(path, key, sparse.csr_array(mask))


def _sparse_votes(path: Path, arrays: Mapping[str, np.ndarray]) -> sparse.csr_array:
    if "format" in arrays and arrays["format"].tolist() not in (b"csr", "csr"):
        raise DataError(f"{path}: the sparse mask must be stored by rows; save it with .tocsr()")
    indptr, indices, shape = (arrays[name] for name in _SPARSE_NAMES)
    data = arrays["data"] if "data" in arrays else np.ones(indices.size)
    usable = shape.shape == (2,) and shape.dtype.kind in "iuf"
    if not usable or not ((shape >= 0) & (shape < 2**62) & (shape == np.floor(shape))).all():
        raise DataError(f"{path.name}, 'shape' must be two whole numbers")
    for name, part, kinds, what in (
        ("data", data, "buif", "numbers"),
        ("indptr", indptr, "iu", "whole numbers"),
        ("indices", indices, "iu", "whole numbers"),
    ):
        if part.dtype.kind not in kinds:
            raise DataError(f"{path.name}, {name!r} holds {part.dtype}, not {what}")
    whole = tuple(int(size) for size in shape)
    problem = compressed_problem(indptr, indices, data.size, whole)
    if problem is not None or data.ndim != 1:
        raise DataError(f"{path}: the sparse mask is damaged: {problem or 'it is a table'}")
    # SciPy narrows indices where they fit; without unsigned ones it need not ask.
    parts = (data, indices.astype(np.int64), indptr.astype(np.int64))
    votes = sparse.csr_array(parts, shape=whole)
    votes.sum_duplicates()
    return _checked(path, "votes", votes)


def _checked(path: Path, key: str, votes: sparse.csr_array) -> sparse.csr_array:
    """Return counts as float64 without stored zeros; refuse what can be no count."""
    allowed = votes.data >= 0 if key == "votes" else (votes.data == 0) | (votes.data == 1)
    allowed &= np.isfinite(votes.data)
    if not allowed.all():
        bad = int(np.argmin(allowed))
        row = int(np.searchsorted(votes.indptr, bad, side="right")) - 1
        expected = "counts" if key == "votes" else "0 and 1"
        raise DataError(
            f"{path.name}, row {row} of {key!r} holds {votes.data[bad]}; only {expected} "
            "are allowed"
        )
    votes = votes.astype(np.float64)
    votes.eliminate_zeros()
    if votes.shape[0] == 0:
        raise DataError(f"{path}: {key!r} has no rows")
    return votes


def _assemble(
    path: Path,
    votes: sparse.csr_array,
    columns: list[str],
    *,
    names: list[str] | None,
    X: np.ndarray | None,
    options: Options,
) -> Annotations:
    n = votes.shape[0]
    if names is not None and (len(names) != n or len(set(names)) != n):
        raise DataError(f"{path} must have {n} different names, one per sample")
    if X is not None and len(X) != n:
        rows = counted(len(X), "row")
        raise DataError(f"{path} has {rows} of features but {counted(n, 'sample')}")
    columns, votes = merge_columns(columns, votes, options.renames)
    majority = options.combine == "majority"
    classes, votes = keep_used(columns, keep_most(votes) if majority else votes)
    return Annotations(
        names=tuple(names or (f"row {row}" for row in range(n))),
        classes=classes,
        votes=votes,
        origins=tuple(f"{path.name}, row {row}" for row in range(n)),
        features=X,
        source=path.name,
        understood=_widths(X),
    )


def _class_names(
    path: Path, given: Sequence[str] | None, votes: sparse.csr_array
) -> tuple[list[str], sparse.csr_array]:
    """Return what the columns stand for; without names of classes, only those that have votes.

    A file may declare far more columns than it has votes for.
    """
    if given is None:
        used, columns = np.unique(votes.indices, return_inverse=True)
        shape = (votes.shape[0], len(used))
        votes = sparse.csr_array((votes.data, columns.reshape(-1), votes.indptr), shape=shape)
        return [str(number) for number in used.tolist()], votes
    n_columns = votes.shape[1]
    if len(given) != n_columns or len(set(given)) != n_columns:
        raise DataError(
            f"{path} has {counted(n_columns, 'column')} of candidates but "
            f"{counted(len(set(given)), 'different class', 'different classes')}"
        )
    return list(given), votes
