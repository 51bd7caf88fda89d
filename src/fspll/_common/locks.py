"""One process at a time writes into a folder of results.

The lock is the operating system's (``flock``, or ``LockFile`` on Windows), on a file in the folder.
It ends with the process that holds it, however that ends, so a killed run blocks nobody.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fspll._common.errors import DataError
from fspll._common.files import make_folder, no_empty_folder, remove_stale

LOCK = ".fspll.lock"
_PAUSE = 0.1  # seconds between two attempts
_held: dict[tuple[Path, int], int] = {}  # folder and thread to the open lock file


@contextmanager
def lock_folder(folder: Path | str, *, wait: float = 0.0) -> Iterator[None]:
    """Hold a folder while a block writes into it; refuse if another process holds it.

    The folder is made if need be, and removed again if the block leaves it empty. What killed
    processes left of unfinished files is removed. The same thread may lock a folder again inside
    the block.

    Parameters
    ----------
    folder : path
    wait : float, default=0
        Seconds to wait for a process that is about to end.

    Raises
    ------
    DataError
        When another process or thread holds the folder, or nothing can be written into it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as results, lock_folder(results):
    ...     _ = Path(results, "a.txt").write_text("only we write here")
    """
    folder = Path(folder)
    key = (folder.resolve(), threading.get_ident())
    if key in _held:
        yield
        return
    with no_empty_folder(folder):
        _held[key] = _acquire(folder, time.monotonic() + wait)
        try:
            remove_stale(folder, "")
            yield
        finally:
            if key in _held:  # no longer in a forked child, whose lock it never was
                _release(folder / LOCK, _held.pop(key))


def _acquire(folder: Path, until: float) -> int:
    """Return the open lock file, locked."""
    path = folder / LOCK
    try:
        make_folder(folder)
        while True:
            number = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            if not _try_lock(number):
                os.close(number)
                if time.monotonic() < until:
                    time.sleep(_PAUSE)
                    continue
                raise DataError(
                    f"{folder} is in use: another fspll process writes into it; wait until that "
                    "has ended, or name another folder"
                )
            # Whoever held it before may have removed the file since it was opened; others would
            # then lock another file of that name.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(number), path.stat()):
                    return number
            os.close(number)
    except OSError as error:
        raise DataError(f"cannot write into {folder}: {error.strerror or error}") from error


def _release(path: Path, number: int) -> None:
    with suppress(OSError):  # a file that stays does no harm
        if sys.platform == "win32":  # which removes no open file
            os.close(number)
            path.unlink()
        else:  # first: once it is closed, it may be another process's
            try:
                path.unlink()
            finally:
                os.close(number)


def _try_lock(number: int) -> bool:
    """Lock an open file; return False if somebody else has."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks, which is no reason not to work
        pass
    return True


def _forget() -> None:
    """Close the lock files of the parent in a forked child, which would hold them on."""
    for number in _held.values():
        with suppress(OSError):
            os.close(number)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
