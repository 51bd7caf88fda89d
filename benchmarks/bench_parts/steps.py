"""The parts that compute with networks: a training step, and the photo encoder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bench_parts.limits import Machine, measure_machine, roofline, step_layers
from bench_parts.rows import SECONDS, Limit, Row, compare, load, missing, point
from training import N_QUERY, N_SHOT, N_WAY, OURS, PEERS, count_operations, product_rate, take_turn

NAMES = {"pn": "prototypical networks", "fspll": "FsPLL"}


def training_28(short: bool) -> Iterator[Row]:
    """Take a step of a 30-way episode on 28x28 pictures."""
    return training_step(28, rounds=1 if short else 4, repeats=1 if short else 6, short=short)


def training_84(short: bool) -> Iterator[Row]:
    """Take a step of a 30-way episode on 84x84 pictures."""
    if short:  # the plain loop alone takes a minute
        yield missing("the peers at 84x84", "too long for the short form")
    yield from training_step(84, rounds=1 if short else 2, repeats=1 if short else 2, short=short)


def training_step(size: int, rounds: int, repeats: int, short: bool) -> Iterator[Row]:
    """Compare our steps with those of peers, and with the machine at the same time."""
    names = ("pn",) if short and size == 84 else (*OURS, *PEERS)
    times: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}
    machines = []
    for _ in range(rounds):
        machines.append(measure_machine(short))
        for name in names:
            found = take_turn(name, size, repeats)
            if isinstance(found, str):
                reasons[name] = found
            else:
                times.setdefault(name, []).append(found)
    best = Machine(*(max(values) for values in zip(*machines, strict=True)))
    channels, n = 1 if size == 28 else 3, N_WAY * (N_SHOT + N_QUERY)
    operations = count_operations(channels, size)
    limits = (
        Limit("product rate", operations / best.rate),
        Limit("roofline", roofline(step_layers(n, channels, size), best)),
    )
    work = f"{n} pictures, {operations / 1e9:.0f} Gflop"
    for name, found in times.items():
        kind = "ours" if name in OURS else "peer"
        yield point("step", kind, NAMES.get(name, name), operations / 1e9, min(found))
    for limit in limits:
        yield point("step", "limit", limit.name, operations / 1e9, limit.value)
    for name in (one for one in OURS if one in times):
        what = f"step, {size}x{size}, {NAMES[name]}"
        for limit in limits:
            yield compare(what, SECONDS, times[name], limit=limit, work=work)
    for peer in (one for one in PEERS if one in times):
        what = f"step, {size}x{size}, {NAMES['pn']}"
        both = times["pn"], (peer, times[peer])
        yield compare(what, SECONDS, *both, limit=limits[-1], work=work)
    yield from (missing(name, reason) for name, reason in reasons.items())


def encoder(short: bool) -> Iterator[Row]:
    """Encode photos, per second and thread."""
    reasons: list[Row] = []
    if load("efficientnet_lite_pytorch", reasons, what="the photo encoder (extra photos)") is None:
        yield from reasons
        return
    import encoding

    every = torch.get_num_threads()
    operations = operations_per_photo()
    for threads in sorted({1, every}):
        torch.set_num_threads(threads)
        clock = time.process_time if threads == 1 else time.perf_counter
        rate = product_rate(3 if short else 10, clock) / operations
        for side in (224,) if short else (64, 224):
            found = encoding.measure(side, 2 if short else 15, clock)
            each = {n: r / threads for n, r in found["pictures_per_second"].items()}
            work = f"32 decoded pictures of {side}x{side}, {threads} thread" + "s" * (threads > 1)
            yield compare(
                "EfficientNet-Lite0",
                "pictures/s per thread",
                each[encoding.NOW],
                ("its package's network", each["package"]),
                limit=Limit("product rate", rate / threads),
                work=work,
            )
            yield compare("EfficientNet-Lite2", "pictures/s per thread", each["Lite2"], work=work)


def operations_per_photo() -> float:
    """Return the floating-point operations of Lite0 for one photo, counted by torch."""
    from torch.utils.flop_counter import FlopCounterMode

    from fspll.embeddings.encoders.photos import LITE0, load_model, prepare_photos

    model: Any = load_model(LITE0)
    photo = prepare_photos(np.zeros((1, 224, 224, 3), dtype=np.uint8))
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model.extract_features(photo)
    return float(counter.get_total_flops())
