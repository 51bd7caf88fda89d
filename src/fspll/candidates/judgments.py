"""Who said what: the labels that each annotator gave to each sample.

Shapes: n samples, l classes, t triples of sample, annotator and label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fspll._common.errors import InputError

OTHER = -1  # the column of a label that is none of the classes


class Agreement(NamedTuple):
    """How often annotators agree with given labels.

    Attributes
    ----------
    judged : int array of shape (number of annotators,)
        How many samples each annotator labeled.
    agreed : array of the same shape
        How many of these judgments are equal to the given label. A judgment of several labels
        counts as one over their number where the given label is among them.
    """

    judged: np.ndarray
    agreed: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Agreed over judged; NaN for an annotator without any judgment."""
        with np.errstate(invalid="ignore"):
            return self.agreed / self.judged


@dataclass(frozen=True, eq=False)
class Judgments:
    """The labels that annotators gave to samples, as triples.

    A judgment is usually one label. Where an annotator gave a sample several labels, in one answer
    or in several, the judgment is their set: it consists of as many triples, and each has an equal
    share of it (:attr:`shares`). Triples are different from one another and are kept in the order
    of samples, then annotators, then labels, whatever order they came in.

    Parameters
    ----------
    rows : int array of shape (t,)
        The sample of each triple.
    annotators : int array of shape (t,)
        Who gave the label: a place in ``names``.
    labels : int array of shape (t,)
        The label: a column of the classes, or -1 (``OTHER``) for a label that is none of them.
    names : tuple of str
        What the annotators are called, all different.

    Examples
    --------
    >>> said = Judgments([0, 0, 1, 1], [0, 1, 0, 0], [2, 1, 0, 1], ("Ann", "Ben"))
    >>> said.counts(2, 3).toarray().tolist()
    [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    >>> said.shares.tolist()
    [1.0, 1.0, 0.5, 0.5]
    >>> said.agreement([2, 0]).agreed.tolist()
    [1.5, 0.0]
    """

    rows: np.ndarray
    annotators: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if isinstance(self.names, str) or not all(isinstance(name, str) for name in names):
            raise InputError("names of annotators must be a list of texts")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two annotators are called {twice!r}; names must differ")
        parts = [_whole_numbers(part, getattr(self, part)) for part in _PARTS]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in parts)
            raise InputError(f"rows, annotators and labels must be of one length, not {lengths}")
        rows, annotators, labels = parts
        if len(rows):
            if rows.min() < 0:
                raise InputError(f"rows of judgments must be 0 or more, not {rows.min()}")
            if annotators.min() < 0 or annotators.max() >= len(names):
                bad = annotators.min() if annotators.min() < 0 else annotators.max()
                raise InputError(f"there are {len(names)} annotators, but one judgment is by {bad}")
            if labels.min() < OTHER:
                raise InputError(f"labels of judgments must be columns or -1, not {labels.min()}")
        order = np.lexsort((labels, annotators, rows))
        rows, annotators, labels = rows[order], annotators[order], labels[order]
        # Two labels that are none of the classes may be different ones: both triples stay.
        repeated = np.zeros(len(rows), dtype=bool)
        repeated[1:] = (
            (rows[1:] == rows[:-1])
            & (annotators[1:] == annotators[:-1])
            & (labels[1:] == labels[:-1])
            & (labels[1:] != OTHER)
        )
        if repeated.any():
            at = int(np.flatnonzero(repeated)[0])
            raise InputError(
                f"the annotator {names[annotators[at]]!r} gives the label {labels[at]} to row "
                f"{rows[at]} twice"
            )
        for part, values in zip(_PARTS, (rows, annotators, labels), strict=True):
            object.__setattr__(self, part, values)
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        """Return the number of triples, t."""
        return len(self.rows)

    @property
    def n_annotators(self) -> int:
        """How many annotators there are, with or without a judgment."""
        return len(self.names)

    @cached_property
    def shares(self) -> np.ndarray:
        """One over the number of labels in the judgment that each triple is part of, of (t,)."""
        first = np.ones(len(self), dtype=bool)
        first[1:] = np.diff(self.rows).astype(bool) | np.diff(self.annotators).astype(bool)
        group = first.cumsum() - 1
        return 1.0 / np.bincount(group)[group] if len(self) else np.zeros(0)

    def per_sample(self, n_samples: int) -> np.ndarray:
        """Return how many annotators labeled each sample, of shape (n,)."""
        self.check(n_samples, None, others=True)
        counts = np.bincount(self.rows, weights=self.shares, minlength=n_samples)
        return counts.round().astype(np.int64)

    def counts(self, n_samples: int, n_classes: int) -> sparse.csr_array:
        """Return how many annotators gave each label to each sample, of shape (n, l)."""
        self.check(n_samples, n_classes, others=True)
        known = self.labels != OTHER
        places = (self.rows[known], self.labels[known])
        counts = sparse.csr_array((np.ones(known.sum()), places), shape=(n_samples, n_classes))
        counts.sort_indices()
        return counts

    def take(self, rows: Any) -> Judgments:
        """Return the judgments of some samples, which are then counted from 0.

        ``rows`` are numbers or a bool mask over the samples; a sample may occur more than once.
        All annotators keep their places.
        """
        rows = np.asarray(rows)
        chosen = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        begin = np.searchsorted(self.rows, chosen, side="left")
        sizes = np.searchsorted(self.rows, chosen, side="right") - begin
        new = np.repeat(np.arange(len(chosen)), sizes)
        within = np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)
        at = np.repeat(begin, sizes) + within
        return Judgments(new, self.annotators[at], self.labels[at], self.names)

    def relabel(self, columns: Any) -> Judgments:
        """Return the same judgments over other columns.

        Parameters
        ----------
        columns : int array
            The new column of each old one; -1 for a column that is dropped. Its judgments stay,
            as labels that are none of the classes.
        """
        columns = np.append(_whole_numbers("columns", columns), OTHER)  # -1 stays -1
        if len(self) and self.labels.max() >= len(columns) - 1:
            raise InputError(
                f"{len(columns) - 1} columns are given for judgments up to label "
                f"{self.labels.max()}"
            )
        return Judgments(self.rows, self.annotators, columns[self.labels], self.names)

    def known(self) -> Judgments:
        """Return the judgments without labels that are none of the classes."""
        keep = self.labels != OTHER
        if keep.all():
            return self
        return Judgments(self.rows[keep], self.annotators[keep], self.labels[keep], self.names)

    def agreement(self, labels: Any) -> Agreement:
        """Return how often each annotator agrees with labels, columns of shape (n,)."""
        labels = _whole_numbers("labels", labels)
        self.check(len(labels), None, others=True)
        agree = (self.labels == labels[self.rows]) & (self.labels != OTHER)
        size = self.n_annotators
        judged = np.bincount(self.annotators, weights=self.shares, minlength=size)
        agreed = np.bincount(self.annotators, weights=self.shares * agree, minlength=size)
        return Agreement(judged.round().astype(np.int64), agreed)

    def check(self, n_samples: int, n_classes: int | None, *, others: bool = False) -> None:
        """Raise unless all samples and labels are among as many; ``others`` allows label -1."""
        if not len(self):
            return
        if self.rows[-1] >= n_samples:
            raise InputError(
                f"there is a judgment of row {self.rows[-1]}, but there are {n_samples} samples"
            )
        if n_classes is not None and self.labels.max() >= n_classes:
            raise InputError(
                f"there is a judgment of label {self.labels.max()}, but there are {n_classes} "
                "classes"
            )
        if not others and self.labels.min() == OTHER:
            raise InputError("there is a judgment of label -1, which is none of the classes")

    def __repr__(self) -> str:
        return f"Judgments({len(self)} labels by {self.n_annotators} annotators)"


_PARTS = ("rows", "annotators", "labels")


def _whole_numbers(name: str, values: Sequence[int] | np.ndarray) -> np.ndarray:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be whole numbers in one dimension, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array.astype(np.int64)
