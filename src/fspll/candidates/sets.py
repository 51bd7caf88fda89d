"""What a candidate set is: read in any shape, validated once.

A candidate set is not a multi-label target: exactly one of the candidates is true, and it is not
known which. Shapes: n samples, l classes; a mask is ``(n, l)`` bool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from fspll._common.arguments import is_flag, is_number
from fspll._common.errors import CandidateError, InputTypeError
from fspll._common.words import counted
from fspll.candidates.labels import (
    HOW_TO_BE_CLEAR,
    SET_TYPES,
    as_classes,
    check_classes,
    label_column,
    mask_to_matrix,
    plain_list,
    refuse_continuous,
    rows_of_labels,
    rows_to_matrix,
    sorted_labels,
)
from fspll.candidates.summary import Summary, summarize

Classes = Sequence[Any] | np.ndarray | None


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
    >>> from fspll import Candidates
    >>> sets = Candidates.read([{"alpha", "beta"}, {"beta"}])
    >>> sets.classes.tolist(), sets.mask.astype(int).tolist()
    (['alpha', 'beta'], [[1, 1], [0, 1]])
    """

    matrix: sparse.csr_array
    classes: np.ndarray

    def __post_init__(self) -> None:
        check_classes(self.classes, self.matrix.shape[1])
        if self.matrix.shape[0] == 0:
            raise CandidateError("there are no samples; at least one candidate set is needed")
        empty = np.flatnonzero(self.sizes == 0)
        if len(empty):
            more = len(empty) - 1
            raise CandidateError(
                f"row {empty[0]} of candidates is empty; every sample needs at least one "
                f"candidate label"
                + (f" (and {more} more empty row{'s' if more > 1 else ''})" if more else "")
            )

    # ---------------------------------------------------------------- readers

    @classmethod
    def read(cls, y: Any, classes: Classes = None) -> Candidates:
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
            if classes is not None and y.classes.tolist() != as_classes(classes).tolist():
                raise CandidateError("the candidate sets were read with other classes")
            return y
        if y is None:
            raise CandidateError("requires y to be passed, but the target y is None")
        if sparse.issparse(y):
            return cls.from_mask(y, classes)
        if hasattr(y, "columns") and hasattr(y, "to_numpy"):  # a data frame of 0/1 columns
            if y.shape[1] > 1:
                return cls.from_mask(y.to_numpy(), list(y.columns) if classes is None else classes)
            return cls._from_array(y.to_numpy(), classes)
        if isinstance(y, np.ndarray) or hasattr(y, "__array__"):
            return cls._from_array(np.asarray(y), classes)
        if isinstance(y, Sequence) and not isinstance(y, str | bytes):
            return cls._from_sequence(y, classes)
        raise InputTypeError(
            f"candidate sets cannot be read from {type(y).__name__}; {HOW_TO_BE_CLEAR}"
        )

    @classmethod
    def _from_array(cls, y: np.ndarray, classes: Classes) -> Candidates:
        if y.ndim == 2 and y.shape[1] != 1:
            names = y.dtype.kind == "U" or (
                y.dtype == object and not all(is_number(value) for value in y.ravel())
            )
            return cls.from_sets(y, classes) if names else cls.from_mask(y, classes)
        if y.ndim == 2:
            y = column_or_1d(y, warn=True)
        if y.dtype == object and y.ndim == 1:
            return cls._from_sequence(list(y), classes)
        return cls.from_labels(y, classes)

    @classmethod
    def _from_sequence(cls, y: Sequence[Any], classes: Classes) -> Candidates:
        if not any(isinstance(row, SET_TYPES) for row in y):
            return cls.from_labels(y, classes)
        rows = rows_of_labels(y)
        # A set can be nothing but candidates; ordered rows of one length may also be a mask.
        ordered = all(isinstance(row, list | tuple | np.ndarray) for row in y)
        lengths = {np.size(row) for row in y} if ordered else set()
        if len(lengths) == 1 and lengths != {0}:
            if all(is_flag(value) for row in rows for value in row):
                return cls.from_mask(np.array(y), classes)
            if all(is_number(value) for row in rows for value in row):
                raise CandidateError(
                    f"{len(y)} lists of numbers of equal length {lengths.pop()} could be a 0/1 "
                    f"mask or lists of class numbers; {HOW_TO_BE_CLEAR}"
                )
        return cls.from_sets(rows, classes)

    @classmethod
    def from_mask(cls, mask: Any, classes: Classes = None) -> Candidates:
        """Read an ``(n, l)`` 0/1 mask, dense or scipy sparse."""
        matrix = mask_to_matrix(mask)
        return cls(matrix, np.arange(matrix.shape[1]) if classes is None else as_classes(classes))

    @classmethod
    def from_sets(cls, sets: Iterable[Any], classes: Classes = None) -> Candidates:
        """Read a list of sets (or lists) of class names; a bare name is a set of one."""
        rows = rows_of_labels(sets)
        names = sorted_labels(rows) if classes is None else as_classes(classes)
        return cls(rows_to_matrix(rows, names), names)

    @classmethod
    def from_labels(cls, labels: Any, classes: Classes = None) -> Candidates:
        """Read ordinary labels: every candidate set holds one label."""
        labels = label_column(labels)
        rows = [[label] for label in labels.tolist()]
        if classes is not None:
            names = as_classes(classes)
        else:
            refuse_continuous(labels)
            names = sorted_labels(rows) if labels.dtype == object else np.unique(labels)
        return cls(rows_to_matrix(rows, names), names)

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
        names = as_classes(classes)
        mask = ~rows_to_matrix(rows_of_labels(excluded), names).toarray()
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
        row = range(len(self))[row]  # a negative row counts from the end
        start, stop = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        return self.classes[self.matrix.indices[start:stop]].tolist()

    def take(self, rows: Any) -> Candidates:
        """Return the candidate sets of some samples, over the same classes.

        ``rows`` is anything that indexes a NumPy array: numbers, a bool mask, a slice.
        """
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        return Candidates(self.matrix[chosen], self.classes)

    def check_truth(self, labels: Any) -> None:
        """Raise if a true label lies outside its sample's candidates; names the first row.

        Parameters
        ----------
        labels : sequence of shape (n,)
            True labels, as they stand in ``classes``.
        """
        labels = plain_list(labels)
        if len(labels) != len(self):
            raise CandidateError(f"{len(labels)} true labels for {len(self)} candidate sets")
        truth = rows_to_matrix([[label] for label in labels], self.classes)
        inside = np.asarray(self.matrix.multiply(truth).sum(axis=1)).ravel() > 0
        if not inside.all():
            row = int(np.flatnonzero(~inside)[0])
            raise CandidateError(
                f"the true label {labels[row]!r} of row {row} is not among its candidates "
                f"{self.names(row)!r}"
            )

    def summary(self) -> Summary:
        """Return the figures a person wants to see before learning."""
        return summarize(self.matrix, self.classes)

    def __repr__(self) -> str:
        return (
            f"Candidates({counted(len(self), 'sample')}, "
            f"{counted(self.n_classes, 'class', 'classes')}, "
            f"average set size {self.sizes.mean():.2f})"
        )
