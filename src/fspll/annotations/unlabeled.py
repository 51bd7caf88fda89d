"""Samples for which a file gives no candidates: left out, given every label, or refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from fspll._common.errors import DataError
from fspll._common.words import counted
from fspll.annotations.samples import Annotations

UNLABELED = ("skip", "use", "error")


def settle_unlabeled(found: Annotations, policy: str) -> Annotations:
    """Return annotations in which every sample has a candidate.

    Parameters
    ----------
    found : Annotations
        Rows of its votes may be empty.
    policy : {"skip", "use", "error"}
        Leave such samples out; let them have any label that occurs; or raise.
    """
    empty = np.diff(found.votes.indptr) == 0
    if not empty.any():
        return found
    count = counted(int(empty.sum()), "sample")
    if empty.all():
        raise DataError(f"{found.source}: there are no candidates at all, for {count}")
    if policy == "error":
        raise DataError(
            f"{found.origins[int(empty.argmax())]}: there are no candidates (this is so for "
            f"{count}); leave such samples out with unlabeled='skip', or let them have any label "
            "with unlabeled='use'"
        )
    if policy == "skip":
        said = f"{count} without candidates left out"
        return replace(found.take(~empty), understood=(*found.understood, said))
    rows = np.flatnonzero(empty)
    n_classes = len(found.classes)
    every = sparse.csr_array(
        (
            np.ones(len(rows) * n_classes),
            (np.repeat(rows, n_classes), np.tile(np.arange(n_classes), len(rows))),
        ),
        shape=found.votes.shape,
    )
    said = f"{count} without candidates may have any label"
    return replace(
        found,
        votes=sparse.csr_array(found.votes + every),
        understood=(*found.understood, said),
    )
