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

from fspll._common.errors import DataError, FsPLLError

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
SUFFIXES = tuple(suffix for suffixes in FORMATS.values() for suffix in suffixes)


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
    max_pixels: int | None = None,
) -> Iterator[Image]:
    """Yield a picture with its pixels read, turned the way its camera says.

    Parameters
    ----------
    source : path or binary file
        Where the picture is.
    name : str
        What to call it in messages.
    min_side : int, optional
        Pixels per side that are enough: a larger JPEG may be decoded at a fraction of its size.
    max_pixels : int, optional
        Refuse more; some small files unpack to far more than the memory holds. By default Pillow's
        own limit holds.

    Raises
    ------
    DataError
        When the file is absent, of another format, too large or damaged. Any error in the block
        counts as damage too: Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error
        and others for it.
    """
    from PIL import Image, ImageOps

    try:
        picture = Image.open(source, formats=list(FORMATS))
    except FileNotFoundError as error:
        raise DataError(f"{name} does not exist") from error
    except IsADirectoryError as error:
        raise DataError(f"{name} is a folder, not a picture file") from error
    except Image.UnidentifiedImageError as error:
        raise DataError(
            f"{name} is not a picture file of a format that is read here ({', '.join(FORMATS)})"
        ) from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{name} cannot be opened: {error}") from error
    with picture:
        if max_pixels is not None and picture.width * picture.height > max_pixels:
            raise DataError(
                f"{name} has {picture.width} x {picture.height} pixels, more than the "
                f"{max_pixels:,} that are allowed"
            )
        try:
            if min_side is not None:
                picture.draft(None, (min_side, min_side))
            picture.load()
            ImageOps.exif_transpose(picture, in_place=True)  # makes no copy where nothing is turned
            yield picture
        except FsPLLError:
            raise
        except Exception as error:
            raise DataError(damaged(name, error)) from error


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
