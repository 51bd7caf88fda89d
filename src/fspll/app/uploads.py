"""Files that a browser sends: every upload in a folder of its own, which goes when the upload does.

Nothing here opens a path that a browser names. Of a file's name only the last part is kept, and
only where it is a plain name; members of zips come through the checked reader of archives.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from fspll._common.errors import DataError, InputError
from fspll._common.pictures import has_picture_suffix
from fspll._common.words import shorten
from fspll.annotations.opening import ENDINGS
from fspll.app.fields import without_folder
from fspll.app.file_names import file_name
from fspll.datasets.archives import MAX_MEMBER_BYTES, ZipSource

MOST_FILES = 20_000  # of one upload, those in zips among them
MOST_BYTES = 2 << 30  # of one upload, unpacked
MOST_REQUEST_BYTES = 1 << 30  # of one file as it is sent
MOST_PICTURE_BYTES = MAX_MEMBER_BYTES
MOST_TABLE_BYTES = 128 << 20  # unpacked; tables take many times as much in memory
DEEPEST = 16  # folders of a zip in one another
PICTURES, RESULT = "pictures", "result"
_ZIP = ".zip"
_OTHERS = (*ENDINGS, ".txt", ".npy")  # tables and arrays


class Upload:
    """What one browser session has sent.

    Attributes
    ----------
    key : str
        A secret: whoever knows it may see and change the upload.
    folder : Path
        Tables and vectors are in it, pictures in ``pictures/``, results in ``result/``.
    files : dict of str to int
        Names and sizes of tables and vectors.
    n_pictures : int
    left_out : int
        Members of zips that are of no use here.
    workspace : str
        The name of the workspace that shows its result; "" before there is one.
    closed : threading.Event
        Set when the folder is about to go.
    """

    def __init__(self) -> None:
        self.key = secrets.token_urlsafe(24)
        self._home = TemporaryDirectory(prefix="fspll-upload-", ignore_cleanup_errors=True)
        self.folder = Path(self._home.name).resolve()
        self.pictures = self.folder / PICTURES
        self.pictures.mkdir()
        self.files: dict[str, int] = {}
        self.n_pictures, self.left_out = 0, 0
        self.workspace = ""
        self.shown: list[Path | None] = []  # pictures of the samples that the page shows
        self.closed = threading.Event()
        self.used = time.monotonic()
        self._bytes, self._number = 0, 0
        self.lock = threading.RLock()  # of everything above

    @contextmanager
    def receive(self, given: str) -> Iterator[Incoming]:
        """Yield what takes the bytes of a file; without ``keep()`` nothing of it stays."""
        with self.lock:
            self._number += 1
            incoming = Incoming(self, file_name(given), self.folder / f".{self._number}.part")
        try:
            yield incoming
        finally:
            incoming.close()

    def reserve(self, size: int) -> None:
        """Count bytes, before they are written."""
        with self.lock:
            if self._bytes + size > MOST_BYTES:
                raise InputError(f"an upload has at most {MOST_BYTES:,} bytes, unpacked")
            self._bytes += size

    def keep(self, part: Path, name: str) -> None:
        """Give a file that is complete its place; a zip gives its members."""
        with self.lock:
            self._check_open()
            if name.lower().endswith(_ZIP):
                with ZipSource(part, max_member=MOST_PICTURE_BYTES, max_total=MOST_BYTES) as found:
                    self._unpack(found, name)
                return
            if not has_picture_suffix(name):
                _check_unpacked(part)
            size, target = part.stat().st_size, self._target(PurePosixPath(name))
            part.replace(target)
            self._count(target, size)

    def _unpack(self, source: ZipSource, name: str) -> None:
        """Write the pictures and tables of a zip; all of them, or none."""
        members = {one: self._member(one) for one in source.names}
        chosen = {one: path for one, path in members.items() if path is not None}
        if not chosen:
            raise InputError(f"{shorten(name)!r} holds neither pictures nor tables")
        self.reserve(source.size)
        written: list[tuple[Path, int]] = []
        try:
            for one, path in chosen.items():
                self._check_open()
                data = source.read(one)
                target = self._target(path, len(written))
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    written.append((target, len(data)))
                    file.write(data)
                if not has_picture_suffix(target.name):
                    _check_unpacked(target)
        except BaseException:
            for target, _ in written:
                target.unlink(missing_ok=True)
            self._bytes -= source.size
            raise
        for target, size in written:
            self._count(target, size)
        self.left_out += len(members) - len(chosen)
        self._bytes -= source.size - sum(size for _, size in written)

    def _member(self, name: str) -> PurePosixPath | None:
        """Return where a member of a zip goes: pictures keep their folders, which tables name."""
        parts = [file_name(part) for part in PurePosixPath(name).parts]
        if len(parts) > DEEPEST:
            raise InputError(f"the zip has more than {DEEPEST} folders in one another")
        if has_picture_suffix(parts[-1]):
            return PurePosixPath(*parts)
        return PurePosixPath(parts[-1]) if parts[-1].lower().endswith(_OTHERS) else None

    def _target(self, path: PurePosixPath, more: int = 0) -> Path:
        """Return where a file goes, and refuse what is there already or too much."""
        if self.n_pictures + len(self.files) + more >= MOST_FILES:
            raise InputError(f"an upload has at most {MOST_FILES:,} files")
        target = (self.pictures if has_picture_suffix(path.name) else self.folder) / path
        if target.exists():
            raise InputError(
                f"there is a file {shorten(path)!r} already; remove that one first, or put files "
                "of the same name into different folders of a zip"
            )
        return target

    def _count(self, target: Path, size: int) -> None:
        if has_picture_suffix(target.name):
            self.n_pictures += 1
        else:
            self.files[target.name] = size

    def path(self, name: str) -> Path:
        """Return a table or file of vectors by its name, which must be one of :attr:`files`."""
        if name not in self.files:
            raise InputError(f"there is no uploaded file {shorten(name)!r}")
        return self.folder / name

    def remove(self, name: str | None) -> None:
        """Remove a table or file of vectors; None removes all pictures."""
        with self.lock:
            if name is not None:
                self.path(name).unlink(missing_ok=True)
                self._bytes -= self.files.pop(name)
                return
            sizes = [one.stat().st_size for one in self.pictures.rglob("*") if one.is_file()]
            shutil.rmtree(self.pictures)
            self.pictures.mkdir()
            self._bytes -= sum(sizes)
            self.n_pictures = self.left_out = 0
            self.shown = []

    def close(self) -> None:
        """Remove the folder."""
        self.closed.set()
        with self.lock:  # whoever writes into the folder would make it again
            self._home.cleanup()

    def _check_open(self) -> None:
        if self.closed.is_set():
            raise InputError("this upload was deleted")


def _check_unpacked(path: Path) -> None:
    """Refuse a table that is a zip inside, as spreadsheets are, and unpacks to too much."""
    if zipfile.is_zipfile(path):
        most = MOST_TABLE_BYTES
        ZipSource(path, max_member=most, max_total=most).close()


class Incoming:
    """A file that is on its way into an upload."""

    def __init__(self, upload: Upload, name: str, part: Path) -> None:
        self.name, self._upload, self._part = name, upload, part
        if has_picture_suffix(name):
            self._most = MOST_PICTURE_BYTES
        elif name.lower().endswith((_ZIP, ".npy")):
            self._most = MOST_BYTES
        elif name.lower().endswith(_OTHERS):
            self._most = MOST_TABLE_BYTES
        else:
            raise InputError(
                f"{shorten(name)!r} is not taken: send pictures, a table (CSV, TSV, .xlsx, "
                "parquet, feather, JSON), vectors (.npy, .npz), or a .zip of these"
            )
        self._size = 0
        self._file: BinaryIO = part.open("xb")

    def write(self, data: bytes) -> None:
        """Take some bytes, unless they are too many."""
        if self._size + len(data) > self._most:
            raise InputError(
                f"{shorten(self.name)!r} has more than the {self._most:,} bytes that are taken"
            )
        self._upload.reserve(len(data))
        self._size += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise DataError(f"the file cannot be kept: {error.strerror or error}") from error

    def keep(self) -> None:
        """Let the upload have it."""
        is_zip = self.name.lower().endswith(_ZIP)
        try:
            self._file.close()
            if is_zip:  # what counts is what it unpacks to
                self._release()
            self._upload.keep(self._part, self.name)
        except OSError as error:
            raise DataError(f"the file cannot be kept: {error.strerror or error}") from error
        except InputError as error:  # which names files by where they are
            message = str(error).replace(str(self._part), self.name)
            raise InputError(without_folder(message, self._upload.folder)) from error
        self._size = 0  # its bytes stay

    def close(self) -> None:
        """Remove what was not kept."""
        with suppress(OSError):  # a full disk: what is left of the buffer
            self._file.close()
        self._part.unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        self._upload.reserve(-self._size)
        self._size = 0
