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
from torch import nn

from fspll._common.arguments import check_count
from fspll._common.errors import DataError
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
from fspll.metalearning.step_tasks import OneProcess, StepTasks

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
    ranks: OneProcess | None = None,
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
    ranks : OneProcess, optional
        What :func:`fspll.metalearning.ranks.join_ranks` gave, where several processes call this to
        share the tasks of every step. Only rank 0 has observers called and writes to ``out``.

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
    out, ranks = Path(out), ranks or OneProcess()
    check_folder(out)
    check_count("save_every", save_every, 1)
    # Everything that can be refused is refused before anything is written.
    target = ranks.choose_device(device)
    learner = _make_learner(plan, data)
    learner.network.to(target)
    optimizer = _make_optimizer(plan, learner)
    tasks = StepTasks(learner, Episodes(data, plan, target), plan)
    with ranks.connected(tasks, {**plan.to_dict(), "data": repr(data)}):
        if ranks.leads:
            with lock_folder(out, wait=_ENDING):
                run = _Run(out, plan, data, tasks, optimizer, ranks)
                run.begin(restart=restart)
                ended = run.go_on(observers, save_every, stop)
            ranks.dismiss(*ended)
        else:
            ended = ranks.follow(tasks)
    finished, step, best_epoch, best_figure = ended
    model = out / MODEL if finished else None
    return Trained(model, int(step), bool(finished), int(best_epoch), best_figure)


@dataclass
class _Run:
    """A run and what it has in its folder: the state and the log."""

    out: Path
    plan: TrainingPlan
    data: ImageSet
    tasks: StepTasks
    optimizer: torch.optim.Optimizer
    ranks: OneProcess
    progress: Progress = field(default_factory=Progress)

    def begin(self, *, restart: bool) -> None:
        """Go on where an earlier run of this plan stopped, or begin."""
        if restart:
            # From here on the folder holds this run: a kill leaves no state of the old one.
            self._save_state()
        elif (self.out / STATE).exists():
            self.progress = load_state(
                self.out / STATE, self.plan, self.data, self.tasks.network, self.optimizer
            )
        elif (self.out / MODEL).exists():
            raise DataError(
                f"{self.out / MODEL} is there without the state of its training, and would be "
                f"replaced; choose another folder, or start over with restart=True"
            )
        self.log = Log(self.out / LOG, self.progress.step)
        self.smooth = Smooth(self.log.last)

    def go_on(
        self,
        observers: tuple[Observer, ...],
        save_every: int,
        stop: Callable[[], bool] | None = None,
    ) -> list[float]:
        """Take the steps that are left and save the model, or stop after a step when asked to.

        Returns whether it finished, the steps done, the best epoch and its figure.
        """
        plan, progress = self.plan, self.progress
        with _stop_between_steps() as stop_asked:
            while progress.step < plan.total_steps and not _out_of_patience(plan, progress):
                report = self.step()
                for observe in observers:
                    observe(report)
                if progress.step % save_every == 0:
                    self.save()
                if stop_asked() or (stop is not None and stop()):
                    self.save()
                    return [False, progress.step, progress.best_epoch, progress.best_figure]
        self.save()
        if progress.best is not None:
            self.tasks.network.load_state_dict(progress.best)
        _save_model(self.out / MODEL, self.tasks.network, plan, self.data, progress)
        return [True, progress.step, progress.best_epoch, progress.best_figure]

    def step(self) -> Report:
        """Take the next step; at the end of an epoch, look whether it is the best so far."""
        plan, progress, tasks = self.plan, self.progress, self.tasks
        epoch, place = divmod(progress.step, plan.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = plan.rate(epoch)
        figures = _step(tasks, self.optimizer, self.ranks, progress.step)
        loss, accuracy = self.smooth.add(*figures)
        progress.step += 1
        score = None
        if plan.held_out and place == plan.steps_per_epoch - 1:
            score = tasks.episodes.held_out_score(tasks.learner)
            progress.keep_if_better(score, epoch, tasks.network)
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
        network = self.tasks.network
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


def _make_learner(plan: TrainingPlan, data: ImageSet) -> Learner:
    channels = 1 if data.images.ndim == 3 else data.images.shape[-1]
    return REGIMES.get(plan.regime).learner(plan, channels, data.images.shape[1])


def _make_optimizer(plan: TrainingPlan, learner: Learner) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if plan.optimizer == "adam" else torch.optim.SGD
    return kind(learner.network.parameters(), lr=plan.learning_rate)


def _step(
    tasks: StepTasks, optimizer: torch.optim.Optimizer, ranks: OneProcess, step: int
) -> tuple[float, float]:
    """Take one optimizer step; return mean loss and mean query accuracy of its tasks."""
    tasks.begin()
    optimizer.zero_grad(set_to_none=True)
    figures = ranks.run(tasks, step)
    tasks.end(figures)
    optimizer.step()
    loss = float(np.mean([one.loss for one in figures]))
    return loss, float(np.mean([one.query_accuracy for one in figures]))


def _out_of_patience(plan: TrainingPlan, progress: Progress) -> bool:
    done = progress.step // plan.steps_per_epoch
    waited = done - 1 - progress.best_epoch
    return bool(plan.patience) and progress.best is not None and waited >= plan.patience


def _save_model(
    path: Path, network: nn.Module, plan: TrainingPlan, data: ImageSet, progress: Progress
) -> None:
    training = {
        "plan": plan.to_dict(),
        "data": data.name,
        "steps": progress.step,
        "best_epoch": progress.best_epoch,
        "best_figure": progress.best_figure,
    }
    spec = InputSpec.of_images(data.images)
    save_checkpoint(path, network, input_spec=spec, training=training)
