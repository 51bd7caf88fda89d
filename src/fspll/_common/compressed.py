"""Sparse matrices of files, checked before SciPy sees them.

SciPy's own full check leaves out what a matrix without entries points to, and its loops then read
and write wherever a file says.

Shapes: r rows and c columns of a matrix that is stored by rows; the other way round for one that
is stored by columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def compressed_problem(
    indptr: np.ndarray, indices: np.ndarray, n_entries: int, shape: Sequence[int]
) -> str | None:
    """Say what is wrong with the parts of a sparse matrix; None where nothing is.

    Parameters
    ----------
    indptr : int array of shape (r + 1,)
        Where each row begins among the entries.
    indices : int array of shape (n_entries,)
        The column of each entry.
    n_entries : int
    shape : (r, c)

    Examples
    --------
    >>> compressed_problem(np.array([0, 9, 0]), np.array([], dtype=int), 0, (2, 3))
    'its pointers do not rise from 0 to the number of entries, which is 0'
    """
    rows, columns = shape
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        return f"its indices are {indptr.dtype} and {indices.dtype}, not whole numbers"
    if rows < 0 or columns < 0 or indptr.shape != (rows + 1,):
        return f"its pointers have shape {indptr.shape}, which does not fit its shape {shape}"
    if indices.shape != (n_entries,):
        return f"its indices have shape {indices.shape}, but it has {n_entries} entries"
    # Compared, not subtracted: differences of unsigned numbers are never below zero.
    rises = bool((indptr[1:] >= indptr[:-1]).all())
    if indptr[0] != 0 or indptr[-1] != n_entries or not rises:
        return f"its pointers do not rise from 0 to the number of entries, which is {n_entries}"
    outside = (indices < 0) | (indices >= columns)
    if outside.any():
        return f"an index is {indices[np.argmax(outside)]}, which is not below {columns}"
    return None
