"""Dichotomies of the classes that candidate sets can decide: the columns of a coding matrix.

A column splits the classes into a positive and a negative part. A sample is positive when all its
candidates are, negative when all are negative, and says nothing otherwise. A column and its
complement ask the same question, so the last class is always negative.

Shapes: n samples, l classes, B columns; columns are ``(B, l)`` bool, True for the positive part.
Every class is somebody's candidate here.
"""

from __future__ import annotations

import numpy as np

ENUMERATE_UP_TO = 12  # classes, hence 2047 columns
_MAX_DRAWS = 200_000
_BATCH = 4096
_PLACES_AT_ONCE = 1 << 23  # of samples in columns
_ENOUGH_TO_TELL = 20_000  # draws
_MAX_WORK = 1e11  # multiplications spent on drawing
_GROWTHS = 20  # rounds


def all_columns(n_classes: int) -> np.ndarray:
    """Return all 2^(l-1) - 1 columns, of shape (B, l)."""
    numbers = np.arange(1, 1 << (n_classes - 1))
    return (numbers[:, None] >> np.arange(n_classes) & 1).astype(bool)


def members(mask: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tell which samples are positive and which are negative, bool of shape (n, B) each."""
    # In float32, where whole numbers of this size are exact and products are fastest.
    inside = mask.astype(np.float32) @ columns.T.astype(np.float32)
    return inside == mask.sum(axis=1, keepdims=True, dtype=np.float32), inside == 0


def draw_columns(mask: np.ndarray, wanted: int, least: int, rng: np.random.Generator) -> np.ndarray:
    """Return up to ``wanted`` different columns that at least ``least`` samples can decide.

    With few classes all columns are looked at. Otherwise classes are thrown to the sides by coin,
    and when that hardly ever gives a usable column, because sets are large, columns are grown
    around samples.

    Parameters
    ----------
    mask : bool array of shape (n, l)
    wanted : int
    least : int
        How many samples have to be positive or negative; there is always one of each.
    rng : numpy.random.Generator

    Returns
    -------
    bool array of shape (B, l), B between 0 and ``wanted``
    """
    # Equal candidate sets are judged once.
    sets, counts = np.unique(mask, axis=0, return_counts=True)
    n_classes = mask.shape[1]
    if n_classes <= ENUMERATE_UP_TO:
        columns = _usable(sets, counts, all_columns(n_classes), least)
        if len(columns) <= wanted:
            return columns
        return columns[np.sort(rng.choice(len(columns), wanted, replace=False))]
    found = np.zeros((0, n_classes), dtype=bool)
    most = int(min(_MAX_DRAWS, max(_BATCH, _MAX_WORK / (len(sets) * n_classes))))
    drawn, batch = 0, 2 * wanted  # nearly all are usable when sets are small
    while drawn < most and len(found) < wanted:
        columns = random_columns(batch, n_classes, rng)
        found = _distinct(np.concatenate([found, _usable(sets, counts, columns, least)]))[:wanted]
        drawn += batch
        batch = max(1, min(_BATCH, _PLACES_AT_ONCE // len(sets)))
        if drawn > _ENOUGH_TO_TELL and len(found) * most < wanted * drawn:
            break  # at this rate they will not come together
    for _ in range(_GROWTHS if len(found) < wanted else 0):
        grown = _usable(sets, counts, _grow(sets, wanted, rng), least)
        before, found = len(found), _distinct(np.concatenate([found, grown]))[:wanted]
        if len(found) in (before, wanted):
            break  # nothing more comes, or nothing more is needed
    return found


def random_columns(count: int, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Throw every class to a side by coin, of shape (count, l); sides may be empty."""
    columns = rng.random((count, n_classes)) < 0.5
    return columns ^ columns[:, -1:]


def draw_weighted_columns(mask: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Return up to ``wanted`` columns with samples that lean to either side, of shape (B, l)."""
    n_classes = mask.shape[1]
    if n_classes <= ENUMERATE_UP_TO:
        columns = all_columns(n_classes)
        columns = columns[rng.permutation(len(columns))]
    else:
        columns = _distinct(random_columns(4 * wanted, n_classes, rng))
    good = []
    for column in columns:
        lean = weighted_signs(mask, column)
        if (lean > 0).any() and (lean < 0).any():
            good.append(column)
        if len(good) == wanted:
            break
    return np.array(good, dtype=bool).reshape(-1, n_classes)


def weighted_signs(mask: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return how far the candidates lean to the positive side, from -1 to 1, of shape (n,).

    A sample that nothing but its majority of candidates places has a small value; one whose
    candidates are split evenly has zero.
    """
    return 2 * mask[:, column].sum(axis=1) / mask.sum(axis=1) - 1


def _usable(sets: np.ndarray, counts: np.ndarray, columns: np.ndarray, least: int) -> np.ndarray:
    positive, negative = members(sets, columns)
    weights = counts.astype(np.float32)
    n_positive = weights @ positive.astype(np.float32)
    n_negative = weights @ negative.astype(np.float32)
    good = (n_positive > 0) & (n_negative > 0) & (n_positive + n_negative >= least)
    return columns[good]


def _distinct(columns: np.ndarray) -> np.ndarray:
    """Drop repeated columns, keeping the order."""
    _, first = np.unique(np.packbits(columns, axis=1), axis=0, return_index=True)
    return columns[np.sort(first)]


def _grow(sets: np.ndarray, attempts: int, rng: np.random.Generator) -> np.ndarray:
    """Grow columns from two disjoint candidate sets: sample after sample is put on a side.

    Returns
    -------
    bool array of shape (at most attempts, l)
    """
    grown = []
    for _ in range(attempts):
        order = rng.permutation(len(sets))
        first = sets[order[0]]
        apart = order[~(sets[order] & first).any(axis=1)]
        if len(apart) == 0:
            continue
        sides = [first.copy(), sets[apart[0]].copy()]
        for row in sets[order]:
            touches = [bool((row & side).any()) for side in sides]
            if all(touches):
                continue
            where = touches.index(True) if any(touches) else int(rng.integers(2))
            sides[where] |= row
            if (sides[0] | sides[1]).all():
                break
        # Classes that no sample could place go anywhere.
        open_classes = ~(sides[0] | sides[1])
        column = sides[0] | (open_classes & (rng.random(len(first)) < 0.5))
        grown.append(column ^ column[-1])
    return np.array(grown, dtype=bool).reshape(-1, sets.shape[1])
