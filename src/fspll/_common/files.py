"""Where files live and how they are written: beside the target, then renamed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fspll._common.errors import DataError

DATA_VARIABLE = "FSPLL_DATA"


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


@contextmanager
def write_beside(target: Path | str) -> Iterator[Path]:
    """Yield a path to write to; rename it to ``target`` when the block ends without an error.

    An interrupted or failing write leaves the old file as it was and nothing else behind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_beside(Path(folder) / "a.txt") as path:
    ...         _ = path.write_text("whole")
    ...     [f.name for f in Path(folder).iterdir()]
    ['a.txt']
    """
    target = Path(target)
    # The process id keeps two writers of one file apart; the last to finish wins, whole.
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        beside.replace(target)
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
