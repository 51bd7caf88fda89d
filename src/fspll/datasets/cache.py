"""Decode images once into a file of uint8 pixels that later loads only map into memory.

Shapes: one entry holds ``images`` of shape (n, H, W) or (n, H, W, 3) in a ``.npy`` file and what
belongs to them (labels, class names) in a small JSON beside it. Both carry a fingerprint of their
source in their name, so that a changed source is another entry and no reader can meet the pixels
of one source with the labels of another.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll._common.files import decoded_dir, remove_stale, write_beside
from fspll._common.pictures import on_white, open_picture
from fspll.datasets.archives import stamps

Progress = Callable[[int, int], None]
Reader = Callable[[], np.ndarray]

FORMAT_VERSION = 3  # raise it when decoding changes, and every cache is made anew
_MAX_PIXELS = 80_000_000  # of one picture before scaling; some small files unpack to far more
_BATCH = 256  # images decoded together; bounds the memory in flight


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
            images = np.load(self.images_path, mmap_mode="r", allow_pickle=False)
            if images.dtype != np.uint8 or list(images.shape) != stored["shape"]:
                return None
            return Decoded(images, dict(stored["about"]))
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None

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
            _progress_bar(f"decoding {title}", len(readers), progress) as report,
            ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool,
        ):
            header = {"descr": "|u1", "fortran_order": False, "shape": whole}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, len(readers), _BATCH):
                batch = readers[start : start + _BATCH]
                for image in pool.map(lambda read: read(), batch):
                    if image.shape != shape or image.dtype != np.uint8:
                        raise ValueError(f"a reader gave {image.dtype} {image.shape}, not {shape}")
                    file.write(image.tobytes())
                report(start + len(batch), len(readers))
        with write_beside(self.about_path) as path:
            path.write_text(json.dumps({"shape": whole, "about": about}), encoding="utf-8")
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
    import io

    from PIL import Image, ImageOps

    # Twice the goal loses nothing visible.
    with open_picture(io.BytesIO(data), where, min_side=2 * size, max_pixels=_MAX_PIXELS) as file:
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


@contextmanager
def _progress_bar(title: str, total: int, progress: Progress | None) -> Iterator[Progress]:
    """Yield the caller's own report function, or one that draws a bar on a terminal."""
    if progress is not None:
        yield progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, _: bar.update(task, completed=done)


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


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
