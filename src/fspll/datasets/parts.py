"""Unfinished files: what a broken download keeps, and what a killed process leaves behind."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fspll._common.errors import DataError
from fspll._common.files import write_beside

_DAY = 24 * 60 * 60.0


class Part:
    """A file on its way: its bytes so far and a note of which version of which URL they are."""

    def __init__(self, target: Path, url: str) -> None:
        self.url = url
        self.path = target.with_name(f"{target.name}.part")
        self.note = target.with_name(f"{target.name}.part.json")
        self.name = target.name

    def size(self) -> int:
        """Return how many bytes are there."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def resume_point(self) -> tuple[int, str]:
        """Return the bytes at hand and their validator, or ``(0, "")`` to begin anew.

        Without a validator nobody can tell whether the rest belongs to the same file.
        """
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            if note["url"] == self.url and note["validator"] and self.size():
                return self.size(), str(note["validator"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, ""

    def open(self, start: int, validator: str) -> IO[bytes]:
        """Open for appending at ``start``; at zero, empty the file before its note changes."""
        if start:
            return self.path.open("ab")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        with write_beside(self.note) as note:
            note.write_text(json.dumps({"url": self.url, "validator": validator}), encoding="utf-8")
        return self.path.open("wb")

    def finish(self, target: Path) -> None:
        """Rename the whole file to ``target``."""
        try:
            self.path.replace(target)
        except OSError as error:
            raise DataError(f"cannot write {target}: {error.strerror or error}") from error
        self.remove()

    def remove(self) -> None:
        """Remove the bytes and their note, if they are there."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def remove_stale(folder: Path, start: str) -> None:
    """Remove what ``write_beside`` left behind in processes that were killed.

    Such a file is called ``.<target>.<process id>.part``. It is stale when its process is gone, or
    when nobody wrote to it for a day (by then the number may be another process's).

    Parameters
    ----------
    folder : Path
        Where to look; it need not exist.
    start : str
        How the names of the targets begin.
    """
    pattern = re.compile(rf"\.{re.escape(start)}.*\.(\d+)\.part")
    try:
        paths = list(folder.iterdir())
    except OSError:  # no such folder, or one that may not be read
        return
    for path in paths:
        found = pattern.fullmatch(path.name)
        with suppress(OSError):  # it went meanwhile, or may not be removed: it does no harm
            if found and (_is_gone(int(found[1])) or time.time() - path.stat().st_mtime > _DAY):
                path.unlink()


def _is_gone(process: int) -> bool:
    """Whether no process of this number runs; False where that cannot be asked."""
    if os.name == "nt":  # os.kill would not ask but end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it runs under another user, or is no number of a process
        return False
    return False


@contextmanager
def no_empty_folder(folder: Path) -> Iterator[None]:
    """Remove ``folder`` and its parents at the end if the block made them and left them empty."""
    made = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
    try:
        yield
    finally:
        for place in made:
            with suppress(OSError):  # it was never made, or has something in it
                place.rmdir()
