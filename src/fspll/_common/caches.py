"""What is kept in the user's cache folder to save time: how much it is, and how to clear it.

Everything here can be computed again. Data sets that were fetched are not among it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fspll._common.arguments import check_choice
from fspll._common.errors import DataError
from fspll._common.files import decoded_dir, features_dir, remove_stale


@dataclass(frozen=True)
class Cache:
    """One kind of kept files.

    Attributes
    ----------
    name, what : str
        What commands call it, and what it holds.
    find_folder : callable
        Returns where it is; the environment may change that.
    endings : tuple of str
        Of the names of its files; nothing else in the folder is touched.
    """

    name: str
    what: str
    find_folder: Callable[[], Path]
    endings: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where it is, whether there or not."""
        return self.find_folder()

    def files(self) -> list[Path]:
        """Return the files that are there, without those that a running process writes."""
        try:
            found = sorted(self.folder.iterdir())
        except OSError:  # no such folder, or one that may not be read
            return []
        return [path for path in found if path.name.endswith(self.endings) and path.is_file()]

    def size(self) -> tuple[int, int]:
        """Return how many files there are, and their bytes."""
        sizes = []
        for path in self.files():
            try:
                sizes.append(path.stat().st_size)
            except OSError:  # it went meanwhile
                continue
        return len(sizes), sum(sizes)

    def clear(self) -> tuple[int, int]:
        """Remove the files; return how many they were, and their bytes.

        A process that reads them meanwhile goes on with what it has open.
        """
        size = self.size()
        remove_stale(self.folder, "")
        for path in self.files():
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"cannot remove {path}: {error.strerror or error}") from error
        return size


CACHES = {
    cache.name: cache
    for cache in (
        Cache("decoded", "pixels of data sets and folders", decoded_dir, (".npy", ".json")),
        Cache(
            "features",
            "features of encoded samples",
            features_dir,
            (".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"),
        ),
    )
}
"""Every cache by name."""


def find_caches(name: str) -> list[Cache]:
    """Return the cache of a name, or every one for ``"all"``."""
    check_choice("the cache", name, (*CACHES, "all"))
    return list(CACHES.values()) if name == "all" else [CACHES[name]]
