"""Several processes that share the tasks of every step: what ``torchrun`` starts.

Rank 0 leads: it alone has the optimizer, the schedule, the folder and the log. In every step it
sends the weights to the others, each process runs its share of the tasks, and rank 0 adds the
gradients one after the other, in the order of the tasks. So the sum has the same bits whatever the
number of processes, their weights cannot drift apart, and a saved state knows nothing of them.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from types import FrameType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch import distributed as dist

from fspll._common.devices import choose_device
from fspll._common.errors import InputError, RankError
from fspll.metalearning.step_tasks import StepTasks, TaskFigures

_PAUSE = 0.05  # seconds between two looks at whether the others are there
_END = -1.0  # in the place of a step's number


class OneProcess:
    """All tasks of a step in this process; also the interface of :class:`Ranks`.

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


class Ranks(OneProcess):
    """One of the processes that ``torchrun`` started; see :func:`join_ranks`."""

    def __init__(self, store: dist.Store, rank: int, count: int) -> None:
        self.store, self.rank, self.count = store, rank, count
        self.leads = rank == 0
        self._first: bool | None = None

    def check(self, tasks_per_step: int) -> None:
        """Raise if a process would have no task to run."""
        if self.count > tasks_per_step:
            raise InputError(
                f"tasks_per_step = {tasks_per_step} is too few for {self.count} processes, which "
                "need a task each in every step; start fewer, or give a step more tasks"
            )

    def choose_device(self, device: str) -> torch.device:
        """Return the device of this process: with CUDA, one GPU for each."""
        chosen = choose_device(device)
        if chosen.type != "cuda":
            return chosen
        index, here = (int(os.environ.get(name, 0)) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
        if chosen.index is not None and here > 1:
            raise InputError(f"device={device!r} is one GPU for {here} processes; use 'cuda'")
        if chosen.index is None and index >= torch.cuda.device_count():
            raise InputError(
                f"{here} processes were started on a machine with {torch.cuda.device_count()} of "
                "the GPUs that they need; start one per GPU, or use device='cpu'"
            )
        chosen = torch.device("cuda", index if chosen.index is None else chosen.index)
        torch.cuda.set_device(chosen)
        return chosen

    @contextmanager
    def connected(self, tasks: StepTasks, about: Mapping[str, Any]) -> Iterator[None]:
        """Connect the processes by gloo, or by NCCL where the network is on GPUs."""
        self.check(tasks.count)
        self._compare(about)
        parameters = list(tasks.network.parameters())
        on_gpu = parameters[0].device.type == "cuda"
        self._device = parameters[0].device if on_gpu else torch.device("cpu")
        dtypes = [parameter.dtype for parameter in parameters]
        self._dtype = reduce(torch.promote_types, dtypes, torch.float32)
        with self._talk():
            dist.init_process_group(
                "nccl" if on_gpu else "gloo",
                store=self.store,
                rank=self.rank,
                world_size=self.count,
            )
        try:
            yield
        finally:
            dist.destroy_process_group()

    def run(self, tasks: StepTasks, step: int) -> list[TaskFigures]:
        """Have all tasks of a step run, and add their gradients in the order of the tasks."""
        parameters = list(tasks.network.parameters())
        self._broadcast(step, 0, 0, 0, 0)
        weights = self._flat(*parameters)
        with self._talk():
            dist.broadcast(weights, src=0)
        figures = [tasks.run(step, place) for place in self._share(tasks, 0)]
        n_statistics = sum(tensor.numel() for tensor in tasks.running())
        row = weights.new_empty(2 + n_statistics + len(weights))
        for rank in range(1, self.count):
            for place in self._share(tasks, rank):
                with self._talk():
                    dist.recv(row, src=rank, tag=place)
                loss, accuracy = row[:2].tolist()
                figures.append(TaskFigures(loss, accuracy, row[2 : 2 + n_statistics].clone()))
                for parameter, new in _cut(row[2 + n_statistics :], parameters):
                    if parameter.grad is not None:
                        parameter.grad += new
                    elif new.any():  # a parameter that no task uses keeps having no gradient
                        parameter.grad = torch.empty_like(parameter).copy_(new)
        return figures

    def follow(self, tasks: StepTasks) -> list[float]:
        """Run this process's share of every step, for the weights that rank 0 sends."""
        # Ctrl-C reaches all processes; rank 0 stops after the step and then tells the others.
        _set_signal(signal.SIGINT, signal.SIG_IGN)
        tasks.begin()
        parameters = list(tasks.network.parameters())
        weights = self._flat(*parameters)
        buffers = _Buffers(tasks)
        while (numbers := self._broadcast())[0] != _END:
            with self._talk():
                dist.broadcast(weights, src=0)
            with torch.no_grad():
                for parameter, new in _cut(weights, parameters):
                    parameter.copy_(new)
            sent = []  # with the rows, which must live until they have arrived
            for place in self._share(tasks, self.rank):
                tasks.network.zero_grad(set_to_none=True)
                loss, accuracy, statistics = tasks.run(int(numbers[0]), place)
                gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
                row = self._flat(torch.tensor([loss, accuracy]), statistics, *gradients)
                with self._talk():
                    sent.append((dist.isend(row, dst=0, tag=place), row))
            buffers.check()
            with self._talk():
                for work, _ in sent:
                    assert work is not None
                    work.wait()
        with self._talk():
            dist.barrier()
        return numbers[1:]

    def dismiss(self, *numbers: float) -> None:
        """Tell the others that all is done, and wait until they know."""
        self._broadcast(_END, *numbers)
        with self._talk():
            dist.barrier()

    def ends_first(self) -> bool:
        """Return whether no other process of this machine has ended with an error before."""
        if self._first is None:
            machine = os.environ.get("GROUP_RANK", "0")
            try:
                self._first = self.store.add(f"ended on {machine}", 1) == 1
            except RuntimeError:  # the store has ended as well
                self._first = True
        return self._first

    def lost(self) -> RankError:
        """Return what to raise when another process has ended."""
        return RankError(
            f"one of the {self.count} processes of this run has ended; the same command goes on "
            "from the last save, with any number of processes"
        )

    def _compare(self, about: Mapping[str, Any]) -> None:
        """Wait for all processes; refuse if one has other settings or data, in all alike."""
        self.store.set(f"about {self.rank}", json.dumps(about))
        names = [f"about {rank}" for rank in range(self.count)]
        while not self.store.check(names):  # a wait inside torch would not let signals through
            time.sleep(_PAUSE)
        leading, *others = (json.loads(self.store.get(name)) for name in names)
        for rank, other in enumerate(others, start=1):
            for name, value in leading.items():
                if other.get(name) != value:
                    raise InputError(
                        f"rank {rank} was started with {name} = {other.get(name)!r}, but rank 0 "
                        f"with {value!r}; all processes need the same"
                    )

    def _share(self, tasks: StepTasks, rank: int) -> range:
        """Return the places of a process's tasks; if it does not come out even, rank 0 has less."""
        return range(tasks.count * rank // self.count, tasks.count * (rank + 1) // self.count)

    def _broadcast(self, *numbers: float) -> list[float]:
        """Send five numbers from rank 0 to all."""
        tensor = torch.tensor(numbers or [0.0] * 5, dtype=torch.float64, device=self._device)
        with self._talk():
            dist.broadcast(tensor, src=0)
        return tensor.tolist()

    def _flat(self, *tensors: Tensor) -> Tensor:
        """Return the values of tensors in one row that can be sent."""
        rows = [tensor.detach().reshape(-1).to(self._device, self._dtype) for tensor in tensors]
        return torch.cat(rows)

    @contextmanager
    def _talk(self) -> Iterator[None]:
        """Name the reason why the others cannot be reached any more."""
        try:
            yield
        except RuntimeError as error:
            raise self.lost() from error


class _Buffers:
    """A check that training changes no buffers but the running statistics, which are sent."""

    def __init__(self, tasks: StepTasks) -> None:
        sent = {id(tensor) for tensor in tasks.running()}
        named = tasks.network.named_buffers()
        self.others = {name: (t, t.clone()) for name, t in named if id(t) not in sent}

    def check(self) -> None:
        """Raise if a buffer has changed since the last time."""
        for name, (now, before) in self.others.items():
            if not torch.equal(now, before):
                raise InputError(
                    f"training changes the buffer {name} of the network, which is no running "
                    "statistic of a batch norm with momentum; train it in one process"
                )


def _cut(row: Tensor, parameters: list[torch.nn.Parameter]) -> Iterator[tuple[Any, Tensor]]:
    """Yield every parameter with its part of a row."""
    parts = row.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        yield parameter, part.view(parameter.shape).to(parameter.device, parameter.dtype)


@contextmanager
def join_ranks() -> Iterator[OneProcess]:
    """Join the other processes that ``torchrun`` started, if it did.

    ``torchrun`` sends SIGTERM to what is left of a run of which one process has died. That is
    raised as a :class:`~fspll._common.errors.RankError`, wherever this process is.
    """
    if "RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        yield OneProcess()
        return
    ranks = _meet()

    def end(number: int, frame: FrameType | None) -> NoReturn:
        _set_signal(signal.SIGTERM, signal.SIG_IGN)
        raise ranks.lost()

    before = _set_signal(signal.SIGTERM, end)
    try:
        yield ranks
    except BaseException:
        # A process that is about to say why it ends is not to be ended before it has.
        _set_signal(signal.SIGTERM, signal.SIG_IGN)
        raise
    _set_signal(signal.SIGTERM, before)


def _meet() -> Ranks:
    if not (dist.is_available() and dist.is_gloo_available()):
        raise InputError(
            "several processes were started, but this build of torch comes without "
            "torch.distributed or without gloo; start one process, or install another build"
        )
    from torch.distributed.rendezvous import rendezvous

    try:
        store, rank, count = next(iter(rendezvous("env://")))
    except (ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"several processes were started, but they cannot find each other: {reason}; start "
            "them with torchrun"
        ) from error
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return Ranks(dist.PrefixStore(f"fspll {attempt}", store), rank, count)


def _set_signal(number: signal.Signals, action: Any) -> Any:
    """Set what a signal does; nothing outside the main thread, which signals do not reach."""
    if threading.current_thread() is threading.main_thread():
        return signal.signal(number, action)
    return None
