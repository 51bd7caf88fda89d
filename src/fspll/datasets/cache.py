"""Decode images once into a file of uint8 pixels that later loads only map into memory.

Shapes: one entry holds ``images`` of shape (n, H, W) or (n, H, W, 3) in a ``.npy`` file and what
belongs to them (labels, class names) in a small JSON beside it. Both carry a fingerprint of their
source in their name, so that a changed source is another entry and no reader can meet the pixels
of one source with the labels of another. A checksum of both is verified when a process first loads
them: a damaged entry is decoded again.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll._common.files import decoded_dir, remove_stale, write_beside
from fspll._common.pictures import on_white, open_picture
from fspll._common.progress import Progress, show_progress
from fspll.datasets.archives import stamps

Reader = Callable[[], np.ndarray]

FORMAT_VERSION = 3  # raise it when decoding changes, and every cache is made anew
_BATCH = 256  # images decoded together; bounds the memory in flight
_verified: set[tuple[Any, ...]] = set()  # entries whose checksum this process has compared


@dataclass(frozen=True, eq=False)
class Decoded:
    """A cache entry in memory.

    Attributes
    ----------
    images : uint8 memory map of shape (n, H, W) or (n, H, W, 3), read-only
    about : dict
        What was stored beside the images.
    """

    images: np.ndarray
    about: dict[str, Any]


@dataclass(frozen=True)
class CacheEntry:
    """Where the decoded images of some sources with some settings are, or will be.

    Attributes
    ----------
    name : str
        Readable name with a hash of the source paths and the settings.
    fingerprint : str
        Hash of the sources' file names, sizes and modification times.
    """

    name: str
    fingerprint: str

    @classmethod
    def of(cls, title: str, sources: Sequence[Path], **settings: int | str) -> CacheEntry:
        """Return the entry for ``sources`` (files or folders) decoded with ``settings``."""
        where = [str(source.resolve()) for source in sources]
        what = [stamps(source) for source in sources]
        return cls(f"{title}-{_digest(where, settings)[:10]}", _digest(FORMAT_VERSION, what)[:16])

    @property
    def images_path(self) -> Path:
        """Path of the pixels."""
        return decoded_dir() / f"{self.name}-{self.fingerprint}.npy"

    @property
    def about_path(self) -> Path:
        """Path of what belongs to the pixels."""
        return self.images_path.with_suffix(".json")

    def load(self) -> Decoded | None:
        """Map the entry into memory; None when it is absent, stale or damaged."""
        try:
            stored = json.loads(self.about_path.read_text(encoding="utf-8"))
            shape = tuple(stored["shape"])
            header = _npy_header(shape)
            with self.images_path.open("rb") as file:
                # Exactly what was written; NumPy would parse, and stumble over, anything.
                if file.read(len(header)) != header:
                    return None
            if self.images_path.stat().st_size != len(header) + math.prod(shape):
                return None
            images = np.memmap(self.images_path, np.uint8, "r", len(header), shape)
            if not self._is_whole(images, stored["about"], stored["check_sum"]):
                return None
            return Decoded(images, dict(stored["about"]))
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _is_whole(self, images: np.ndarray, about: Any, check_sum: Any) -> bool:
        """Compare with the checksum, once in the life of a process for files that stay the same."""
        files = [path.stat() for path in (self.images_path, self.about_path)]
        seen = (self, *((file.st_ino, file.st_size, file.st_mtime_ns) for file in files))
        if seen not in _verified:
            if check_sum != _about_check_sum(about, zlib.crc32(images.data)):
                return False
            _verified.add(seen)
        return True

    def build(
        self,
        readers: Sequence[Reader],
        shape: tuple[int, ...],
        about: dict[str, Any],
        *,
        progress: Progress | None = None,
    ) -> Decoded:
        """Decode every image into the cache and map it.

        An error or an interruption leaves nothing behind. Entries of an earlier state of the same
        sources are removed, and so is what a killed decode of them left.

        Parameters
        ----------
        readers : sequence of callables
            Each returns one uint8 image of ``shape``; called from several threads.
        shape : tuple of int
            (H, W) or (H, W, 3).
        about : dict
            JSON values to keep beside the images.
        progress : callable, optional
            Called as ``progress(done, total)``; without one a bar is shown on a terminal.
        """
        title, whole = self.name.rsplit("-", 1)[0], (len(readers), *shape)
        remove_stale(self.images_path.parent, f"{self.name}-")  # first: it may fill the disk
        _check_space(self.images_path.parent, math.prod(whole))
        # Plain sequential writes rather than a writable memory map: on a full disk a write is an
        # error that can be reported, a page of a map is a bus error that kills the process.
        with (
            write_beside(self.images_path) as path,
            path.open("wb") as file,
            show_progress(f"decoding {title}", progress or True) as report,
            ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool,
        ):
            file.write(_npy_header(whole))
            check_sum = 0
            for start in range(0, len(readers), _BATCH):
                batch = readers[start : start + _BATCH]
                for image in pool.map(lambda read: read(), batch):
                    if image.shape != shape or image.dtype != np.uint8:
                        raise ValueError(f"a reader gave {image.dtype} {image.shape}, not {shape}")
                    data = image.tobytes()
                    check_sum = zlib.crc32(data, check_sum)
                    file.write(data)
                if report is not None:
                    report(start + len(batch), len(readers))
        with write_beside(self.about_path) as path:
            check_sum = _about_check_sum(about, check_sum)
            stored = {"shape": whole, "about": about, "check_sum": check_sum}
            path.write_text(json.dumps(stored), encoding="utf-8")
        self._remove_older()
        decoded = self.load()
        if decoded is None:
            raise DataError(f"{self.images_path} cannot be read back after it was written")
        return decoded

    def _remove_older(self) -> None:
        for path in self.images_path.parent.glob(f"{self.name}-*"):
            if path not in (self.images_path, self.about_path):
                with suppress(OSError):  # on Windows a file in use cannot be removed
                    path.unlink()


def read_picture(
    data: bytes, where: str, *, size: int, channels: int, drawing: bool = False
) -> np.ndarray:
    """Decode one image of a common format into a centered square of uint8 pixels.

    The short side is scaled to ``size`` and the long side cropped evenly. Rotation flags of
    cameras are obeyed and transparent pixels become white.

    Parameters
    ----------
    data : bytes
        The image file.
    where : str
        Names the image in error messages.
    size : int
        Height and width of the result.
    channels : {1, 3}
        Gray or RGB.
    drawing : bool
        Whether it is ink on paper, to be scaled without a trace on the clean paper.

    Returns
    -------
    uint8 array of shape (size, size) or (size, size, 3)
    """
    from PIL import Image, ImageOps

    # Twice the goal loses nothing visible.
    with open_picture(io.BytesIO(data), where, min_side=2 * size) as file:
        picture: Image.Image = file
        if file.mode.startswith("I"):  # 16-bit gray, which convert() would clip, not scale
            picture = Image.fromarray((np.asarray(file) >> 8).astype(np.uint8))
        picture = on_white(picture).convert("L" if channels == 1 else "RGB")
        # Lanczos keeps the detail of photos. Its second lobe draws faint echoes beside every
        # stroke, though: on Omniglot 12% of the pixels get a value of 1 to 30. A box takes the
        # mean of the pixels below it, each used once, so that clean paper stays 0 (0.7% of the
        # pixels are that faint, all of them rims of ink; bicubic 3%, Hamming 5%) and strokes
        # stay solid and unbroken. Nearest, which Pillow takes for 1-bit drawings whatever it is
        # asked for, and much few-shot code with it, tears one drawing in a hundred to pieces.
        filters = Image.Resampling
        method = filters.BOX if drawing else filters.LANCZOS
        return np.asarray(ImageOps.fit(picture, (size, size), method))


def _check_space(folder: Path, needed: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from error
    if free < needed:
        raise DataError(
            f"the decoded images need {needed / 1e6:,.0f} MB but {folder} has only "
            f"{free / 1e6:,.0f} MB free"
        )


def _npy_header(shape: tuple[int, ...]) -> bytes:
    """Return the beginning of a ``.npy`` file of uint8 pixels."""
    file = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def _about_check_sum(about: Any, check_sum: int) -> int:
    """Go on from the checksum of the pixels with what belongs to them."""
    return zlib.crc32(json.dumps(about, sort_keys=True).encode(), check_sum)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
