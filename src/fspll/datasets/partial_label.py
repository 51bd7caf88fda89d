"""Real partial-label sets in the ``.mat`` files of the field.

Shapes: n samples, d features, l classes. The files hold ``data`` (n, d) and, with one column
per sample, ``target`` and ``partial_target`` (l, n), dense or sparse, float or uint8.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fspll._common.compressed import compressed_problem
from fspll._common.errors import CandidateError, DataError, InputError
from fspll._common.reading import check_size, max_bytes, read_file
from fspll.datasets.base import DataSet, PartialLabelSet

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Of the level 5 MAT format: types of elements, classes of variables that hold others, a flag.
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}
_CONTAINERS, _SPARSE = {1, 2, 3, 16, 17}, 5
_COMPLEX = 0x0800
# What SciPy calls the variables that are read.
_READABLE = {"double", "single", "logical", "sparse"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
# A sparse matrix may declare any shape. Dense features take memory for all of it: at most so many
# values, or so many for each that is stored.
_DENSE_VALUES, _VALUES_PER_ENTRY = 2**22, 100
_MAX_CLASSES = 2**20


class PartialLabelFile(DataSet):
    """A ``.mat`` file of the field, with feature vectors and the candidate set of each."""

    origin = "M.-L. Zhang's collection of partial-label data sets"
    license = "academic use"
    kind = "vectors"
    folder = "pll"

    def __init__(self, name: str, what: str) -> None:
        self.name = self.title = name
        self.what = what
        self.files = (f"{name}.mat",)
        self.advice = f"not downloadable; place {name}.mat by hand in {{folder}}"

    def load(
        self, split: str = "all", *, root: Path | str | None = None, size: int | None = None
    ) -> PartialLabelSet:
        """Load the whole set; it has no split."""
        if split != "all":
            raise InputError(
                f"{self.name} has no classes to meta-train and others to test on; it is loaded "
                f"whole, with split='all', not {split!r}"
            )
        (path,) = self.require_files(root)
        return load_partial_label_mat(path)

    def inspect(self, files: Mapping[str, Path], thorough: bool) -> str:
        """Read the whole file, thorough or not, as it is small; return what is in it."""
        (path,) = files.values()
        data = load_partial_label_mat(path)
        return f"{len(data)} samples, {data.X.shape[1]} features, {data.n_classes} classes"


LOST = PartialLabelFile(
    "lost", "faces in a television series, with the names in the script as candidates"
)
MSRCV2 = PartialLabelFile(
    "MSRCv2", "image segments, with the labels of the whole image as candidates"
)


def load_partial_label_mat(path: Path | str) -> PartialLabelSet:
    """Load a partial-label set such as Lost or MSRCv2 from a ``.mat`` file.

    Parameters
    ----------
    path : path
        File with ``data`` (n, d), ``partial_target`` (l, n) and, where the truth is known,
        ``target`` (l, n). Label matrices with one row per sample are recognized by their shape.

    Raises
    ------
    DataError
        When the file, a variable in it, or a row of that cannot be used; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import savemat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "three.mat"
    ...     savemat(path, {"data": np.ones((3, 5)), "partial_target": np.eye(3) + np.eye(3, k=1)})
    ...     load_partial_label_mat(path)
    PartialLabelSet('three': 3 samples, 5 features, 3 classes)
    """
    path = Path(path)
    variables = _read_mat(path, needed=("data", "partial_target"), optional=("target",))
    target = variables.get("target")
    return _assemble(path, path.stem, variables["data"], variables["partial_target"], target)


def load_partial_label_split(path: Path | str) -> tuple[PartialLabelSet, PartialLabelSet]:
    """Load a ``.mat`` file that holds a fixed split into training and test samples.

    Parameters
    ----------
    path : path
        File with ``train_data`` (n, d), ``train_p_target`` (n, l), ``test_data`` (m, d) and
        ``test_target`` (m, l); label matrices may also have one column per sample.

    Returns
    -------
    train, test : PartialLabelSet
        The true labels of ``train`` are not in such a file and are None; the candidate sets of
        ``test`` hold the true label alone.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import savemat
    >>> contents = {"train_data": np.ones((3, 5)), "train_p_target": np.ones((3, 2)),
    ...             "test_data": np.ones((2, 5)), "test_target": np.eye(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     savemat(Path(folder) / "small.mat", contents)
    ...     train, test = load_partial_label_split(Path(folder) / "small.mat")
    >>> test
    PartialLabelSet('small/test': 2 samples, 5 features, 2 classes)
    """
    path = Path(path)
    needed = ("train_data", "train_p_target", "test_data", "test_target")
    v = _read_mat(path, needed=needed)
    train = _assemble(
        path, f"{path.stem}/train", v["train_data"], v["train_p_target"], None, prefix="train_"
    )
    truth = v["test_target"]
    test = _assemble(path, f"{path.stem}/test", v["test_data"], truth, truth, prefix="test_")
    if train.X.shape[1] != test.X.shape[1] or train.n_classes != test.n_classes:
        raise DataError(
            f"{path}: the training samples have {train.X.shape[1]} features and "
            f"{train.n_classes} classes but the test samples {test.X.shape[1]} and {test.n_classes}"
        )
    return train, test


def _assemble(
    path: Path, name: str, data: Any, partial: Any, target: Any, prefix: str = ""
) -> PartialLabelSet:
    """Check the variables of a file against each other."""
    # Imported here: fspll data list does not wait for scikit-learn.
    from fspll.candidates.sets import Candidates

    X = _as_features(path, f"{prefix}data", data)
    mask = _as_mask(path, _PARTIAL[prefix], partial, len(X))
    truth = None
    if target is not None:
        true_mask = _as_mask(path, f"{prefix}target", target, len(X))
        if true_mask.shape != mask.shape:
            raise DataError(
                f"{path}: 'target' has {true_mask.shape[1]} classes but 'partial_target' has "
                f"{mask.shape[1]}"
            )
        truth = _as_truth(path, f"{prefix}target", true_mask, mask)
    try:
        candidates = Candidates.from_mask(mask)
    except CandidateError as error:
        raise DataError(f"{path}: {error}") from error
    return PartialLabelSet(name, X, candidates, truth, mask.shape[1])


# What each layout calls its candidate sets; a test sample's set is its true label.
_PARTIAL = {"": "partial_target", "train_": "train_p_target", "test_": "test_target"}


def _read_mat(
    path: Path, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Read the named variables and nothing else."""
    from scipy.io import loadmat, whosmat

    content = read_file(path, "a .mat file")
    try:
        _check_elements(content, str(path))
        kinds = {name: kind for name, _, kind in whosmat(io.BytesIO(content))}
        missing = [name for name in needed if name not in kinds]
        wanted = [name for name in (*needed, *optional) if name in kinds]
        for name in wanted:
            if kinds[name] not in _READABLE:
                raise DataError(f"{path}: {name!r} holds {kinds[name]}, not numbers")
        if not missing:
            return loadmat(io.BytesIO(content), variable_names=wanted)
    except DataError:
        raise
    except NotImplementedError as error:
        raise DataError(
            f"{path} is a MATLAB 7.3 file, which cannot be read; save it again in MATLAB with "
            "save(..., '-v7')"
        ) from error
    except Exception as error:
        # SciPy's reader meets damaged bytes with nearly any exception, and documents none.
        raise DataError(f"{path} is not a whole .mat file: {error}") from error
    raise DataError(
        f"{path} has no variable {', '.join(map(repr, missing))}; it has "
        f"{', '.join(map(repr, kinds)) or 'none at all'}"
    )


def _check_elements(content: bytes, name: str) -> None:
    """Refuse a level 5 file with an element that is unknown, cut, missing, or complex.

    SciPy takes the type of an element for an index into a table, and looks for imaginary parts
    that are not there; a damaged byte in such a place crashes the interpreter. What cells and
    structures hold is not looked at, here or there.
    """
    if 0 in content[:4] or content[124:126] in (b"\x00\x02", b"\x02\x00"):
        return  # level 4, which SciPy reads with NumPy alone, or 7.3, which it refuses
    order = ">" if content[126:128] == b"MI" else "<"
    unpacked = len(content)
    for kind, body in _elements(memoryview(content)[128:], order, {_MATRIX, _COMPRESSED}):
        if kind == _MATRIX:
            _check_variable(body, order)
            continue
        inner = zlib.decompressobj().decompress(body, max(1, max_bytes() - unpacked + 1))
        unpacked += len(inner)
        check_size(f"{name}, unpacked,", unpacked)
        for _, variable in _elements(memoryview(inner), order, {_MATRIX}):
            _check_variable(variable, order)


def _check_variable(body: memoryview, order: str) -> None:
    if not body:
        return
    flags = struct.unpack_from(f"{order}I", body, 8)[0]
    if flags & _COMPLEX:
        raise ValueError("a variable is complex")
    if flags & 0xFF in _CONTAINERS:
        return
    # Flags, shape, name and numbers; sparse ones have two lists of indices as well.
    if sum(1 for _ in _elements(body, order, _NUMBERS)) != (6 if flags & 0xFF == _SPARSE else 4):
        raise ValueError("a variable is damaged")


def _elements(body: memoryview, order: str, allowed: set[int]) -> Iterator[tuple[int, memoryview]]:
    """Yield type and content of each element; views, as elements may hold one another deeply."""
    at = 0
    while at + 8 <= len(body):
        kind, size = struct.unpack_from(f"{order}II", body, at)
        start = at + 8
        if kind >> 16:  # up to four bytes are packed into the tag itself
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + size
        if kind not in allowed or end > len(body):
            raise ValueError(f"the element at byte {at} is damaged")
        yield kind, body[start:end]
        # Elements are padded to eight bytes, except compressed ones.
        at = end if kind == _COMPRESSED else end + -end % 8


def _as_features(path: Path, variable: str, data: Any) -> np.ndarray:
    """Return finite features of shape (n, d) as float64."""
    X = _dense(path, variable, data).astype(np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"{path}: {variable!r} must be of shape (n, d), not {X.shape}")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{path}: row {row}, column {column} of {variable!r} is {X[row, column]}; features "
            "must be finite"
        )
    return X


def _as_mask(path: Path, variable: str, matrix: Any, n: int) -> csr_array:
    """Return a label matrix as bool of shape (n, l), sparse: files may declare any l."""
    from scipy import sparse

    matrix = _checked(path, variable, matrix)
    if matrix.ndim != 2 or n not in matrix.shape:
        raise DataError(
            f"{path}: {variable!r} of shape {matrix.shape} does not fit the {n} rows of features; "
            f"expected (classes, {n})"
        )
    rows = sparse.csr_array(matrix.T if matrix.shape[1] == n else matrix)
    if rows.shape[1] > _MAX_CLASSES:
        raise DataError(
            f"{path}: {variable!r} of shape {matrix.shape} has more than {_MAX_CLASSES:,} classes"
        )
    rows.sum_duplicates()
    bad = np.flatnonzero((rows.data != 0) & (rows.data != 1))
    if len(bad):
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        raise DataError(
            f"{path}: {variable!r} holds {rows.data[bad[0]]} for row {row}; only 0 and 1 are "
            "allowed"
        )
    rows.eliminate_zeros()
    return rows.astype(bool)


def _as_truth(path: Path, variable: str, truth: csr_array, mask: csr_array) -> np.ndarray:
    """Return the true labels of shape (n,), one per row and each among its candidates."""
    counts = np.diff(truth.indptr)
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        raise DataError(f"{path}: row {row} has {counts[row]} true labels in {variable!r}, not one")
    labels = truth.indices.astype(np.int64)
    inside = np.diff(truth.multiply(mask).tocsr().indptr) == 1
    if not inside.all():
        row = int(np.argmin(inside))
        candidates = mask.indices[mask.indptr[row] : mask.indptr[row + 1]]
        raise DataError(
            f"{path}: the true label {labels[row]} of row {row} is not among its candidates "
            f"{candidates.tolist()}"
        )
    return labels


def _dense(path: Path, variable: str, value: Any) -> np.ndarray:
    """Return an array, of a sparse matrix too unless it declares far more than it holds."""
    value = _checked(path, variable, value)
    if isinstance(value, np.ndarray):
        return value
    if math.prod(value.shape) > max(_DENSE_VALUES, _VALUES_PER_ENTRY * value.nnz):
        raise DataError(
            f"{path}: {variable!r} of shape {value.shape} with {value.nnz} entries is too large to "
            "be made dense"
        )
    return value.toarray()


def _checked(path: Path, variable: str, value: Any) -> Any:
    """Return an array or a sparse matrix of numbers whose every index is inside its shape."""
    from scipy import sparse

    if not sparse.issparse(value):
        value = np.asarray(value)
    elif value.format != "coo":  # SciPy checks the indices of that, which level 4 files have
        shape = value.shape if value.format == "csr" else value.shape[::-1]
        problem = compressed_problem(value.indptr, value.indices, len(value.data), shape)
        if problem is not None:
            raise DataError(f"{path}: {variable!r} is damaged: {problem}")
    if value.dtype.kind not in "buif":
        raise DataError(f"{path}: {variable!r} holds {value.dtype}, not numbers")
    return value
