"""What a worker does: meta-train a network, embed the meta-test images, solve a few tasks.

Workers may be other processes or other machines. They return numbers and write networks and
features; only the process that runs the grid writes results.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from fspll._common.devices import keep_freed_memory
from fspll._common.files import write_beside
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.network import untrained_encoder
from fspll.embeddings.features import embed_images
from fspll.embeddings.inputs import InputSpec
from fspll.embeddings.registry import load_embedding, load_network
from fspll.experiments.methods import Samples
from fspll.experiments.reproduce.jobs import EmbeddingJob, HeadJob, NetworkJob, ScoreJob, Split
from fspll.experiments.reproduce.store import Figures
from fspll.metalearning.adapting import adapt_encoder
from fspll.metalearning.head_tasks import HeadPlan, tasks_of_classes
from fspll.metalearning.log import Report
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.trainer import MODEL, train
from fspll.tasks import TaskSource

_SAVE_EVERY = 50  # steps
_SECONDS = "seconds.txt"
_FOR_STATISTICS = 512  # pictures that set an untrained network's batch statistics


def one_thread() -> None:
    """Use one thread: workers share the machine, and sums come out the same for any number."""
    torch.set_num_threads(1)
    keep_freed_memory()


def train_network(
    job: EmbeddingJob, out: Path, device: str, until: float | None = None
) -> float | None:
    """Meta-train a network, or go on where it was stopped; or fit a head.

    Parameters
    ----------
    job : EmbeddingJob
    out : path
        Of the grid.
    device : str
    until : float, optional
        Stop when ``time.time()`` is past this, and keep what is trained so far.

    Returns
    -------
    float or None
        Seconds of processor time that the training took, over all its runs; None when it was
        stopped because of the time.
    """
    one_thread()
    folder = job.folder(out)
    timer = _Timer(folder / _SECONDS)
    if isinstance(job, HeadJob) and job.plan is not None:
        _fit_head(job, job.plan, folder)
    # An earlier version left it there.
    elif isinstance(job.plan, TrainingPlan) and not (folder / MODEL).exists():
        trained = train(
            job.source.load("train"),
            job.plan,
            folder,
            device=device,
            save_every=_SAVE_EVERY,
            observers=(timer.observe,),
            stop=None if until is None else lambda: time.time() > until,
        )
        timer.write()
        if not trained.finished:
            if until is not None and time.time() > until:
                return None
            raise KeyboardInterrupt  # asked to stop: what is trained so far is kept
    (folder / MODEL).replace(job.file(out))
    return timer.seconds


def _fit_head(job: HeadJob, plan: HeadPlan, folder: Path) -> None:
    """Adapt a frozen encoder to the meta-training classes, as ``fspll train --encoder`` does."""
    base, data = load_embedding(job.encoder, "cpu"), job.source.load("train")
    features = embed_images(base, data)
    groups = tasks_of_classes(features, data.labels, plan, data.class_names, data.class_families())
    adapt_encoder(base, features, groups, plan, folder, data=data.name, restart=True)


class _Timer:
    """Adds up the processor time of a training over the runs that it is spread over."""

    def __init__(self, path: Path) -> None:
        self.path, self.start = path, time.process_time()
        try:
            self.before = float(path.read_text())
        except (OSError, ValueError):
            self.before = 0.0

    @property
    def seconds(self) -> float:
        return round(self.before + time.process_time() - self.start, 3)

    def observe(self, report: Report) -> None:
        """Write the time down as often as the state: a killed run loses both."""
        if report.step % _SAVE_EVERY == 0:
            self.write()

    def write(self) -> None:
        with write_beside(self.path) as beside:
            beside.write_text(f"{self.seconds}\n")


def embed_network(job: EmbeddingJob, out: Path) -> float:
    """Embed the meta-test images once, for all the workers that will need them."""
    one_thread()
    start = time.perf_counter()
    _ = _samples(job, out).features
    return time.perf_counter() - start


def encode_images(job: HeadJob, split: Split) -> float:
    """Encode images by a frozen encoder once, before several heads ask for them."""
    one_thread()
    start = time.perf_counter()
    embed_images(load_embedding(job.encoder, "cpu"), job.source.load(split))
    return time.perf_counter() - start


def solve_tasks(job: ScoreJob, numbers: list[int], out: Path) -> Figures:
    """Solve some tasks of a job."""
    one_thread()
    data = job.source.load("test")
    tasks = TaskSource(data.labels, job.setting, job.seed, data.class_names).batch(numbers)
    samples = Samples(data) if job.network is None else _samples(job.network, out)
    start = time.process_time()
    scores = job.method.score(samples, tasks)
    each = round((time.process_time() - start) / max(len(numbers), 1), 6)
    return Figures(
        np.array(numbers),
        scores.query_accuracy,
        scores.support_accuracy,
        np.full(len(numbers), each),
    )


@lru_cache(maxsize=32)
def _samples(job: EmbeddingJob, out: Path) -> Samples:
    return Samples(job.source.load("test"), _encoder(job, out))


@lru_cache(maxsize=4)
def _encoder(job: EmbeddingJob, out: Path) -> Encoder:
    if isinstance(job, HeadJob) and job.plan is None:
        return load_embedding(job.encoder, "cpu")
    if isinstance(job, NetworkJob) and job.plan is None:
        images = job.source.load("train").images
        spec = InputSpec.of_images(images)
        rows = np.linspace(0, len(images) - 1, _FOR_STATISTICS).astype(int)
        shape = {"in_channels": spec.channels, "size": spec.size}
        return untrained_encoder("conv4", images[rows], spec, seed=job.seed, **shape)
    return load_network(job.file(out))
