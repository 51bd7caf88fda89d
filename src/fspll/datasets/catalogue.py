"""The data sets this package knows: what each is, where it lives, and whether it is sound.

Most of them cannot be told by a checksum: the same pictures packed anew make another file. So a
copy is accepted by its content, and the checksum only says whether it is the canonical file.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path, PurePosixPath

from fspll.datasets.archives import Source, open_source
from fspll.errors import DataError, InputError
from fspll.files import data_dir

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OMNIGLOT_HOME = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
_N_DRAWINGS = 20  # of every character, by twenty people


@dataclass(frozen=True)
class Archive:
    """A zip file of Omniglot: where it is published and what must be inside."""

    name: str
    url: str
    md5: str
    n_alphabets: int
    n_characters: int


@dataclass(frozen=True)
class DataSet:
    """One known data set.

    Attributes
    ----------
    name : str
        What ``fspll data get`` calls it.
    what, origin, licence : str
        One line each, for people.
    advice : str
        How to get it; ``{home}`` stands for the folder.
    folder : str
        Where it lives below the data folder; empty when nothing is stored.
    files : tuple of str
        The files it consists of; ``"a|b"`` means either.
    inspect : callable
        Takes the files by name and whether to read every byte; returns what is there in a few
        words, or raises :class:`~fspll.errors.DataError`.
    archives : tuple of Archive
        What can be downloaded.
    """

    name: str
    what: str
    origin: str
    licence: str
    advice: str
    inspect: Callable[[Mapping[str, Path], bool], str]
    folder: str = ""
    files: tuple[str, ...] = ()
    archives: tuple[Archive, ...] = ()

    def home(self, root: Path | str | None = None) -> Path:
        """Return where it lives, there or not: ``root`` itself, or its place in the data folder."""
        return data_dir() / self.folder if root is None else Path(root).expanduser()

    def find_files(self, folder: Path) -> tuple[dict[str, Path], list[str]]:
        """Return the files that are in a folder, by name, and the names of those that are not."""
        found, missing = {}, []
        for names in self.files:
            there = [name for name in names.split("|") if (folder / name).exists()]
            if there:
                found[there[0]] = folder / there[0]
            else:
                missing.append(names.replace("|", " or "))
        return found, missing


@dataclass(frozen=True)
class State:
    """How a data set stands: ``"built in"``, ``"present"``, ``"absent"`` or ``"damaged"``."""

    word: str
    detail: str
    folder: Path | None

    @property
    def sound(self) -> bool:
        """Whether it can be used."""
        return self.word in ("built in", "present")


def find_dataset(name: str) -> DataSet:
    """Return a data set by its name, whatever its case and hyphens.

    >>> find_dataset("Mini-ImageNet").name
    'mini_imagenet'
    """
    plain = {known.lower(): known for known in CATALOGUE}
    asked = name.strip().lower().replace("-", "_")
    if asked in plain:
        return CATALOGUE[plain[asked]]
    close = get_close_matches(asked, plain, n=1)
    hint = f"did you mean '{plain[close[0]]}'?" if close else f"known are {', '.join(CATALOGUE)}"
    raise InputError(f"there is no data set called '{name}'; {hint}")


def look_up(dataset: DataSet, root: Path | str | None = None, *, thorough: bool = False) -> State:
    """Say how a data set stands, from a glance or (``thorough``) from reading every byte."""
    if not dataset.files:
        return State("built in", dataset.inspect({}, thorough), None)
    home = dataset.home(root)
    found, missing = dataset.find_files(home)
    if not found:
        return State("absent", dataset.advice.format(home=home), home)
    if missing:
        return State("damaged", f"{' and '.join(missing)} not found in {home}", home)
    try:
        return State("present", dataset.inspect(found, thorough), home)
    except DataError as error:
        return State("damaged", str(error), home)


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


def _inspect_omniglot(
    files: Mapping[str, Path], thorough: bool, archives: tuple[Archive, ...]
) -> str:
    paths = dict(zip(files.values(), archives, strict=True))
    n_drawings = sum(check_archive(path, part, thorough=thorough) for path, part in paths.items())
    counts = f"{n_drawings} drawings of {n_drawings // _N_DRAWINGS} characters"
    if not thorough:
        return counts
    if any(path.is_dir() for path in paths):
        return f"{counts}, extracted"
    canonical = all(file_md5(path) == part.md5 for path, part in paths.items())
    return f"{counts}, {'canonical' if canonical else 're-packed'} files"


def _inspect_mini_imagenet(files: Mapping[str, Path], thorough: bool) -> str:
    from fspll.datasets.mini_imagenet import _check_disjoint, _read_table

    parts = [_read_table(files[f"{split}.csv"]) for split in _N_CLASSES]
    _check_disjoint(parts)
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


def _inspect_mat(files: Mapping[str, Path], thorough: bool) -> str:
    # These files are so small that a glance may read all of them.
    from fspll.datasets.partial_label import load_partial_label_mat

    (path,) = files.values()
    data = load_partial_label_mat(path)
    return f"{len(data)} samples, {data.X.shape[1]} features, {data.n_classes} classes"


_N_CLASSES = {"train": 64, "val": 16, "test": 20}
_OMNIGLOT = (
    Archive(
        "images_background.zip",
        f"{_OMNIGLOT_HOME}/images_background.zip",
        "68d2efa1b9178cc56df9314c21c6e718",
        n_alphabets=30,
        n_characters=964,
    ),
    Archive(
        "images_evaluation.zip",
        f"{_OMNIGLOT_HOME}/images_evaluation.zip",
        "6b91aef0f799c5bb55b94e3f2daec811",
        n_alphabets=20,
        n_characters=659,
    ),
)


def _omniglot(archives: tuple[Archive, ...]) -> DataSet:
    return DataSet(
        name="omniglot",
        what="1623 handwritten characters of 50 alphabets, each drawn by 20 people",
        origin="Lake, Salakhutdinov and Tenenbaum (2015)",
        licence="MIT",
        advice="fetch it into {home} with: fspll data get omniglot",
        inspect=partial(_inspect_omniglot, archives=archives),
        folder="omniglot",
        files=tuple(f"{archive.name}|{archive.name.removesuffix('.zip')}" for archive in archives),
        archives=archives,
    )


def _mat(name: str, what: str) -> DataSet:
    file = f"{name}.mat"
    return DataSet(
        name=name,
        what=what,
        origin="M.-L. Zhang's collection of partial-label data sets",
        licence="academic use",
        advice=f"not downloadable; place {file} by hand in {{home}}",
        inspect=_inspect_mat,
        folder="pll",
        files=(file,),
    )


CATALOGUE: dict[str, DataSet] = {
    dataset.name: dataset
    for dataset in (
        DataSet(
            name="glyphs",
            what="characters drawn by code, for demonstrations and tests",
            origin="this package",
            licence="MIT",
            advice="nothing to fetch",
            inspect=lambda files, thorough: "drawn by code, nothing to fetch",
        ),
        _omniglot(_OMNIGLOT),
        DataSet(
            name="mini_imagenet",
            what="photos of 100 classes of ImageNet, in the usual split of 64, 16 and 20",
            origin="Vinyals et al. (2016); split of Ravi and Larochelle (2017)",
            licence="ImageNet's terms of access",
            advice=(
                "not downloadable because of ImageNet's licence; place images/ or images.zip, "
                "train.csv, val.csv and test.csv in {home}"
            ),
            inspect=_inspect_mini_imagenet,
            folder="mini_imagenet",
            files=("images.zip|images", "train.csv", "val.csv", "test.csv"),
        ),
        _mat("lost", "faces in a television series, with the names in the script as candidates"),
        _mat("MSRCv2", "image segments, with the labels of the whole image as candidates"),
    )
}
