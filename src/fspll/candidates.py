"""What a candidate set is: read in any shape, validated once, or made from true labels.

A candidate set is not a multi-label target: exactly one of the candidates is true, and nobody said
which. Shapes: n samples, l classes; a mask is ``(n, l)`` bool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target

from fspll.errors import CandidateError, InputTypeError

_SET_TYPES = (set, frozenset, list, tuple, np.ndarray)
_KEYS_AT_ONCE = 1 << 24  # random keys drawn at a time by `corrupt_mask`: 128 MB

HOW_TO_BE_CLEAR = (
    "pass a NumPy array for a 0/1 mask, or a list of Python sets such as [{0, 2}, {1}] for "
    "candidate sets"
)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate sets of n samples over l classes, checked: every set is non-empty.

    Make one with :meth:`read` (any shape) or one of the ``from_*`` constructors.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of bool, shape (n, l)
        True where the class is a candidate; column indices sorted within each row.
    classes : ndarray of shape (l,)
        The label that each column stands for.

    Examples
    --------
    >>> sets = Candidates.read([{"alpha", "beta"}, {"beta"}])
    >>> sets.classes.tolist(), sets.mask.astype(int).tolist()
    (['alpha', 'beta'], [[1, 1], [0, 1]])
    """

    matrix: sparse.csr_array
    classes: np.ndarray

    def __post_init__(self) -> None:
        _check_classes(self.classes, self.matrix.shape[1])
        if self.matrix.shape[0] == 0:
            raise CandidateError("there are no samples; at least one candidate set is needed")
        empty = np.flatnonzero(self.sizes == 0)
        if len(empty):
            raise CandidateError(
                f"row {empty[0]} of candidates is empty; every sample needs at least one "
                f"candidate label" + _and_more(len(empty) - 1, "empty row")
            )

    # ---------------------------------------------------------------- readers

    @classmethod
    def read(cls, y: Any, classes: Sequence[Any] | np.ndarray | None = None) -> Candidates:
        """Read candidate sets in any of the shapes that every estimator of the package takes.

        Parameters
        ----------
        y : Candidates, array, sparse matrix, data frame, or sequence
            An ``(n, l)`` 0/1 mask (NumPy, scipy sparse, or a data frame whose columns name the
            classes); a list of sets or lists of class names; or a one-dimensional array of ordinary
            labels, which are sets of one. An ``(n, 1)`` array is a column of ordinary labels.
        classes : sequence of length l, optional
            The classes in order. Without it they are the sorted labels that occur, or
            ``0 .. l-1`` for a mask.
        """
        if isinstance(y, Candidates):
            if classes is not None and list(y.classes) != list(classes):
                raise CandidateError("the candidate sets were read with other classes")
            return y
        if y is None:
            raise CandidateError("requires y to be passed, but the target y is None")
        if sparse.issparse(y):
            return cls.from_mask(y, classes)
        if hasattr(y, "columns") and hasattr(y, "to_numpy"):  # a data frame of 0/1 columns
            if y.shape[1] > 1:
                return cls.from_mask(y.to_numpy(), list(y.columns) if classes is None else classes)
            return cls.from_labels(y.to_numpy(), classes)
        if isinstance(y, np.ndarray) or hasattr(y, "__array__"):
            return cls._from_array(np.asarray(y), classes)
        if isinstance(y, Sequence) and not isinstance(y, str | bytes):
            return cls._from_sequence(y, classes)
        raise InputTypeError(
            f"candidate sets cannot be read from {type(y).__name__}; {HOW_TO_BE_CLEAR}"
        )

    @classmethod
    def _from_array(cls, y: np.ndarray, classes: Any) -> Candidates:
        if y.ndim == 2 and y.shape[1] != 1:
            if y.dtype.kind in "USO" and not _holds_only_flags(y):
                return cls.from_sets(y.tolist(), classes)
            return cls.from_mask(y, classes)
        if y.dtype == object and any(isinstance(row, _SET_TYPES) for row in y):
            return cls._from_sequence(list(y), classes)
        return cls.from_labels(y, classes)

    @classmethod
    def _from_sequence(cls, y: Sequence[Any], classes: Any) -> Candidates:
        if not any(isinstance(row, _SET_TYPES) for row in y):
            return cls.from_labels(y, classes)
        ordered = all(isinstance(row, list | tuple | np.ndarray) for row in y)
        if ordered and len(y[0]) > 0 and all(len(row) == len(y[0]) for row in y):
            if all(isinstance(value, bool | np.bool_) for row in y for value in row):
                return cls.from_mask(np.array(y), classes)
            if all(_is_integer(value) for row in y for value in row):
                raise CandidateError(
                    f"{len(y)} integer lists of equal length {len(y[0])} could be a 0/1 mask "
                    f"or lists of class numbers; {HOW_TO_BE_CLEAR}"
                )
        return cls.from_sets(y, classes)

    @classmethod
    def from_mask(cls, mask: Any, classes: Sequence[Any] | np.ndarray | None = None) -> Candidates:
        """Read an ``(n, l)`` 0/1 mask, dense or scipy sparse."""
        if not sparse.issparse(mask):
            mask = np.asarray(mask)
        if mask.ndim != 2:
            raise CandidateError(f"a mask of candidates must be 2-D (n, l), not {mask.ndim}-D")
        values = mask.data if sparse.issparse(mask) else mask
        if values.dtype == object:
            values = mask = mask.astype(float)
        strange = np.argwhere((values != 0) & (values != 1))
        if len(strange):
            where = "" if sparse.issparse(mask) else f" at row {strange[0][0]}"
            raise CandidateError(
                f"a mask of candidates holds 0 and 1 only, but {values[tuple(strange[0])]} was "
                f"found{where}; {HOW_TO_BE_CLEAR}"
            )
        matrix = sparse.csr_array(mask).astype(bool)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        n_classes = matrix.shape[1]
        return cls(matrix, np.arange(n_classes) if classes is None else _as_classes(classes))

    @classmethod
    def from_sets(
        cls, sets: Iterable[Any], classes: Sequence[Any] | np.ndarray | None = None
    ) -> Candidates:
        """Read a list of sets (or lists) of class names; a bare name is a set of one."""
        rows = [
            list(dict.fromkeys(row.tolist() if isinstance(row, np.ndarray) else row))
            if isinstance(row, _SET_TYPES)
            else [row]
            for row in sets
        ]
        names = _sorted_labels(rows) if classes is None else _as_classes(classes)
        return cls(_rows_to_matrix(rows, names), names)

    @classmethod
    def from_labels(
        cls, labels: Any, classes: Sequence[Any] | np.ndarray | None = None
    ) -> Candidates:
        """Read ordinary labels: every candidate set holds one label."""
        if not isinstance(labels, np.ndarray):
            labels = _array_of_labels(labels)
        labels = column_or_1d(labels, warn=True)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise CandidateError(
                f"Input y contains NaN or infinity, first at row "
                f"{np.flatnonzero(~np.isfinite(labels))[0]}; labels must be known"
            )
        if len(labels) and labels.dtype.kind == "f" and type_of_target(labels) == "continuous":
            raise CandidateError(
                "Unknown label type: continuous; labels are class names or whole numbers"
            )
        rows = [[label] for label in labels.tolist()]
        if classes is not None:
            names = _as_classes(classes)
        elif labels.dtype == object:
            names = _sorted_labels(rows)
        else:
            names = np.unique(labels)
        return cls(_rows_to_matrix(rows, names), names)

    @classmethod
    def from_exclusions(
        cls, excluded: Iterable[Any], classes: Sequence[Any] | np.ndarray
    ) -> Candidates:
        """Read "not class k" answers: everything that is not excluded stays a candidate.

        Parameters
        ----------
        excluded : iterable of label or set of labels
            What each sample is *not*; an empty set excludes nothing.
        classes : sequence of length l
            All classes; they cannot be guessed from exclusions.

        Examples
        --------
        >>> Candidates.from_exclusions(["a", {"a", "c"}], classes=["a", "b", "c"]).names(0)
        ['b', 'c']
        """
        names = _as_classes(classes)
        rows = [list(row) if isinstance(row, _SET_TYPES) else [row] for row in excluded]
        mask = ~_rows_to_matrix(rows, names).toarray()
        impossible = np.flatnonzero(~mask.any(axis=1))
        if len(impossible):
            raise CandidateError(
                f"row {impossible[0]} excludes all {len(names)} classes; one must stay possible"
            )
        return cls.from_mask(mask, names)

    # ---------------------------------------------------------------- views

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def n_classes(self) -> int:
        """How many classes there are, l."""
        return self.matrix.shape[1]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Size of every candidate set, of shape (n,)."""
        return np.diff(self.matrix.indptr)

    @property
    def mask(self) -> np.ndarray:
        """Dense mask of shape (n, l), made anew on each access."""
        return self.matrix.toarray()

    def names(self, row: int) -> list[Any]:
        """Return the candidate labels of one sample, in the order of ``classes``."""
        start, stop = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        return self.classes[self.matrix.indices[start:stop]].tolist()

    def take(self, rows: Any) -> Candidates:
        """Return the candidate sets of some samples, over the same classes."""
        return Candidates(self.matrix[rows], self.classes)

    def check_truth(self, labels: Any) -> None:
        """Raise if a true label lies outside its sample's candidates; names the first row.

        Parameters
        ----------
        labels : sequence of shape (n,)
            True labels, as they stand in ``classes``.
        """
        labels = list(labels)
        if len(labels) != len(self):
            raise CandidateError(f"{len(labels)} true labels for {len(self)} candidate sets")
        truth = _rows_to_matrix([[label] for label in labels], self.classes)
        inside = np.asarray(self.matrix.multiply(truth).sum(axis=1)).ravel() > 0
        if not inside.all():
            row = int(np.flatnonzero(~inside)[0])
            raise CandidateError(
                f"the true label {labels[row]!r} of row {row} is not among its candidates "
                f"{self.names(row)!r}"
            )

    def summary(self) -> Summary:
        """Return the figures a person wants to see before learning."""
        columns = self.matrix.tocsc()
        members: dict[bytes, list[Any]] = {}
        never = []
        for label, start, stop in zip(
            self.classes.tolist(), columns.indptr[:-1], columns.indptr[1:], strict=True
        ):
            if start == stop:
                never.append(label)
            else:
                members.setdefault(np.sort(columns.indices[start:stop]).tobytes(), []).append(label)
        return Summary(
            n_samples=len(self),
            n_classes=self.n_classes,
            average_size=float(self.sizes.mean()),
            share_ambiguous=float((self.sizes > 1).mean()),
            always_together=[group for group in members.values() if len(group) > 1],
            never_candidates=never,
        )

    def __repr__(self) -> str:
        return (
            f"Candidates({len(self)} samples, {self.n_classes} classes, "
            f"average set size {self.sizes.mean():.2f})"
        )


@dataclass(frozen=True)
class Summary:
    """Figures of a collection of candidate sets; ``print`` it to read it.

    ``always_together`` lists groups of labels that occur in exactly the same sets: nothing in the
    candidate sets can ever tell them apart.
    """

    n_samples: int
    n_classes: int
    average_size: float
    share_ambiguous: float
    always_together: list[list[Any]]
    never_candidates: list[Any]

    def __str__(self) -> str:
        lines = [
            f"{self.n_samples} samples, {self.n_classes} classes",
            f"{self.average_size:.2f} candidates a sample, "
            f"{self.share_ambiguous:.0%} of the samples ambiguous",
        ]
        lines += [
            f"always together, cannot be told apart: {', '.join(map(str, group))}"
            for group in self.always_together
        ]
        if self.never_candidates:
            lines.append(f"never a candidate: {', '.join(map(str, self.never_candidates))}")
        return "\n".join(lines)


# -------------------------------------------------------------------- making candidate sets


def corrupt(
    labels: Any,
    p: float,
    r: int,
    rng: np.random.Generator,
    classes: Sequence[Any] | np.ndarray | None = None,
) -> Candidates:
    """Make candidate sets from true labels, as the paper does (its section 4.1).

    Parameters
    ----------
    labels : sequence of shape (n,)
        True labels.
    p : float
        Share of the samples that is made ambiguous: ``round(p * n)`` of them.
    r : int
        Extra labels of an ambiguous sample, drawn uniformly without replacement from the other
        classes.
    rng : numpy.random.Generator
        With the same state, the sets for r are contained in those for r + 1.
    classes : sequence, optional
        All classes; by default the labels that occur.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> corrupt(["a", "b", "c"], p=1, r=2, rng=rng).sizes.tolist()
    [3, 3, 3]
    """
    truth = Candidates.from_labels(labels, classes)
    columns = truth.matrix.indices.astype(np.int64)
    return Candidates.from_mask(corrupt_mask(columns, truth.n_classes, p, r, rng), truth.classes)


def corrupt_mask(
    labels: np.ndarray, n_classes: int, p: float, r: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the ``(n, n_classes)`` bool mask of :func:`corrupt` for integer labels 0 .. l-1.

    Only ``rng.random`` is used, whose stream NumPy keeps stable: task i of seed s stays the same
    task under any version.
    """
    check_ambiguity(p, r, n_classes)
    n = len(labels)
    mask = np.zeros((n, n_classes), dtype=bool)
    mask[np.arange(n), labels] = True
    turn = np.argsort(rng.random(n), kind="stable")
    ambiguous = np.zeros(n, dtype=bool)
    ambiguous[turn[: int(np.floor(p * n + 0.5))]] = True
    rows_at_once = max(1, _KEYS_AT_ONCE // n_classes)
    for start in range(0, n if r else 0, rows_at_once):
        rows = np.arange(start, min(start + rows_at_once, n))
        keys = rng.random((len(rows), n_classes))
        keys[np.arange(len(rows)), labels[rows]] = np.inf  # the truth is no distractor of itself
        distractors = np.argsort(keys, axis=1, kind="stable")[:, :r]
        chosen = ambiguous[rows]
        mask[rows[chosen, None], distractors[chosen]] = True
    return mask


def check_ambiguity(p: float, r: int, n_classes: int) -> None:
    """Raise unless p is a share and r labels can be drawn from the other classes."""
    if not 0 <= p <= 1:
        raise CandidateError(f"p is a share of the samples, between 0 and 1, not {p}")
    if not _is_integer(r) or r < 0:
        raise CandidateError(f"r counts extra labels: a whole number of 0 or more, not {r}")
    if r > n_classes - 1:
        raise CandidateError(
            f"r = {r} extra labels cannot be drawn: with {n_classes} classes there are only "
            f"{n_classes - 1} other labels"
        )


# -------------------------------------------------------------------- checking


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _and_more(count: int, what: str) -> str:
    return "" if count == 0 else f" (and {count} more {what}{'s' if count > 1 else ''})"


def _holds_only_flags(y: np.ndarray) -> bool:
    return y.dtype == object and all(isinstance(v, bool | int | float) for v in y.ravel())


def _array_of_labels(labels: Sequence[Any]) -> np.ndarray:
    """Turn a list of labels into an array without turning 1 and "1" into the same label."""
    rows = [[label] for label in labels]
    if rows:
        _sorted_labels(rows)
    return np.asarray(labels)


def _sorted_labels(rows: list[list[Any]]) -> np.ndarray:
    """Return the distinct labels in order; all must be text or all must be numbers."""
    kinds: dict[str, tuple[int, Any]] = {}
    for number, row in enumerate(rows):
        for label in row:
            if isinstance(label, str):
                kind = "text"
            elif isinstance(label, bool | int | float | np.bool_ | np.number):
                kind = "numbers"
                if label != label:
                    raise CandidateError(f"row {number} holds NaN; labels must be known")
            else:
                raise InputTypeError(
                    f"row {number} holds {label!r} of type {type(label).__name__}; labels are "
                    f"text or numbers"
                )
            kinds.setdefault(kind, (number, label))
    if len(kinds) > 1:
        (row_a, a), (row_b, b) = kinds.values()
        raise InputTypeError(
            f"labels mix text and numbers: {a!r} in row {row_a}, {b!r} in row {row_b}; use one kind"
        )
    if not kinds:  # only empty rows; the constructor names the first
        return np.arange(1)
    return np.array(sorted({label for row in rows for label in row}))


def _as_classes(classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    return classes if isinstance(classes, np.ndarray) else _array_of_labels(list(classes))


def _check_classes(classes: np.ndarray, n_columns: int) -> None:
    if classes.ndim != 1 or len(classes) != n_columns:
        raise CandidateError(
            f"classes name {classes.shape} labels but the candidates have {n_columns} columns"
        )
    names, counts = np.unique(classes, return_counts=True)
    if (counts > 1).any():
        raise CandidateError(f"classes name {names[counts > 1][0]!r} more than once")


def _rows_to_matrix(rows: list[list[Any]], classes: np.ndarray) -> sparse.csr_array:
    """Turn lists of labels into a bool matrix of shape (n, l); names the row of a stranger."""
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
