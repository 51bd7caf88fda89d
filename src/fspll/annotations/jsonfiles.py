"""JSON files: one object per line, a list of objects, or an export of Label Studio's ``<Choices>``.

Of Label Studio, full JSON and JSON-MIN are read. Every annotation that was submitted is one
annotator's vote. Skipped annotations, predictions and tasks without an annotation are left out; so
are results of other kinds, such as boxes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from fspll._common.errors import DataError
from fspll._common.words import counted
from fspll.annotations.collecting import Options, collect
from fspll.annotations.grid import (
    CANDIDATE_NAMES,
    SAMPLE_NAMES,
    Grid,
    describe,
    find_column,
    list_columns,
)
from fspll.annotations.layouts import read_grid
from fspll.annotations.mappings import read_mapping
from fspll.annotations.samples import Annotations
from fspll.annotations.splitting import Splitter
from fspll.annotations.tables import read_text

Record = dict[str, Any]

# Labels come as lists, so nothing in them separates.
_AS_GIVEN = Splitter("", lists=False)
_EXPORT = "Label Studio export"
# What JSON-MIN adds to the fields of a task and the names of the controls.
_BOOKKEEPING = {
    "id",
    "annotator",
    "annotation_id",
    "created_at",
    "updated_at",
    "lead_time",
    "agreement",
}


def read_json(path: Path, kind: str, options: Options) -> Annotations:
    """Read objects with columns for keys, or an export of Label Studio."""
    records, where = _load_records(path, options.encoding)
    if _is_full_export(records):
        return _read_full(path, records, options)
    if _is_min_export(records):
        return _read_min(path, records, where, options)
    if kind == "label-studio":
        raise DataError(
            f"{path} is no export of Label Studio: its objects have neither 'data' and "
            "'annotations' nor 'annotation_id'"
        )
    mapping = read_mapping(path.name, records)
    return read_grid(mapping or _make_grid(path, records, where), options)


def open_objects(path: Path, encoding: str | None = None) -> tuple[Grid, list[str]]:
    """Return the objects of a JSON file as rows, and the names of the choices of Label Studio.

    Of a full export, the rows are the data of the tasks; other files have no such names.
    """
    records, where = _load_records(path, encoding)
    if _is_full_export(records):
        tasks = [f"task {n}" for n in range(1, len(records) + 1)]
        found = (one for n, task in enumerate(records) for one in _choices(path, tasks, n, task))
        controls = sorted({choice.control for choice in found})
        return _make_grid(path, [record["data"] for record in records], tasks), controls
    return read_mapping(path.name, records) or _make_grid(path, records, where), []


def _load_records(path: Path, encoding: str | None = None) -> tuple[list[Record], list[str]]:
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


def _make_grid(path: Path, records: list[Record], where: list[str]) -> Grid:
    """Return the objects as rows: a column per key, None where an object lacks one."""
    header = list(dict.fromkeys(key for record in records for key in record))
    return Grid(path.name, header, [_Row(record, header) for record in records], where)


class _Row(Sequence[Any]):
    """An object as cells under a header; objects that share no keys take no memory for others'."""

    __slots__ = ("header", "record")

    def __init__(self, record: Record, header: list[str]) -> None:
        self.record, self.header = record, header

    def __len__(self) -> int:
        return len(self.header)

    def __getitem__(self, column: Any) -> Any:
        value = self.record.get(self.header[column])
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


# -------------------------------------------------------------------- Label Studio


class _Choice(NamedTuple):
    """The labels of one annotation, by one control."""

    task: int
    control: str
    labels: list[str]
    account: str | None


def _is_full_export(records: list[Record]) -> bool:
    """Tell tasks with their annotations from other objects."""
    return all(
        isinstance(record.get("data"), dict) and isinstance(_annotations(record), list)
        for record in records
    )


def _is_min_export(records: list[Record]) -> bool:
    """Tell the flat objects of JSON-MIN from other objects."""
    return all("annotation_id" in record and "id" in record for record in records)


# -------------------------------------------------------------------- full JSON


def _read_full(path: Path, records: list[Record], options: Options) -> Annotations:
    """Read tasks with their annotations."""
    tasks = [f"task {task.get('id', n)}" for n, task in enumerate(records, start=1)]
    if len(set(tasks)) < len(tasks):  # several exports in one file
        tasks = [f"task {n} of the file" for n in range(1, len(records) + 1)]
    choices = [
        choice for n, task in enumerate(records) for choice in _choices(path, tasks, n, task)
    ]
    control = _one_control(path, {choice.control for choice in choices}, options)
    chosen = [choice for choice in choices if choice.control == control]
    labeled = {choice.task for choice in chosen}
    skips = options.unlabeled == "skip"
    kept = sorted(labeled) if skips else list(range(len(records)))
    data = _make_grid(path, [records[n]["data"] for n in kept], [tasks[n] for n in kept])
    described = describe(data, options)
    row = {task: place for place, task in enumerate(kept)}
    people = _people([choice.account for choice in chosen])
    opinions = [
        described.opinion(row[choice.task], choice.labels, tasks[choice.task], person)
        for choice, person in zip(chosen, people, strict=True)
    ]
    opinions += [described.opinion(row[n], [], tasks[n], None) for n in kept if n not in labeled]
    order = {tasks[n]: n for n in kept}
    opinions.sort(key=lambda one: order[one.place])
    left_out = counted(len(records) - len(kept), "task")
    understood = (
        _EXPORT,
        f"choices {control!r}",
        *described.understood,
        *([f"{left_out} without a choice left out"] if len(kept) < len(records) else []),
    )
    return collect(path.name, opinions, options, repeats=True, understood=understood)


