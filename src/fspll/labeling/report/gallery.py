"""The pictures of a page: each is in it once, however often it is shown, and all within a bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fspll.labeling.report.thumbnails import SIDE, Thumbnail, thumbnails

SMALL_SIDE = 64  # pixels, of pictures that show only when they are asked for
MOST_BYTES = 8_000_000  # of all pictures as text, so that the page stays under 10 MB
_AT_ONCE = 64


class Gallery:
    """Small copies of samples' pictures, which a page refers to by the rows of the samples.

    Parameters
    ----------
    files : sequence of path, optional
        The picture of every sample; None where samples are no pictures.

    Attributes
    ----------
    held : dict of int to Thumbnail
        By row. ``page.html.j2`` writes each of them once.
    is_full : bool
        Whether some were left out, for want of room.
    """

    def __init__(self, files: Sequence[Path] | None) -> None:
        self.files = files
        self.held: dict[int, Thumbnail] = {}
        self.is_full = False
        self._tried: set[int] = set()
        self._free = MOST_BYTES

    @property
    def has_pictures(self) -> bool:
        """Whether samples are pictures, readable or not."""
        return self.files is not None

    def add(self, rows: Sequence[int], side: int = SIDE) -> None:
        """Copy the pictures of some samples, as far as there is room; the first come first.

        A picture that is there already stays as it is, so large copies are to be added first.
        """
        if self.files is None or self.is_full:
            return
        wanted = [row for row in dict.fromkeys(rows) if row not in self._tried]
        for start in range(0, len(wanted), _AT_ONCE):
            part = wanted[start : start + _AT_ONCE]
            copies = thumbnails([self.files[row] for row in part], side)
            for row, copy in zip(part, copies, strict=True):
                size = 0 if copy is None else len(copy.address)
                if size > self._free:
                    self.is_full = True
                    return
                self._free -= size
                self._tried.add(row)
                if copy is not None:
                    self.held[row] = copy
