"""What a person draws, as a picture like those of the characters: same size, same pen."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from fspll._common.arguments import is_flag, is_number
from fspll._common.errors import InputError
from fspll._common.html.rendering import data_uri
from fspll.datasets.glyphs.handwriting import draw_ink
from fspll.datasets.glyphs.strokes import along

SIDE = 28  # pixels
MOST_STROKES, MOST_POINTS = 100, 5000
# As the drawers of the glyphs do on average: half the longer side of a character, and the radius
# of the pen, in pixels.
_REACH, _PEN = 9.75, 0.68
_LEAST_REACH = 0.04  # of the pad: what is smaller is a dot, and is not enlarged to a letter
_PER_PIXEL = 3.0  # pen positions, which leaves no gap
_MOST_POSITIONS = 4000  # of the pen; a scribble beyond that has gaps
_FAR = 10.0  # a stroke may leave the pad


def draw_strokes(strokes: Any) -> np.ndarray:
    """Return a drawing, centered and as large as the characters are.

    Parameters
    ----------
    strokes : list of list of (x, y)
        Where the pen went; x to the right and y downwards, as shares of the pad's side.

    Returns
    -------
    uint8 array of shape (28, 28)
        Bright ink on dark paper.

    Examples
    --------
    A level line is two pixels high, in the middle:

    >>> draw_strokes([[[0.1, 0.2], [0.9, 0.2]]]).any(axis=1).nonzero()[0].tolist()
    [13, 14]
    """
    paths = _read(strokes)
    ink = np.concatenate(paths)
    low, high = ink.min(axis=0), ink.max(axis=0)
    scale = _REACH / max(float((high - low).max()) / 2, _LEAST_REACH)
    paths = [(path - (low + high) / 2) * scale + (SIDE - 1) / 2 for path in paths]
    lengths = [float(np.sqrt((np.diff(path, axis=0) ** 2).sum(axis=1)).sum()) for path in paths]
    density = min(_PER_PIXEL, _MOST_POSITIONS / max(sum(lengths), 1.0))
    pen = np.concatenate(
        [
            along(path, np.linspace(0.0, 1.0, 2 + int(density * length)))
            for path, length in zip(paths, lengths, strict=True)
        ]
    ).astype(np.float32)[None, None]
    radius = np.full(pen.shape[:3], _PEN, dtype=np.float32)
    return draw_ink(pen, radius, np.ones((1, 1), dtype=bool), SIDE)[0]


def _read(strokes: Any) -> list[np.ndarray]:
    """Return strokes as arrays (m, 2); what is no drawing is refused."""
    if not isinstance(strokes, list) or not strokes:
        raise InputError("a drawing is a list of strokes, at least one")
    if not all(isinstance(stroke, list) and stroke for stroke in strokes):
        raise InputError("a stroke is a list of points [x, y], at least one")
    if len(strokes) > MOST_STROKES or sum(map(len, strokes)) > MOST_POINTS:
        raise InputError(
            f"a drawing has at most {MOST_STROKES} strokes and {MOST_POINTS:,} points in all; "
            "clear the pad and draw it with fewer"
        )
    for stroke in strokes:
        for point in stroke:
            if not (isinstance(point, list) and len(point) == 2 and all(map(_is_near, point))):
                raise InputError(
                    f"a point is [x, y], shares of the pad's side between {-_FAR:g} and "
                    f"{_FAR:g}, not {point!r:.60}"
                )
    return [np.array(stroke, dtype=float) for stroke in strokes]


def _is_near(value: Any) -> bool:
    return is_number(value) and not is_flag(value) and -_FAR <= value <= _FAR


def ink_address(picture: np.ndarray) -> str:
    """Return a picture (28, 28) with bright ink as an address that holds it.

    Its paper is transparent, so that a page can choose the colors.
    """
    from PIL import Image

    alpha = Image.fromarray(picture)
    file = io.BytesIO()
    Image.merge("LA", (Image.new("L", alpha.size), alpha)).save(file, format="png")
    return data_uri(file.getvalue(), "png")
