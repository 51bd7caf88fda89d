"""The one place where a picture file is opened: plain raster formats only, upright, in bounds.

Pillow opens a file by its content, whatever its name says, and some of the formats it knows start
an outside program (EPS does). A file of a person's data is not trusted that far: what is not listed
here is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fspll._common.errors import DataError, FsPLLError, MissingPackageError
from fspll._common.reading import PIXELS_VARIABLE, check_plain_file, max_pixels

if TYPE_CHECKING:
    from PIL.Image import Image

# Pillow's names of the formats, with the endings of their files. None of them starts a program or
# contains files of other formats.
FORMATS = {
    "PNG": (".png",),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
}
# Pictures of phones, which the package pillow_heif decodes.
HEIC_SUFFIXES = (".heic", ".heif", ".hif")
SUFFIXES = (*(suffix for suffixes in FORMATS.values() for suffix in suffixes), *HEIC_SUFFIXES)
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def has_picture_suffix(name: str) -> bool:
    """Tell whether a file is a picture by its name.

    >>> has_picture_suffix("cats/Tom.JPG"), has_picture_suffix("cats/notes.txt")
    (True, False)
    """
    return name.lower().endswith(SUFFIXES)


@contextmanager
def open_picture(
    source: Path | str | BinaryIO,
    name: str,
    *,
    min_side: int | None = None,
    in_full: int = 0,
) -> Iterator[Image]:
    """Yield a picture with its pixels read, turned the way its camera says.

    Parameters
    ----------
    source : path or binary file
        Where the picture is.
    name : str
        What to call it in messages.
    min_side : int, optional
        Pixels per side that are enough: a JPEG with at least twice as many on both sides is
        decoded at a fraction of its size.
    in_full : int, default=0
        Pictures of up to this many pixels are decoded in full, whatever is enough.

    Raises
    ------
    DataError
        When the file is absent, of another format, too large or damaged. Any error in the block
        counts as damage too: Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error
        and others for it.
    """
    from PIL import Image, ImageOps

    if isinstance(source, str | Path):
        check_plain_file(Path(source), "a picture file", name=name)
    formats = list(FORMATS)
    if _is_heic(source):
        _register_heic(name)
        formats = ["HEIF"]
    most = max_pixels()  # some small files unpack to far more than the memory holds
    try:
        picture = Image.open(source, formats=formats)
    except Image.UnidentifiedImageError as error:
        raise DataError(
            f"{name} is not a picture file of a format that is read here ({', '.join(FORMATS)})"
        ) from error
    except Exception as error:  # a damaged header, which Pillow meets with nearly anything
        raise DataError(f"{name} cannot be opened: {error}") from error
    with picture:
        if picture.width * picture.height > most:
            raise DataError(
                f"{name} has {picture.width} x {picture.height} pixels, more than the "
                f"{most:,} that are allowed; set {PIXELS_VARIABLE} to raise the limit"
            )
        try:
            if min_side is not None and picture.width * picture.height > in_full:
                picture.draft(None, (min_side, min_side))
            picture.load()
            ImageOps.exif_transpose(picture, in_place=True)  # makes no copy where nothing is turned
            yield picture
        except FsPLLError:
            raise
        except Exception as error:
            raise DataError(damaged(name, error)) from error


def _is_heic(source: Path | str | BinaryIO) -> bool:
    """Tell a HEIC picture by its first bytes, whatever its name says."""
    try:
        if isinstance(source, str | Path):
            with Path(source).open("rb") as file:
                begin = file.read(12)
        else:
            begin = source.read(12)
            source.seek(0)
    except OSError:
        return False  # Pillow says what is wrong
    return begin[4:8] == b"ftyp" and begin[8:12] in _HEIC_BRANDS


def _register_heic(name: str) -> None:
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        raise MissingPackageError("pillow_heif", "heic", f"{name} is a HEIC picture: it") from None
    register_heif_opener(thumbnails=False)


def on_white(picture: Image) -> Image:
    """Return a picture with its transparent pixels white, or itself where it has none."""
    from PIL import Image

    if "transparency" not in picture.info and picture.mode not in ("LA", "PA", "RGBA", "RGBa"):
        return picture
    paper = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(paper, picture.convert("RGBA"))


def damaged(name: str, error: Exception) -> str:
    """Return the sentence about a picture that cannot be decoded."""
    reason = str(error) or type(error).__name__
    return f"{name} cannot be decoded, so it is damaged or cut short ({reason})"
