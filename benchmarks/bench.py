"""Every benchmark in a short form: one JSON file, one page and plots, in under an hour.

    make bench
    python benchmarks/bench.py [--parts NAME,...] [--minutes 55] [--out results/bench]
    python benchmarks/bench.py --short --out FOLDER/bench    # a minute or two: does it run?
    python benchmarks/bench.py --page                        # write the pages again

Each part runs in a process of its own and has a time limit. Within a part, ours and its peers take
turns, so that their ratio is of the same minutes; limits of the machine are measured there too. A
peer or a data set that is not there is named with the reason. ``--parts`` measures some parts again
and keeps the others. Results go to OUT.json, OUT.md and two plots after each part; without --short,
to docs/benchmarks.md as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from bench_parts import PARTS
from bench_parts.page import draw, fill, page
from bench_parts.rows import Row
from fspll import __version__
from fspll._common.files import write_beside

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
PACKAGES = ("torch", "numpy", "scikit-learn", "easyfsl", "learn2learn", "cleanlab", "crowd-kit")


def about() -> dict[str, Any]:
    """Return what the figures depend on: the processors, and the versions of ours and of peers."""
    versions = {"fspll": __version__, "Python": platform.python_version()}
    for name in (*PACKAGES, "cvxopt"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instructions": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": versions,
    }


# -------------------------------------------------------------------- one part


def work_alone(name: str, short: bool, path: Path) -> None:
    """Be the process of a part: append each row to a file as soon as it is there."""
    with path.open("a") as file:
        for row in PARTS[name].rows(short):
            file.write(json.dumps(row) + "\n")
            file.flush()


def run_part(name: str, short: bool, seconds: float) -> dict[str, Any]:
    """Measure a part in a process of its own; what it has measured when it is stopped is kept."""
    busy = busy_processors()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.touch()
        command = [sys.executable, __file__, "--alone", name, "--to", str(path)]
        start = time.monotonic()
        process = subprocess.Popen(
            [*command, *(["--short"] if short else [])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that it can be stopped with all its children
        )
        end = "done"
        try:
            _, errors = process.communicate(timeout=seconds)
            if process.returncode:
                end = (errors.strip().splitlines() or ["no message"])[-1]
        except subprocess.TimeoutExpired:
            end = f"stopped after {seconds:.0f} s"
        finally:
            _stop(process)
        rows: list[Row] = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        "end": end,
        "seconds": round(time.monotonic() - start, 1),
        "busy": busy,
        "rows": rows,
    }


def busy_processors() -> float | None:
    """Return how many processors other programs use now, while this one waits."""
    try:
        import psutil
    except ImportError:
        return None
    return round(psutil.cpu_percent(interval=0.5) / 100 * (os.cpu_count() or 1), 2)


def _stop(process: subprocess.Popen[str]) -> None:
    """End a process and its children, if any of them is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


# -------------------------------------------------------------------- the whole


def write(report: dict[str, Any], out: Path) -> None:
    """Write the JSON file, the page beside it, and the plots."""
    with write_beside(out.with_suffix(".json")) as beside:
        beside.write_text(json.dumps(report, indent=1) + "\n")
    with write_beside(out.with_suffix(".md")) as beside:
        beside.write_text(page(report))
    draw(report, out)


def write_page(path: Path = PAGE, out: Path = OUT) -> None:
    """Put what was measured into the page of the docs."""
    measured = out.with_suffix(".json")
    report = json.loads(measured.read_text()) if measured.exists() else None
    with write_beside(path) as beside:
        beside.write_text(fill(path.read_text(), report))


def measure(names: list[str], short: bool, minutes: float, out: Path) -> dict[str, Any]:
    """Measure the parts one after the other; write all after each."""
    form = "short" if short else "full"
    report: dict[str, Any] = {"form": form, "about": about(), "parts": {}}
    file = out.with_suffix(".json")
    known = json.loads(file.read_text()) if file.exists() and len(names) < len(PARTS) else report
    if known["form"] == form:
        report["parts"] = known["parts"]
    end = time.monotonic() + 60 * minutes
    for name in names:
        left = end - time.monotonic()
        if left < 5:
            rows = [{"missing": PARTS[name].title, "reason": f"{minutes:g} minutes were used up"}]
            found = {"end": "done", "seconds": 0, "busy": None, "rows": rows}
            report["parts"][name] = found
        else:
            report["parts"][name] = run_part(name, short, min(left, PARTS[name].seconds))
        report["parts"] = {one: report["parts"][one] for one in PARTS if one in report["parts"]}
        found = report["parts"][name]
        print(
            f"{name}: {found['end']}, {found['seconds']} s, {len(found['rows'])} rows", flush=True
        )
        write(report, out)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parts", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--short", action="store_true", help="small sizes; --out is needed")
    parser.add_argument("--minutes", type=float, default=55.0, help="for all parts together")
    parser.add_argument("--out", type=Path, help="where to write, without an ending")
    parser.add_argument("--page", action="store_true", help="only write the pages again")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        work_alone(args.alone, args.short, args.to)
        return
    if args.short and args.out is None:
        parser.error("--short needs --out, as it must not replace real figures")
    names = args.parts.split(",") if args.parts else list(PARTS)
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    out = args.out or OUT
    if args.page:
        write(json.loads(out.with_suffix(".json").read_text()), out)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        measure(names, args.short, args.minutes, out)
    if not args.short and out == OUT:
        write_page()


if __name__ == "__main__":
    main()
