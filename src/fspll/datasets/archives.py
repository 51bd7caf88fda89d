"""Images in a folder or in a zip, read alike and without extracting anything.

Zips come from elsewhere and are not trusted: a member with an absolute path or ``..``, a link, an
encrypted member, one of unreasonable size or of unusual compression is refused before the first
byte is read.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from pathlib import Path, PurePosixPath
from typing import Self

from fspll._common.errors import DataError
from fspll._common.reading import check_plain_file

MAX_MEMBER_BYTES = 64 * 2**20  # one picture; the largest photo of ImageNet has 15 MB
MAX_TOTAL_BYTES = 16 * 2**30  # one data set, unpacked
MAX_DIRECTORY_BYTES = 32 * 2**20  # the list of members, which takes many times as much in memory

# What zipfile raises for damaged bytes, depending on where the damage is.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)
# LZMA takes as much memory as a member says, and bzip2 is not unpacked piece by piece.
_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Source(ABC):
    """Files by name, in a folder or a zip; a context manager that closes what it opened.

    Attributes
    ----------
    path : Path
        The folder or zip.
    names : tuple of str
        Names of its files relative to ``path``, with forward slashes, sorted; hidden files and
        what macOS adds to zips are left out.
    """

    path: Path
    names: tuple[str, ...]

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the bytes of one file; safe to call from several threads."""

    def close(self) -> None:  # noqa: B027 -- a folder has nothing to close
        """Close the underlying file, if any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class FolderSource(Source):
    """The files below a folder."""

    def __init__(self, path: Path, *, max_member: int = MAX_MEMBER_BYTES) -> None:
        self.path = path
        self.names = tuple(name for name, _, _ in stamps(path))
        self._max_member = max_member

    def read(self, name: str) -> bytes:
        """Return the bytes of one file."""
        file = self.path / name
        try:
            size = check_plain_file(file, "a picture file").st_size
            if size > self._max_member:
                raise DataError(_too_large(f"{file}", size, self._max_member))
            return file.read_bytes()
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from error


class ZipSource(Source):
    """The members of a zip, every one checked when it is opened.

    Attributes
    ----------
    size : int
        What its members take together, unpacked.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_member: int = MAX_MEMBER_BYTES,
        max_total: int = MAX_TOTAL_BYTES,
    ) -> None:
        self.path = path
        check_plain_file(path, "a zip file")
        try:
            self._file = _BoundedFile(path.open("rb", buffering=0))
        except OSError as error:
            raise DataError(f"cannot read {path}: {_reason(error)}") from error
        try:
            self._zip = zipfile.ZipFile(self._file)
            self._file.opened = True
            self._members = _checked_members(self._zip, path, max_member, max_total)
        except DataError:
            self._file.close()
            raise
        except _DAMAGE as error:
            self._file.close()
            raise DataError(f"{path} is not a whole zip file: {_reason(error)}") from error
        self.names = tuple(sorted(name for name in self._members if not _hidden(name)))
        self.size = sum(info.file_size for info in self._members.values())

    def read(self, name: str) -> bytes:
        """Return the bytes of one member, its checksum verified."""
        info = self._members.get(name)
        if info is None:
            raise DataError(f"{self.path} has no member {name!r}")
        try:
            with self._zip.open(info) as member:
                # With a size: read() would unpack all there is, whatever the member declares.
                return member.read(info.file_size)
        except _DAMAGE as error:
            raise DataError(
                f"member {name!r} of {self.path} is damaged: {_reason(error)}"
            ) from error

    def close(self) -> None:
        """Close the zip."""
        self._zip.close()
        self._file.close()


class _BoundedFile(io.BufferedReader):
    """A file that gives no list of members, which ``zipfile`` reads in one piece, without bound."""

    opened = False  # from then on members are read, whose sizes are known

    def read(self, size: int | None = -1) -> bytes:
        if not self.opened and size is not None and size > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(
                f"its list of members has {size:,} bytes; at most {MAX_DIRECTORY_BYTES:,} are read"
            )
        return super().read(size)


def open_source(path: Path | str) -> Source:
    """Open a folder or a zip for reading by name.

    Raises
    ------
    DataError
        When there is nothing at ``path``, or it is neither a folder nor a sound zip.
    """
    path = Path(path)
    if path.is_dir():
        return FolderSource(path)
    if not path.exists():
        raise DataError(f"{path} does not exist; expected a folder or a zip file")
    return ZipSource(path)


def stamps(path: Path) -> list[tuple[str, int, int]]:
    """Return (name, size, modification time in ns) of a file, or of every file below a folder.

    The files of a folder are sorted by name. Links are followed, because people link class folders
    together from elsewhere; a link to one of its own parents is not.
    """
    try:
        return _walk(path) if path.is_dir() else [(path.name, *_size_and_time(path))]
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error


def _walk(root: Path) -> list[tuple[str, int, int]]:
    found = []
    for folder, subfolders, files in os.walk(root, followlinks=True, onerror=_give_up):
        here = Path(os.path.realpath(folder))
        subfolders[:] = [s for s in subfolders if not _hidden(s) and not _loops(here / s)]
        prefix = Path(folder).relative_to(root).as_posix()
        for file in files:
            if not _hidden(file):
                name = file if prefix == "." else f"{prefix}/{file}"
                # Joined as text: a Path object per file would double the time of a large folder.
                found.append((name, *_size_and_time(f"{folder}/{file}")))
    return sorted(found)


def _size_and_time(file: Path | str) -> tuple[int, int]:
    info = os.stat(file)  # noqa: PTH116 -- see _walk
    return info.st_size, info.st_mtime_ns


def _give_up(error: OSError) -> None:
    raise error


def _checked_members(
    archive: zipfile.ZipFile, path: Path, max_member: int, max_total: int
) -> dict[str, zipfile.ZipInfo]:
    """Return the file members by name, or refuse the archive."""
    members: dict[str, zipfile.ZipInfo] = {}
    total = 0
    for info in archive.infolist():
        name = info.filename.replace("\\", "/")
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or (parts and parts[0].endswith(":")):
            raise DataError(f"{path} is refused: member {info.filename!r} points outside of it")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise DataError(f"{path} is refused: member {info.filename!r} is a link")
        if name.endswith("/"):
            continue
        if info.flag_bits & 1:
            raise DataError(f"{path} is refused: member {info.filename!r} is encrypted")
        if info.compress_type not in _COMPRESSION:
            raise DataError(
                f"{path} is refused: member {info.filename!r} is compressed by method "
                f"{info.compress_type}; pack it again with deflate, the usual one"
            )
        if info.file_size > max_member:
            raise DataError(f"{path} is refused: {_too_large(name, info.file_size, max_member)}")
        if name in members:
            raise DataError(f"{path} is refused: it has two members called {name!r}")
        total += info.file_size
        if total > max_total:
            raise DataError(f"{path} is refused: it unpacks to more than {max_total:,} bytes")
        members[name] = info
    return members


def _hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX")) or "/." in name


def _loops(folder: Path) -> bool:
    """Whether ``folder`` is a link to one of its own parents."""
    return folder.is_symlink() and folder.parent.is_relative_to(os.path.realpath(folder))


def _too_large(name: str, size: int, limit: int) -> str:
    return f"{name!r} has {size:,} bytes; at most {limit:,} are read"


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
