"""All measured tasks as a text file, ``results.jsonl``, that version control can keep.

One JSON line per network, per job and per run, sorted, so that a longer run changes few lines. Of a
job it holds how many queries and support samples of each task were right, from which the shares
come back exactly. Every line has a checksum, and a job's name is the hash of its settings: a line
that was damaged, or changed by hand, is refused with its number.

A run reads this file before it looks for what is missing, so that a copy of it goes on where the
original stopped.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll._common.files import write_beside
from fspll.experiments.reproduce.jobs import key_of
from fspll.experiments.reproduce.store import RESULTS, Figures, Run, Store

_OF_RUN = ("experiment", "profile", "workers", "seconds")  # besides when it began

PORTABLE = "results.jsonl"
_HEAD = {"fspll": "results of reproduce", "format": 1}
_FIELDS = {
    "network": {"network", "settings"},
    "job": {"job", "settings", "versions", "tasks", "query", "support", "seconds"},
    "run": {"run", "experiment", "profile", "workers", "seconds"},
}


@contextmanager
def open_results(out: Path) -> Iterator[Store]:
    """Open the store of a folder, with what the folder's text file has and the store lacks."""
    with Store(out / RESULTS) as store:
        read_portable(store, out / PORTABLE)
        yield store


# -------------------------------------------------------------------- writing


def write_portable(store: Store, path: Path) -> None:
    """Write everything that a store holds; a file of the same content is left alone."""
    lines = [*_network_lines(store), *_job_lines(store), *_run_lines(store)]
    text = "".join(_json(line) + "\n" for line in (_HEAD, *lines)).encode()
    if not lines or (path.is_file() and path.read_bytes() == text):
        return
    with write_beside(path) as beside:
        beside.write_bytes(text)


