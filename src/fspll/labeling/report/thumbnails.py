"""Small copies of pictures, as text that a page can hold."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fspll._common.errors import DataError
from fspll._common.html.rendering import data_uri
from fspll._common.pictures import on_white, open_picture

SIDE = 96  # pixels
_SMALL = 48  # below which a picture is shown with its pixels as squares
_QUALITY = 72
_THREADS = 2  # each may hold a picture at full size


class Thumbnail(NamedTuple):
    """A picture inside a page."""

    address: str  # a data URI
    width: int
    height: int

    @property
    def is_small(self) -> bool:
        """Whether its pixels are to be seen as squares."""
        return max(self.width, self.height) < _SMALL


def thumbnail(path: Path, side: int = SIDE) -> Thumbnail | None:
    """Return a copy of a picture of at most ``side`` pixels per side, or None if there is none.

    Drawings with few tones are smaller as PNG and photos as JPEG: the smaller one is taken.
    Nothing of the file but its pixels gets into the copy: no place, no camera, no comment.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the encoder has read it already, and warned then
        return _thumbnail(path, side)


def thumbnails(paths: Sequence[Path], side: int = SIDE) -> list[Thumbnail | None]:
    """Return copies of several pictures, made by several threads."""
    with (
        warnings.catch_warnings(),  # out here, as its state is that of all threads
        ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool,
    ):
        warnings.simplefilter("ignore")
        return list(pool.map(partial(_thumbnail, side=side), paths))


def _thumbnail(path: Path, side: int) -> Thumbnail | None:
    try:
        data, kind, width, height = small_copy(path, side)
    except DataError:  # a report can do without a picture
        return None
    return Thumbnail(data_uri(data, kind), width, height)


def small_copy(path: Path, side: int) -> tuple[bytes, str, int, int]:
    """Return a copy of a picture as a file: its bytes, "png" or "jpeg", its width and height."""
    from PIL import Image

    with open_picture(path, str(path), min_side=2 * side) as opened:
        image = _in_eight_bits(opened)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    written = []
    for kind, options in (("png", {}), ("jpeg", {"quality": _QUALITY})):
        file = io.BytesIO()
        image.save(file, format=kind, optimize=True, **options)
        written.append((len(file.getvalue()), kind, file.getvalue()))
    _, kind, data = min(written)
    return data, kind, image.width, image.height


def _in_eight_bits(image):  # type: ignore[no-untyped-def]
    """Return a PIL image as gray or color on white paper, without anything around the pixels."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits per pixel, or 32 that hold 16
        image = image.convert("I").point(lambda value: value / 257).convert("L")
    elif image.mode == "F":
        image = image.point(lambda value: value * 255).convert("L")
    image = on_white(image)
    plain = image.convert("L" if image.mode in ("1", "L") else "RGB")
    copy = Image.new(plain.mode, plain.size)
    copy.paste(plain)
    return copy
