"""Omniglot: 1623 handwritten characters of 50 alphabets, each drawn by 20 people.

Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program
induction", 2015. As is usual in few-shot learning, the two published parts are pooled, 1200
characters are for meta-training and 423 for meta-test, and every quarter turn of a character is a
class of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import DataError
from fspll._common.files import file_md5
from fspll.datasets.archives import Source, open_source
from fspll.datasets.base import DataSet, Download, ImageSet
from fspll.datasets.cache import CacheEntry, Decoded, Progress, Reader, read_picture

N_DRAWINGS = 20  # of every character, by twenty people
N_TRAIN_CHARACTERS = 1200
SPLIT_SEED = 20150  # fixed for ever: another seed is another benchmark
TURNS = ("", "/rot090", "/rot180", "/rot270")

_PUBLIC_HOME = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, kw_only=True)
class Archive(Download):
    """One of the two published zips: besides its address, what must be inside."""

    n_alphabets: int
    n_characters: int


ARCHIVES = (
    Archive(
        name="images_background.zip",
        url=f"{_PUBLIC_HOME}/images_background.zip",
        md5="68d2efa1b9178cc56df9314c21c6e718",
        n_alphabets=30,
        n_characters=964,
    ),
    Archive(
        name="images_evaluation.zip",
        url=f"{_PUBLIC_HOME}/images_evaluation.zip",
        md5="6b91aef0f799c5bb55b94e3f2daec811",
        n_alphabets=20,
        n_characters=659,
    ),
)


class Omniglot(DataSet):
    """Omniglot with every quarter turn of a character as a class of its own."""

    name = "omniglot"
    title = "Omniglot"
    what = "1623 handwritten characters of 50 alphabets, each drawn by 20 people"
    origin = "Lake, Salakhutdinov and Tenenbaum (2015)"
    license = "MIT"
    kind = "characters"
    advice = "fetch it into {folder} with: fspll data get omniglot"
    folder = "omniglot"
    # The zip first: a folder beside it may be the remains of an interrupted extraction.
    files = tuple(f"{archive.name}|{archive.name.removesuffix('.zip')}" for archive in ARCHIVES)

    downloads: tuple[Archive, ...] = ARCHIVES

    def load(
        self, split: str = "train", *, root: Path | str | None = None, size: int | None = None
    ) -> ImageSet:
        """Load a split; see :func:`load_omniglot`."""
        return load_omniglot(split, root=root, size=28 if size is None else size)

    def inspect(self, files: Mapping[str, Path], thorough: bool) -> str:
        """Verify both parts; return how many drawings there are."""
        parts = dict(zip(files.values(), self.downloads, strict=True))
        n = sum(check_archive(path, part, thorough=thorough) for path, part in parts.items())
        counts = f"{n} drawings of {n // N_DRAWINGS} characters"
        if not thorough:
            return counts
        if any(path.is_dir() for path in parts):
            return f"{counts}, extracted"
        canonical = all(file_md5(path) == part.md5 for path, part in parts.items())
        return f"{counts}, {'canonical' if canonical else 're-packed'} files"

    def check_download(self, path: Path, file: Download) -> None:
        """Verify one part."""
        check_archive(path, next(one for one in self.downloads if one.name == file.name))


OMNIGLOT = Omniglot()


def load_omniglot(
    split: str = "train",
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

    Examples
    --------
    Two characters of one's own in Omniglot's layout, one to train on and one to test on:

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as root:
    ...     for part in ("images_background/Greek", "images_evaluation/Latin"):
    ...         folder = Path(root) / part / "character01"
    ...         folder.mkdir(parents=True)
    ...         for number in range(20):
    ...             Image.new("1", (105, 105), "white").save(folder / f"{number}.png")
    ...     load_omniglot("test", root=root, n_train_characters=1)
    ImageSet('omniglot/test': 80 images of 28x28, 4 classes)
    """
    check_choice("split", split, ("train", "test", "all"))
    check_count("size", size, 1)
    sources = OMNIGLOT.require_files(root)
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
    for source, count, archive in zip(sources, counts, ARCHIVES, strict=True):
        if count != archive.n_characters:
            raise DataError(
                f"{source} has {count} characters but this part of Omniglot has "
                f"{archive.n_characters}; "
                "fetch it again with: fspll data get omniglot"
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


def check_archive(path: Path, archive: Archive, *, thorough: bool = True) -> int:
    """Verify one part of Omniglot by its content; return the number of drawings.

    A checksum cannot do it: the same drawings packed anew make another file. It only tells whether
    a file is the canonical one.

    Parameters
    ----------
    path : Path
        The zip (or the folder extracted from it), whatever it is called.
    archive : Archive
        What it should be.
    thorough : bool
        Read every drawing (its checksum in the zip and its PNG signature), not only the names.
    """
    pattern = re.compile(r"(?:.+/)?([^/]+/[^/]+)/[^/]+\.png", re.IGNORECASE)
    drawings: Counter[str] = Counter()
    with open_source(path) as source:
        for name in source.names:
            if not (found := pattern.fullmatch(name)):
                continue  # a note beside the drawings does no harm: nothing is ever extracted
            drawings[found[1]] += 1
            if thorough and not source.read(name).startswith(_PNG_SIGNATURE):
                raise DataError(f"'{name}' in {path} is not a PNG picture")
    n_alphabets = len({character.split("/")[0] for character in drawings})
    if (n_alphabets, len(drawings)) != (archive.n_alphabets, archive.n_characters):
        raise DataError(
            f"{path} has {len(drawings)} characters of {n_alphabets} alphabets where "
            f"{archive.n_characters} characters of {archive.n_alphabets} alphabets were expected"
        )
    for character, count in drawings.items():
        if count != N_DRAWINGS:
            raise DataError(
                f"{path} has {count} drawings of {character} where {N_DRAWINGS} were expected"
            )
    return drawings.total()
