"""Omniglot: 1623 handwritten characters of 50 alphabets, each drawn by 20 people.

Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program
induction", 2015. As is usual in few-shot learning, the two published parts are pooled, 1200
characters are for meta-training and 423 for meta-test, and every quarter turn of a character is a
class of its own.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.files import data_dir
from fspll.datasets.archives import Source, open_source
from fspll.datasets.cache import CacheEntry, Decoded, Progress, Reader, read_picture
from fspll.datasets.images import ImageSet

N_DRAWINGS = 20
N_TRAIN_CHARACTERS = 1200
PARTS = {"images_background": 964, "images_evaluation": 659}
SPLIT_SEED = 20150  # fixed for ever: another seed is another benchmark
TURNS = ("", "/rot090", "/rot180", "/rot270")


def load_omniglot(
    split: Literal["train", "test", "all"] = "train",
    *,
    root: Path | str | None = None,
    rotations: bool = True,
    size: int = 28,
    n_train_characters: int | None = None,
    progress: Progress | None = None,
) -> ImageSet:
    """Load Omniglot with bright ink (255) on dark paper (0).

    Classes come in blocks of 20 images, the upright characters first in alphabetical order, then
    the same characters turned counterclockwise by 90, 180 and 270 degrees. The first load decodes
    the drawings into a cache of 25 MB; later loads take a fraction of a second.

    Parameters
    ----------
    split : {"train", "test", "all"}
        4800 classes of 1200 characters, 1692 classes of the 423 others, or all 6492.
    root : path, optional
        Folder with ``images_background`` and ``images_evaluation``, each a folder or a ``.zip``;
        by default ``omniglot`` in the data folder.
    rotations : bool
        Whether quarter turns are added as new classes.
    size : int
        Height and width of the images.
    n_train_characters : int, optional
        For a collection of one's own in Omniglot's layout: how many characters are for training.
        Without it the collection has to be Omniglot itself, of 964 + 659 characters.
    progress : callable, optional
        Called as ``progress(done, total)`` while decoding; without one a bar is shown on a
        terminal.

    Returns
    -------
    ImageSet
        ``images`` of shape (n_classes * 20, size, size).
    """
    if split not in ("train", "test", "all"):
        raise InputError(f"split must be 'train', 'test' or 'all', not {split!r}")
    if size < 1:
        raise InputError(f"size must be at least 1, not {size}")
    sources = _find_parts(root)
    entry = CacheEntry.of(f"omniglot-{size}", sources, size=size)
    decoded = entry.load()
    if decoded is None:
        decoded = _decode(entry, sources, size, progress)
    characters: list[str] = decoded.about["characters"]
    n_train = n_train_characters
    if n_train is None:
        _check_complete(sources, decoded.about["parts"])
        n_train = N_TRAIN_CHARACTERS
    chosen = _members_of(split, len(characters), n_train)
    drawings = decoded.images.reshape(len(characters), N_DRAWINGS, size, size)[chosen]
    upright = drawings.reshape(-1, size, size)
    turns = TURNS if rotations else TURNS[:1]
    images = np.empty((len(turns), *upright.shape), dtype=np.uint8)
    for quarter in range(len(turns)):
        images[quarter] = np.rot90(upright, quarter, axes=(1, 2))
    names = tuple(characters[c] + turn for turn in turns for c in chosen)
    return ImageSet(
        name=f"omniglot/{split}",
        images=images.reshape(-1, size, size),
        labels=np.repeat(np.arange(len(names), dtype=np.int64), N_DRAWINGS),
        class_names=names,
        families=tuple(characters[c] for _ in turns for c in chosen),
    )


def _find_parts(root: Path | str | None) -> list[Path]:
    """Return the zip or folder of both parts."""
    folder = data_dir() / "omniglot" if root is None else Path(root).expanduser()
    found = []
    for part in PARTS:
        # The zip first: a folder beside it may be the remains of an interrupted extraction.
        path = next((p for p in (folder / f"{part}.zip", folder / part) if p.exists()), None)
        if path is None:
            raise DataError(
                f"Omniglot was not found: neither {part}.zip nor a folder {part} is in {folder}; "
                "run: fspll data get omniglot, or set FSPLL_DATA to the folder that holds "
                "omniglot/"
            )
        found.append(path)
    return found


def _decode(
    entry: CacheEntry, sources: list[Path], size: int, progress: Progress | None
) -> Decoded:
    """Decode the upright drawings, sorted by character and then by file name."""
    with open_source(sources[0]) as background, open_source(sources[1]) as evaluation:
        characters: dict[str, list[tuple[Source, str]]] = {}
        counts = []
        for source in (background, evaluation):
            own = set()
            for name in source.names:
                parts = PurePosixPath(name).parts
                # A zip repeats the part's name as its top folder, a folder does not.
                if len(parts) >= 3 and name.lower().endswith(".png"):
                    own.add("/".join(parts[-3:-1]))
                    characters.setdefault("/".join(parts[-3:-1]), []).append((source, name))
            counts.append(len(own))
        readers: list[Reader] = []
        for character, drawings in sorted(characters.items()):
            if len(drawings) != N_DRAWINGS:
                raise DataError(
                    f"character {character!r} of {drawings[0][0].path} has {len(drawings)} "
                    f"drawings; every character needs {N_DRAWINGS}"
                )
            readers += [partial(_read_ink, source, name, size) for source, name in drawings]
        if not readers:
            raise DataError(
                f"no drawing was found in {sources[0]} or {sources[1]}; expected files like "
                "Greek/character05/0394_01.png"
            )
        about = {"characters": sorted(characters), "parts": counts}
        return entry.build(readers, (size, size), about, progress=progress)


def _read_ink(source: Source, name: str, size: int) -> np.ndarray:
    """Return one drawing with bright ink, of shape (size, size)."""
    where = f"{name} in {source.path}"
    return 255 - read_picture(source.read(name), where, size=size, channels=1, drawing=True)


def _check_complete(sources: list[Path], counts: list[int]) -> None:
    for source, count, expected in zip(sources, counts, PARTS.values(), strict=True):
        if count != expected:
            raise DataError(
                f"{source} has {count} characters but this part of Omniglot has {expected}; "
                "fetch it again with: fspll data get omniglot, or pass n_train_characters for "
                "a collection of your own"
            )


def _members_of(split: str, n_characters: int, n_train: int) -> np.ndarray:
    """Return the sorted indices of the characters of a split.

    The permutation sorts uniform draws instead of calling ``permutation``, whose algorithm NumPy
    may change; the stream of PCG64 is guaranteed.
    """
    if not 0 < n_train < n_characters:
        raise DataError(
            f"{n_train} characters for training leave none for test, or none to train on: "
            f"there are {n_characters} characters"
        )
    if split == "all":
        return np.arange(n_characters)
    draws = np.random.Generator(np.random.PCG64(SPLIT_SEED)).random(n_characters)
    order = np.argsort(draws, kind="stable")
    return np.sort(order[:n_train] if split == "train" else order[n_train:])
