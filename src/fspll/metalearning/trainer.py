"""The trainer: tasks in, a network out; stops cleanly, resumes exactly."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import DataError, InputError
from fspll._common.locks import lock_folder
from fspll.datasets.base import ImageSet
from fspll.embeddings.checkpoints import save_checkpoint
from fspll.embeddings.inputs import InputSpec
from fspll.metalearning import REGIMES
from fspll.metalearning.episodes import Episodes
from fspll.metalearning.log import Log, Report, Smooth
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Learner
from fspll.metalearning.state import Progress, load_state, save_state

MODEL, STATE, LOG = "model.safetensors", "state.safetensors", "log.jsonl"
_ENDING = 5.0  # seconds that a worker of a killed run may take to end

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
    stop: Callable[[], bool] | None = None,
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
        Forget an earlier run in ``out``. Its model stays until the new one is complete.
    observers : tuple of callables
        Each is called with a :class:`~fspll.metalearning.log.Report` after every step.
    stop : callable, optional
        Asked after every step: True stops the run like Ctrl-C.

    Returns
    -------
    Trained
        ``finished`` is False when it was stopped before the end; calling again goes on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from fspll.datasets import load_glyphs
    >>> from fspll.metalearning import TrainingPlan, train
    >>> plan = TrainingPlan(n_way=5, n_shot=2, n_query=1, n_tasks=3, epochs=1)
    >>> with TemporaryDirectory() as folder:
    ...     trained = train(load_glyphs(8, 4, size=16), plan, folder, device="cpu")
    ...     trained.model.name, trained.step
    ('model.safetensors', 3)
    """
    out = Path(out)
    check_folder(out)
    check_count("save_every", save_every, 1)
    # Everything that can be refused is refused before anything is written.
    target = choose_device(device)
    learner = _make_learner(plan, data)
    learner.network.to(target)
    optimizer = _make_optimizer(plan, learner)
    episodes = Episodes(data, plan, target)
    with lock_folder(out, wait=_ENDING):
        run = _Run(out, plan, data, learner, optimizer)
        run.begin(restart=restart)
        with _stop_between_steps() as stop_asked:
            while run.progress.step < plan.total_steps and not _out_of_patience(plan, run.progress):
                report = run.step(episodes)
                for observe in observers:
                    observe(report)
                if run.progress.step % save_every == 0:
                    run.save()
                if stop_asked() or (stop is not None and stop()):
                    run.save()
                    return _trained(None, run.progress)
        run.save()
        if run.progress.best is not None:
            learner.network.load_state_dict(run.progress.best)
        _save_model(out / MODEL, learner, plan, data, run.progress)
    return _trained(out / MODEL, run.progress)


@dataclass
class _Run:
    """A run and what it has in its folder: the state and the log."""

    out: Path
    plan: TrainingPlan
    data: ImageSet
    learner: Learner
    optimizer: torch.optim.Optimizer
    progress: Progress = field(default_factory=Progress)

    def begin(self, *, restart: bool) -> None:
        """Go on where an earlier run of this plan stopped, or begin."""
        if restart:
            # From here on the folder holds this run: a kill leaves no state of the old one.
            self._save_state()
        elif (self.out / STATE).exists():
            self.progress = load_state(
                self.out / STATE, self.plan, self.data, self.learner.network, self.optimizer
            )
        elif (self.out / MODEL).exists():
            raise DataError(
                f"{self.out / MODEL} is there without the state of its training, and would be "
                f"replaced; choose another folder, or start over with restart=True"
            )
        self.log = Log(self.out / LOG, self.progress.step)
        self.smooth = Smooth(self.log.last)

    def step(self, episodes: Episodes) -> Report:
        """Take the next step; at the end of an epoch, look whether it is the best so far."""
        plan, progress = self.plan, self.progress
        epoch, place = divmod(progress.step, plan.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = plan.rate(epoch)
        figures = _step(self.learner, self.optimizer, episodes, plan, progress.step)
        loss, accuracy = self.smooth.add(*figures)
        progress.step += 1
        score = None
        if plan.held_out and place == plan.steps_per_epoch - 1:
            score = episodes.held_out_score(self.learner)
            progress.keep_if_better(score, epoch, self.learner.network)
        report = Report(
            progress.step, plan.total_steps, epoch, loss, accuracy, plan.rate(epoch), score
        )
        self.log.add(report)
        return report

    def save(self) -> None:
        """Write log and state, in this order: a resumed run drops lines that are ahead."""
        self.log.flush()
        self._save_state()

    def _save_state(self) -> None:
        network = self.learner.network
        save_state(self.out / STATE, self.plan, self.data, network, self.optimizer, self.progress)


def check_folder(out: Path) -> None:
    """Raise if there is a file where a run would write its folder."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file; training needs a folder to write to")


# -------------------------------------------------------------------- pieces


@contextmanager
def _stop_between_steps() -> Iterator[Callable[[], bool]]:
    """Answer the first Ctrl-C after the step that is running; the second one is immediate.

    An interrupt in the middle of an optimizer step would leave half of the weights changed.
    """
    asked = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _trained(model: Path | None, progress: Progress) -> Trained:
    finished = model is not None
    return Trained(model, progress.step, finished, progress.best_epoch, progress.best_figure)


def _make_learner(plan: TrainingPlan, data: ImageSet) -> Learner:
    channels = 1 if data.images.ndim == 3 else data.images.shape[-1]
    return REGIMES.get(plan.regime).learner(plan, channels, data.images.shape[1])


def _make_optimizer(plan: TrainingPlan, learner: Learner) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
    return kind(learner.network.parameters(), lr=plan.learning_rate)


def _step(
    learner: Learner,
    optimizer: torch.optim.Optimizer,
    episodes: Episodes,
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


def _out_of_patience(plan: TrainingPlan, progress: Progress) -> bool:
    done = progress.step // plan.steps_per_epoch
    waited = done - 1 - progress.best_epoch
    return bool(plan.patience) and progress.best is not None and waited >= plan.patience


def _save_model(
    path: Path, learner: Learner, plan: TrainingPlan, data: ImageSet, progress: Progress
) -> None:
    training = {
        "plan": plan.to_dict(),
        "data": data.name,
        "steps": progress.step,
        "best_epoch": progress.best_epoch,
        "best_figure": progress.best_figure,
    }
    spec = InputSpec.of_images(data.images)
    save_checkpoint(path, learner.network, input_spec=spec, training=training)
