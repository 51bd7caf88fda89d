"""Seconds of a meta-training step: ours, a plain loop, easyfsl, learn2learn, the machine's limit.

    pip install --no-deps easyfsl      # optional; its row is left out when it is absent
    python benchmarks/training.py [--size 28] [--json FILE]

An episode is 30-way with 5 support samples and 15 queries per class on Conv4. Every row has its own
process, as a user would run it (ours sets the C library as ``fspll train`` does), and the rows
take turns several times within one run; ratios are what counts. The limit is the time that one
large matrix product takes for the same number of floating-point operations.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fspll._common.devices import keep_freed_memory
from fspll.metalearning import TrainingPlan
from fspll.metalearning.prototypes import PrototypeLearner
from fspll.tasks import Tasks, TaskSettings, TaskSource

N_WAY, N_SHOT, N_QUERY = 30, 5, 15
OURS, PEERS = ("pn", "fspll"), ("plain loop", "easyfsl", "learn2learn")


class PlainConv4(nn.Module):
    """The four blocks as a newcomer writes them down from the paper."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        widths = [in_channels, 64, 64, 64, 64]
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(before, after, 3, padding=1),
                    nn.BatchNorm2d(after),
                    nn.ReLU(),
                    nn.MaxPool2d(2),
                )
                for before, after in pairwise(widths)
            )
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of the images."""
        return self.blocks(images).flatten(1)


def step_of(network: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """Return one optimizer step as a function without arguments."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    network.train()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return step


def ours(regime: str, images: Tensor, task: Tasks) -> Callable[[], None]:
    plan = TrainingPlan(regime=regime)
    learner = PrototypeLearner(plan, in_channels=images.shape[1], size=images.shape[2])
    return step_of(learner.network, lambda: learner.episode(images, task).loss)


def plain_loop(images: Tensor, task: Tasks) -> Callable[[], None]:
    """Support and queries embedded one after the other, prototypes found class by class."""
    network = PlainConv4(images.shape[1])
    n = N_WAY * N_SHOT
    labels = torch.from_numpy(task.support_labels)
    truth = torch.from_numpy(task.query_labels)

    def loss() -> Tensor:
        support, query = network(images[:n]), network(images[n:])
        prototypes = torch.stack([support[labels == c].mean(0) for c in range(N_WAY)])
        return cross_entropy(-torch.cdist(query, prototypes), truth)

    return step_of(network, loss)


@contextmanager
def without_torchvision() -> Iterator[None]:
    """Let easyfsl be imported where torchvision is not installed.

    easyfsl takes some blocks of torchvision's ResNet for networks of its own, which are not used
    here, and torchvision has to come from the same build as torch.
    """
    modules = {}
    if importlib.util.find_spec("torchvision") is None:
        names = ("torchvision", "torchvision.models", "torchvision.models.resnet")
        modules = {name: ModuleType(name) for name in names}
        for block in ("BasicBlock", "Bottleneck", "conv1x1", "conv3x3"):
            setattr(modules[names[-1]], block, None)
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def easyfsl_step(images: Tensor, task: Tasks) -> Callable[[], None]:
    """Run the same episode in easyfsl's PrototypicalNetworks with the plain backbone."""
    with without_torchvision():
        from easyfsl.methods import PrototypicalNetworks

    method = PrototypicalNetworks(PlainConv4(images.shape[1]))
    n = N_WAY * N_SHOT
    labels = torch.from_numpy(task.support_labels)
    truth = torch.from_numpy(task.query_labels)

    def loss() -> Tensor:
        method.process_support_set(images[:n], labels)
        return cross_entropy(method(images[n:]), truth)

    return step_of(method, loss)


def learn2learn_step(images: Tensor, task: Tasks) -> Callable[[], None]:
    """Run the same episode with learn2learn's PrototypicalClassifier and the plain backbone."""
    from learn2learn.nn import PrototypicalClassifier

    network = PlainConv4(images.shape[1])
    n = N_WAY * N_SHOT
    labels = torch.from_numpy(task.support_labels)
    truth = torch.from_numpy(task.query_labels)

    def loss() -> Tensor:
        classifier = PrototypicalClassifier(network(images[:n]), labels)
        return cross_entropy(classifier(network(images[n:])), truth)

    return step_of(network, loss)


