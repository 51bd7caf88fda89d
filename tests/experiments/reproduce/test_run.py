"""The runner on real processes: killed, resumed, spread over workers, always the same rows."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from fspll._common import cluster
from fspll._common.errors import DataError, InputError
from fspll.experiments.reproduce.collecting import collect
from fspll.experiments.reproduce.grid import grid
from fspll.experiments.reproduce.jobs import Source
from fspll.experiments.reproduce.run import PART, Workers, run

# Slow enough to be killed in the middle, quick enough to wait for.
ROWS = ["PN", "FsPLL", "PL-ECOC", "ceiling"]
N_TASKS = 4 * PART

SCRIPT = """
import json, sys
from pathlib import Path
from fspll.experiments.reproduce.grid import grid
from fspll.experiments.reproduce.jobs import Source
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.run import Workers, run

if __name__ == "__main__":
    about = json.loads(sys.argv[1])
    shape = {k: tuple(v) if isinstance(v, list) else v for k, v in about["profile"].items()}
    profile = Profile(**shape)
    source = Source(**about["source"])
    asked = grid("mini-imagenet", profile, source, rows=about["rows"])
    run(asked, Path(about["out"]), Workers(about["jobs"], about["scheduler"], "cpu"))
"""


@pytest.fixture
def asked(source, profile):
    return grid("mini-imagenet", replace(profile, photo_tasks=N_TASKS), source, rows=ROWS)


@pytest.fixture
def start(tmp_path, source, profile):
    """Return a function that starts the same grid in a process of its own."""
    script = tmp_path / "run_grid.py"
    script.write_text(SCRIPT)
    shape = {
        name: getattr(profile, name)
        for name in ("name", "about", "epochs", "n_way", "n_query", "photo_size", "photo_ways")
    } | {"photo_shots": [3], "photo_rs": [1], "photo_tasks": N_TASKS, "maml_steps": 1}
    started = []

    def begin(out, jobs=1, scheduler=None):
        about = {
            "profile": shape,
            "source": {"name": source.name, "root": source.root, "size": source.size},
            "rows": ROWS,
            "out": str(out),
            "jobs": jobs,
            "scheduler": scheduler,
        }
        command = [sys.executable, str(script), json.dumps(about)]
        started.append(subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


def rows_of(out: Path) -> list[tuple]:
    """Return every task of every job, without its timing."""
    with sqlite3.connect(f"file:{out / 'results.sqlite'}?mode=ro", uri=True) as db:
        found = db.execute("SELECT key, task, query, support FROM tasks ORDER BY key, task")
        rows = found.fetchall()
    db.close()
    return rows


def wait_for_rows(out: Path, process: subprocess.Popen, at_least: int = 1) -> None:
    limit = time.monotonic() + 200
    while time.monotonic() < limit and process.poll() is None:
        try:
            if len(rows_of(out)) >= at_least:
                return
        except sqlite3.Error:
            pass  # not there yet
        time.sleep(0.02)


@pytest.fixture
def expected(asked, tmp_path):
    """What an undisturbed run in one process measures."""
    out = tmp_path / "undisturbed"
    run(asked, out, Workers(1, device="cpu"), experiment="mini-imagenet", profile="tiny")
    rows = rows_of(out)
    assert len(rows) == N_TASKS * len(asked)
    return rows


def test_two_runs_give_the_same_rows_and_a_done_one_does_nothing(asked, expected, tmp_path):
    again = tmp_path / "again"
    run(asked, again, Workers(1, device="cpu"))
    assert rows_of(again) == expected
    said = []
    run(asked, again, Workers(1), progress=lambda *what: said.append(what))
    assert said == [("starting", 0.0, 0)]


def test_a_killed_main_process_goes_on_without_loss_or_duplicates(asked, expected, start, tmp_path):
    out = tmp_path / "killed"
    process = start(out)
    wait_for_rows(out, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    half = rows_of(out)
    assert half, "nothing was written before the kill"
    assert set(half) < set(expected), "the kill came too late to show anything"
    assert len(half) % PART == 0  # whole parts only
    assert start(out).wait(timeout=250) == 0
    assert rows_of(out) == expected


def test_a_killed_worker_is_replaced(asked, expected, start, tmp_path):
    out = tmp_path / "worker"
    process = start(out, jobs=2)
    limit = time.monotonic() + 200
    while not (found := workers_of(process)) and time.monotonic() < limit:
        time.sleep(0.02)
    found[0].kill()
    assert process.wait(timeout=250) == 0
    assert rows_of(out) == expected


def workers_of(process: subprocess.Popen) -> list[psutil.Process]:
    """Return the processes that compute for a run."""
    assert process.poll() is None, "the run has ended"
    children = psutil.Process(process.pid).children()
    return [child for child in children if "LokyProcess" in _line(child)]


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_workers_end_with_the_run_that_was_killed(asked, expected, start, tmp_path):
    """Also the one that found no work: there is one network, and there are two workers."""
    out = tmp_path / "orphans"
    process = start(out, jobs=2)
    limit = time.monotonic() + 200
    while len(found := workers_of(process)) < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    time.sleep(0.5)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(found, timeout=30)
    for worker in alive:
        worker.kill()
    assert alive == []
    assert start(out, jobs=2).wait(timeout=250) == 0
    assert rows_of(out) == expected


def test_a_second_run_in_the_same_folder_is_refused(asked, expected, start, tmp_path):
    out = tmp_path / "shared"
    process = start(out)
    wait_for_rows(out, process)
    with pytest.raises(DataError, match=r"shared is in use: another fspll process writes into it"):
        run(asked, out, Workers(1))
    assert process.wait(timeout=250) == 0
    assert rows_of(out) == expected


def test_a_cluster_that_loses_a_worker_measures_the_same(asked, expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        out = tmp_path / "cluster"
        victim = next(iter(cluster.workers.values())).pid
        killed = []

        def kill_once(what: str, done: float, total: float) -> None:
            if what.startswith("PL-ECOC") and not killed:
                killed.append(victim)
                os.kill(victim, signal.SIGKILL)

        workers = Workers(scheduler=cluster.scheduler_address, device="cpu")
        run(asked, out, workers, progress=kill_once)
    assert killed
    assert rows_of(out) == expected


def test_more_tasks_are_added_to_those_that_are_there(source, profile, tmp_path):
    few = grid("mini-imagenet", replace(profile, photo_tasks=3), source, rows=["ceiling"])
    more = grid("mini-imagenet", replace(profile, photo_tasks=5), source, rows=["ceiling"])
    run(few, tmp_path, Workers(1))
    before = rows_of(tmp_path)
    run(more, tmp_path, Workers(1))
    assert rows_of(tmp_path)[:3] == before
    assert len(rows_of(tmp_path)) == 5


def test_what_is_collected_says_what_made_it(asked, expected, source, profile, tmp_path):
    wide = replace(profile, photo_tasks=N_TASKS)
    outcome = collect("mini-imagenet", wide, source, asked, tmp_path / "undisturbed")
    assert outcome.missing == 0
    assert [cell.row for cell in outcome.cells] == [cell.row for cell in asked]
    assert outcome.cells[0].query.shape == (N_TASKS,)
    assert "not miniImageNet" in outcome.dataset
    assert outcome.about["networks"]["fspll-r1"]["steps"] == 100
    assert outcome.about["versions"][0]["torch"]
    assert outcome.about["runs"][0]["workers"] == "1 process"
    some = collect("mini-imagenet", wide, source, asked, tmp_path / "nothing_yet")
    assert (some.missing, some.cells) == (len(asked), ())


def test_every_row_of_the_table_can_be_measured(source, profile, tmp_path):
    asked = grid("mini-imagenet", replace(profile, photo_tasks=2), source)
    run(asked, tmp_path, Workers(1, device="cpu"))
    outcome = collect("mini-imagenet", profile, source, asked, tmp_path)
    assert outcome.missing == 0
    for cell in outcome.cells:
        assert np.isfinite(cell.query).all(), cell.row
        assert ((cell.query >= 0) & (cell.query <= 1)).all(), cell.row


def test_workers_are_checked(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="1 or more"):
        Workers(0)
    monkeypatch.setattr(cluster, "CONNECTING", 0.5)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        run([], tmp_path / "out", Workers(scheduler="tcp://127.0.0.1:9"))
    assert not (tmp_path / "out").exists()


def test_a_stand_in_is_never_called_by_another_name(source, tmp_path):
    photos = source.load("test")
    assert Source("omniglot").dataset.describe(photos) == "Omniglot"
    assert "not Omniglot" in Source("glyphs").dataset.describe(photos)
    shown = source.dataset.describe(photos)
    assert shown.startswith("tiny_photos: photos in miniImageNet's layout at 16x16")
    real = tmp_path / "mini_imagenet"
    Path(source.root).rename(real)
    renamed = Source("mini_imagenet", str(real), 16)
    assert renamed.dataset.describe(renamed.load("test")) == "miniImageNet at 16x16"
