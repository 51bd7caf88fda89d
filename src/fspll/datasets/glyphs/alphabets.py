"""The characters of invented alphabets, as strokes of a pen.

A character is one to four strokes. A later stroke hangs on an earlier one: it leaves from an end
or from part-way along, crosses it, or bridges two of its points, and only now and then stands
apart like the dot of an i. Twenty characters make an alphabet, which favors some movements over
others, and some characters are another one of their alphabet with a single change, as O and
Q, so that a few classes are hard to tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fspll.datasets.glyphs.strokes import (
    IS_ELABORATE,
    IS_PLAIN,
    MAX_STROKES,
    MOVEMENTS,
    StableRandom,
    along,
    arc,
    bumps,
    corner,
    cup,
    line,
    place,
    ring,
)

ALPHABET_SIZE = 20

# Part of a random stream's key, so that no two kinds of stream share numbers.
_ALPHABET_STREAM, _CHARACTER_STREAM = 1, 2


@dataclass(frozen=True, eq=False)
class Character:
    """What every drawing of one class has in common.

    Attributes
    ----------
    strokes : float array of shape (n_strokes, N_CONTROL, 2)
        Control points, evenly spaced along each stroke.
    pivots : float array of shape (n_strokes, 2)
        Where each stroke hangs on the others; when a hand varies a stroke, this point stays.
    """

    strokes: np.ndarray
    pivots: np.ndarray


# A stroke (N_CONTROL, 2) and its pivot (2,), before they become part of a Character.
_Stroke = tuple[np.ndarray, np.ndarray]

_BACKBONES = (
    ((0.0, -1.0), (0.0, 1.0)),
    ((0.0, -0.6), (0.0, 0.8)),
    ((-0.75, 0.0), (0.75, 0.0)),
    ((0.55, -0.9), (-0.55, 0.9)),
    ((-0.55, -0.9), (0.55, 0.9)),
)


def _move(rng: StableRandom, weights: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return a movement that the alphabet favors from ``start`` to ``end``."""
    cramped = float(((end - start) ** 2).sum()) < 0.9**2
    choice = rng.pick(weights * ~IS_ELABORATE if cramped else weights)
    return place(list(MOVEMENTS)[choice](rng), start, end)


def _step(rng: StableRandom, length: float) -> np.ndarray:
    """Return a step in one of eight directions; people favor the level and the upright."""
    angle = 0.25 * np.pi * rng.pick([4, 2, 3, 2, 4, 2, 3, 2])
    return length * np.array([np.cos(angle), np.sin(angle)])


def _first_stroke(rng: StableRandom, weights: np.ndarray) -> _Stroke:
    start, end = _BACKBONES[rng.pick([5, 1.5, 2, 1.5, 1.5])]
    stroke = _move(rng, weights, np.array(start), np.array(end))
    return stroke, stroke.mean(axis=0)


def _standing_apart(rng: StableRandom, strokes: list[np.ndarray]) -> _Stroke:
    """Return a dot, a dash, an accent or a small ring beside what is there."""
    ink = np.concatenate(strokes)
    middle, reach = 0.5 * (ink.min(axis=0) + ink.max(axis=0)), 0.5 * np.ptp(ink, axis=0) + 0.3
    side = np.array(((1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0))[rng.pick([2, 2, 3, 1])])
    center = middle + side * reach + rng.uniform(-0.3, 0.3) * side[::-1]
    kinds = ((line, 0.08), (line, 0.7), (arc, 0.7), (ring, 0.4))
    movement, length = kinds[rng.pick([3, 2, 2, 1])]
    half = _step(rng, 0.5 * length)
    return place(movement(rng), center - half, center + half), center


def _later_stroke(rng: StableRandom, weights: np.ndarray, strokes: list[np.ndarray]) -> _Stroke:
    """Return a proposal for a stroke that hangs on the earlier ones."""
    host, other = (strokes[rng.pick([1.0] * len(strokes))] for _ in range(2))
    part_way = along(host, np.array([rng.uniform(0.25, 0.75)]))[0]
    host_end = host[-1] if rng.chance(0.5) else host[0]
    relation = ("end", "part-way", "cross", "bridge", "apart")[rng.pick([3.5, 3, 1.5, 2, 1.5])]
    if relation == "cross":  # as the bar of a t
        half = _step(rng, rng.uniform(0.35, 0.6))
        return place(line(rng), part_way - half, part_way + half), part_way
    if relation == "bridge":  # as the bowl of a D or the bar of an H
        far_end = along(other, np.array([0.5 * rng.pick([1, 1, 1])]))[0]
        movement = (line, arc, cup, corner, bumps)[rng.pick([2, 2, 2, 1, 0.7])]
        return place(movement(rng), host_end, far_end), host_end
    if relation == "apart":
        return _standing_apart(rng, strokes)
    start = host_end if relation == "end" else part_way
    return _move(rng, weights, start, start + _step(rng, rng.uniform(0.6, 1.4))), start


