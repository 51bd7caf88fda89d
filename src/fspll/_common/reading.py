"""Files of a person's own data: only plain files are read, and no more than a limit of each.

A limit holds for what a file unpacks to, not only for what it takes on the disk. The environment
raises it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fspll._common.errors import DataError, InputError

BYTES_VARIABLE, PIXELS_VARIABLE = "FSPLL_MAX_BYTES", "FSPLL_MAX_PIXELS"
ROWS_VARIABLE = "FSPLL_MAX_ROWS"
_MAX_BYTES = 4 * 2**30  # of one file, unpacked
_MAX_PIXELS = 80_000_000  # of one picture
_MAX_ROWS = 4_000_000  # of arrays: rows get names, which may take far more memory than their bytes


def max_bytes() -> int:
    """Return how many bytes of one file are read, unpacked."""
    return _limit(BYTES_VARIABLE, _MAX_BYTES)


def max_pixels() -> int:
    """Return how many pixels a picture may have."""
    return _limit(PIXELS_VARIABLE, _MAX_PIXELS)


def max_rows() -> int:
    """Return how many samples may come in arrays that are read as a whole."""
    return _limit(ROWS_VARIABLE, _MAX_ROWS)


def _limit(variable: str, usual: int) -> int:
    given = os.environ.get(variable, "").strip()
    if not given:
        return usual
    if not given.isdecimal() or not 0 < len(given) < 19:
        raise InputError(f"{variable} in the environment must be a whole number, not {given!r:.40}")
    return int(given)


def check_size(name: str, size: int) -> None:
    """Refuse what unpacks to more bytes than are read."""
    if size > max_bytes():
        raise DataError(
            f"{name} has {size:,} bytes, more than the {max_bytes():,} that are allowed; set "
            f"{BYTES_VARIABLE} to raise the limit"
        )


def check_rows(name: str, rows: int) -> None:
    """Refuse arrays of more samples than are read."""
    if rows > max_rows():
        raise DataError(
            f"{name} has {rows:,} rows, more than the {max_rows():,} that are allowed; set "
            f"{ROWS_VARIABLE} to raise the limit"
        )


def check_plain_file(
    path: Path,
    kind: str = "a file",
    *,
    name: str | None = None,
    error: type[InputError] = DataError,
) -> os.stat_result:
    """Refuse what is no plain file before it is opened, and return what the system says of it.

    A pipe or a device would be waited for, or read, without end.

    Parameters
    ----------
    path : Path
    kind : str
        What it should be: ``"a picture file"``.
    name : str, optional
        What to call it in messages; by default its path.
    error : type of InputError
        What to raise.
    """
    name = str(path) if name is None else name
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise error(f"{name} does not exist") from None
    except (OSError, ValueError) as reason:  # the latter: a NUL in a name
        why = getattr(reason, "strerror", None) or reason
        raise error(f"cannot read {name}: {why}") from reason
    if stat.S_ISDIR(found.st_mode):
        raise error(f"{name} is a folder, not {kind}")
    if not stat.S_ISREG(found.st_mode):
        raise error(f"{name} is a pipe or a device, not {kind}")
    return found


def read_file(path: Path, kind: str = "a file") -> bytes:
    """Return what is in a plain file."""
    check_size(str(path), check_plain_file(path, kind).st_size)
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
