"""Rows of an evaluation in files: CSV, JSON with what made them, or a Markdown table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, fields
from pathlib import Path
from typing import IO, Any

import torch

from fspll._common.errors import InputError
from fspll._common.files import write_beside
from fspll._common.version import __version__
from fspll.annotations.writing import guard
from fspll.experiments.evaluation import Row


def check_ending(path: Path) -> None:
    """Raise unless rows can be written to a file with this ending."""
    if path.suffix not in _WRITERS:
        raise InputError(f"results are written as {', '.join(_WRITERS)}, not {path.name}")


def write_rows(rows: Sequence[Row], path: Path, about: dict[str, Any]) -> None:
    """Write rows in the form that the ending of ``path`` names.

    Parameters
    ----------
    rows : sequence of Row
    path : path
        Ending in .csv, .json or .md.
    about : dict
        What made the rows, for the JSON form; anything JSON can hold.
    """
    check_ending(path)
    with write_beside(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        _WRITERS[path.suffix](rows, file, about)


def _write_csv(rows: Sequence[Row], file: IO[str], about: dict[str, Any]) -> None:
    file.write(csv_lines([field.name for field in fields(Row)], map(astuple, rows)))


def _write_json(rows: Sequence[Row], file: IO[str], about: dict[str, Any]) -> None:
    versions = {"fspll": __version__, "torch": torch.__version__}
    json.dump({**about, **versions, "rows": [asdict(row) for row in rows]}, file, indent=1)
    file.write("\n")


def _write_markdown(rows: Sequence[Row], file: IO[str], about: dict[str, Any]) -> None:
    file.write(markdown_table(rows))


_WRITERS = {".csv": _write_csv, ".json": _write_json, ".md": _write_markdown}


def csv_lines(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a plain CSV table; names of models and methods begin no formula in a spreadsheet."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for line in (head, *lines):
        writer.writerow([guard(cell) if isinstance(cell, str) else cell for cell in line])
    return file.getvalue()


def markdown_table(rows: Sequence[Row]) -> str:
    """Return a table with one line per setting and one column per method.

    Cells are mean ± half-width of the 95% interval; the best mean of a line is bold.
    """
    if not rows:
        return "no rows\n"
    several = len({row.checkpoint for row in rows}) > 1
    columns = list(
        dict.fromkeys(f"{r.checkpoint}: {r.method}" if several else r.method for r in rows)
    )
    settings: dict[tuple[int, int, int], list[Row]] = {}
    for row in rows:
        settings.setdefault((row.n_way, row.n_shot, row.r), []).append(row)
    head = ["N2", "K2", "r", *columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for setting, same in settings.items():
        best = max(round(row.mean, 3) for row in same)
        cells = [
            f"**{row.mean:.3f}** ± {row.half_width:.3f}"
            if round(row.mean, 3) == best
            else f"{row.mean:.3f} ± {row.half_width:.3f}"
            for row in same
        ]
        lines.append("| " + " | ".join([*map(str, setting), *cells]) + " |")
    first = rows[0]
    lines += ["", f"{first.n_tasks} tasks per line, seed {first.seed}; mean ± 95% interval."]
    return "\n".join(lines) + "\n"
