"""What a pen does: the movements that characters are written with, and the rng that choose them.

A movement is a path of shape (m, 2) in a frame of its own, where it is meant to lead from (0, 0)
to (1, 0); hooks, curls and tails may end elsewhere. :func:`place` lays it between two points of
the page, x to the right and y downwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

MAX_STROKES = 4
N_CONTROL = 16  # control points of a stroke: enough for three bumps, few enough to look fluent


class StableRandom:
    """Random decisions from uniform numbers only.

    ``Generator.random`` of a fixed bit generator is the one stream that NumPy has never changed;
    ``choice`` and ``normal`` may give other numbers in another version.
    """

    def __init__(self, *key: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

    def uniform(self, low: float, high: float) -> float:
        """Return a number between ``low`` and ``high``."""
        return low + (high - low) * float(self._generator.random())

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.uniform(0.0, 1.0) < probability

    def sign(self) -> float:
        """Return -1 or 1."""
        return 1.0 if self.chance(0.5) else -1.0

    def pick(self, weights: Sequence[float] | np.ndarray) -> int:
        """Return an index, each as likely as its weight."""
        cumulative = np.cumsum(weights)
        drawn = self.uniform(0.0, float(cumulative[-1]))
        return min(int(np.searchsorted(cumulative, drawn, side="right")), len(cumulative) - 1)

    def near_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return numbers of mean 0 and variance 1, nearly normal but never beyond 3.

        Rows are drawn one after another, so asking for more rows leaves the first ones as they
        were.
        """
        return 2.0 * (self._generator.random((*shape, 3)).sum(axis=-1) - 1.5)


def _circle_part(
    center: tuple[float, float], radius: float, start: float, sweep: float
) -> np.ndarray:
    """Return part of a circle, angles in half turns, of shape (48, 2)."""
    angles = np.pi * (start + sweep * np.linspace(0.0, 1.0, 48))
    return np.asarray(center) + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def line(rng: StableRandom) -> np.ndarray:
    """Return a nearly straight line, as in l."""
    return np.array([[0.0, 0.0], [0.5, rng.uniform(-0.05, 0.05)], [1.0, 0.0]])


def _bow(sweep: float, side: float) -> np.ndarray:
    """Return the circular arc over the chord that turns by ``sweep`` half turns."""
    half = 0.5 * sweep
    radius = 0.5 / np.sin(np.pi * half)
    center = (0.5, -side * radius * np.cos(np.pi * half))
    return _circle_part(center, radius, side * (0.5 + half), -side * sweep)


def arc(rng: StableRandom) -> np.ndarray:
    """Return a shallow arc, as in (."""
    return _bow(rng.uniform(0.45, 0.9), rng.sign())


def cup(rng: StableRandom) -> np.ndarray:
    """Return half a circle or more, as in C and U."""
    return _bow(rng.uniform(1.0, 1.4), rng.sign())


def hook(rng: StableRandom) -> np.ndarray:
    """Return a line that curls back at its end, as in J."""
    radius, side = rng.uniform(0.16, 0.3), rng.sign()
    center = (1.0 - radius, side * radius)
    turn = _circle_part(center, radius, -0.5 * side, side * rng.uniform(0.6, 1.0))
    return np.concatenate([[[0.0, 0.0]], turn])


def corner(rng: StableRandom) -> np.ndarray:
    """Return two lines that meet, as in L and V."""
    height = rng.uniform(0.5, 0.8) * rng.sign()
    return np.array([[0.0, 0.0], [0.5 * rng.pick([1, 1, 1]), height], [1.0, 0.0]])


def zigzag(rng: StableRandom) -> np.ndarray:
    """Return three lines, as in Z and N."""
    height, side = rng.uniform(0.3, 0.5), rng.sign()
    first = rng.uniform(0.0, 0.3)
    return np.array([[0.0, 0.0], [first, side * height], [1.0 - first, -side * height], [1.0, 0.0]])