def _network_lines(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the settings of every network that a job names, once, and what its training took."""
    found = {
        key_of(settings["network"]): {"settings": settings["network"]}
        for _, settings, _ in store.jobs()
        if settings.get("network") is not None
    }
    for name, (settings, made, seconds) in store.networks().items():
        found[key_of(settings)] = {
            "settings": settings,
            "name": name,
            "versions": made,
            "seconds": seconds,
        }
    for key in sorted(found):
        yield _checked({"network": key, **found[key]})


def _job_lines(store: Store) -> Iterator[dict[str, Any]]:
    for key, settings, made in store.jobs():
        figures = store.figures(key)
        if not len(figures.tasks) or key != key_of(settings):
            continue
        n_query, n_support = _sizes(settings)
        network, seconds = settings["network"], figures.seconds.tolist()
        short = {**settings, "network": None if network is None else key_of(network)}
        yield _checked(
            {
                "job": key,
                "settings": short,
                "versions": made,
                "tasks": _ranges(figures.tasks.tolist()),
                "query": _hits(figures.query, n_query),
                "support": _hits(figures.support, n_support),
                # Tasks that were solved together have the same time.
                "seconds": [[len(list(same)), one] for one, same in groupby(seconds)],
            }
        )


def _run_lines(store: Store) -> Iterator[dict[str, Any]]:
    for run in store.runs():
        values = run._asdict()
        yield _checked({"run": values.pop("started"), **values})


def _sizes(settings: dict[str, Any]) -> tuple[int, int]:
    """Return how many queries and how many support samples a task has."""
    shape = settings["setting"]
    return shape["n_way"] * shape["n_query"], shape["n_way"] * shape["n_shot"]


def _hits(shares: np.ndarray, total: int) -> list[int | float]:
    """Return shares as whole numbers of samples where that is exact, else as they are."""
    counts = [round(share * total) for share in shares.tolist()]
    return [
        n if total and n / total == share else share
        for n, share in zip(counts, shares.tolist(), strict=True)
    ]


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return ascending numbers as ranges.

    >>> _ranges([0, 1, 2, 7])
    [[0, 3], [7, 8]]
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] = number + 1
        else:
            found.append([number, number + 1])
    return found


def _checked(line: dict[str, Any]) -> dict[str, Any]:
    return {**line, "check": f"{zlib.crc32(_json(line).encode()):08x}"}


def _json(line: dict[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"), allow_nan=False)


# -------------------------------------------------------------------- reading


def read_portable(store: Store, path: Path) -> None:
    """Add what a text file has and a store lacks.

    Raises
    ------
    DataError
        When a line is damaged or not of this file's kind; nothing of such a file is taken.
    """
    try:
        texts = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    lines = _parse(texts, path)
    networks = {line["network"]: line["settings"] for line in lines if "network" in line}
    jobs = []
    for number, line in enumerate(lines, 2):
        if "job" in line:
            try:
                jobs.append(_job(line, networks))
            except (KeyError, TypeError, ValueError) as error:
                raise _damaged(path, number, f"its figures do not fit: {error}") from error
    there = store.counts()
    for key, settings, made, figures in jobs:
        if there.get(key, 0) < len(figures.tasks):
            store.add(key, settings, made, figures)
    known = store.networks()
    for line in lines:
        if "network" in line and "seconds" in line and line["name"] not in known:
            store.add_network(line["name"], line["settings"], line["versions"], line["seconds"])
    runs = set(store.runs())
    for line in lines:
        if "run" in line:
            run = Run(line["run"], *(line[name] for name in _OF_RUN))
            if run not in runs:
                store.add_run(run)


def _parse(texts: Sequence[str], path: Path) -> list[dict[str, Any]]:
    """Return the lines after the first one, each as it was written."""
    head = _loaded(texts[0]) if texts else None
    if not isinstance(head, dict) or head.get("fspll") != _HEAD["fspll"]:
        raise DataError(
            f"{path} does not hold results of fspll reproduce; move it away, or choose another "
            "folder"
        )
    if head.get("format") != _HEAD["format"]:
        raise DataError(
            f"{path} was written in format {head.get('format')!r} of the results, this is "
            f"{_HEAD['format']}; choose another folder"
        )
    lines = []
    for number, text in enumerate(texts[1:], 2):
        line = _loaded(text)
        if not isinstance(line, dict):
            raise _damaged(path, number, "it is no JSON object")
        check = line.pop("check", None)
        kind = next((kind for kind, names in _FIELDS.items() if names <= set(line)), None)
        if kind is None:
            raise _damaged(path, number, "it is neither a network nor a job nor a run")
        if check != _checked(line)["check"]:
            raise _damaged(path, number, "its checksum is another")
        if kind == "network" and line["network"] != key_of(line["settings"]):
            raise _damaged(path, number, "its settings are not those that its name stands for")
        lines.append(line)
    return lines


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _damaged(path: Path, number: int, reason: str) -> DataError:
    return DataError(
        f"line {number} of {path} is damaged ({reason}); restore the file, or remove the line and "
        "run again to compute what it held"
    )


def _job(
    line: dict[str, Any], networks: dict[str, dict[str, Any]]
) -> tuple[str, dict[str, Any], dict[str, str], Figures]:
    """Return key, settings, versions and figures of a job's line."""
    settings = dict(line["settings"])
    if settings["network"] is not None:
        if settings["network"] not in networks:
            raise ValueError("the line of its network is missing")
        settings["network"] = networks[settings["network"]]
    if line["job"] != key_of(settings):
        raise ValueError("its settings are not those that its name stands for")
    n_tasks = sum(stop - start for start, stop in line["tasks"])
    if not n_tasks == len(line["query"]) == sum(n for n, _ in line["seconds"]):
        raise ValueError("there are not as many as tasks")
    tasks = [task for start, stop in line["tasks"] for task in range(start, stop)]
    query, support = (
        np.array([hit / total if isinstance(hit, int) else hit for hit in line[name]])
        for name, total in zip(("query", "support"), _sizes(settings), strict=True)
    )
    seconds = np.repeat([one for _, one in line["seconds"]], [n for n, _ in line["seconds"]])
    if not all(len(x) == n_tasks and ((x >= 0) & (x <= 1)).all() for x in (query, support)):
        raise ValueError("shares of right labels must be one per task, between 0 and 1")
    figures = Figures(np.array(tasks), query, support, seconds)
    return line["job"], settings, line["versions"], figures
