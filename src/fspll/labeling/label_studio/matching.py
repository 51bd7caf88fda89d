"""Which sample a task of Label Studio is about: by its name, its file or its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fspll._common.errors import InputError
from fspll._common.pictures import has_picture_suffix
from fspll.annotations.addresses import last_part, original_names, path_of, stored_name
from fspll.labeling.label_studio.config import SAMPLE
from fspll.labeling.result import Labeling

_SEVERAL = -1
_DEEPEST = 6  # parts of a path that are compared


class SampleIndex:
    """The samples of a result by everything that a task may call them.

    A task is about the sample whose name stands in its field ``sample``, as in the tasks that
    :func:`tasks_with_predictions` makes. Otherwise the field that the project shows is compared:
    with the names, then with the texts or, where samples are files, with the paths. Of two paths
    the ends must agree, as far as either goes, or at least the names of the files; an upload may
    have Label Studio's digits before its name. What fits several samples is about none.

    Parameters
    ----------
    result : Labeling
    """

    def __init__(self, result: Labeling) -> None:
        self._names = {name: row for row, name in enumerate(result.names)}
        self._texts: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._stored: dict[str, int] = {}
        for row, text in enumerate(result.texts or ()):
            _add(self._texts, _plain(text), row)
        if result.pictures is None and not all(map(has_picture_suffix, result.names)):
            return
        for row, name in enumerate(result.names):
            written = [name, *([result.files[row]] if result.files else [])]
            paths = {path_of(one) for one in written}
            if result.pictures is not None:
                paths.add(result.pictures[row].as_posix())
            for end in {end for path in paths for end in _ends(path)}:
                _add(self._paths, end, row)
            for last in {stored_name(last_part(path)) for path in paths}:
                _add(self._stored, last, row)

    def find(self, task: Any, key: str | None = None) -> int | None:
        """Return the row of the sample that a task is about; None where there is none.

        Parameters
        ----------
        task : dict
            As Label Studio sends it, with its fields in ``data``.
        key : str, optional
            The field that the project shows. Without it every field is compared, and all that are
            about a sample must be about the same.

        Raises
        ------
        InputError
            When it is no task.
        """
        data = task.get("data") if isinstance(task, dict) else None
        if not isinstance(data, dict):
            raise InputError("a task of Label Studio is an object with its fields in 'data'")
        named = data.get(SAMPLE)
        if isinstance(named, str) and named in self._names:
            return self._names[named]
        values = [data[key]] if key in data else list(data.values())
        rows = {self._find(one) for one in values if isinstance(one, str)} - {None}
        return rows.pop() if len(rows) == 1 else None

    def _find(self, value: str) -> int | None:
        row = self._names.get(value)
        if row is None:
            row = self._texts.get(_plain(value))
        if row is None and self._paths:
            row = self._by_path(value)
        return None if row == _SEVERAL else row

    def _by_path(self, value: str) -> int | None:
        for end in _ends(path_of(value)):
            if end in self._paths:
                return self._paths[end]
        before = original_names([value]).get(value)
        if before is None:
            return None
        return self._paths.get(before, self._stored.get(before))


def _add(index: dict[str, int], key: str, row: int) -> None:
    if index.setdefault(key, row) != row:
        index[key] = _SEVERAL


def _plain(text: str) -> str:
    return " ".join(text.split())


def _ends(path: str) -> Iterator[str]:
    """Yield what a path ends with, the longest first: at last the name of the file."""
    parts = path.replace("\\", "/").strip("/").rsplit("/", _DEEPEST)[-_DEEPEST:]
    for first in range(len(parts)):
        yield "/".join(parts[first:])
