"""Where the names of prototypes stand on the map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LETTER = 9.6  # width of a letter, about
_MARK = 13.0  # half the side of a prototype's mark

Box = tuple[float, float, float, float]  # left, top, right, bottom


def place_names(words: Sequence[str], where: np.ndarray) -> list[tuple[float, float]]:
    """Return, for the middle of each name's line, how far it stands from its mark.

    Names are placed one after the other: above the mark, below it, beside it, or further away,
    whichever covers least of the marks and of the names before.

    Parameters
    ----------
    words : sequence of q str
    where : array of shape (q, 2)
        The marks.

    Examples
    --------
    >>> place_names(["a", "b"], np.array([[50.0, 50.0], [50.0, 30.0]]))
    [(0.0, 26.0), (0.0, -18.0)]
    """
    taken: list[Box] = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in where]
    chosen = []
    for word, (x, y) in zip(words, where, strict=True):
        half = _LETTER / 2 * len(word)
        beside = half + _MARK + 6
        tried = [
            (0.0, -18.0),
            (0.0, 26.0),
            (beside, 5.0),
            (-beside, 5.0),
            (0.0, -35.0),
            (0.0, 43.0),
        ]
        boxes: list[Box] = [(x + a - half, y + b - 13, x + a + half, y + b + 3) for a, b in tried]
        best = int(np.argmin([sum(_overlap(box, other) for other in taken) for box in boxes]))
        taken.append(boxes[best])
        chosen.append(tried[best])
    return chosen


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, high)