def teeth(rng: StableRandom) -> np.ndarray:
    """Return two points side by side, as in W."""
    height = rng.uniform(0.35, 0.55) * rng.sign()
    return np.array([[0.0, 0.0], [0.25, height], [0.5, 0.05], [0.75, height], [1.0, 0.0]])


def wave(rng: StableRandom) -> np.ndarray:
    """Return a wave, as in S."""
    t = np.linspace(0.0, 1.0, 48)
    turns = (1.0, 1.5)[rng.pick([3, 1])]
    height = rng.uniform(0.22, 0.36) * rng.sign()
    return np.stack([t, height * np.sin(2.0 * np.pi * turns * t)], axis=1)


def bumps(rng: StableRandom) -> np.ndarray:
    """Return two bumps side by side, as in m and 3."""
    t = np.linspace(0.0, 1.0, 65)
    height = rng.uniform(0.35, 0.55) * rng.sign()
    return np.stack([t, height * np.abs(np.sin(2.0 * np.pi * t))], axis=1)


def loop(rng: StableRandom) -> np.ndarray:
    """Return a line that crosses itself on its way, as in a Greek gamma."""
    t = np.linspace(0.0, 1.0, 64)
    height, width = rng.uniform(0.6, 0.9) * rng.sign(), rng.uniform(0.28, 0.36)
    x = t + width * np.sin(2.0 * np.pi * t)
    return np.stack([x, height * 0.5 * (1.0 - np.cos(2.0 * np.pi * t))], axis=1)


def ring(rng: StableRandom) -> np.ndarray:
    """Return a closed oval, as in O."""
    circle = _circle_part((0.5, 0.0), 0.5, 1.0, 2.0 * rng.sign())
    return circle * np.array([1.0, rng.uniform(0.7, 1.0)])


def ring_with_tail(rng: StableRandom) -> np.ndarray:
    """Return a ring that leaves in a line, as in 9."""
    side = rng.sign()
    circle = _circle_part((0.27, 0.0), 0.27, 0.0, side * 2.0)
    return np.concatenate([circle, [[1.0, -side * rng.uniform(0.0, 0.25)]]])


def curl(rng: StableRandom) -> np.ndarray:
    """Return a small spiral, as in @."""
    side, growth = rng.sign(), np.linspace(0.25, 1.0, 48)[:, None]
    spiral = growth * _circle_part((0.0, 0.0), 0.5, 0.0, side * rng.uniform(2.0, 2.6))
    return spiral + np.array([0.5, 0.0])


Movement = Callable[[StableRandom], np.ndarray]

# How common each movement is. A lone plain stroke says too little to be a letter; an elaborate
# movement in little room is a blot.
_PLAIN: dict[Movement, float] = {line: 7.0, arc: 3.5}
_ROUND_OR_BENT: dict[Movement, float] = {cup: 2.5, hook: 2.5, corner: 2.5, ring: 1.4}
_ELABORATE: dict[Movement, float] = {
    zigzag: 1.3,
    teeth: 0.6,
    wave: 1.2,
    bumps: 0.9,
    loop: 1.2,
    ring_with_tail: 1.0,
    curl: 0.5,
}
MOVEMENTS: dict[Movement, float] = _PLAIN | _ROUND_OR_BENT | _ELABORATE
IS_PLAIN = np.array([movement in _PLAIN for movement in MOVEMENTS])
IS_ELABORATE = np.array([movement in _ELABORATE for movement in MOVEMENTS])


def along(path: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the points of a path (m, 2) at these shares of its length."""
    steps = np.sqrt((np.diff(path, axis=0) ** 2).sum(axis=1))
    traveled = np.concatenate([[0.0], np.cumsum(steps)])
    wanted = positions * traveled[-1]
    return np.stack([np.interp(wanted, traveled, path[:, axis]) for axis in (0, 1)], axis=1)


_EVENLY = np.linspace(0.0, 1.0, N_CONTROL)


def place(movement: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Lay a movement between two anchor points; returns control points (N_CONTROL, 2)."""
    chord = end - start
    across = np.array([-chord[1], chord[0]])
    return along(start + movement[:, :1] * chord + movement[:, 1:] * across, _EVENLY)
