"""Candidate sets as a list of entries: one (sample, class) pair for every candidate.

Shapes: n samples, l classes, m features, z entries (the sum of the set sizes). Everything that
belongs to a pair is an array of length z, in the order of the samples; nothing of n x l is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from fspll._common.errors import InputError
from fspll.candidates.sets import Candidates
from fspll.rectifiers.sparse.centering import Centered, blocks

ENTRIES_AT_ONCE = 1 << 16  # whose features are gathered: 16 MB of 64 features in float32
SAMPLES_AT_ONCE = 1 << 16  # that are summed in their own precision, before double precision


@dataclass(frozen=True, eq=False)
class Entries:
    """The candidates of n samples, entry by entry.

    Attributes
    ----------
    row : int64 ndarray of shape (z,)
        Sample of each entry, in ascending order.
    label : int64 ndarray of shape (z,)
        Class of each entry.
    start : int64 ndarray of shape (n + 1,)
        The entries of sample i are ``start[i]`` to ``start[i + 1]``; every sample has one.
    n_classes : int
    """

    row: np.ndarray
    label: np.ndarray
    start: np.ndarray
    n_classes: int

    @classmethod
    def of(cls, candidates: Any) -> Entries:
        """Read candidate sets of any shape that :meth:`Candidates.read` takes."""
        matrix = Candidates.read(candidates).matrix
        start = matrix.indptr.astype(np.int64)
        row = np.repeat(np.arange(len(start) - 1), np.diff(start))
        return cls(row, matrix.indices.astype(np.int64), start, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.row)

    @property
    def n_samples(self) -> int:
        """How many samples there are, n."""
        return len(self.start) - 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """Size of every candidate set, of shape (n,)."""
        return np.diff(self.start)

    @cached_property
    def class_sizes(self) -> np.ndarray:
        """How many samples have each class as a candidate, of shape (l,)."""
        return np.bincount(self.label, minlength=self.n_classes)

    @cached_property
    def by_class(self) -> np.ndarray:
        """The entries in the order of their classes, and of their samples within a class, (z,)."""
        numbered = sparse.csr_array((np.arange(len(self)), self.label, self.start), self._shape)
        return numbered.tocsc().data  # a counting sort

    @property
    def class_start(self) -> np.ndarray:
        """Where each class begins in ``by_class``, of shape (l + 1,)."""
        return np.concatenate([[0], np.cumsum(self.class_sizes)])

    @property
    def _shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_classes

    def matrix(self, values: np.ndarray) -> sparse.csr_array:
        """Return values (z,) as a sparse matrix (n, l)."""
        return sparse.csr_array((values, self.label, self.start), shape=self._shape)

    # ---------------------------------------------------------------- within samples and classes

    def sample_sum(self, values: np.ndarray) -> np.ndarray:
        """Sum over each sample's candidates, (z,) to (n,)."""
        return np.add.reduceat(values, self.start[:-1])

    def softmax(self, score: np.ndarray) -> np.ndarray:
        """Softmax over each sample's candidates, (z,) to (z,)."""
        return np.exp(self.log_softmax(score))

    def log_softmax(self, score: np.ndarray) -> np.ndarray:
        """Log of the softmax over each sample's candidates, (z,) to (z,)."""
        score = score - np.maximum.reduceat(score, self.start[:-1])[self.row]
        return score - np.log(self.sample_sum(np.exp(score)))[self.row]

    def class_sum(self, values: np.ndarray) -> np.ndarray:
        """Sum over each class's samples, (z,) to (l,), in double precision."""
        return np.bincount(self.label, weights=values, minlength=self.n_classes)

    def class_max(self, values: np.ndarray) -> np.ndarray:
        """Largest value of each class, (z,) to (l,); zero for a class that nobody has."""
        largest = np.zeros(self.n_classes, dtype=values.dtype)
        occurs = np.flatnonzero(self.class_sizes)
        largest[occurs] = np.maximum.reduceat(values[self.by_class], self.class_start[occurs])
        return largest

    # ---------------------------------------------------------------- with features

    def class_totals(self, embeddings: Centered, weight: np.ndarray) -> np.ndarray:
        """Sum of each class's samples, weighted, (n, m) and (z,) to (l, m), in double precision."""
        total = np.zeros((self.n_classes, embeddings.shape[1]))
        for i, j in blocks(self.n_samples, SAMPLES_AT_ONCE):
            a, b = self.start[i], self.start[j]
            part = sparse.csr_array(
                (weight[a:b].astype(embeddings.dtype), self.label[a:b], self.start[i : j + 1] - a),
                shape=(j - i, self.n_classes),
            )
            total += part.T @ embeddings.rows(i, j)
        return total

    def squared_distances(self, embeddings: Centered, prototypes: np.ndarray) -> np.ndarray:
        """Squared distance of each sample to its candidates' prototypes, (z,).

        From differences, block by block, so that nothing cancels.
        """
        p = torch.from_numpy(prototypes.astype(embeddings.dtype))
        row, label = torch.from_numpy(self.row), torch.from_numpy(self.label)
        square = torch.empty(len(self), dtype=p.dtype)
        for a, b in blocks(len(self), ENTRIES_AT_ONCE):
            first, last = int(self.row[a]), int(self.row[b - 1])
            e = torch.from_numpy(embeddings.rows(first, last + 1))
            difference = e.index_select(0, row[a:b] - first).sub_(p.index_select(0, label[a:b]))
            torch.sum(difference.square_(), dim=-1, out=square[a:b])
        return square.numpy()


def checked_embeddings(embeddings: Any, entries: Entries) -> np.ndarray:
    """Return embeddings as a float32 or float64 array (n, m), checked against the entries."""
    e = np.asarray(embeddings)
    if e.dtype not in (np.float32, np.float64):
        e = e.astype(np.float64)
    if e.ndim != 2 or len(e) != entries.n_samples or e.shape[1] == 0:
        raise InputError(
            f"embeddings of shape {e.shape} do not fit {entries.n_samples} candidate sets: "
            f"expected ({entries.n_samples}, m) with at least one feature"
        )
    if not np.isfinite(e.min()) or not np.isfinite(e.max()):
        raise InputError("embeddings hold NaN or infinite values")
    return np.require(e, requirements=["C"])


def report(progress: Callable[[str], None] | None, what: str) -> None:
    """Call ``progress`` with what is done, if there is one."""
    if progress is not None:
        progress(what)


def best_labels(confidence: sparse.csr_array) -> np.ndarray:
    """Return the column of each row's largest stored value, (n,); of equals the first.

    >>> best_labels(sparse.csr_array([[0.2, 0.8, 0], [0.5, 0, 0.5]])).tolist()
    [1, 0]
    """
    start, values = confidence.indptr, confidence.data
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    best = np.flatnonzero(values == np.maximum.reduceat(values, start[:-1])[row])
    _, first = np.unique(row[best], return_index=True)
    return confidence.indices[best[first]].astype(np.int64)
