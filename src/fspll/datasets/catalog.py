"""The data sets this package knows: what each is, where it lives, and how it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from fspll._common.errors import DataError, InputError
from fspll._common.files import data_dir
from fspll.datasets.checks import Archive, inspect_mat, inspect_mini_imagenet, inspect_omniglot

_OMNIGLOT_HOME = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"


@dataclass(frozen=True)
class DataSet:
    """One known data set.

    Attributes
    ----------
    name : str
        What ``fspll data get`` calls it.
    what, origin, license : str
        One line each, for people.
    advice : str
        How to get it; ``{home}`` stands for the folder.
    folder : str
        Where it lives below the data folder; empty when nothing is stored.
    files : tuple of str
        The files it consists of; ``"a|b"`` means either.
    inspect : callable
        Takes the files by name and whether to read every byte; returns what is there in a few
        words, or raises :class:`~fspll._common.errors.DataError`.
    archives : tuple of Archive
        What can be downloaded.
    """

    name: str
    what: str
    origin: str
    license: str
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
    plain = {known.lower(): known for known in CATALOG}
    asked = name.strip().lower().replace("-", "_")
    if asked in plain:
        return CATALOG[plain[asked]]
    close = get_close_matches(asked, plain, n=1)
    hint = f"did you mean '{plain[close[0]]}'?" if close else f"known are {', '.join(CATALOG)}"
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
        license="MIT",
        advice="fetch it into {home} with: fspll data get omniglot",
        inspect=partial(inspect_omniglot, archives=archives),
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
        license="academic use",
        advice=f"not downloadable; place {file} by hand in {{home}}",
        inspect=inspect_mat,
        folder="pll",
        files=(file,),
    )


CATALOG: dict[str, DataSet] = {
    dataset.name: dataset
    for dataset in (
        DataSet(
            name="glyphs",
            what="characters drawn by code, for demonstrations and tests",
            origin="this package",
            license="MIT",
            advice="nothing to fetch",
            inspect=lambda files, thorough: "drawn by code, nothing to fetch",
        ),
        _omniglot(_OMNIGLOT),
        DataSet(
            name="mini_imagenet",
            what="photos of 100 classes of ImageNet, in the usual split of 64, 16 and 20",
            origin="Vinyals et al. (2016); split of Ravi and Larochelle (2017)",
            license="ImageNet's terms of access",
            advice=(
                "not downloadable because of ImageNet's license; place images/ or images.zip, "
                "train.csv, val.csv and test.csv in {home}"
            ),
            inspect=inspect_mini_imagenet,
            folder="mini_imagenet",
            files=("images.zip|images", "train.csv", "val.csv", "test.csv"),
        ),
        _mat("lost", "faces in a television series, with the names in the script as candidates"),
        _mat("MSRCv2", "image segments, with the labels of the whole image as candidates"),
    )
}
