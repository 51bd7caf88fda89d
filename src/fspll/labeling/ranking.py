"""The likeliest candidates of many samples at once, without any dense array.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from fspll.candidates.sets import Candidates


def on_candidates(confidence: Any, candidates: Candidates) -> sparse.csr_array:
    """Return the classifier's confidence, dense or sparse, at the candidates' entries."""
    if sparse.issparse(confidence):
        found = sparse.csr_array(confidence)
        found.sort_indices()
        if np.array_equal(found.indptr, candidates.matrix.indptr):
            return found
        confidence = found.toarray()
    matrix = candidates.matrix
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    values = np.asarray(confidence)[rows, matrix.indices].astype(float)
    return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def add_most_probable(probabilities: sparse.csr_array, posterior: np.ndarray) -> sparse.csr_array:
    """Add the most probable class of every sample to its candidates' entries.

    Parameters
    ----------
    probabilities : sparse array of shape (n, l)
        Of the candidates.
    posterior : array of shape (n, l)
        The probability of every class.
    """
    rows = np.arange(len(posterior))
    best = posterior.argmax(axis=1)
    inside = np.zeros(len(posterior), dtype=bool)
    of_entry = np.repeat(rows, np.diff(probabilities.indptr))
    inside[of_entry[probabilities.indices == best[of_entry]]] = True
    more, column = rows[~inside], best[~inside]
    found = sparse.csr_array(
        (
            np.concatenate([probabilities.data, posterior[more, column]]),
            (np.concatenate([of_entry, more]), np.concatenate([probabilities.indices, column])),
        ),
        shape=probabilities.shape,
    )
    found.sort_indices()
    return found


def two_likeliest(
    probabilities: sparse.csr_array,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns of the two likeliest candidates, the first's probability, the margin."""
    n = probabilities.shape[0]
    sizes = np.diff(probabilities.indptr)
    rows = np.repeat(np.arange(n), sizes)
    order = np.lexsort((-probabilities.data, rows))
    start = probabilities.indptr[:-1]
    first = order[start]
    several = sizes > 1
    next_one = order[np.where(several, start + 1, start)]
    top = probabilities.indices[first]
    second = np.where(several, probabilities.indices[next_one], -1)
    confidence = probabilities.data[first].astype(float)
    other = np.where(several, probabilities.data[next_one], 0.0)
    return top, second, confidence, confidence - other


def likeliest_first(
    probabilities: sparse.csr_array, classes: np.ndarray, row: int
) -> tuple[Any, ...]:
    """Return the candidates of one sample, the likeliest first."""
    start, stop = probabilities.indptr[row : row + 2]
    order = np.argsort(-probabilities.data[start:stop], kind="stable")
    return tuple(classes[probabilities.indices[start:stop][order]].tolist())
