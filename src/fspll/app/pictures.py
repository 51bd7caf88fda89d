"""Pictures of samples, by number: no path ever comes from a browser.

What is sent is a copy that this server drew: nothing of the file but its pixels.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fspll._common.errors import DataError
from fspll.app.requests import UnknownError, session_of

SIDES = {"small": 112, "large": 1024}  # pixels
_MOST_BYTES = 64 << 20  # of copies that are kept


class Copies:
    """Copies that were made before, the latest ones."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[tuple[Path, int], tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path, side: int) -> tuple[bytes, str]:
        """Return a picture with at most so many pixels per side, and "png" or "jpeg"."""
        from fspll.labeling.report.thumbnails import small_copy

        with self._lock:
            if (path, side) in self._kept:
                self._kept.move_to_end((path, side))
                return self._kept[path, side]
        data, kind, _, _ = small_copy(path, side)
        with self._lock:
            if (path, side) not in self._kept:
                self._kept[path, side] = (data, kind)
                self._bytes += len(data)
            while self._bytes > self._most:
                _, (old, _) = self._kept.popitem(last=False)
                self._bytes -= len(old)
        return data, kind


def picture(request: Request) -> Response:
    """Return the picture of a sample, small or large."""
    session = session_of(request)
    side = SIDES.get(request.path_params["size"])
    with session.ready():
        number = request.path_params["sample"]
        session.key(number)
        if session.pictures is None or side is None:
            raise UnknownError("there is no such picture")
        path = session.pictures[number]
    try:
        data, kind = request.app.state.copies.get(path, side)
    except DataError as error:
        raise UnknownError(str(error)) from error
    return Response(
        data, media_type=f"image/{kind}", headers={"cache-control": "private, max-age=3600"}
    )


ROUTES = [Route("/picture/{size}/{sample:int}", picture)]
