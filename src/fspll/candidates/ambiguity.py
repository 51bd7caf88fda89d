"""How ambiguous candidate sets are, and how true labels are made ambiguous.

Shapes: n samples, l classes; a mask is ``(n, l)`` bool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.arguments import is_integer, is_number
from fspll._common.errors import CandidateError, InputTypeError

_KEYS_AT_ONCE = 1 << 24  # random keys drawn at a time by `corrupt_mask`: 128 MB


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


def summarize(matrix: sparse.csr_array, classes: np.ndarray) -> Summary:
    """Return the figures of a bool matrix of candidates of shape (n, l)."""
    columns = matrix.tocsc()
    together: dict[bytes, list[Any]] = {}
    never = []
    for label, start, stop in zip(
        classes.tolist(), columns.indptr[:-1], columns.indptr[1:], strict=True
    ):
        if start == stop:
            never.append(label)
        else:
            members = np.sort(columns.indices[start:stop])
            together.setdefault(members.tobytes(), []).append(label)
    sizes = np.diff(matrix.indptr)
    return Summary(
        n_samples=matrix.shape[0],
        n_classes=matrix.shape[1],
        average_size=float(sizes.mean()),
        share_ambiguous=float((sizes > 1).mean()),
        always_together=[group for group in together.values() if len(group) > 1],
        never_candidates=never,
    )


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
            f"r = {r} extra labels cannot be drawn: with {n_classes} classes there are only "
            f"{n_classes - 1} other labels"
        )
