"""Kill training and reproduction at random moments, and look at what they leave.

    python benchmarks/faults_runs.py                    # 20 kills of each
    python benchmarks/faults_runs.py train --kills 5

For each kill there is a new folder. After it, whatever is there must be whole, nothing may run on,
and the same command again must end where an undisturbed run ends: the same bytes of model, state
and log, the same rows of results, and no file that the undisturbed run does not leave.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from PIL import Image

from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.embeddings.checkpoints import load_checkpoint
from fspll.metalearning import state
from fspll.metalearning.trainer import LOG, MODEL, STATE

TRAIN = "--n-way 3 --n-shot 2 --n-query 1 --tasks 40 --epochs 1 --save-every 3 --device cpu"
GRID = """
import sys
from pathlib import Path
from fspll.experiments.reproduce.grid import grid
from fspll.experiments.reproduce.jobs import Source
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.run import Workers, run

if __name__ == "__main__":
    profile = Profile("tiny", "", epochs=1, n_way=3, n_query=1, photo_tasks=100, photo_size=16,
                      photo_ways=(4,), photo_shots=(3,), photo_rs=(1,), maml_steps=1)
    cells = grid("mini-imagenet", profile, Source("mini-imagenet", sys.argv[1], 16),
                 rows=["PN", "FsPLL", "PL-ECOC", "ceiling"])
    run(cells, Path(sys.argv[2]), Workers(2, None, "cpu"))
