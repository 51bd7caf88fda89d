"""Measured figures in one SQLite file: one row per task, keyed by the job's settings.

Only the process that runs a grid writes, one transaction for each part of a job, so that a process
killed at any moment leaves whole parts and nothing else. A task is in the file once or not at all.
Every task carries a checksum: one that was damaged since counts as missing, and is solved again.
"""

from __future__ import annotations

import json
import platform
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fspll._common.errors import DataError

RESULTS = "results.sqlite"
_FORMAT = 2  # format 1 had no checksums
_TABLES = {
    "jobs": ("key TEXT PRIMARY KEY", "settings TEXT NOT NULL", "versions TEXT NOT NULL"),
    "tasks": (
        *("key TEXT NOT NULL REFERENCES jobs (key)", "task INTEGER NOT NULL"),
        *("query REAL NOT NULL", "support REAL NOT NULL", "seconds REAL NOT NULL"),
        "check_sum INTEGER",
    ),
    "networks": (
        *("key TEXT PRIMARY KEY", "settings TEXT NOT NULL", "versions TEXT NOT NULL"),
        "seconds REAL NOT NULL",
    ),
    "runs": (
        *("started TEXT NOT NULL", "experiment TEXT NOT NULL", "profile TEXT NOT NULL"),
        *("workers TEXT NOT NULL", "seconds REAL NOT NULL"),
    ),
}
_KEYS = {"tasks": ", PRIMARY KEY (key, task)"}
_ADVICE = "move it away, and run again to compute what it held"


class Figures(NamedTuple):
    """Figures of some tasks of a job, each of shape (n,): number, shares of right labels, time."""

    tasks: np.ndarray
    query: np.ndarray
    support: np.ndarray
    seconds: np.ndarray


class Run(NamedTuple):
    """When a run began, what it ran and where, and how long it took."""

    started: str
    experiment: str
    profile: str
    workers: str
    seconds: float


