"""A person's own images: one folder a class."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.pictures import SUFFIXES, has_picture_suffix
from fspll.datasets.archives import Source, open_source
from fspll.datasets.cache import CacheEntry, Decoded, Progress, read_picture
from fspll.datasets.images import ImageSet


def load_image_folder(
    root: Path | str,
    *,
    size: int = 84,
    channels: int = 3,
    progress: Progress | None = None,
) -> ImageSet:
    """Load a folder (or zip) that has one sub-folder of images a class.

    Images are scaled so that the short side fits and cropped in the center, once; later loads map
    the decoded pixels. Files that are not images by their name are left alone. Brightness is kept
    as it is: unlike Omniglot, dark ink on light paper stays dark.

    Parameters
    ----------
    root : path
        The folder; the images of class ``cat`` lie in ``root/cat``. A class may lie deeper, as in
        ``root/Greek/alpha``, and is then called ``Greek/alpha``.
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
    """
    if channels not in (1, 3):
        raise InputError(f"channels must be 1 (gray) or 3 (RGB), not {channels!r}")
    if size < 1:
        raise InputError(f"size must be at least 1, not {size}")
    root = Path(root).expanduser()
    if not root.exists():
        raise DataError(f"{root} does not exist; expected a folder with one sub-folder a class")
    entry = CacheEntry.of(f"images-{size}", [root], size=size, channels=channels)
    decoded = entry.load()
    if decoded is None:
        decoded = _decode(entry, root, size, channels, progress)
    return ImageSet(
        name=root.stem if root.is_file() else root.resolve().name,
        images=decoded.images,
        labels=np.array(decoded.about["labels"], dtype=np.int64),
        class_names=tuple(decoded.about["classes"]),
    )


def _decode(
    entry: CacheEntry, root: Path, size: int, channels: int, progress: Progress | None
) -> Decoded:
    with open_source(root) as source:
        images: dict[str, list[str]] = {}
        for name in source.names:
            if not has_picture_suffix(name):
                continue
            folder = PurePosixPath(name).parent.as_posix()
            if folder == ".":
                raise DataError(
                    f"image {name!r} lies directly in {root}; every image has to be in a "
                    "sub-folder that is named after its class"
                )
            images.setdefault(folder, []).append(name)
        if not images:
            raise DataError(
                f"no image was found in {root}; expected one sub-folder a class with files ending "
                f"in {', '.join(SUFFIXES)}"
            )
        classes = sorted(images)
        readers = [
            partial(_read, source, name, size, channels) for c in classes for name in images[c]
        ]
        labels = [label for label, c in enumerate(classes) for _ in images[c]]
        shape = (size, size) if channels == 1 else (size, size, 3)
        about = {"classes": classes, "labels": labels}
        return entry.build(readers, shape, about, progress=progress)


def _read(source: Source, name: str, size: int, channels: int) -> np.ndarray:
    where = f"{name} in {source.path}"
    return read_picture(source.read(name), where, size=size, channels=channels)
