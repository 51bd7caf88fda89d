"""JSON in one object: ``{"a.png": ["cat", "lynx"]}``, or columns as pandas writes a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fspll.annotations.grid import CANDIDATE_NAMES, SAMPLE_NAMES, Grid, plain_name

_COLUMNS = {*CANDIDATE_NAMES, *SAMPLE_NAMES, "text"}


def read_mapping(source: str, records: Sequence[dict[str, Any]]) -> Grid | None:
    """Return what one object holds as a grid, or None where objects are rows of their own.

    A mapping is one object with several keys, or one object per line with one key each; the values
    are texts or lists, and no key is the name of a column.
    """
    columns = _read_columns(source, records)
    if columns is not None:
        return columns
    pairs = [pair for record in records for pair in record.items()]
    single = len(records) == 1 or all(len(record) == 1 for record in records)
    if not single or len(pairs) < 2 or len({key for key, _ in pairs}) < len(pairs):
        return None
    if any(plain_name(key) in _COLUMNS or not _are_labels(value) for key, value in pairs):
        return None
    rows = [[key.strip(), value] for key, value in pairs]
    where = [f"key {key!r}" for key, _ in pairs]
    return Grid(source, ["sample", "candidates"], rows, where, ("one key per sample",))


def _read_columns(source: str, records: Sequence[dict[str, Any]]) -> Grid | None:
    """Return what ``DataFrame.to_json`` writes, one object of rows per column, or None."""
    columns = list(records[0].values())
    if len(records) > 1 or len(columns) < 2 or not all(isinstance(one, dict) for one in columns):
        return None
    index = list(columns[0])
    if any(list(one) != index for one in columns):
        return None
    rows = [[key, *(one[key] for one in columns)] for key in index]
    header = ["", *records[0]]
    return Grid(source, header, rows, [f"row {number}" for number in range(len(rows))])


def _are_labels(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str | int | float) for one in value)
    return value is None or isinstance(value, str)
