"""Seconds of a meta-training step: ours, a plain loop, easyfsl, and the machine's own limit.

    pip install easyfsl      # optional; its row is left out when it is absent
    python benchmarks/training.py [--size 28] [--json FILE]

An episode is 30-way with 5 support samples and 15 queries a class on Conv4. All rows of a size are
measured in turns within one run; ratios are what counts. The limit is the time that one large
matrix product takes for the same number of floating-point operations.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fspll.episodes import Setting, Tasks, TaskSource
from fspll.metalearning.learners import PrototypeLearner
from fspll.metalearning.plan import TrainingPlan

N_WAY, N_SHOT, N_QUERY = 30, 5, 15


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
    """Return one optimiser step as a function without arguments."""
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


def easyfsl_step(images: Tensor, task: Tasks) -> Callable[[], None] | None:
    """Run the same episode in easyfsl's PrototypicalNetworks with the plain backbone."""
    try:
        from easyfsl.methods import PrototypicalNetworks
    except ImportError:
        return None
    method = PrototypicalNetworks(PlainConv4(images.shape[1]))
    n = N_WAY * N_SHOT
    labels = torch.from_numpy(task.support_labels)
    truth = torch.from_numpy(task.query_labels)

    def loss() -> Tensor:
        method.process_support_set(images[:n], labels)
        return cross_entropy(method(images[n:]), truth)

    return step_of(method, loss)


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


def product_rate() -> float:
    """Operations a second of one large matrix product."""
    a = torch.rand(2048, 2048)
    start = time.perf_counter()
    _ = a @ a
    return 2 * 2048**3 / (time.perf_counter() - start)


def measure(size: int, repeats: int) -> dict[str, object]:
    channels = 1 if size == 28 else 3
    labels = np.repeat(np.arange(N_WAY), N_SHOT + N_QUERY)
    task = TaskSource(labels, Setting(N_WAY, N_SHOT, N_QUERY, r=1), seed=0).task(0)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand((len(labels), channels, size, size), generator=generator)
    steps = {
        "PN": ours("pn", images, task),
        "FsPLL": ours("fspll", images, task),
        "plain loop": plain_loop(images, task),
        "easyfsl": easyfsl_step(images, task),
    }
    times: dict[str, list[float]] = {name: [] for name, step in steps.items() if step}
    rates = []
    for turn in range(repeats + 1):
        for name, step in steps.items():
            if step is None:
                continue
            start = time.perf_counter()
            step()
            if turn:  # the first turn warms up
                times[name].append(time.perf_counter() - start)
        rates.append(product_rate())
    seconds = {name: statistics.median(values) for name, values in times.items()}
    # The fastest runs show what the code costs; the others, what the machine was busy with.
    fastest = {name: min(values) for name, values in times.items()}
    limit = count_operations(channels, size) / max(rates)
    return {
        "episode": f"{N_WAY}-way, {N_SHOT} + {N_QUERY}, {size}x{size}x{channels}",
        "median_s": {name: round(value, 4) for name, value in seconds.items()},
        "fastest_s": {name: round(value, 4) for name, value in fastest.items()},
        "limit_s": round(limit, 4),
        "share_of_limit": {name: round(limit / value, 3) for name, value in fastest.items()},
        "fspll_over_pn": round(fastest["FsPLL"] / fastest["PN"], 3),
        "plain_over_pn": round(fastest["plain loop"] / fastest["PN"], 2),
        "matrix_product_gflops": round(max(rates) / 1e9, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, choices=(28, 84), nargs="*", default=[28, 84])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [measure(size, args.repeats if size == 28 else 3) for size in args.size]
    report = {"rows": rows, "threads": torch.get_num_threads(), "torch": torch.__version__}
    print(json.dumps(report, indent=1))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