def count_operations(channels: int, size: int) -> float:
    """Floating-point operations of the convolutions of one step: forward and backward.

    The backward pass costs twice the forward pass, except that nobody needs the gradient of the
    images themselves.
    """
    total = 0.0
    for before, first in ((channels, True), (64, False), (64, False), (64, False)):
        forward = 2.0 * size * size * 64 * before * 9
        total += forward * (2 if first else 3)
        size //= 2
    return total * N_WAY * (N_SHOT + N_QUERY)


def product_rate(repeats: int = 10, clock: Callable[[], float] = time.perf_counter) -> float:
    """Operations per second of one large matrix product, at best.

    Several libraries can compute it, and on some processors the one that torch asks first has no
    kernels for the widest instructions, which convolutions use: the fastest is the limit.
    """
    a = torch.rand(2048, 2048)
    array = a.numpy()
    ways: list[Callable[[], object]] = [lambda: a @ a, lambda: array @ array]
    with suppress(AttributeError, RuntimeError):  # an operator that torch may lack
        linear = torch.ops.mkldnn._linear_pointwise
        linear(a[:8, :8].clone(), a[:8, :8].clone(), None, "none", [], "")
        ways.append(lambda: linear(a, a, None, "none", [], ""))
    best = float("inf")
    for _ in range(repeats):
        for way in ways:
            start = clock()
            way()
            best = min(best, clock() - start)
    return 2 * 2048**3 / best


def work_alone(name: str, size: int, repeats: int) -> float:
    """Be the process of one row: return the seconds of its fastest step."""
    channels = 1 if size == 28 else 3
    labels = np.repeat(np.arange(N_WAY), N_SHOT + N_QUERY)
    task = TaskSource(labels, TaskSettings(N_WAY, N_SHOT, N_QUERY, r=1), seed=0).task(0)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((len(labels), channels, size, size), generator=generator)
    if name == "limit":
        return count_operations(channels, size) / product_rate()
    if name in OURS:
        keep_freed_memory()
        step = ours(name, images, task)
    else:
        steps = {"easyfsl": easyfsl_step, "learn2learn": learn2learn_step}
        step = {"plain loop": plain_loop, **steps}[name](images, task)
    times = []
    for turn in range(repeats + 2):
        start = time.perf_counter()
        step()
        if turn >= 2:  # the first turns warm up
            times.append(time.perf_counter() - start)
    return min(times)


def take_turn(name: str, size: int, repeats: int) -> float | str:
    """Measure one row in a process of its own: seconds, or why there are none."""
    command = [sys.executable, __file__, "--alone", name, "--size", str(size)]
    done = subprocess.run(
        [*command, "--repeats", str(repeats)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def take_turns(
    names: Sequence[str], size: int, rounds: int, repeats: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Let the rows take turns: the seconds of each round, and why other rows have none."""
    times: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    for _ in range(rounds):
        for name in names:
            if name in reasons:
                continue
            found = take_turn(name, size, repeats)
            if isinstance(found, str):
                reasons[name] = found
            else:
                times.setdefault(name, []).append(found)
    return times, reasons


def measure(size: int, rounds: int, repeats: int) -> dict[str, object]:
    """Compare the best of all rounds."""
    times, _ = take_turns(("limit", *OURS, *PEERS), size, rounds, repeats)
    best = {name: min(found) for name, found in times.items()}
    limit = best.pop("limit")
    return {
        "episode": f"{N_WAY}-way, {N_SHOT} + {N_QUERY}, {size}x{size}",
        "seconds": {name: round(value, 4) for name, value in best.items()},
        "limit_s": round(limit, 4),
        "share_of_limit": {name: round(limit / value, 3) for name, value in best.items()},
        "fspll_over_pn": round(best["fspll"] / best["pn"], 3),
        "times_faster_than": {
            name: round(seconds / best["pn"], 2)
            for name, seconds in best.items()
            if name not in OURS
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, choices=(28, 84), nargs="*", default=[28, 84])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        try:
            found: float | str = work_alone(args.alone, args.size[0], args.repeats)
        except Exception as error:
            if args.alone not in PEERS:
                raise
            found = str(error) or type(error).__name__
        print(json.dumps(found))
        return
    rows = [measure(size, args.rounds, args.repeats if size == 28 else 2) for size in args.size]
    report = {"rows": rows, "threads": torch.get_num_threads(), "torch": torch.__version__}
    print(json.dumps(report, indent=1))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