"""
ENDED = "ended before"
ENDING = 60.0  # seconds after which what still runs counts as left behind


@dataclass
class Scenario:
    """A command that writes into a folder, and what a whole result is."""

    command: Callable[[Path], list[str]]
    check: Callable[[Path], None]  # raises unless what is there is whole
    result: Callable[[Path], object]  # what equal runs have in common
    workers: bool = False  # whether to kill one of its workers, every second time


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a command on one thread and in silence."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)


def wait_until_writing(process: subprocess.Popen[bytes], out: Path) -> None:
    """Return when the command has made its folder: imports are no moment to learn from."""
    while process.poll() is None and not out.exists():
        time.sleep(0.01)


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the worker processes of a command."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def run_once(scenario: Scenario, out: Path) -> float:
    """Run to the end; return the seconds from the first write to the end."""
    process = start(scenario.command(out))
    wait_until_writing(process, out)
    begun = time.perf_counter()
    if process.wait(timeout=1800) != 0:
        raise RuntimeError(f"the command ended with {process.returncode}")
    return time.perf_counter() - begun


def kill_once(scenario: Scenario, out: Path, after: float, worker: bool) -> str:
    """Kill the command, or one of its workers, after some seconds; return what was killed."""
    process = start(scenario.command(out))
    wait_until_writing(process, out)
    with suppress(subprocess.TimeoutExpired):
        process.wait(after)
        return ENDED
    family = children(process)
    if worker and (victims := [one for one in family if "LokyProcess" in " ".join(_line(one))]):
        random.choice(victims).kill()
        if process.wait(timeout=1800) != 0:
            raise RuntimeError(f"after a worker was killed, it ended with {process.returncode}")
        return "worker killed"
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=ENDING)
    for one in alive:
        one.kill()
    if alive:
        raise RuntimeError(f"{len(alive)} processes ran on")
    return "killed"


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def names(out: Path) -> list[str]:
    """Return every file below a folder."""
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def attack(scenario: Scenario, kills: int, seed: int, scratch: Path) -> Counter[str]:
    """Kill at random moments; return how often what happened."""
    rng, random_state = np.random.default_rng(seed), random.getstate()
    random.seed(seed)
    whole = scratch / "whole"
    length = run_once(scenario, whole)
    expected, files = scenario.result(whole), names(whole)
    outcomes: Counter[str] = Counter()
    hits = 0
    while hits < kills:
        out = scratch / str(outcomes.total())
        after = float(rng.uniform(0, length))
        begun = time.perf_counter()
        try:
            what = kill_once(scenario, out, after, scenario.workers and hits % 2 == 1)
            left = names(out) if out.exists() else []
            scenario.check(out)
            if what == ENDED:  # the machine has more time than it had: kill earlier
                length = min(length, time.perf_counter() - begun)
            else:
                hits += 1
                run_once(scenario, out)
            if scenario.result(out) != expected:
                raise RuntimeError("the result is another one")
            if names(out) != files:
                raise RuntimeError(f"files: {set(names(out)) ^ set(files)}")
            outcomes[what] += 1
            if any(name.endswith(".part") for name in left):
                outcomes["of these with an unfinished file, which the next run cleared"] += 1
        except Exception as error:  # whatever it is, it is what this is looking for
            hits += 1
            outcomes[f"FAILED: {error!r}"] += 1
        print(f"{hits} of {kills}, after {after:.2f} s: {dict(outcomes)}", flush=True)
    random.setstate(random_state)
    return outcomes


# -------------------------------------------------------------------- the scenarios


def check_run(out: Path) -> None:
    """Raise unless model and state of a training are whole or absent."""
    if (out / MODEL).exists():
        load_checkpoint(out / MODEL)
    if (out / STATE).exists():
        state.FORMAT.read(out / STATE)


def training(scratch: Path) -> Scenario:
    """Return meta-training of a small network on a few drawn characters."""
    glyphs = load_glyphs(10, 6, size=16)
    for number, (pixels, label) in enumerate(zip(glyphs.images, glyphs.labels, strict=True)):
        path = scratch / "glyphs" / str(label) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    command = [sys.executable, "-m", "fspll", "train", "--dataset", str(scratch / "glyphs")]
    return Scenario(
        lambda out: [*command, *TRAIN.split(), "--out", str(out)],
        check_run,
        lambda out: [(out / name).read_bytes() for name in (MODEL, STATE, LOG)],
    )


def reproduction(scratch: Path) -> Scenario:
    """Return a grid of two networks and four rows on tiny photos, with two workers."""
    photos = scratch / "photos"
    draw_photos(photos)

    def check(out: Path) -> None:
        for network in out.glob("networks/*/"):
            check_run(network)
        for network in out.glob("networks/*.safetensors"):
            load_checkpoint(network)
        if (out / "results.sqlite").exists():
            rows = rows_of(out)
            counts = Counter(key for key, *_ in rows)
            if any(count % 25 for count in counts.values()):
                raise RuntimeError("half a part is in the results")

    def result(out: Path) -> object:
        networks = sorted(out.glob("networks/*.safetensors"))
        if not networks:
            raise RuntimeError("there is no network")
        return [(path.name, path.read_bytes()) for path in networks], rows_of(out)

    script = scratch / "grid.py"
    script.write_text(GRID)
    command = [sys.executable, str(script), str(photos)]
    return Scenario(lambda out: [*command, str(out)], check, result, workers=True)


def rows_of(out: Path) -> list[tuple[object, ...]]:
    """Return every task of every job, without its timing; raise if the file is damaged."""
    with sqlite3.connect(out / "results.sqlite") as db:
        if db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'tasks'").fetchone()[0] == 0:
            return []
        (answer,) = db.execute("PRAGMA integrity_check").fetchone()
        if answer != "ok":
            raise RuntimeError(answer)
        rows = db.execute("SELECT key, task, query, support FROM tasks ORDER BY key, task")
        found = rows.fetchall()
    db.close()
    return found


def draw_photos(root: Path) -> None:
    """Write photos in miniImageNet's layout: classes that differ in color, with noise."""
    rng, label = np.random.default_rng(0), 0
    (root / "images").mkdir(parents=True)
    for part, n_classes in {"train": 6, "val": 2, "test": 10}.items():
        lines = ["filename,label"]
        for _ in range(n_classes):
            color = rng.integers(0, 256, 3)
            for i in range(12):
                pixels = np.clip(color + rng.normal(0, 25, (16, 16, 3)), 0, 255)
                Image.fromarray(pixels.astype(np.uint8)).save(root / "images" / f"c{label}_{i}.png")
                lines.append(f"c{label}_{i}.png,c{label}")
            label += 1
        (root / f"{part}.csv").write_text("\n".join(lines) + "\n")


SCENARIOS = {"train": training, "reproduce": reproduction}


def main() -> None:
    """Run the scenarios that were asked for; exit 1 if any kill did harm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", metavar="|".join(SCENARIOS), help="by default all")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = False
    for what in options.what or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            outcomes = attack(SCENARIOS[what](scratch), options.kills, options.seed, scratch)
        print(f"{what}: {dict(outcomes)}", flush=True)
        failed |= any(name.startswith("FAILED") for name in outcomes)
    sys.exit(failed)


if __name__ == "__main__":
    main()
