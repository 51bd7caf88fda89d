"""Features in one SQLite file per encoder, under the user's cache folder.

Whatever happens to the file costs time, never a result: a damaged one is made anew, one that cannot
be read or written is done without, and every row carries a check sum.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.files import features_dir

_LAYOUT = 2  # of a cache file
MAX_BYTES = 1 << 30  # of features in one file
MAX_FILES = 20  # encoders whose features are kept
_DAY = 86_400  # seconds
_WAIT = 10.0  # seconds for another run that writes to the same file


class FeatureStore:
    """Features in a SQLite file, or nothing when there is no such file to be had."""

    def __init__(self, connection: sqlite3.Connection | None, path: Path | None) -> None:
        self.connection, self.path = connection, path

    @classmethod
    @contextmanager
    def open(cls, fingerprint: str | None) -> Iterator[FeatureStore]:
        """Open the file of an encoder; None stands for one that is not cached."""
        if fingerprint is None:
            yield cls(None, None)
            return
        name = hashlib.blake2b(f"{_LAYOUT} {fingerprint}".encode(), digest_size=16).hexdigest()
        path = features_dir() / f"{name}.sqlite"
        connection = _connect(path)
        if connection is None:
            yield cls(None, None)
            return
        with closing(connection):
            store = cls(connection, path)
            yield store
            store.trim()

    def find(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        """Return the features that are known, each as a flat float32 array."""
        found: dict[bytes, np.ndarray] = {}
        if self.connection is None:
            return found
        now = int(time.time())
        used_before: list[bytes] = []  # noted once a day, because it writes the whole row anew
        try:
            for key in set(keys):
                row = self.connection.execute(
                    "SELECT used, check_sum, vector FROM features WHERE key = ?", (key,)
                ).fetchone()
                vector = None if row is None else _checked(key, *row[1:])
                if vector is not None:
                    found[key] = vector
                    if not isinstance(row[0], int) or row[0] < now - _DAY:
                        used_before.append(key)
            if used_before:
                with self.connection:
                    self.connection.executemany(
                        "UPDATE features SET used = ? WHERE key = ?",
                        [(now, key) for key in used_before],
                    )
        except sqlite3.OperationalError:  # locked for long, or a disk that is full or read-only
            pass
        except sqlite3.DatabaseError:
            self._discard_file()
            return {}
        return found

    def keep(self, vectors: dict[bytes, np.ndarray]) -> None:
        """Write features down."""
        if self.connection is None or not vectors:
            return
        now = int(time.time())
        rows = []
        for key, vector in vectors.items():
            blob = np.ascontiguousarray(vector, dtype="<f4").tobytes()
            if len(blob) <= MAX_BYTES // 2:  # SQLite holds no value of more than 1e9 bytes
                rows.append((key, now, _check_sum(key, blob), blob))
        try:
            with self.connection:
                self.connection.executemany(
                    "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?)", rows
                )
        except sqlite3.OperationalError:
            pass
        except sqlite3.DatabaseError:
            self._discard_file()

    def trim(self) -> None:
        """Forget the samples that were not used for longest, and encoders of long ago."""
        if self.connection is None or self.path is None:
            return
        try:
            count, size = self.connection.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(vector)), 0) FROM features"
            ).fetchone()
            if size > MAX_BYTES:
                surplus = int(np.ceil(count * (1 - 0.8 * MAX_BYTES / size)))
                with self.connection:
                    self.connection.execute(
                        "DELETE FROM features WHERE key IN "
                        "(SELECT key FROM features ORDER BY used LIMIT ?)",
                        (surplus,),
                    )
                self.connection.execute("VACUUM")
        except sqlite3.DatabaseError:
            return
        files = sorted(self.path.parent.glob("*.sqlite"), key=_age)
        for old in [path for path in files if path != self.path][MAX_FILES - 1 :]:
            _remove(old)

    def _discard_file(self) -> None:
        """Remove a damaged file, so that the next run starts a new one; go on without."""
        if self.connection is not None:
            self.connection.close()
        if self.path is not None:
            _remove(self.path)
        self.connection = None


def _connect(path: Path) -> sqlite3.Connection | None:
    """Open the file; make a damaged one anew; None when it cannot be had."""
    for _ in range(2):
        connection = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=_WAIT)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            with connection:
                connection.execute(
                    # The vector last: what stands behind a large value is slow to get at.
                    "CREATE TABLE IF NOT EXISTS features "
                    "(key BLOB PRIMARY KEY, used INTEGER, check_sum INTEGER, vector BLOB)"
                )
                connection.execute("SELECT key, used, check_sum, vector FROM features LIMIT 1")
            return connection
        except sqlite3.OperationalError as error:
            _close(connection)
            if "no such column" not in str(error):
                return None
            _remove(path)
        except sqlite3.DatabaseError:
            _close(connection)
            _remove(path)
        except OSError:
            return None
    return None


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        connection.close()


def _remove(path: Path) -> None:
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return float("inf")


def _check_sum(key: bytes, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(key))


def _checked(key: bytes, check_sum: Any, blob: Any) -> np.ndarray | None:
    """Return a vector, or None if a byte of it has changed since it was written."""
    if not isinstance(blob, bytes) or not blob or check_sum != _check_sum(key, blob):
        return None
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)
