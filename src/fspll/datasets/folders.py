"""A person's own images: one folder per class.

To test on classes that a network has not been trained on, a folder is split by class: into those
under ``train/`` and ``test/``, where the folder has both, and otherwise by the names of the
classes. A hash of the name decides, never a seed, so that whoever trains on ``"train"`` and
whoever evaluates on ``"test"`` cannot disagree.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import DataError, InputError
from fspll._common.pictures import SUFFIXES, has_picture_suffix
from fspll._common.words import counted, printable
from fspll.datasets.archives import Source, open_source
from fspll.datasets.base import ImageSet
from fspll.datasets.cache import CacheEntry, Decoded, Progress, read_picture

SPLITS = ("train", "test", "all")
TEST_SHARE = 0.2
_FEWEST = 2  # classes on each side: a task needs two


def load_image_folder(
    root: Path | str,
    *,
    split: str = "all",
    size: int = 84,
    channels: int = 3,
    progress: Progress | None = None,
) -> ImageSet:
    """Load a folder (or zip) that has one sub-folder of images per class.

    Images are scaled so that the short side fits and cropped in the center, once; later loads map
    the decoded pixels. Files that are not images by their name are left alone. Brightness is kept
    as it is: unlike Omniglot, dark ink on light paper stays dark.

    Parameters
    ----------
    root : path
        The folder; the images of class ``cat`` lie in ``root/cat``. A class may lie deeper, as in
        ``root/Greek/alpha``, and is then called ``Greek/alpha``.
    split : {"all", "train", "test"}
        Every class, those to meta-train on, or the others to test on. Where the folder has
        ``train/`` and ``test/`` with one sub-folder per class, these are the two; they may have no
        class in common. Otherwise a fifth of the classes, at least two, are for test: those whose
        names have the smallest SHA-256.
    size : int
        Height and width of the loaded images.
    channels : {1, 3}
        Gray or RGB.
    progress : callable, optional
        Called as ``progress(done, total)`` while decoding; without one a bar is shown on a
        terminal.

    Returns
    -------
    ImageSet
        ``images`` of shape (n, size, size) or (n, size, size, 3), sorted by class and file name.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "cow", "dog", "hen", "pig"):
    ...         (Path(folder) / name).mkdir()
    ...         Image.new("RGB", (40, 30)).save(Path(folder) / name / "1.png")
    ...     parts = [load_image_folder(folder, split=part, size=16) for part in ("train", "test")]
    >>> [part.class_names for part in parts]
    [('dog', 'hen', 'pig'), ('cat', 'cow')]
    """
    check_choice("split", split, SPLITS)
    if channels not in (1, 3):
        raise InputError(f"channels must be 1 (gray) or 3 (RGB), not {channels!r}")
    check_count("size", size, 1)
    root = Path(root).expanduser()
    if not root.exists():
        raise DataError(f"{root} does not exist; expected a folder with one sub-folder per class")
    part = {} if split == "all" else {"split": split}
    entry = CacheEntry.of(f"images-{size}", [root], size=size, channels=channels, **part)
    decoded = entry.load()
    if decoded is None:
        decoded = _decode(entry, root, split, size, channels, progress)
    name = root.stem if root.is_file() else root.resolve().name
    return ImageSet(
        name=name if split == "all" else f"{name}/{split}",
        images=decoded.images,
        labels=np.array(decoded.about["labels"], dtype=np.int64),
        class_names=tuple(decoded.about["classes"]),
        note=decoded.about.get("note", ""),
    )


def _decode(
    entry: CacheEntry,
    root: Path,
    split: str,
    size: int,
    channels: int,
    progress: Progress | None,
) -> Decoded:
    with open_source(root) as source:
        images = _images_by_class(source)
        note = ""
        if split != "all":
            images, note = _choose(images, split, root)
        classes = sorted(images)
        readers = [
            partial(_read, source, name, size, channels) for c in classes for name in images[c]
        ]
        labels = [label for label, c in enumerate(classes) for _ in images[c]]
        shape = (size, size) if channels == 1 else (size, size, 3)
        about = {"classes": classes, "labels": labels, "note": note}
        return entry.build(readers, shape, about, progress=progress)


def _images_by_class(source: Source) -> dict[str, list[str]]:
    """Return the names of the images, by the folder they lie in."""
    images: dict[str, list[str]] = {}
    for name in source.names:
        if not has_picture_suffix(name):
            continue
        folder = printable(PurePosixPath(name).parent.as_posix())
        if folder == ".":
            raise DataError(
                f"image {name!r} lies directly in {source.path}; every image has to be in a "
                "sub-folder that is named after its class"
            )
        images.setdefault(folder, []).append(name)
    if not images:
        raise DataError(
            f"no image was found in {source.path}; expected one sub-folder per class with files "
            f"ending in {', '.join(SUFFIXES)}"
        )
    return images


def _choose(
    images: dict[str, list[str]], split: str, root: Path
) -> tuple[dict[str, list[str]], str]:
    """Return the images of a split by class, and a sentence on how the classes were chosen."""
    given = {part: _below(images, part) for part in ("train", "test")}
    # Images right in train/ or test/ make it a class of that name.
    if all(given.values()) and not images.keys() & given.keys():
        both = sorted(given["train"].keys() & given["test"].keys())
        if both:
            raise DataError(
                f"class {both[0]!r} is in train/ and in test/ of {root}; to test on classes that "
                "were not trained on, give one folder with one sub-folder per class instead"
            )
        classes = counted(len(given[split]), "class", "classes")
        return given[split], f"{classes} of {root.resolve().name}/{split}"
    if len(images) < 2 * _FEWEST:
        raise DataError(
            f"{root} has {counted(len(images), 'class', 'classes')}, which is too few to train on "
            f"some and test on others; {2 * _FEWEST} or more are needed, or folders train/ and "
            "test/ of classes"
        )
    n_test = max(_FEWEST, round(TEST_SHARE * len(images)))
    by_hash = sorted(images, key=lambda name: hashlib.sha256(name.encode()).digest())
    chosen = by_hash[:n_test] if split == "test" else by_hash[n_test:]
    purpose = "test" if split == "train" else "training"
    note = (
        f"{len(chosen)} of the {len(images)} classes of {root.resolve().name}, chosen by a hash of "
        f"their names; the others are for {purpose}"
    )
    return {name: images[name] for name in chosen}, note


def _below(images: dict[str, list[str]], part: str) -> dict[str, list[str]]:
    """Return the classes below a folder, without its name."""
    prefix = f"{part}/"
    return {c.removeprefix(prefix): names for c, names in images.items() if c.startswith(prefix)}


def _read(source: Source, name: str, size: int, channels: int) -> np.ndarray:
    where = f"{name} in {source.path}"
    return read_picture(source.read(name), where, size=size, channels=channels)
