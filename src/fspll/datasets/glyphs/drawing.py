"""Handwritten characters drawn by code: a data set in the spirit of Omniglot, with no download.

Twenty drawers each draw every character once. A drawer has a hand of their own that is the same
in all characters; each drawing then varies a little, as no one writes a character twice alike.
``alphabets`` invents the characters from the movements of ``strokes``; ``handwriting`` writes them
and turns the pen's path into pixels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import InputError
from fspll.datasets.base import DataSet, ImageSet
from fspll.datasets.glyphs.alphabets import ALPHABET_SIZE, Character, character
from fspll.datasets.glyphs.handwriting import N_VARIATIONS, Hand, draw_ink, write
from fspll.datasets.glyphs.strokes import MAX_STROKES, StableRandom

SPLITS: dict[str, range] = {"train": range(1000), "test": range(1000, 1500)}
"""The classes of each split: whole alphabets, so that no test character has a relative in train."""

_DRAWER_STREAM, _DRAWING_STREAM = 3, 4
_CLASSES_AT_ONCE = 16  # a few hundred drawings at a time stay within the processor's cache


class Glyphs(DataSet):
    """The characters of seed 0: 1000 classes for meta-training and 500 for meta-test."""

    name = "glyphs"
    title = "glyphs"
    what = "characters drawn by code, for demonstrations and tests"
    origin = "this package"
    license = "MIT"
    kind = "characters"
    advice = "drawn by code, nothing to fetch"

    def load(
        self, split: str = "train", *, root: Path | str | None = None, size: int | None = None
    ) -> ImageSet:
        """Draw all classes of a split; see :func:`load_glyphs`."""
        n_classes = len(SPLITS[split]) if split in SPLITS else 1
        return load_glyphs(n_classes, split=split, size=28 if size is None else size)

    def describe(self, data: ImageSet) -> str:
        """Return the name for tables, which nobody can take for Omniglot."""
        return "glyphs (characters drawn by code; not Omniglot)"


GLYPHS = Glyphs()
"""The data set that ``fspll.datasets.DATASETS`` knows as "glyphs"."""


def load_glyphs(
    n_classes: int = 100,
    n_drawings: int = 20,
    *,
    split: str | None = None,
    seed: int = 0,
    first_class: int = 0,
    size: int = 28,
) -> ImageSet:
    """Draw handwritten characters: bright ink on dark paper, every class by every drawer.

    Class c of a seed is always the same drawings: asking for more classes or more drawings adds
    some and changes none, and ``load_glyphs(100, first_class=200)`` are classes 200 to 299.

    Parameters
    ----------
    n_classes : int
        How many characters.
    n_drawings : int
        How many drawers draw each character; drawer d has the same hand in all characters.
    split : {"train", "test"}, optional
        Count classes from the start of this split's own range (see :data:`SPLITS`): the ranges
        have no character in common, nor any alphabet.
    seed : int
        Which writing system and which drawers.
    first_class : int
        The first class to draw, counted from the start of the split or, without one, from 0.
    size : int
        Pixels of a side; at least 8.

    Returns
    -------
    ImageSet
        ``n_classes * n_drawings`` images of shape (size, size), sorted by class, then by drawer.

    Examples
    --------
    >>> load_glyphs(5, 4, split="test")
    ImageSet('glyphs/test': 20 images of 28x28, 5 classes)
    """
    chosen = _chosen_classes(n_classes, first_class, split)
    check_count("n_drawings", n_drawings, 1)
    check_count("seed", seed)
    check_count("size", size, 8)
    hand = Hand.of_drawers(n_drawings, seed, _DRAWER_STREAM)
    images = [
        _draw(chosen[start : start + _CLASSES_AT_ONCE], hand, seed, size)
        for start in range(0, n_classes, _CLASSES_AT_ONCE)
    ]
    return ImageSet(
        name="glyphs" if split is None else f"glyphs/{split}",
        images=np.concatenate(images),
        labels=np.repeat(np.arange(n_classes, dtype=np.int64), n_drawings),
        class_names=tuple(_class_name(index) for index in chosen),
    )


def _chosen_classes(n_classes: int, first_class: int, split: str | None) -> range:
    check_count("n_classes", n_classes, 1)
    check_count("first_class", first_class)
    if split is None:
        return range(first_class, first_class + n_classes)
    check_choice("split", split, SPLITS)
    whole = SPLITS[split]
    if first_class + n_classes > len(whole):
        raise InputError(
            f"split {split!r} has {len(whole)} classes, but classes {first_class} to "
            f"{first_class + n_classes - 1} were asked for; lower n_classes or first_class"
        )
    return whole[first_class : first_class + n_classes]


def _class_name(index: int) -> str:
    alphabet, place = divmod(index, ALPHABET_SIZE)
    return f"alphabet{alphabet:03d}/character{place + 1:02d}"


def _draw(classes: range, hand: Hand, seed: int, size: int) -> np.ndarray:
    """Return every drawer's drawing of these classes, of shape (n, size, size)."""
    n_drawings = len(hand.slant)
    models = [_padded(character(seed, index)) for index in classes]
    strokes, pivots, present = (
        np.repeat(np.stack(part), n_drawings, axis=0) for part in zip(*models, strict=True)
    )
    shape = (n_drawings, N_VARIATIONS)
    numbers = np.concatenate(
        [StableRandom(seed, _DRAWING_STREAM, index).near_normal(shape) for index in classes]
    )
    points, radius = write(strokes, pivots, present, hand.repeated(len(classes)), numbers, size)
    return draw_ink(points, radius, present, size)


def _padded(model: Character) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill a character up to MAX_STROKES strokes; also return which strokes are real."""
    n_strokes = len(model.strokes)
    missing = MAX_STROKES - n_strokes
    strokes = np.pad(model.strokes, ((0, missing), (0, 0), (0, 0)))
    pivots = np.pad(model.pivots, ((0, missing), (0, 0)))
    return strokes, pivots, np.arange(MAX_STROKES) < n_strokes
