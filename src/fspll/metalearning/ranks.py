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
from itertools import count
from types import FrameType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch import distributed as dist

from fspll._common.devices import choose_device
from fspll._common.errors import InputError, RankError
from fspll.metalearning.step_tasks import OneProcess, StepTasks, TaskFigures

_PAUSE = 0.05  # seconds between two looks at whether the others are there
_END = -1.0  # in the place of a step's number
_joined = count(1)


class Ranks(OneProcess):
    """One of the processes that ``torchrun`` started; see :func:`join_ranks`."""

    def __init__(self, store: dist.Store, rank: int, n_ranks: int) -> None:
        self.store, self.rank, self.count = store, rank, n_ranks
        self.leads = rank == 0
        self._first: bool | None = None
        self._connections = count(1)

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
        gpus = torch.cuda.device_count() if chosen.index is None else 1
        if here > gpus:
            raise InputError(
                f"device={device!r} has {gpus} GPU(s) for the {here} processes of this machine; "
                "start one per GPU, or use device='cpu'"
            )
        chosen = torch.device("cuda", index if chosen.index is None else chosen.index)
        torch.cuda.set_device(chosen)
        return chosen

    @contextmanager
    def connected(self, tasks: StepTasks, about: Mapping[str, Any]) -> Iterator[None]:
        """Connect the processes by gloo, or by NCCL where the network is on GPUs."""
        self.check(tasks.count)
        store = dist.PrefixStore(f"connection {next(self._connections)}", self.store)
        self._compare(about, store)
        parameters = list(tasks.network.parameters())
        on_gpu = parameters[0].device.type == "cuda"
        self._device = parameters[0].device if on_gpu else torch.device("cpu")
        dtypes = [parameter.dtype for parameter in parameters]
        self._dtype = reduce(torch.promote_types, dtypes, torch.float32)
        with self._talk():
            dist.init_process_group(
                "nccl" if on_gpu else "gloo",
                store=store,
                rank=self.rank,
                world_size=self.count,
            )
        try:
            yield
        except BaseException:
            self.ends_first()  # said before the others can notice
            raise
        finally:
            dist.destroy_process_group()

    def run(self, tasks: StepTasks, step: int) -> list[TaskFigures]:
        """Have all tasks of a step run, and add their gradients in the order of the tasks."""
        parameters = list(tasks.network.parameters())
        self._broadcast(torch.tensor([step, 0, 0, 0, 0], dtype=torch.float64))
        weights = self._broadcast(self._row(*parameters))
        figures = [tasks.run(step, place) for place in self._share(tasks, 0)]
        n_others = 2 + sum(tensor.numel() for tensor in tasks.running())
        row = weights.new_empty(n_others + len(weights))
        for rank in range(1, self.count):
            for place in self._share(tasks, rank):
                with self._talk():
                    dist.recv(row, src=rank, tag=place)
                loss, accuracy = row[:2].tolist()
                figures.append(TaskFigures(loss, accuracy, row[2:n_others].clone()))
                for parameter, new in _cut(row[n_others:], parameters):
                    if parameter.grad is not None:
                        parameter.grad += new
                    elif new.any():  # a parameter that no task uses keeps having no gradient
                        parameter.grad = torch.empty_like(parameter).copy_(new)
        return figures

    def follow(self, tasks: StepTasks) -> list[float]:
        """Run this process's share of every step, for the weights that rank 0 sends."""
        # Ctrl-C reaches all processes; rank 0 stops after the step and then tells the others.
        on_interrupt = _set_signal(signal.SIGINT, signal.SIG_IGN)
        tasks.begin()
        parameters = list(tasks.network.parameters())
        weights, buffers = self._row(*parameters), tasks.other_buffers()
        while True:
            step, *numbers = self._broadcast(torch.zeros(5, dtype=torch.float64)).tolist()
            if step == _END:
                with self._talk():
                    dist.barrier()
                _set_signal(signal.SIGINT, on_interrupt)
                return numbers
            self._broadcast(weights)
            with torch.no_grad():
                for parameter, new in _cut(weights, parameters):
                    parameter.copy_(new)
            sent = []  # with the rows, which must live until they have arrived
            for place in self._share(tasks, self.rank):
                tasks.network.zero_grad(set_to_none=True)
                loss, accuracy, statistics = tasks.run(int(step), place)
                gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
                row = self._row(torch.tensor([loss, accuracy]), statistics, *gradients)
                with self._talk():
                    sent.append((dist.isend(row, dst=0, tag=place), row))
            for name, now in tasks.other_buffers().items():
                if not torch.equal(now, buffers[name]):
                    raise InputError(
                        f"training changes the buffer {name} of the network, which is no running "
                        "statistic of a batch norm with momentum; train it in one process"
                    )
            with self._talk():
                for work, _ in sent:
                    assert work is not None
                    work.wait()

    def dismiss(self, *numbers: float) -> None:
        """Tell the others that all is done, and wait until they know."""
        self._broadcast(torch.tensor([_END, *numbers], dtype=torch.float64))
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

    def lost(self, reason: str = "") -> RankError:
        """Return what to raise when another process has ended."""
        reason = reason or f"one of the {self.count} processes of this run has ended"
        return RankError(
            f"{reason}; the same command goes on from the last save, with any number of processes"
        )

    def _compare(self, about: Mapping[str, Any], store: dist.Store) -> None:
        """Wait for all processes; refuse if one has other settings or data, in all alike."""
        store.set(f"about {self.rank}", json.dumps(about))
        names = [f"about {rank}" for rank in range(self.count)]
        while not store.check(names):  # a wait inside torch would not let signals through
            time.sleep(_PAUSE)
        leading, *others = (json.loads(store.get(name)) for name in names)
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

    def _row(self, *tensors: Tensor) -> Tensor:
        """Return the values of tensors in one row that can be sent."""
        rows = [tensor.detach().reshape(-1).to(self._device, self._dtype) for tensor in tensors]
        return torch.cat(rows)

    def _broadcast(self, tensor: Tensor) -> Tensor:
        """Fill a tensor with that of rank 0."""
        tensor = tensor.to(self._device)
        with self._talk():
            dist.broadcast(tensor, src=0)
        return tensor

    @contextmanager
    def _talk(self) -> Iterator[None]:
        """Say what it means when another process cannot be reached any more."""
        try:
            yield
        except RankError:
            raise
        except RuntimeError as error:
            raise self.lost() from error


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
        others = f"another of its {ranks.count} processes has ended"
        raise ranks.lost(f"torchrun ended this run, because {others} or it was told to stop")

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
        store, rank, n_ranks = next(iter(rendezvous("env://")))
    except (ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"several processes were started, but they cannot find each other: {reason}; start "
            "them with torchrun"
        ) from error
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    name = f"fspll {attempt} {next(_joined)}"  # nothing of an earlier run is to be found there
    return Ranks(dist.PrefixStore(name, store), rank, n_ranks)


def _set_signal(number: signal.Signals, action: Any) -> Any:
    """Set what a signal does; nothing outside the main thread, which signals do not reach."""
    if threading.current_thread() is threading.main_thread():
        return signal.signal(number, action)
    return None
