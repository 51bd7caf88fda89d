"""The trainer: tasks in, a network out; stops cleanly, resumes exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import DataError, InputError, TaskError
from fspll.datasets.images import ImageSet
from fspll.embeddings import InputSpec, image_tensor, save_checkpoint
from fspll.metalearning.interrupts import stop_between_steps
from fspll.metalearning.journal import Log, Report, Smooth
from fspll.metalearning.learners import Learner, PrototypeLearner
from fspll.metalearning.maml import MAMLLearner
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.state import Progress, load_state, save_state
from fspll.tasks import Tasks, TaskSettings, TaskSource

MODEL, STATE, LOG = "model.safetensors", "state.safetensors", "log.jsonl"
_JUDGED_TASKS = 20


Observer = Callable[[Report], None]


@dataclass(frozen=True)
class Trained:
    """Where a finished or interrupted run stands."""

    model: Path | None
    step: int
    finished: bool
    best_epoch: int
    best_figure: float


def train(
    data: ImageSet,
    plan: TrainingPlan,
    out: Path | str,
    *,
    device: str = "auto",
    save_every: int = 50,
    restart: bool = False,
    observers: tuple[Observer, ...] = (),
) -> Trained:
    """Meta-train a network on the classes of ``data``.

    Parameters
    ----------
    data : ImageSet
        The meta-training classes.
    plan : TrainingPlan
        What decides the result.
    out : path
        A folder for ``model.safetensors``, ``log.jsonl`` and, while it runs, ``state.safetensors``.
        A run that was interrupted there goes on; it ends bit for bit where an uninterrupted one
        would have ended (same machine and thread count).
    device : str
        Where to compute.
    save_every : int
        Steps between saves: what a killed process loses at most.
    restart : bool
        Forget an earlier run in ``out``.
    observers : tuple of callables
        Hear a :class:`Report` after every step.

    Returns
    -------
    Trained
        ``finished`` is False when Ctrl-C stopped it; calling again goes on.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; training needs a folder to write to")
    check_count("save_every", save_every, 1)
    if restart:
        for name in (MODEL, STATE, LOG):
            (out / name).unlink(missing_ok=True)
    target = choose_device(device)
    learner = _make_learner(plan, data)
    learner.network.to(target)
    optimizer = _make_optimizer(plan, learner)
    progress = Progress()
    if (out / STATE).exists():
        progress = load_state(out / STATE, plan, data, learner.network, optimizer)
    episodes = _Episodes(data, plan, target)
    log = Log(out / LOG, progress.step)
    smooth = Smooth(log.last)

    def save() -> None:
        log.flush()
        save_state(out / STATE, plan, data, learner.network, optimizer, progress)

    with stop_between_steps() as stop_asked:
        while progress.step < plan.total_steps and not _out_of_patience(plan, progress):
            epoch, place = divmod(progress.step, plan.steps_per_epoch)
            for group in optimizer.param_groups:
                group["lr"] = plan.rate(epoch)
            loss, accuracy = smooth.add(*_step(learner, optimizer, episodes, plan, progress.step))
            progress.step += 1
            figure = None
            if plan.held_out and place == plan.steps_per_epoch - 1:
                figure = episodes.judge(learner)
                progress.keep_if_better(figure, epoch, learner.network)
            report = Report(
                progress.step, plan.total_steps, epoch, loss, accuracy, plan.rate(epoch), figure
            )
            log.add(report)
            for observe in observers:
                observe(report)
            if progress.step % save_every == 0:
                save()
            if stop_asked():
                save()
                return _trained(None, progress)
    save()
    if progress.best is not None:
        learner.network.load_state_dict(progress.best)
    save_checkpoint(
        out / MODEL,
        learner.network,
        input_spec=_input_spec(data),
        training={
            "plan": plan.to_dict(),
            "data": data.name,
            "steps": progress.step,
            "best_epoch": progress.best_epoch,
            "best_figure": progress.best_figure,
        },
    )
    return _trained(out / MODEL, progress)


# -------------------------------------------------------------------- pieces


def _trained(model: Path | None, progress: Progress) -> Trained:
    finished = model is not None
    return Trained(model, progress.step, finished, progress.best_epoch, progress.best_figure)


def _make_learner(plan: TrainingPlan, data: ImageSet) -> Learner:
    channels = 1 if data.images.ndim == 3 else data.images.shape[-1]
    kind = MAMLLearner if plan.is_maml else PrototypeLearner
    return kind(plan, in_channels=channels, size=data.images.shape[1])


