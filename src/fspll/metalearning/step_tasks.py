"""The tasks of one step, forward and backward, and what they leave in batch norm's statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from fspll._common.devices import choose_device
from fspll._common.errors import InputError
from fspll.metalearning.episodes import Episodes
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Learner


class TaskFigures(NamedTuple):
    """What one task gave besides its gradient."""

    loss: float
    query_accuracy: float
    statistics: Tensor  # (s,), what it left in batch norm's running statistics, layer by layer


class StepTasks:
    """The tasks of a run's steps; each adds its gradient to the network's.

    Batch norm's running statistics are written in training and never read. So that they do not
    depend on which process runs which task, every task of a step begins with zeros and leaves
    momentum x its own statistics; these are added in the order of the tasks once the step is
    complete. A step of one task leaves all this to the layers.

    Attributes
    ----------
    count : int
        Tasks per step.
    network : nn.Module
    layers : list of batch-norm layers
        Those whose statistics are moved here.
    """

    def __init__(self, learner: Learner, episodes: Episodes, plan: TrainingPlan) -> None:
        self.learner, self.episodes = learner, episodes
        self.count, self.network = plan.tasks_per_step, learner.network
        found = [one for one in self.network.modules() if isinstance(one, _BatchNorm)]
        self.layers = [one for one in found if self.count > 1 and _decays(one)]

    def begin(self) -> None:
        """Prepare for the tasks of a step."""
        self.network.train()
        self._before = [tensor.clone() for tensor in self.running()]

    def run(self, step: int, place: int) -> TaskFigures:
        """Add the gradient of the ``place``-th task of a step: its share of the tasks' mean."""
        for tensor in self.running():
            tensor.zero_()
        images, task = self.episodes.get(step * self.count + place)
        outcome = self.learner.episode(images, task)
        if not outcome.loss.isfinite():
            raise InputError(
                f"the loss of step {step + 1} is {outcome.loss.item()}: training has diverged; "
                f"start over with a smaller learning rate"
            )
        (outcome.loss / self.count).backward()
        left = [tensor.reshape(-1) for tensor in self.running()]
        statistics = torch.cat(left) if left else torch.empty(0)
        return TaskFigures(outcome.loss.item(), outcome.query_accuracy, statistics)

    def end(self, figures: Iterable[TaskFigures]) -> None:
        """Move the running statistics by each task of the step, in this order."""
        for tensor, before in zip(self.running(), self._before, strict=True):
            tensor.copy_(before)
        for one in figures:
            left = iter(one.statistics.split([tensor.numel() for tensor in self.running()]))
            for layer in self.layers:
                mean, variance, calls = _statistics(layer)
                left_mean, left_variance, new_calls = (next(left).to(mean.device) for _ in range(3))
                assert layer.momentum is not None
                rest = (1 - layer.momentum) ** new_calls
                mean.mul_(rest).add_(left_mean)
                variance.mul_(rest).add_(left_variance)
                calls += new_calls.squeeze().to(calls.dtype)

    def other_buffers(self) -> dict[str, Tensor]:
        """Return copies of the network's buffers that are no such running statistics."""
        moved = {id(tensor) for tensor in self.running()}
        named = self.network.named_buffers()
        return {name: tensor.clone() for name, tensor in named if id(tensor) not in moved}

    def running(self) -> list[Tensor]:
        """Return, per layer, running means, running variances and the number of its batches."""
        return [tensor for layer in self.layers for tensor in _statistics(layer)]


class OneProcess:
    """All tasks of a step in this process.

    Also the interface of :class:`fspll.metalearning.ranks.Ranks`, which shares them among several.

    Attributes
    ----------
    count : int
        Processes.
    leads : bool
        Whether this process takes the steps and writes the files; the others :meth:`follow`.
    """

    count = 1
    leads = True

    def check(self, tasks_per_step: int) -> None:
        """Raise if a process would have no task to run."""

    def choose_device(self, device: str) -> torch.device:
        """Return the device of this process."""
        return choose_device(device)

    @contextmanager
    def connected(self, tasks: StepTasks, about: Mapping[str, Any]) -> Iterator[None]:
        """Connect the processes; ``about``, which JSON can hold, must be the same in all."""
        yield

    def run(self, tasks: StepTasks, step: int) -> list[TaskFigures]:
        """Add the gradients of all tasks of a step, in their order, to the network's."""
        return [tasks.run(step, place) for place in range(tasks.count)]

    def follow(self, tasks: StepTasks) -> list[float]:
        """Run the tasks that rank 0 asks for, until it dismisses; return what it said then."""
        raise NotImplementedError("a single process leads")

    def dismiss(self, *numbers: float) -> None:
        """End what the others do in :meth:`follow`, and tell them four numbers."""

    def ends_first(self) -> bool:
        """Return whether no other process of this machine has ended with an error before."""
        return True


def _statistics(layer: _BatchNorm) -> tuple[Tensor, Tensor, Tensor]:
    mean, variance, calls = layer.running_mean, layer.running_var, layer.num_batches_tracked
    assert mean is not None and variance is not None and calls is not None  # noqa: PT018
    return mean, variance, calls


def _decays(layer: _BatchNorm) -> bool:
    """Whether a layer keeps statistics in which earlier batches count less and less."""
    return layer.running_mean is not None and layer.momentum is not None