def _annotations(task: Record) -> Any:
    return task.get("annotations", task.get("completions"))  # as they were called before 1.0


def _choices(path: Path, tasks: list[str], number: int, task: Record) -> Iterator[_Choice]:
    """Yield the labels that each annotation of a task gave, one control at a time."""
    where = f"{path.name}, {tasks[number]}"
    for annotation in _annotations(task):
        if not isinstance(annotation, dict):
            raise DataError(
                f"{where}: annotations hold no results; export as JSON, not as a list of tasks"
            )
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            continue
        given: dict[str, list[str]] = {}
        results = annotation.get("result")
        if not isinstance(results, list | None):
            raise DataError(f"{where}: 'result' is {_kind(results)}; expected a list")
        for result in results or []:
            value = result.get("value") if isinstance(result, dict) else None
            if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
                continue
            control = str(result.get("from_name", "choices"))
            given.setdefault(control, []).extend(_AS_GIVEN.labels(value, where))
        for control, labels in given.items():
            if labels:
                account = _account(annotation.get("completed_by"))
                yield _Choice(number, control, list(dict.fromkeys(labels)), account)


def _account(value: Any) -> str | None:
    """Return whose account an annotation is by: a number, an address, or an object with either."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


def _people(accounts: list[str | None]) -> list[str] | list[None]:
    """Return who gave each annotation; nobody is known where one has no account or all share one.

    Several people often work with one account; then every annotation is another person's.
    """
    named = [account for account in accounts if account is not None]
    if len(named) < len(accounts) or len(set(named)) < 2:
        return [None] * len(accounts)
    return named


def _one_control(path: Path, controls: set[str], options: Options) -> str:
    """Return the name of the ``<Choices>`` to read."""
    shown = ", ".join(map(repr, sorted(controls)))
    if not controls:
        raise DataError(f"{path} has no annotation with <Choices>; nothing was labeled")
    if options.candidates is None:
        if len(controls) > 1:
            raise DataError(f"{path} has several <Choices>: {shown}; say which with candidates=...")
        return next(iter(controls))
    if len(options.candidates) > 1 or options.candidates[0] not in controls:
        wanted = " and ".join(map(repr, options.candidates))
        raise DataError(f"{path} has no <Choices> called {wanted}; it has {shown}")
    return options.candidates[0]


# -------------------------------------------------------------------- JSON-MIN


def _read_min(path: Path, records: list[Record], where: list[str], options: Options) -> Annotations:
    """Read flat objects, one per annotation."""
    grid = _make_grid(path, records, where)
    column = _choices_column(grid, records, options)
    given = [
        _AS_GIVEN.labels(cells[column], grid.place(row, column))
        for row, cells in enumerate(grid.rows)
    ]
    labeled = [row for row, labels in enumerate(given) if labels]
    kept = labeled if options.unlabeled == "skip" else list(range(len(given)))
    if not labeled:
        raise DataError(f"{path} has no choice in {grid.header[column]!r}; nothing was labeled")
    grid = Grid(
        grid.source, grid.header, [grid.rows[row] for row in kept], [where[r] for r in kept]
    )
    described = describe(grid, options)
    account = find_column(grid.header, options.annotator, ("annotator", "completed_by"), path.name)
    people = _people([None if account is None else _account(cells[account]) for cells in grid.rows])
    opinions = (
        described.opinion(new, given[row], where[row], person)
        for new, (row, person) in enumerate(zip(kept, people, strict=True))
    )
    choices = f"choices {grid.header[column]!r}"
    understood = (f"{_EXPORT} (JSON-MIN)", choices, *described.understood)
    if len(kept) < len(given):
        left_out = counted(len(given) - len(kept), "annotation")
        understood += (f"{left_out} without a choice left out",)
    return collect(path.name, opinions, options, repeats=True, understood=understood)


def _choices_column(grid: Grid, records: list[Record], options: Options) -> int:
    """Return the column of the one control; a choice of one label looks like any other text."""
    if options.candidates is not None and len(options.candidates) > 1:
        raise DataError(f"{grid.source}: give one control in candidates=..., not several")
    if options.candidates is not None:
        given = find_column(grid.header, options.candidates[0], (), grid.source)
        return cast(int, given)
    by_name = find_column(grid.header, None, CANDIDATE_NAMES, grid.source)
    # Object by object: cell by cell would take long where objects share no keys.
    held = [(name, value) for record in records for name, value in record.items()]
    found = {name for name, value in held if isinstance(value, dict) and "choices" in value}
    if by_name is not None:
        found.add(grid.header[by_name])
    others = (*_BOOKKEEPING, *SAMPLE_NAMES, "text", options.sample, options.file, options.text)
    left = found or {name for name, value in held if isinstance(value, str)} - set(others)
    if len(left) != 1:
        raise DataError(
            f"{grid.source}: it is not clear which column holds the choices; "
            f"{list_columns(grid.header)}; say which with candidates=..."
        )
    return grid.header.index(left.pop())
