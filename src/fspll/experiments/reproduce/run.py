"""Run a grid: what is missing and nothing else, on many processes or on a cluster.

Stages, each of independent pieces: networks are meta-trained; heads are fitted to what a frozen
encoder makes of images; the meta-test images are embedded by each of them; tasks are solved in
parts of a few dozen. Every finished piece is written down at once, so that a run killed at any
moment goes on from there. A run with a time limit begins no piece after it, and a network under way
is trained on by the next run.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from fspll._common.cluster import connect
from fspll._common.errors import InputError
from fspll._common.locks import lock_folder
from fspll._common.processes import end_with
from fspll._common.words import counted
from fspll.experiments.reproduce.jobs import EmbeddingJob, HeadJob, ScoreJob, Split
from fspll.experiments.reproduce.portable import PORTABLE, open_results, write_portable
from fspll.experiments.reproduce.results import Cell
from fspll.experiments.reproduce.store import Figures, Run, Store, versions
from fspll.experiments.reproduce.worker import (
    embed_network,
    encode_images,
    solve_tasks,
    train_network,
)
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.trainer import LOG

PART = 25  # tasks solved together, at most: what a killed worker loses
_PART_SECONDS = 60.0  # of work in a part, roughly, at most: how far a run exceeds a time limit
_PATIENCE = 3  # worker pools that may break one after the other without any piece finished

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True)
class Workers:
    """Where pieces are computed.

    Attributes
    ----------
    n_jobs : int
        Processes on this machine, each with one thread; 1 computes in this process.
    scheduler : str, optional
        Address of a Dask scheduler whose workers compute instead. They need this package, the
        same data folder, and the output folder on a disk that they share.
    device : str
        Where meta-training computes.
    """

    n_jobs: int = 1
    scheduler: str | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.n_jobs < 1:
            raise InputError(f"jobs must be 1 or more, not {self.n_jobs}")

    def __str__(self) -> str:
        if self.scheduler:
            return f"Dask at {self.scheduler}"
        return "1 process" if self.n_jobs == 1 else f"{self.n_jobs} processes"


def run(
    cells: Sequence[Cell],
    out: Path,
    workers: Workers,
    *,
    experiment: str = "",
    profile: str = "",
    until: float | None = None,
    progress: Progress | None = None,
) -> None:
    """Compute every cell that is neither in ``out/results.sqlite`` nor in ``out/results.jsonl``.

    Parameters
    ----------
    cells : sequence of Cell
        What :func:`fspll.experiments.reproduce.grid.grid` returned.
    out : path
        Folder of the results and of the networks.
    workers : Workers
    experiment, profile : str
        For the record of runs.
    until : float, optional
        Begin nothing more when ``time.time()`` is past this.
    progress : callable, optional
        Called as ``progress(what, done, total)`` with estimated seconds of work.
    """
    out = out.resolve()
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    with (
        workers_ready(workers) as client,
        lock_folder(out),
        open_results(out) as store,
    ):
        todo = Todo.of(cells, store, out)
        try:
            with _Meter(todo, out, progress) as meter:
                for pieces in _stages(todo, store, out, workers.device, until, meter):
                    if not _finish(pieces, workers, client, until):
                        break
        finally:
            seconds = round(time.perf_counter() - clock, 1)
            if todo:
                store.add_run(Run(started, experiment, profile, str(workers), seconds))
            write_portable(store, out / PORTABLE)


def what_is_left(cells: Sequence[Cell], out: Path) -> Todo:
    """Return what of some cells is not computed yet."""
    with open_results(out) as store:
        return Todo.of(cells, store, out)


@dataclass
class Todo:
    """What is missing: networks to train, networks whose features are needed, parts of jobs."""

    networks: list[EmbeddingJob]
    embeddings: list[EmbeddingJob]
    parts: list[tuple[ScoreJob, list[int]]]

    @classmethod
    def of(cls, cells: Sequence[Cell], store: Store, out: Path) -> Todo:
        """Compare what was asked for with what is there."""
        parts: dict[tuple[str, int], tuple[ScoreJob, list[int]]] = {}
        for job in dict.fromkeys(cell.job for cell in cells if cell.job is not None):
            key, size = job.key, min(PART, max(1, int(_PART_SECONDS / job.seconds(1))))
            for task in store.missing(key, job.n_tasks):
                part = parts.setdefault((key, task // size), (job, []))
                if task not in part[1]:
                    part[1].append(task)
        needed = {job.network: None for job, _ in parts.values() if job.network is not None}
        embedded = {
            job.network: None
            for job, _ in parts.values()
            if job.network is not None and job.method.needs_features
        }
        networks = [network for network in needed if not network.is_ready(out)]
        # The longest first: a short piece at the end leaves no worker idle for long.
        return cls(
            sorted(networks, key=lambda job: job.training_seconds, reverse=True),
            list(embedded),
            sorted(parts.values(), key=lambda part: part[0].seconds(len(part[1])), reverse=True),
        )

    def __bool__(self) -> bool:
        return bool(self.networks or self.parts)

    def __str__(self) -> str:
        """Return what is left for people: "2 networks and 75 tasks"."""
        n_tasks = sum(len(numbers) for _, numbers in self.parts)
        named = [(len(self.networks), "network"), (n_tasks, "task")]
        return " and ".join(counted(n, word) for n, word in named if n) or "nothing"


# What a worker computes, and what is then done with the result in this process.
_Piece = tuple[Callable[[], Any], Callable[[Any], None]]


def _stages(
    todo: Todo, store: Store, out: Path, device: str, until: float | None, meter: _Meter
) -> Iterator[list[_Piece]]:
    """Yield what can be computed at the same time: networks, then features, then tasks."""

    def trained(job: EmbeddingJob, seconds: float) -> None:
        store.add_network(job.key, job.settings, versions(), seconds)
        meter.trained(job)

    def embedded(job: EmbeddingJob, seconds: float) -> None:
        meter.add(f"embedded by {job.label}", job.embedding_seconds)

    def solved(job: ScoreJob, figures: Figures) -> None:
        store.add(job.key, job.settings, versions(), figures)
        shape = job.setting
        what = f"{job.method.name}, {shape.n_way}-way {shape.n_shot}-shot, r = {shape.r}"
        meter.add(what, job.seconds(len(figures.tasks)))

    def training(job: EmbeddingJob) -> _Piece:
        return partial(train_network, job, out, device, until), partial(trained, job)

    heads = [job for job in todo.networks if isinstance(job, HeadJob)]
    # What several of the pieces after it read: were it one of them, others would do it again.
    asked: list[tuple[HeadJob, Split]] = [(job.base, "train") for job in heads]
    asked += [(job.base, "test") for job in todo.embeddings if isinstance(job, HeadJob)]
    yield [
        *(training(job) for job in todo.networks if job not in heads),
        *(
            (partial(encode_images, base, split), lambda _: None)
            for base, split in dict.fromkeys(asked)
        ),
    ]
    yield [training(job) for job in heads]
    yield [(partial(embed_network, job, out), partial(embedded, job)) for job in todo.embeddings]
    yield [
        (partial(solve_tasks, job, numbers, out), partial(solved, job))
        for job, numbers in todo.parts
    ]


# -------------------------------------------------------------------- workers


def workers_ready(workers: Workers) -> AbstractContextManager[Any]:
    """Connect to the cluster, if there is one."""
    return nullcontext() if workers.scheduler is None else connect(workers.scheduler)


def _finish(pieces: list[_Piece], workers: Workers, client: Any, until: float | None) -> bool:
    """Compute all pieces; when a worker is killed, start new ones and go on with the rest.

    Returns whether all are computed; not so when the time was up.
    """
    left, broken, whole = dict(enumerate(pieces)), 0, True
    while left:
        before = len(left)
        try:
            for number, result in _results(left, workers, client, until):
                _, done = left.pop(number)
                if result is None:
                    whole = False
                else:
                    done(result)
        except _worker_lost():
            broken = broken + 1 if len(left) == before else 0
            if broken >= _PATIENCE:
                raise
    return whole


def _results(
    left: dict[int, _Piece], workers: Workers, client: Any, until: float | None
) -> Iterator[tuple[int, Any]]:
    """Yield (number, result) of pieces as they are finished, in any order."""
    calls = [(number, compute, until) for number, (compute, _) in left.items()]
    if client is None and workers.n_jobs == 1:
        for call in calls:
            yield _numbered(*call)
        return
    from joblib import Parallel, delayed, parallel_config

    backend: dict[str, Any] = {"backend": "dask"}
    if client is None:
        # A worker whose memory has grown is replaced, and nothing is lost by it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        backend = {
            "backend": "loky",
            "inner_max_num_threads": 1,
            "n_jobs": workers.n_jobs,
            # Those that wait for work, too: they would stay for minutes after a kill.
            "initializer": end_with,
            "initargs": (os.getpid(),),
        }
    with parallel_config(**backend):
        # Pieces are handed out one by one: some take seconds, others minutes.
        pool = Parallel(return_as="generator_unordered", batch_size=1)
        yield from pool(delayed(_numbered)(*call) for call in calls)


def _numbered(number: int, compute: Callable[[], Any], until: float | None) -> tuple[int, Any]:
    """Return what a piece computes, or None where it would begin after the time is up."""
    return number, compute() if until is None or time.time() <= until else None


def _worker_lost() -> type[BaseException]:
    from joblib.externals.loky.process_executor import BrokenProcessPool

    return BrokenProcessPool


# -------------------------------------------------------------------- progress


class _Meter:
    """Adds up the estimated cost of what is done, and follows networks while they are trained."""

    def __init__(self, todo: Todo, out: Path, progress: Progress | None) -> None:
        self.progress, self.out = progress, out
        self.total = (
            sum(job.training_seconds for job in todo.networks)
            + sum(job.embedding_seconds for job in todo.embeddings)
            + sum(job.seconds(len(numbers)) for job, numbers in todo.parts)
        )
        self.done = 0.0
        self.training = {job.key: job for job in todo.networks}
        self.stopped = threading.Event()

    def __enter__(self) -> _Meter:
        if self.progress is not None:
            self.progress("starting", 0.0, self.total)
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopped.set()

    def trained(self, job: EmbeddingJob) -> None:
        """Count a network that is ready."""
        self.training.pop(job.key, None)
        self.add(f"trained {job.label}", job.training_seconds)

    def add(self, what: str, cost: float) -> None:
        """Count a piece that is done."""
        self.done += cost
        if self.progress is not None:
            self.progress(what, self.done + self._under_way(), self.total)

    def _watch(self) -> None:
        while not self.stopped.wait(5.0):
            part = self._under_way()
            if part and self.progress is not None:
                self.progress("training networks", self.done + part, self.total)

    def _under_way(self) -> float:
        """Return the cost of the steps that unfinished networks have written down."""
        cost = 0.0
        for job in list(self.training.values()):
            with suppress(OSError), (job.folder(self.out) / LOG).open("rb") as lines:
                steps = sum(1 for _ in lines)
                total = job.plan.total_steps if isinstance(job.plan, TrainingPlan) else 1
                cost += job.training_seconds * min(steps / total, 1.0)
        return cost
