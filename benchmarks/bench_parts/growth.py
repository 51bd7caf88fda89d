"""Cost against work: fits from a thousand samples on, and the commands end to end.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC

from bench_parts.rows import (
    SECONDS,
    SHARE,
    Limit,
    Row,
    compare,
    growth,
    missing,
    point,
    take_turns,
    value,
)
from fspll import FsPLLClassifier
from fspll.annotations import read_annotations
from fspll.labeling import label
from large import FEATURES, make_problem
from training import product_rate

OURS = {"evidence rule": "evidence", "paper's rule": "fspll", "default rule": "adaptive"}
PEERS = {"SVC": SVC, "NearestCentroid": NearestCentroid}
LONGEST = 60.0  # seconds of a fit after which larger ones of that curve are left out


def samples(short: bool) -> Iterator[Row]:
    """Fit n samples of n/100 classes, four candidates each, with n from 1,000 to 30,000."""
    rate = product_rate(3 if short else 10)
    curves: dict[str, list[Row]] = {}
    for n in (500, 1000, 2000) if short else (1000, 3000, 10_000, 30_000):
        X, mask, truth = make_problem(n, n // 100, 2.5)
        # One candidate per sample, drawn at random, for who knows no sets.
        rng = np.random.default_rng(0)
        drawn = mask.indices.reshape(n, -1)[np.arange(n), rng.integers(0, mask.nnz // n, n)]
        ours = {name: FsPLLClassifier(rectifier=rule) for name, rule in OURS.items()}
        work: dict[str, Callable[[], object]] = {
            name: partial(make().fit, X, drawn) for name, make in PEERS.items()
        }
        work |= {name: partial(model.fit, X, mask) for name, model in ours.items()}
        times: dict[str, float] = {}
        for name, fit in work.items():
            if name in curves and curves[name][-1]["seconds"] > LONGEST:
                continue
            times[name] = min(taken(fit), taken(fit) if n <= 3000 else float("inf"))
            kind = "ours" if name in OURS else "peer"
            curves.setdefault(name, []).append(point("fit", kind, name, n, times[name]))
            yield curves[name][-1]
        limit = Limit("distances of all pairs at the product rate", 2.0 * n * n * FEATURES / rate)
        yield point("fit", "limit", limit.name, n, limit.value)
        size = f"{n:,} samples, {n // 100} classes"
        for name, model in ours.items():
            if name not in times:
                yield missing(f"{name}, {n:,} samples", f"the size before took over {LONGEST:g} s")
                continue
            for peer in (one for one in PEERS if one in times):
                # NearestCentroid computes no distances between samples.
                bound = limit if peer == "SVC" else None
                both = times[name], (peer, times[peer])
                yield compare(f"fit, {name}", SECONDS, *both, limit=bound, work=size)
            right = float(np.mean(model.labels_ == truth))
            yield value(f"right labels, {name}", SHARE, right, size)
    for name, points in curves.items():
        if len(points) > 2:
            yield value(f"power of n, {name}", "", growth(points[-3:]), "the three largest sizes")


def taken(work: Callable[[], object]) -> float:
    """Return the seconds on the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# -------------------------------------------------------------------- commands


def label_command(short: bool) -> Iterator[Row]:
    """Label a table of 1,000 vectors by the command, with its report, and from Python."""
    if importlib.util.find_spec("httpx") is None:
        yield missing("fspll label", "the script that writes its table needs httpx (extra dev)")
        return
    from app_load import write_data

    n = 200 if short else 1000
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, n)
        files = ["labels.csv", "--features", "X.npy", "--out"]
        command = [sys.executable, "-m", "fspll", "label", *files]
        imports = [sys.executable, "-c", "import fspll, torch, sklearn, scipy"]
        turn = iter(range(100))

        def by_command() -> None:
            run([*command, f"out{next(turn)}"], folder)

        def from_python() -> None:
            said = read_annotations(folder / "labels.csv")
            features = np.load(folder / "X.npy")
            label(replace(said, files=None, features=features), progress=False)

        times = take_turns(
            {
                "command": by_command,
                "imports": partial(run, imports, folder),
                "python": from_python,
            },
            1 if short else 5,
        )
    work = f"{n:,} vectors, 20 classes, sets of three"
    limit = Limit("start of Python and imports alone", min(times["imports"]))
    yield compare("fspll label", SECONDS, times["command"], limit=limit, work=work)
    yield value("read and label() in a running Python", SECONDS, min(times["python"]), work)


def run(command: list[str], folder: Path) -> None:
    """Run a command to its end."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def app(short: bool) -> Iterator[Row]:
    """Answer in the review page, in two windows at once."""
    absent = [m for m in ("httpx", "starlette", "uvicorn") if importlib.util.find_spec(m) is None]
    if absent:
        yield missing("fspll app", f"{', '.join(absent)} not installed (extras app and dev)")
        return
    from app_load import measure

    n, seconds = (200, 2.0) if short else (2000, 15.0)
    with TemporaryDirectory() as name:
        found = measure(Path(name), n, 2, seconds)
    work = f"{n:,} samples, 2 windows"
    yield value("first page", SECONDS, found["first_page"], work)
    yield value("first sample to answer", SECONDS, found["first_sample"], work)
    for what, key in (("answer", "answer_ms"), ("next sample", "sample_ms")):
        for which, milliseconds in zip(("median", "99%"), found[key], strict=True):
            yield value(f"{what}, {which}", "ms", milliseconds, work)
    yield value("errors", "requests", found["n_errors"], work)
