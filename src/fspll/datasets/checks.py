"""Whether the files of a data set are what they should be, told by their content.

Most data sets cannot be told by a checksum: the same pictures packed anew make another file. So a
copy is accepted by its content, and the checksum only says whether it is the canonical file.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fspll._common.errors import DataError
from fspll.datasets.archives import Source, open_source

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_N_DRAWINGS = 20  # of every character, by twenty people
_N_CLASSES = {"train": 64, "val": 16, "test": 20}


@dataclass(frozen=True)
class Archive:
    """A zip file of Omniglot: where it is published and what must be inside."""

    name: str
    url: str
    md5: str
    n_alphabets: int
    n_characters: int


def check_archive(path: Path, archive: Archive, *, thorough: bool = True) -> int:
    """Verify one part of Omniglot by its content; return the number of drawings.

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
    with _open(path) as source:
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
        if count != _N_DRAWINGS:
            raise DataError(
                f"{path} has {count} drawings of {character} where {_N_DRAWINGS} were expected"
            )
    return drawings.total()


def _open(path: Path) -> Source:
    try:
        return open_source(path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def file_md5(path: Path) -> str:
    """Return the MD5 checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def inspect_omniglot(
    files: Mapping[str, Path], thorough: bool, archives: tuple[Archive, ...]
) -> str:
    """Verify both parts of Omniglot; say what is there."""
    paths = dict(zip(files.values(), archives, strict=True))
    n_drawings = sum(check_archive(path, part, thorough=thorough) for path, part in paths.items())
    counts = f"{n_drawings} drawings of {n_drawings // _N_DRAWINGS} characters"
    if not thorough:
        return counts
    if any(path.is_dir() for path in paths):
        return f"{counts}, extracted"
    canonical = all(file_md5(path) == part.md5 for path, part in paths.items())
    return f"{counts}, {'canonical' if canonical else 're-packed'} files"


def inspect_mini_imagenet(files: Mapping[str, Path], thorough: bool) -> str:
    """Verify the tables of miniImageNet and that every photo is there; say how many there are."""
    from fspll.datasets.mini_imagenet import check_disjoint, read_table

    parts = [read_table(files[f"{split}.csv"]) for split in _N_CLASSES]
    check_disjoint(parts)
    for rows, (split, expected) in zip(parts, _N_CLASSES.items(), strict=True):
        n_classes = len({row.label for row in rows})
        if n_classes != expected:
            raise DataError(
                f"{files[f'{split}.csv']} has {n_classes} classes where {expected} were expected"
            )
    names = [row.filename for rows in parts for row in rows]
    place = files["images.zip"] if "images.zip" in files else files["images"]
    _check_photos(place, names, thorough=thorough)
    return f"{len(names)} photos of {sum(_N_CLASSES.values())} classes"


def _check_photos(place: Path, names: list[str], *, thorough: bool) -> None:
    """Refuse when a photo that the tables name is missing or (``thorough``) cannot be read."""
    with _open(place) as source:
        # As the loader finds them: under images/, in a folder a class, or by the whole name.
        stored = {PurePosixPath(name).name: name for name in source.names}
        stored |= {name: name for name in source.names}
        missing = [name for name in names if name not in stored]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(names)} photos are missing in {place}; "
                f"the first is '{missing[0]}'"
            )
        for name in names if thorough else ():
            if not source.read(stored[name]):
                raise DataError(f"the photo '{name}' in {place} is empty")


def inspect_mat(files: Mapping[str, Path], thorough: bool) -> str:
    """Read a partial-label set; say what is in it."""
    # These files are so small that a glance may read all of them.
    from fspll.datasets.partial_label import load_partial_label_mat

    (path,) = files.values()
    data = load_partial_label_mat(path)
    return f"{len(data)} samples, {data.X.shape[1]} features, {data.n_classes} classes"