def _make_optimizer(plan: TrainingPlan, learner: Learner) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
    return kind(learner.network.parameters(), lr=plan.learning_rate)


def _step(
    learner: Learner,
    optimizer: torch.optim.Optimizer,
    episodes: _Episodes,
    plan: TrainingPlan,
    step: int,
) -> tuple[float, float]:
    """Take one optimizer step; return mean loss and mean query accuracy of its tasks."""
    learner.network.train()
    optimizer.zero_grad(set_to_none=True)
    losses, accuracies = [], []
    for place in range(plan.tasks_per_step):
        images, task = episodes.get(step * plan.tasks_per_step + place)
        outcome = learner.episode(images, task)
        if not outcome.loss.isfinite():
            raise InputError(
                f"the loss of step {step + 1} is {outcome.loss.item()}: training has diverged; "
                f"start over with a smaller learning rate"
            )
        (outcome.loss / plan.tasks_per_step).backward()
        losses.append(outcome.loss.item())
        accuracies.append(outcome.query_accuracy)
    optimizer.step()
    return float(np.mean(losses)), float(np.mean(accuracies))


class _Episodes:
    """Tasks of a run with their images, by number; held-out classes kept apart."""

    def __init__(self, data: ImageSet, plan: TrainingPlan, device: torch.device) -> None:
        self.data, self.plan, self.device = data, plan, device
        held_out = _held_out_classes(data, plan)
        rows = np.flatnonzero(~np.isin(data.labels, held_out))
        self.rows, self.labels = rows, data.labels[rows]
        self.held_rows = np.flatnonzero(np.isin(data.labels, held_out))
        self.sources: dict[TaskSettings, TaskSource] = {}
        for number in range(len(plan.r)):
            setting = plan.setting(number)
            self.sources[setting] = TaskSource(self.labels, setting, plan.seed, data.class_names)

    def get(self, number: int) -> tuple[Tensor, Tasks]:
        """Return images (n + q, C, S, S), support first, and the task."""
        index = number if self.plan.fresh else number % self.plan.n_tasks
        task = self.sources[self.plan.setting(index)].task(index)
        return self._images(self.rows[np.concatenate([task.support, task.query])]), task

    def judge(self, learner: Learner) -> float:
        """Return the learner's mean figure on tasks of the held-out classes."""
        labels = self.data.labels[self.held_rows]
        n_way = min(self.plan.n_way, len(np.unique(labels)))
        r = min(max(self.plan.r), n_way - 1)
        setting = TaskSettings(n_way, self.plan.n_shot, 0, r, self.plan.p)
        source = TaskSource(labels, setting, self.plan.seed, self.data.class_names)
        learner.network.eval()
        figures = []
        for index in range(_JUDGED_TASKS):
            task = source.task(index)
            figures.append(learner.judge(self._images(self.held_rows[task.support]), task))
        return float(np.mean(figures))

    def _images(self, rows: np.ndarray) -> Tensor:
        return image_tensor(self.data.images[rows]).to(self.device)


def _held_out_classes(data: ImageSet, plan: TrainingPlan) -> np.ndarray:
    """Choose classes to keep aside: a character goes with all its rotations."""
    if not plan.held_out:
        return np.array([], dtype=np.int64)
    stems = np.array([name.split("/rot")[0] for name in data.class_names])
    characters = np.unique(stems)
    if plan.held_out >= len(characters):
        raise TaskError(
            f"held_out = {plan.held_out} leaves nothing to train on: there are {len(characters)} "
            f"characters"
        )
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([plan.seed, 0x4E1D])))
    chosen = characters[np.argsort(rng.random(len(characters)), kind="stable")[: plan.held_out]]
    kept = np.flatnonzero(np.isin(stems, chosen))
    # With fewer classes every label is a candidate of every sample, and any network looks perfect.
    if len(kept) < max(plan.r) + 2:
        raise TaskError(
            f"held_out = {plan.held_out} keeps {len(kept)} classes aside, but judging tasks of "
            f"r = {max(plan.r)} takes at least {max(plan.r) + 2}"
        )
    return kept


def _out_of_patience(plan: TrainingPlan, progress: Progress) -> bool:
    done = progress.step // plan.steps_per_epoch
    waited = done - 1 - progress.best_epoch
    return bool(plan.patience) and progress.best is not None and waited >= plan.patience


def _input_spec(data: ImageSet) -> InputSpec:
    gray = data.images.ndim == 3
    return InputSpec(data.images.shape[1], 1 if gray else 3, "bright-ink" if gray else None)
