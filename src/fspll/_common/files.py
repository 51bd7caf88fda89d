"""Where files live, how they are written (beside the target, then renamed) and cleared away."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from fspll._common.errors import DataError, InputError

DATA_VARIABLE = "FSPLL_DATA"
# What a file is called while it is written: its target's name, the machine and the process. Earlier
# versions left the machine out.
PART = re.compile(r"\.(.+)\.(?:([0-9a-f]{8})-)?([0-9]+)\.part")
_DAY = 24 * 60 * 60.0


def user_cache_dir() -> Path:
    """Return the platform's cache folder for this package (not created)."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fspll"


def data_dir() -> Path:
    """Return the folder that holds the data sets: ``$FSPLL_DATA`` or the platform's cache."""
    chosen = os.environ.get(DATA_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_dir() / "data"


def decoded_dir() -> Path:
    """Return the folder for decoded images, always in the platform's cache.

    Data folders may be read-only or shared between machines; what is decoded from them can be made
    again at any time, so it never goes beside them.
    """
    return user_cache_dir() / "decoded"


def features_dir() -> Path:
    """Return the folder for the features of encoded samples, one file per encoder."""
    return user_cache_dir() / "features"


@contextmanager
def write_beside(target: Path | str) -> Iterator[Path]:
    """Yield a path to write to; rename it to ``target`` when the block ends without an error.

    An interrupted or failing write leaves the old file as it was and nothing else behind. The new
    file is on the disk before it gets its name, and its name before this returns: after a loss of
    power, too, there is the old file or the new one, whole.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_beside(Path(folder) / "a.txt") as path:
    ...         _ = path.write_text("whole")
    ...     [f.name for f in Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(target)
    # Machine and process keep two writers of one file apart; the last to finish wins, whole.
    beside = target.with_name(f".{target.name}.{_host()}-{os.getpid()}.part")
    try:
        make_folder(target.parent)
        remove_stale(target.parent, target.name)
        yield beside
        _flush(beside)
        beside.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        if error.filename is not None and Path(error.filename) not in (
            beside,
            target,
            target.parent,
        ):
            raise  # about another file: the block's own business
        raise DataError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents where they are missing, on the disk as well."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in made:
        _flush_folder(place.parent)


# What a file system says that has no such thing as flushing, or none for folders.
_NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def _flush(path: Path) -> None:
    """Wait until what was written to a file, or the names in a folder, are on the disk."""
    # Windows flushes only what is open for writing.
    number = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        if sys.platform == "darwin":  # where fsync leaves it to the disk when to write
            import fcntl

            with suppress(OSError):  # a file system that has only fsync
                fcntl.fcntl(number, fcntl.F_FULLFSYNC)
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            error.filename = str(path)
            raise
    finally:
        os.close(number)


def _flush_folder(folder: Path) -> None:
    if sys.platform == "win32":  # where folders cannot be opened; NTFS keeps a journal of names
        return
    with suppress(PermissionError):  # one may write into a folder that one may not read
        _flush(folder)


def remove_stale(folder: Path, start: str) -> None:
    """Remove what ``write_beside`` left behind in processes that were killed.

    Such a file is called ``.<target>.<machine>-<process id>.part``. It is stale when its process
    is gone from this machine, or when nobody wrote to it for a day (by then the number may be
    another process's). Of a process on another machine, which may share the folder, only the day
    tells.

    Parameters
    ----------
    folder : Path
        Where to look; it need not exist.
    start : str
        How the names of the targets begin.
    """
    try:
        paths = list(folder.iterdir())
    except OSError:  # no such folder, or one that may not be read
        return
    for path in paths:
        found = PART.fullmatch(path.name)
        if not found or not found[1].startswith(start):
            continue
        ours = found[2] in (None, _host())
        with suppress(OSError):  # it went meanwhile, or may not be removed: it does no harm
            if (ours and _is_gone(int(found[3]))) or time.time() - path.stat().st_mtime > _DAY:
                path.unlink()


@cache
def _host() -> str:
    """Return a short hash of this machine's name, which may hold anything."""
    return hashlib.sha256(socket.gethostname().encode(errors="replace")).hexdigest()[:8]


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


def file_md5(path: Path) -> str:
    """Return the MD5 checksum of a file as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def check_no_input(target: Path, inputs: Iterable[Path]) -> None:
    """Raise if writing to ``target`` would replace one of the files that are read.

    >>> check_no_input(Path(__file__), [Path("other.csv"), Path(__file__)])
    Traceback (most recent call last):
        ...
    fspll._common.errors.InputError: ...files.py is read here, and would be overwritten; ...
    """
    for path in inputs:
        with suppress(OSError):  # one of them is not there
            if target.samefile(path):
                raise InputError(
                    f"{target} is read here, and would be overwritten; write to another file"
                )
