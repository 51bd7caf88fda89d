"""JSON files: one object a line, or a list of objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError
from fspll.annotations.decoding import read_text
from fspll.annotations.grid import Grid

Record = dict[str, Any]


def load_records(path: Path, encoding: str | None = None) -> tuple[list[Record], list[str]]:
    """Return the objects of a JSON file and where each is: "row 3" is line 3, or the third item.

    A file whose first line is a whole object is read line by line; any other as one value.
    """
    text = read_text(path, encoding, lambda before: f"line {_line(before)}")
    if text.lstrip().startswith("{"):
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if len(lines) == 1 or _is_object(lines[0][1]):
            values = [(n, _parse(line, path, n)) for n, line in lines]
        else:
            values = [(1, _parse(text, path))]
    else:
        whole = _parse(text, path)
        if not isinstance(whole, list):
            raise DataError(f"{path} holds {_kind(whole)}; expected a list of objects")
        values = list(enumerate(whole, start=1))
    for number, value in values:
        if not isinstance(value, dict):
            raise DataError(f"{path.name}, row {number} is {_kind(value)}; expected an object")
    if not values:
        raise DataError(f"{path} holds an empty list; expected samples with candidates")
    return [value for _, value in values], [f"row {number}" for number, _ in values]


def make_grid(path: Path, records: list[Record], where: list[str]) -> Grid:
    """Return the objects as rows: a column a key, None where an object lacks one."""
    header = list(dict.fromkeys(key for record in records for key in record))
    rows = [[_trimmed(record.get(key)) for key in header] for record in records]
    return Grid(path.name, header, rows, where)


def _trimmed(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _parse(text: str, path: Path, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise DataError(f"{path.name}, {place}: this is not JSON: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{path} is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"{path.name}: {error}") from None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _line(before: str) -> int:
    return before.count("\n") + 1


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value"}
    return names.get(type(value), "nothing" if value is None else "a number")
