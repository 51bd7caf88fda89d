"""Groups of samples that share a candidate, and small cells of groups too large to search whole.

A cell is a set of entries of one class, so every two of its samples share that label. A group of at
most :data:`WHOLE_GROUP` samples is one cell, and the search in it is exact. A larger one is split
into cells of at most :data:`CELL` samples by a tree: each step draws the line between two means of
the samples at hand, and puts at least a quarter of them on either side. Whoever is near but on the
other side of a line is missed, so the splitting is repeated with other lines and the finds are
united.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fspll.rectifiers.sparse.entries import Entries

WHOLE_GROUP = 4096  # samples up to which a group is searched exactly
CELL = 512  # samples of a cell, where a group is split
SPLITTINGS = 3  # of every group that is too large
_LOOKED_AT = 1024  # samples that decide where a line is drawn
_STEPS = 3  # of the two means
_LEAST_SHARE = 0.25  # of the samples on either side of a line


class Cells(NamedTuple):
    """Cells one after the other: cell c holds ``entry[start[c] : start[c + 1]]``, in order."""

    entry: np.ndarray  # (sum of sizes,) int64
    start: np.ndarray  # (cells + 1,) int64


def cells_of(embeddings: np.ndarray, entries: Entries, seed: int = 0) -> Iterator[Cells]:
    """Yield the cells to search, in passes; an entry is in at most one cell of a pass.

    The first pass holds every small group, and all passes hold a splitting of each large one.
    """
    small = entries.class_sizes <= WHOLE_GROUP
    splittings = 1 if small.all() else SPLITTINGS
    starts = entries.class_start
    for turn in range(splittings):
        rng = np.random.default_rng([seed, turn])
        parts: list[np.ndarray] = []
        if turn == 0:
            kept = np.flatnonzero(small & (entries.class_sizes > 1))
            parts += [entries.by_class[starts[c] : starts[c + 1]] for c in kept]
        for c in np.flatnonzero(~small):
            group = entries.by_class[starts[c] : starts[c + 1]]
            parts += [group[cell] for cell in _split(embeddings, entries.row[group], rng)]
        sizes = [len(part) for part in parts]
        yield Cells(
            np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
        )


def _split(embeddings: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Split samples into cells of at most CELL; returns positions in ``rows``, ascending."""
    done, waiting = [], [np.arange(len(rows))]
    while waiting:
        here = waiting.pop()
        if len(here) <= CELL:
            done.append(here)
            continue
        height = _heights(embeddings, rows[here], rng)
        # Ranks rather than heights: many equal samples must be parted too.
        order = np.argsort(height, kind="stable")
        below = np.count_nonzero(height <= 0)
        least = int(_LEAST_SHARE * len(here))
        cut = min(max(below, least), len(here) - least)
        waiting += [np.sort(here[order[:cut]]), np.sort(here[order[cut:]])]
    return done


def _heights(embeddings: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Signed distances from the line between two means, up to a factor, of shape (len(rows),)."""
    some = embeddings[rng.choice(rows, min(len(rows), _LOOKED_AT), replace=False)]
    one, two = some[0], some[1]
    for _ in range(_STEPS):
        first = some @ (two - one) <= (two - one) @ (one + two) / 2
        if first.all() or not first.any():
            break
        one, two = some[first].mean(axis=0), some[~first].mean(axis=0)
    return embeddings[rows] @ (two - one) - (two - one) @ (one + two) / 2
