"""The tasks of a training run with their images, by number; held-out classes kept apart."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fspll._common.errors import TaskError
from fspll.datasets.base import ImageSet
from fspll.embeddings.inputs import image_tensor
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Learner
from fspll.tasks import Tasks, TaskSettings, TaskSource

_HELD_OUT_TASKS = 20


class Episodes:
    """Tasks of a plan, drawn from a data set.

    Attributes
    ----------
    rows, held_rows : int arrays
        Rows of the data set to train on, and those of the held-out classes.
    """

    def __init__(self, data: ImageSet, plan: TrainingPlan, device: torch.device) -> None:
        self.data, self.plan, self.device = data, plan, device
        held_out = np.isin(data.labels, _held_out_classes(data, plan))
        self.rows, self.held_rows = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        labels = data.labels[self.rows]
        self.sources: dict[TaskSettings, TaskSource] = {}
        for number in range(len(plan.r)):
            settings = plan.task_settings(number)
            self.sources[settings] = TaskSource(labels, settings, plan.seed, data.class_names)

    def get(self, number: int) -> tuple[Tensor, Tasks]:
        """Return images (n + q, C, S, S), support first, and the task."""
        index = number if self.plan.fresh else number % self.plan.n_tasks
        task = self.sources[self.plan.task_settings(index)].task(index)
        return self._images(self.rows[np.concatenate([task.support, task.query])]), task

    def held_out_score(self, learner: Learner) -> float:
        """Return the learner's mean score on tasks of the held-out classes."""
        labels = self.data.labels[self.held_rows]
        n_way = min(self.plan.n_way, len(np.unique(labels)))
        r = min(max(self.plan.r), n_way - 1)
        settings = TaskSettings(n_way, self.plan.n_shot, 0, r, self.plan.p)
        source = TaskSource(labels, settings, self.plan.seed, self.data.class_names)
        learner.network.eval()
        scores = []
        for index in range(_HELD_OUT_TASKS):
            task = source.task(index)
            scores.append(learner.held_out_score(self._images(self.held_rows[task.support]), task))
        return float(np.mean(scores))

    def _images(self, rows: np.ndarray) -> Tensor:
        return image_tensor(self.data.images[rows]).to(self.device)


def _held_out_classes(data: ImageSet, plan: TrainingPlan) -> np.ndarray:
    """Choose classes to keep aside; a class goes with its whole family."""
    if not plan.held_out:
        return np.array([], dtype=np.int64)
    families = data.class_families()
    names = np.unique(families)
    if plan.held_out >= len(names):
        raise TaskError(
            f"held_out = {plan.held_out} leaves nothing to train on: there are {len(names)} "
            f"classes, each counted once with its variants"
        )
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([plan.seed, 0x4E1D])))
    chosen = names[np.argsort(rng.random(len(names)), kind="stable")[: plan.held_out]]
    kept = np.flatnonzero(np.isin(families, chosen))
    # With fewer classes every label is a candidate of every sample, and any network looks perfect.
    if len(kept) < max(plan.r) + 2:
        raise TaskError(
            f"held_out = {plan.held_out} keeps {len(kept)} classes aside, but a score on tasks of "
            f"r = {max(plan.r)} takes at least {max(plan.r) + 2}"
        )
    return kept
