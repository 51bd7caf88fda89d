"""Ambiguity as it is in practice: real sets, unequal classes, missing truth, people, bad features.

    python benchmarks/real.py PART [--seeds 5] [--photos FOLDER] [--again METHOD]
    python benchmarks/real.py table

Parts: partial-label, folds, unequal, missing, small, people, audit, writers, wrong, cost. Lost
and MSRCv2 are looked for as lost.mat and MSRCv2.mat in $FSPLL_DATA/pll, the crowd of LabelMe in
$FSPLL_DATA/labelme (labels.csv, truth.csv, images.zip), photos in miniImageNet's layout in the
folder given by --photos; without it what needs photos is left out. Photos need the extra "photos".

One row per data set, setting, seed and method goes to results/real.json as soon as it is measured;
a second start goes on where the first ended. ``--again default`` measures the rows of a method, in
all its variants, once more. ``table`` writes results/real.md, and the tables of docs/real.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from fspll import __version__
from fspll._common.files import write_beside
from real_parts import PARTS
from real_tables import fill, tables

PATH = Path(__file__).parents[1] / "results" / "real.json"
PAGE = PATH.parents[1] / "docs" / "real.md"
# What was measured; all other entries of a row say where.
FIGURES = {
    *("test", "labels", "claimed", "claimed_test", "error", "seconds", "separates", "busy"),
    *("inside", "outside", "claimed_outside", "doubt", "hits", "chance", "gain", "gain_error"),
    *("sure", "sure_right", "audited", "low", "high", "labels_after", "claimed_after"),
}
Row = dict[str, Any]


def key(row: Row) -> tuple[tuple[str, Any], ...]:
    """Return what tells a row from others: everything that was not measured."""
    return tuple(sorted((name, value) for name, value in row.items() if name not in FIGURES))


def read(path: Path = PATH) -> list[Row]:
    """Return all rows that were measured."""
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write(rows: list[Row], path: Path = PATH) -> None:
    """Write the rows, one per line."""
    about = json.dumps({"fspll": __version__, "torch": torch.__version__})
    lines = ",\n".join(json.dumps(row) for row in rows)
    with write_beside(path) as beside:
        beside.write_text(f'{{"versions": {about}, "rows": [\n{lines}\n]}}\n')


def measure(part: str, options: argparse.Namespace, path: Path = PATH) -> None:
    """Measure what is missing of one part, row by row."""
    again = options.again
    if again is not None:
        kept = [r for r in read(path) if (r["part"], r["method"].split(",")[0]) != (part, again)]
        write(kept, path)
    done = {key(row) for row in read(path)}
    for where, fit in PARTS[part](options):
        row = {"part": part, **where}
        if key(row) in done:
            continue
        found = fit()
        unknown = set(found) - FIGURES
        assert not unknown, f"not among FIGURES: {unknown}"
        row |= {n: round(v, 5) if isinstance(v, float) else v for n, v in found.items()}
        print(json.dumps(row), flush=True)
        write([*read(path), row], path)


def main() -> None:
    """Read the options, and measure or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("part", choices=[*PARTS, "table"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--again", metavar="METHOD")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.part != "table":
        measure(options.part, options)
    rows = read()
    PATH.with_suffix(".md").write_text(tables(rows))
    PAGE.write_text(fill(PAGE.read_text(), rows))


if __name__ == "__main__":
    main()