def _clearance(stroke: np.ndarray, strokes: list[np.ndarray]) -> float:
    """Return how far a stroke keeps, on average, from the ink that is already there."""
    ink = np.concatenate(strokes)
    gaps = ((stroke[:, None, :] - ink[None, :, :]) ** 2).sum(axis=-1).min(axis=1)
    return float(np.sqrt(gaps).mean())


def _with_another_stroke(rng: StableRandom, weights: np.ndarray, model: Character) -> Character:
    """Add a stroke that keeps clear of the others: the best of five proposals."""
    strokes = list(model.strokes)
    proposals = [_later_stroke(rng, weights, strokes) for _ in range(5)]
    # Beyond a point more distance is no clearer; without the cap, all would stand apart. Rounding
    # keeps the last bits, which differ between machines, from deciding.
    clearances = [min(round(_clearance(stroke, strokes), 6), 0.25) for stroke, _ in proposals]
    stroke, pivot = proposals[int(np.argmax(clearances))]
    return Character(
        np.concatenate([model.strokes, stroke[None]]), np.concatenate([model.pivots, pivot[None]])
    )


def _invent(rng: StableRandom, weights: np.ndarray) -> Character:
    n_strokes = 1 + rng.pick([0.08, 0.42, 0.36, 0.14])
    stroke, pivot = _first_stroke(rng, weights * ~IS_PLAIN if n_strokes == 1 else weights)
    character = Character(stroke[None], pivot[None])
    while len(character.strokes) < n_strokes:
        character = _with_another_stroke(rng, weights, character)
    return character


def _vary(rng: StableRandom, weights: np.ndarray, model: Character) -> Character:
    """Return another character that differs from ``model`` in one stroke, or is its mirror."""
    change = ("mirror", "replace", "add")[rng.pick([1, 2, 2])]
    mirrored = model.strokes * np.array([-1.0, 1.0])
    # The mirror of an A is an A.
    if change == "mirror" and _clearance(np.concatenate(mirrored), list(model.strokes)) > 0.12:
        return Character(mirrored, model.pivots * np.array([-1.0, 1.0]))
    n_kept = len(model.strokes)
    if n_kept == MAX_STROKES or (change == "replace" and n_kept > 1):
        n_kept -= 1
    kept = Character(model.strokes[:n_kept], model.pivots[:n_kept])
    return _with_another_stroke(rng, weights, kept)


def _fit_in_box(character: Character) -> Character:
    low, high = character.strokes.min(axis=(0, 1)), character.strokes.max(axis=(0, 1))
    middle, reach = 0.5 * (low + high), 0.5 * float((high - low).max())
    return Character((character.strokes - middle) / reach, (character.pivots - middle) / reach)


def _is_legible(character: Character) -> bool:
    """Tell whether a character that fills its box is neither a flat smear nor a tangle."""
    narrow_side = float(np.ptp(character.strokes, axis=(0, 1)).min())
    length = float(np.sqrt((np.diff(character.strokes, axis=1) ** 2).sum(axis=-1)).sum())
    return narrow_side > 0.7 and length < 7.5


def _movement_weights(seed: int, alphabet: int) -> np.ndarray:
    """Return how much an alphabet likes each movement, of shape (n_movements,)."""
    rng = StableRandom(seed, _ALPHABET_STREAM, alphabet)
    return np.array([weight * rng.uniform(0.15, 1.85) ** 2 for weight in MOVEMENTS.values()])


def character(seed: int, index: int) -> Character:
    """Return character ``index`` of the writing system ``seed``: always the same one.

    Parameters
    ----------
    seed : int
        Which writing system.
    index : int
        Which of its characters; each :data:`ALPHABET_SIZE` in a row form an alphabet.

    Returns
    -------
    Character
        Centered, its longer side from -1 to 1.
    """
    alphabet, place_in_alphabet = divmod(index, ALPHABET_SIZE)
    rng = StableRandom(seed, _CHARACTER_STREAM, index)
    weights = _movement_weights(seed, alphabet)
    # Only an earlier character of the same alphabet can be the model, so that a range of classes
    # made of whole alphabets has no relatives outside it.
    has_model = place_in_alphabet > 0 and rng.chance(0.2)
    if has_model:
        model = character(seed, index - 1 - int(rng.uniform(0, place_in_alphabet)))
    for _ in range(8):  # a hard-to-read character is better than none
        drawn = _fit_in_box(_vary(rng, weights, model) if has_model else _invent(rng, weights))
        if _is_legible(drawn):
            break
    return drawn