class Store:
    """A file of results; a context manager.

    Parameters
    ----------
    path : path
        Created with its folder when absent.

    Examples
    --------
    >>> with Store(":memory:") as store:
    ...     figures = Figures(np.arange(2), np.array([0.5, 1.0]), np.ones(2), np.full(2, 0.1))
    ...     store.add("k", {"method": "PN"}, {"torch": "2"}, figures)
    ...     store.figures("k").query.tolist(), store.missing("k", 4)
    ([0.5, 1.0], [2, 3])
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        try:
            if path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"cannot keep results in {path}: {error}") from error
        try:
            self._open()
        except BaseException as error:
            self.db.close()
            # The latter: SQLite quotes damaged bytes in its messages.
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                raise DataError(f"cannot keep results in {path}: {error}") from error
            raise

    def _open(self) -> None:
        """Check what is in the file, before anything is written to it; make what is not."""
        found = self.db.execute("PRAGMA user_version").fetchone()[0]
        if found not in range(_FORMAT + 1):
            raise DataError(
                f"{self.path} was written in format {found} of the results, this is {_FORMAT}; "
                "choose another folder"
            )
        for (complaint,) in self.db.execute("PRAGMA quick_check(1)").fetchall():
            if complaint != "ok":
                reason = " ".join(complaint.split())
                raise DataError(f"{self.path} is damaged ({reason}); {_ADVICE}")
        self._check_tables(found)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        if found == _FORMAT:
            return
        with self._transaction():
            for name, columns in _TABLES.items():
                rowid = "" if name == "runs" else " WITHOUT ROWID"
                text = ", ".join(columns) + _KEYS.get(name, "")
                self.db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({text}){rowid}")
            if "check_sum" not in self._columns("tasks"):
                self.db.execute("ALTER TABLE tasks ADD COLUMN check_sum INTEGER")
            self.db.execute(f"PRAGMA user_version={_FORMAT}")

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self.db.execute("SELECT * FROM pragma_table_info(?)", (table,))]

    def _check_tables(self, version: int) -> None:
        """Refuse a database of something else, whose tables are not ours to change."""
        rows = self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = {name for (name,) in rows}
        for name in sorted(names if version == 0 else names & set(_TABLES)):
            found = self._columns(name)
            ours = [column.split()[0] for column in _TABLES.get(name, ())]
            if not found or found not in (ours, [one for one in ours if one != "check_sum"]):
                raise DataError(
                    f"{self.path} has a table {name!r} with the columns {', '.join(found)}, which "
                    f"fspll did not write; choose another folder"
                )
        missing = sorted(set(_TABLES) - names)
        if version and missing:
            raise DataError(f"{self.path} is damaged: it lacks the table {missing[0]!r}; {_ADVICE}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except BaseException as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise DataError(f"cannot write results to {self.path}: {error}") from error
            raise

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.db.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise DataError(f"cannot read results from {self.path}: {error}") from error

    def _parse(self, text: Any) -> Any:
        try:
            return json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"{self.path} is damaged: settings in it are no JSON; {_ADVICE}"
            ) from error

    def add(
        self, key: str, settings: dict[str, Any], versions: dict[str, str], figures: Figures
    ) -> None:
        """Write some tasks of a job at once; tasks that are there already stay as they are.

        Parameters
        ----------
        key, settings
            Of the job.
        versions : dict
            Of the packages that computed it: a record, and no part of the key.
        figures : Figures
        """
        rows = []
        for task, *shares in zip(*figures, strict=True):
            row = (key, int(task), *map(float, shares))
            rows.append((*row, _check_sum(row)))
        with self._transaction():
            self.db.execute(
                "INSERT OR IGNORE INTO jobs VALUES (?, ?, ?)",
                (key, _json(settings), _json(versions)),
            )
            # Not "OR IGNORE", which would also swallow a figure that is not a number.
            self.db.executemany(
                "INSERT INTO tasks (key, task, query, support, seconds, check_sum) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key, task) DO NOTHING",
                rows,
            )

    def figures(self, key: str, n_tasks: int | None = None) -> Figures:
        """Return what is known of a job, of its first ``n_tasks`` tasks or of all."""
        rows = [row[1:5] for row in self._rows(key, n_tasks) if _is_whole(row)]
        columns = np.array(rows, dtype=float).reshape(-1, 4).T
        return Figures(columns[0].astype(np.int64), *columns[1:])

    def _rows(self, key: str, n_tasks: int | None) -> list[tuple[Any, ...]]:
        return self._read(
            "SELECT key, task, query, support, seconds, check_sum FROM tasks "
            "WHERE key = ? AND task < ? ORDER BY task",
            (key, 1 << 62 if n_tasks is None else n_tasks),
        )

    def missing(self, key: str, n_tasks: int) -> list[int]:
        """Return which of the first ``n_tasks`` tasks of a job are not there, or damaged.

        What is damaged is removed: it makes room for the same task, solved again.
        """
        rows = self._rows(key, n_tasks)
        damaged = [row[:2] for row in rows if not _is_whole(row)]
        if damaged:
            with self._transaction():
                self.db.executemany("DELETE FROM tasks WHERE key = ? AND task = ?", damaged)
        known = {row[1] for row in rows if _is_whole(row)}
        return [task for task in range(n_tasks) if task not in known]

    def add_network(
        self, key: str, settings: dict[str, Any], versions: dict[str, str], seconds: float
    ) -> None:
        """Note that a network is ready, and what it took."""
        with self._transaction():
            self.db.execute(
                "INSERT OR IGNORE INTO networks VALUES (?, ?, ?, ?)",
                (key, _json(settings), _json(versions), seconds),
            )

    def networks(self) -> dict[str, tuple[dict[str, Any], dict[str, str], float]]:
        """Return settings, versions and seconds of every network that is ready, by key."""
        rows = self._read("SELECT key, settings, versions, seconds FROM networks ORDER BY key")
        return {
            key: (self._parse(settings), self._parse(made), seconds)
            for key, settings, made, seconds in rows
            if isinstance(seconds, float)
        }

    def versions(self, keys: Iterable[str]) -> list[dict[str, str]]:
        """Return the different package versions that computed some jobs."""
        found = set()
        for key in keys:
            found |= {
                text for (text,) in self._read("SELECT versions FROM jobs WHERE key = ?", (key,))
            }
        return [self._parse(text) for text in sorted(found, key=str)]

    def jobs(self) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
        """Return key, settings and versions of every job, sorted by key."""
        rows = self._read("SELECT key, settings, versions FROM jobs ORDER BY key")
        return [(key, self._parse(settings), self._parse(made)) for key, settings, made in rows]

    def counts(self) -> dict[str, int]:
        """Return how many tasks there are of every job, damaged ones included, by key."""
        return dict(self._read("SELECT key, COUNT(*) FROM tasks GROUP BY key"))

    def add_run(self, run: Run) -> None:
        """Note how long a run took, whether it finished or not."""
        with self._transaction():
            self.db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", run)

    def runs(self) -> list[Run]:
        """Return all runs so far, the first ones first."""
        rows = self._read(
            "SELECT started, experiment, profile, workers, seconds FROM runs ORDER BY started"
        )
        return [Run(*row) for row in rows if isinstance(row[-1], float)]


def _check_sum(row: Sequence[Any]) -> int:
    return zlib.crc32(repr(tuple(row)).encode())


def _is_whole(row: Sequence[Any]) -> bool:
    """Tell whether a task is as it was written; those of format 1 have no checksum."""
    *values, check_sum = row
    if check_sum is not None:
        return bool(check_sum == _check_sum(values))
    return isinstance(row[1], int) and all(isinstance(value, float) for value in row[2:5])


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions that a result depends on, by package."""
    names = ("fspll", "torch", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in names}
