"""Summary figures of candidate sets: how ambiguous they are, and which labels they cannot separate.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.words import counted


@dataclass(frozen=True)
class Summary:
    """Figures of a collection of candidate sets; ``print`` it to read it.

    ``always_together`` lists groups of labels that occur in exactly the same sets: nothing in the
    candidate sets separates them.
    """

    n_samples: int
    n_classes: int
    average_size: float
    share_ambiguous: float
    always_together: list[list[Any]]
    never_candidates: list[Any]

    def __str__(self) -> str:
        lines = [
            f"{counted(self.n_samples, 'sample')}, {counted(self.n_classes, 'class', 'classes')}",
            f"{self.average_size:.2f} candidates per sample, "
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
