"""What the machine allows: rate of products, memory bandwidth, and a roofline of a training step.

A layer cannot take less time than its floating-point operations take at the rate of a large matrix
product, nor less than its inputs and outputs take to pass through memory once. The roofline of a
step is the sum over its layers of the larger of the two. Maps that fit into a cache can be faster
than memory allows; those of the first blocks, which make up nearly all of the sum, do not fit.

Shapes: n images, C channels, S pixels per side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from bench_parts.rows import Row, value
from training import product_rate

FLOAT = 4  # bytes


class Machine(NamedTuple):
    """What was measured of a machine: operations per second and bytes per second."""

    rate: float
    bandwidth: float


class Layer(NamedTuple):
    """One pass over the images: floating-point operations, and bytes read and written."""

    name: str
    operations: float
    traffic: float

    def seconds(self, machine: Machine) -> float:
        """Return the least time that the machine allows."""
        return max(self.operations / machine.rate, self.traffic / machine.bandwidth)


def step_layers(n: int, channels: int, size: int, width: int = 64, blocks: int = 4) -> list[Layer]:
    """Return the layers of a training step of Conv4 on images (n, C, S, S).

    Every block is a 3x3 convolution, batch norm, a 2x2 max-pool and ReLU. Batch norm has to see the
    whole map before it can scale it, and pooling first leaves a quarter to be written. Backward,
    the sums of batch norm run over pooled maps, and the map is read once more for its gradient.
    The first convolution needs no gradient of its images. Prototypes, distances and the optimizer
    are left out, which makes the roofline lower.
    """
    layers = []
    for block in range(1, blocks + 1):
        before, after = FLOAT * n * size**2 * channels, FLOAT * n * size**2 * width
        pooled = FLOAT * n * (size // 2) ** 2 * width
        weights = FLOAT * 9 * channels * width
        operations = 2.0 * n * size**2 * width * channels * 9
        convolution = before + after + weights  # two of these are read and one is written
        layers += [
            Layer(f"convolution {block}", operations, convolution),
            Layer(f"statistics {block}", 0.0, after),
            Layer(f"pool and norm {block}", 0.0, after + pooled),
            Layer(f"sums of the gradient {block}", 0.0, 2 * pooled),
            Layer(f"gradient of the map {block}", 0.0, 2 * after + pooled),
            Layer(f"gradient of the weights {block}", operations, convolution),
        ]
        if block > 1:
            layers.append(Layer(f"gradient of the input {block}", operations, convolution))
        channels, size = width, size // 2
    return layers


def roofline(layers: list[Layer], machine: Machine) -> float:
    """Return the seconds below which the layers cannot go one after the other."""
    return sum(layer.seconds(machine) for layer in layers)


def bandwidth(megabytes: int, repeats: int, kind: str = "triad") -> float:
    """Return bytes per second of ``a = b + s c`` ("triad") or ``a = b`` ("copy"), at best.

    Each array has so many megabytes. As is usual, what the processor reads of ``a`` before it
    writes there is not counted.
    """
    arrays = [torch.ones(megabytes * 2**20 // FLOAT) for _ in range(3 if kind == "triad" else 2)]
    run: dict[str, Callable[[], object]] = {
        "triad": lambda: torch.add(arrays[1], arrays[-1], alpha=0.5, out=arrays[0]),
        "copy": lambda: arrays[0].copy_(arrays[1]),
    }
    best = float("inf")
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run[kind]()
        best = min(best, time.perf_counter() - start)
    return len(arrays) * arrays[0].numel() * FLOAT / best


def measure_machine(short: bool) -> Machine:
    """Measure with the threads that torch has now."""
    return Machine(product_rate(3 if short else 10), bandwidth(32 if short else 256, 5))


def machine(short: bool) -> Iterator[Row]:
    """Product rate and memory bandwidth, with one thread and with all."""
    every = torch.get_num_threads()
    size, repeats = (32, 3) if short else (256, 10)
    for threads in sorted({1, every}):
        torch.set_num_threads(threads)
        work = f"{threads} thread" + "s" * (threads > 1)
        yield value("product of 2048 x 2048", "Gflop/s", product_rate(repeats) / 1e9, work)
        for kind in ("copy", "triad"):
            rate = bandwidth(size, repeats, kind) / 1e9
            yield value(f"memory, {kind} of {size} MB", "GB/s", rate, work)
