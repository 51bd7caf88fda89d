"""Candidate sets made from true labels: p, the share of ambiguous samples, and r extra labels.

Shapes: n samples, l classes; a mask is ``(n, l)`` bool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fspll._common.arguments import is_integer, is_number
from fspll._common.errors import CandidateError, InputTypeError
from fspll._common.words import counted
from fspll.candidates.sets import Candidates, Classes

_KEYS_AT_ONCE = 1 << 24  # random keys drawn at a time by `corrupt_mask`: 128 MB


def corrupt(
    labels: Any,
    p: float,
    r: int,
    rng: np.random.Generator,
    classes: Classes = None,
) -> Candidates:
    """Make candidate sets from true labels, as the paper does (its section 4.1).

    Parameters
    ----------
    labels : sequence of shape (n,)
        True labels.
    p : float
        Share of the samples that is made ambiguous: ``p * n`` of them, halves rounded up.
    r : int
        Extra labels of an ambiguous sample, drawn uniformly without replacement from the other
        classes.
    rng : numpy.random.Generator
        With the same state, the sets for r are contained in those for r + 1.
    classes : sequence, optional
        All classes; by default the labels that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from fspll import corrupt
    >>> sets = corrupt(["a", "b", "c", "d"], p=0.5, r=1, rng=np.random.default_rng(0))
    >>> sorted(sets.sizes.tolist())
    [1, 1, 2, 2]
    """
    truth = Candidates.from_labels(labels, classes)
    columns = truth.matrix.indices.astype(np.int64)
    return Candidates.from_mask(corrupt_mask(columns, truth.n_classes, p, r, rng), truth.classes)


def corrupt_mask(
    labels: np.ndarray, n_classes: int, p: float, r: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the ``(n, n_classes)`` bool mask of ``corrupt`` for integer labels 0 .. l-1.

    Only ``rng.random`` is used, whose stream NumPy keeps stable: task i of seed s stays the same
    task under any version.
    """
    check_ambiguity(p, r, n_classes)
    if not isinstance(rng, np.random.Generator):
        raise InputTypeError(
            f"rng must be a numpy.random.Generator such as np.random.default_rng(0), not "
            f"{rng!r:.60}"
        )
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
    if not is_number(p) or not 0 <= p <= 1:
        raise CandidateError(f"p is a share of the samples, between 0 and 1, not {p!r}")
    if not is_integer(r) or r < 0:
        raise CandidateError(f"r counts extra labels: a whole number of 0 or more, not {r!r}")
    if r > n_classes - 1:
        raise CandidateError(
            f"r = {r} is too many: with {counted(n_classes, 'class', 'classes')} there are only "
            f"{n_classes - 1} other labels to add"
        )
