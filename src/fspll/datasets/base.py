"""What a data set is, and what it loads into.

A :class:`DataSet` says what it is, where its files live, how they are checked and fetched, and
loads them. Adding one takes a file with a subclass and one registration: in
:data:`~fspll.datasets.registry.DATASETS` or, from another package, through the entry-point group
``fspll.datasets``. What is loaded is an :class:`ImageSet` or a :class:`PartialLabelSet`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from fspll._common.errors import DataError
from fspll._common.files import data_dir
from fspll._common.words import counted

if TYPE_CHECKING:
    from fspll.candidates.sets import Candidates


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with one true class each; often a memory-mapped view of a cache file.

    Attributes
    ----------
    name : str
        What this is, for tables and file names, e.g. ``"omniglot/test"``.
    images : uint8 array of shape (n, H, W) or (n, H, W, 3)
        Gray images of characters have bright ink (255) on dark paper (0).
    labels : int64 array of shape (n,)
        Index into ``class_names``.
    class_names : tuple of str
        One name per class.
    families : tuple of str, optional
        One name per class, shared by classes that are variants of one thing, such as a character
        and its rotations: who holds out one of them holds out all. By default, every class is a
        family of its own.
    note : str
        What a person should know about how these classes were chosen; empty when there is nothing
        to say.

    Examples
    --------
    >>> ImageSet("two", np.zeros((2, 8, 8), np.uint8), np.array([0, 1]), ("a", "b"))
    ImageSet('two': 2 images of 8x8, 2 classes)
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    families: tuple[str, ...] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim not in (3, 4):
            raise DataError(
                f"images of {self.name} must be uint8 of shape (n, H, W) or (n, H, W, 3), "
                f"not {self.images.dtype} of shape {self.images.shape}"
            )
        if len(self.images) != len(self.labels):
            raise DataError(
                f"{self.name} has {len(self.images)} images but {len(self.labels)} labels"
            )
        if self.families is not None and len(self.families) != self.n_classes:
            raise DataError(
                f"{self.name} has {self.n_classes} classes but {len(self.families)} families; "
                f"every class needs one"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @cached_property
    def samples_per_class(self) -> np.ndarray:
        """Number of images of each class, of shape (n_classes,)."""
        return np.bincount(self.labels, minlength=self.n_classes)

    def class_families(self) -> np.ndarray:
        """Return the family of every class, of shape (n_classes,)."""
        return np.array(self.class_names if self.families is None else self.families)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.images.shape[1:]))
        return f"ImageSet({self.name!r}: {len(self)} images of {shape}, {self.n_classes} classes)"


@dataclass(frozen=True, eq=False)
class PartialLabelSet:
    """Feature vectors with candidate sets.

    Attributes
    ----------
    name : str
        What this is, for tables.
    X : float64 array of shape (n, d)
        Features as they come, not scaled.
    candidates : Candidates
        The candidate set of each sample.
    true_labels : int64 array of shape (n,), or None
        Index of the true class, where it is known.
    n_classes : int
        Number of classes l; some may never be true, or never be a candidate.

    Examples
    --------
    >>> from fspll import Candidates
    >>> sets = Candidates.from_sets([{"a", "b"}, {"b"}])
    >>> PartialLabelSet("two", np.zeros((2, 3)), sets, None, 2)
    PartialLabelSet('two': 2 samples, 3 features, 2 classes)
    """

    name: str
    X: np.ndarray
    candidates: Candidates
    true_labels: np.ndarray | None
    n_classes: int

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n, d = self.X.shape
        return (
            f"PartialLabelSet({self.name!r}: {n} samples, {d} features, {self.n_classes} classes)"
        )


@dataclass(frozen=True)
class Download:
    """A file that is published at an address, with its checksum and the most it may measure."""

    name: str
    url: str
    md5: str
    max_bytes: int = 64 * 2**20


@dataclass(frozen=True)
class State:
    """Whether a data set is there: ``"built in"``, ``"present"``, ``"absent"`` or ``"damaged"``."""

    word: str
    detail: str
    folder: Path | None

    @property
    def sound(self) -> bool:
        """Whether it can be used."""
        return self.word in ("built in", "present")


class DataSet(ABC):
    """A data set that is known by name; subclasses fill in the attributes and write ``load``.

    Attributes
    ----------
    name, title : str
        What commands call it, and what tables and messages do.
    what, origin, license : str
        One line each, for people.
    kind : {"characters", "photos", "vectors"}
        What one sample is.
    advice : str
        How to get it; ``{folder}`` stands for its folder.
    folder : str
        Where it lives below the data folder; empty when nothing is stored.
    files : tuple of str
        The files it consists of; ``"a|b"`` means either, the first before the second.
    downloads : tuple of Download
        What can be downloaded.
    """

    name: str
    title: str
    what: str
    origin: str
    license: str
    kind: Literal["characters", "photos", "vectors"]
    advice: str = "nothing to fetch"
    folder: str = ""
    files: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()

    @abstractmethod
    def load(
        self, split: str = "train", *, root: Path | str | None = None, size: int | None = None
    ) -> ImageSet | PartialLabelSet:
        """Load the meta-training (``"train"``) or the meta-test classes (``"test"``).

        Parameters
        ----------
        split : str
        root : path, optional
            Folder of the files, when they are not in the data folder.
        size : int, optional
            Height and width of the images, when not the data set's usual ones.
        """

    def inspect(self, files: Mapping[str, Path], thorough: bool) -> str:
        """Return what is there in a few words, or raise DataError.

        Parameters
        ----------
        files : mapping of str to Path
            The files by name, one per entry of ``self.files``.
        thorough : bool
            Whether to read every byte, or only names and sizes.
        """
        return counted(len(files), "file") if files else self.advice

    def check_download(self, path: Path, file: Download) -> None:  # noqa: B027 -- it may be trusted
        """Raise DataError unless ``path`` holds what ``file`` should hold; reads every byte."""

    def describe(self, data: ImageSet) -> str:
        """Return what loaded data is called in tables of results."""
        return self.title

    def path(self, root: Path | str | None = None) -> Path:
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

    def require_files(self, root: Path | str | None = None) -> list[Path]:
        """Return the path of every file, or raise DataError that says how to get them."""
        folder = self.path(root)
        found, missing = self.find_files(folder)
        if missing:
            raise DataError(
                f"{self.title} was not found: {', '.join(missing)} missing in {folder}; "
                f"{self.advice.format(folder=folder)}, or set FSPLL_DATA to the folder that holds "
                f"{self.folder}/"
            )
        return list(found.values())

    def state(self, root: Path | str | None = None, *, thorough: bool = False) -> State:
        """Return whether it is there and sound; ``thorough`` reads every byte."""
        if not self.files:
            return State("built in", self.inspect({}, thorough), None)
        folder = self.path(root)
        found, missing = self.find_files(folder)
        if not found:
            return State("absent", self.advice.format(folder=folder), folder)
        if missing:
            return State("damaged", f"{' and '.join(missing)} not found in {folder}", folder)
        try:
            return State("present", self.inspect(found, thorough), folder)
        except DataError as error:
            return State("damaged", str(error), folder)
