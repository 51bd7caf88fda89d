"""What a worker does: meta-train a network, embed the meta-test images, solve a few tasks.

Workers may be other processes or other machines. They return numbers and write networks and
features; only the process that runs the grid writes results.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fspll._common.devices import keep_freed_memory
from fspll.diagnosis import ceiling
from fspll.embeddings import InputSpec, NetworkEncoder, embed_images, untrained_encoder
from fspll.embeddings.registry import load_network
from fspll.experiments.baselines import BASELINES, score_baseline
from fspll.experiments.evaluation import METHODS, PrototypeMethod, Scores, score_maml, score_tasks
from fspll.experiments.reproduce.jobs import NetworkJob, ScoreJob
from fspll.metalearning.trainer import MODEL, train
from fspll.tasks import Tasks, TaskSource

_CALIBRATED_ON = 512  # pictures that set an untrained network's batch statistics


class Scored(NamedTuple):
    """Figures of some tasks of a job."""

    tasks: list[int]
    query: np.ndarray
    support: np.ndarray
    seconds: float


def one_thread() -> None:
    """Use one thread: workers share the machine, and sums come out the same for any number."""
    torch.set_num_threads(1)
    keep_freed_memory()


def train_network(job: NetworkJob, out: Path, device: str) -> float:
    """Meta-train a network, or go on where it was stopped; return the seconds this took."""
    one_thread()
    start = time.perf_counter()
    if job.plan is not None:
        trained = train(
            job.source.load("train"),
            job.plan,
            job.folder(out),
            device=device,
            observers=(_end_with_parent(),),
        )
        if not trained.finished:
            raise KeyboardInterrupt  # asked to stop: what is trained so far is kept
    return time.perf_counter() - start


def _end_with_parent() -> Callable[[object], None]:
    """Return an observer that ends the training of a worker whose main process was killed.

    It would go on for minutes otherwise, beside the one that the next run starts.
    """
    parent, worker = os.getppid(), multiprocessing.current_process().name.startswith("Loky")

    def observe(report: object) -> None:
        if worker and os.getppid() != parent:
            raise RuntimeError("the process that runs the grid has ended")

    return observe


def embed_network(job: NetworkJob, out: Path) -> float:
    """Embed the meta-test images once, for all the workers that will need them."""
    one_thread()
    start = time.perf_counter()
    _features(job, out)
    return time.perf_counter() - start


def solve_tasks(job: ScoreJob, numbers: list[int], out: Path) -> Scored:
    """Solve some tasks of a job."""
    one_thread()
    data = job.source.load("test")
    tasks = TaskSource(data.labels, job.setting, job.seed, data.class_names).batch(numbers)
    start = time.process_time()
    scores = _scores(job, tasks, out)
    seconds = time.process_time() - start
    return Scored(numbers, scores.query_accuracy, scores.support_accuracy, seconds)


def _scores(job: ScoreJob, tasks: Tasks, out: Path) -> Scores:
    if job.network is None:
        best = np.array([ceiling(mask, tasks.support_labels) for mask in tasks.candidates])
        return Scores(best, best)
    if job.method == "MAML":
        encoder = _encoder(job.network, out)
        plan = job.network.plan
        rate = 0.5 if plan is None else plan.inner_rate
        data = job.source.load("test")
        return score_maml(encoder.network, data, tasks, steps=job.maml_steps, rate=rate)
    features = _features(job.network, out)
    if job.method in BASELINES:
        return score_baseline(features, tasks, job.method)
    return score_tasks(features, tasks, _varied(job))


def _varied(job: ScoreJob) -> PrototypeMethod:
    method = METHODS[job.method]
    varied = {"n_neighbors": job.n_neighbors, "manifold_weight": job.manifold_weight}
    known = {field.name for field in fields(method.rectifier)}
    asked = {name: value for name, value in varied.items() if value is not None and name in known}
    return replace(method, rectifier=replace(method.rectifier, **asked))


@lru_cache(maxsize=32)
def _features(job: NetworkJob, out: Path) -> Tensor:
    return embed_images(_encoder(job, out), job.source.load("test"))


@lru_cache(maxsize=4)
def _encoder(job: NetworkJob, out: Path) -> NetworkEncoder:
    if job.plan is None:
        data = job.source.load("train")
        gray = data.images.ndim == 3
        size = data.images.shape[1]
        channels = 1 if gray else 3
        rows = np.linspace(0, len(data) - 1, _CALIBRATED_ON).astype(int)
        return untrained_encoder(
            "conv4",
            data.images[rows],
            InputSpec(size, channels, "bright-ink" if gray else None),
            seed=job.seed,
            in_channels=channels,
            size=size,
        )
    return load_network(job.folder(out) / MODEL)
