"""The text of a file, whatever its encoding, or a sentence that says where it stops being text."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

from fspll._common.errors import DataError, InputError

# A byte-order mark settles the encoding. UTF-32 first: its mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARK = "\ufeff"
_ZIP = b"PK\x03\x04"


def read_bytes(path: Path) -> bytes:
    """Return what is in a file; one clear sentence when it is not there or empty."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; a file was expected")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if not content:
        raise DataError(f"{path} is empty")
    return content


def read_text(path: Path, encoding: str | None, place_of: Callable[[str], str]) -> str:
    """Return the text of a file, without a byte-order mark.

    Parameters
    ----------
    path : Path
        The file.
    encoding : str or None
        How it is encoded. None: as its byte-order mark says, or else UTF-8.
    place_of : callable
        Given the text before a bad character, says where that is: ``"row 7"``.
    """
    content = read_bytes(path)
    if content.startswith(_ZIP):
        raise DataError(
            f"{path} is a zip file or a spreadsheet in its own format, not a text file; save it as "
            "CSV (UTF-8)"
        )
    used = encoding or next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(used)
    except LookupError:
        raise InputError(
            f"encoding={encoding!r} is not known; use for example 'utf-8', 'utf-16' or 'cp1252'"
        ) from None
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(used, errors="replace").removeprefix(_MARK)
        complaint = _complaint(content[error.start], used, encoding)
        raise DataError(f"{path.name}, {place_of(before + '?')}: {complaint}") from None
    text = text.removeprefix(_MARK)
    if not text.strip():
        raise DataError(f"{path} is empty")
    at = text.find("\0")
    if at >= 0:
        hint = "; if it is UTF-16 without a mark, give encoding='utf-16-le'" if at < 4 else ""
        raise DataError(
            f"{path.name}, {place_of(text[:at] + '?')}: there is a NUL byte, so this is no text "
            f"file{hint}"
        )
    return text


def _complaint(byte: int, used: str, given: str | None) -> str:
    if given is not None:
        return f"byte 0x{byte:02X} cannot be read as encoding={given!r}"
    if used != "utf-8":
        return f"the file begins like {used.removesuffix('-sig')} but is damaged here"
    return (
        f"byte 0x{byte:02X} is not UTF-8; if the whole file is Windows or Latin-1 text, give "
        'encoding="cp1252"; if only some rows are, save the file again as UTF-8'
    )
