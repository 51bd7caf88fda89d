"""Rectify a thousand tasks in one call: the paper's rule, one task at a time too, and the default.

    python benchmarks/rectification.py [--tasks 1000] [--json FILE]

Times are the best of several alternating runs on the same machine; the ratio is what counts. Memory
is the peak of the whole process, with torch loaded.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from fspll import rectify
from fspll.candidates import corrupt_mask
from fspll.rectifiers import EvidenceRule, FsPLLRule, infer_labels


def make_tasks(n_tasks: int, n_way: int, n_shot: int, m: int, r: int) -> tuple[torch.Tensor, ...]:
    """Gaussian classes with overlap, and candidate sets with r extra labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_way), n_shot)
    centers = rng.normal(size=(n_tasks, n_way, m)).astype(np.float32)
    noise = rng.normal(scale=0.7, size=(n_tasks, n_way * n_shot, m)).astype(np.float32)
    masks = np.stack([corrupt_mask(labels, n_way, 1.0, r, rng) for _ in range(n_tasks)])
    return torch.from_numpy(centers[:, labels] + noise), torch.from_numpy(masks)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(
    n_tasks: int, n_way: int, n_shot: int, m: int, r: int, repeats: int
) -> dict[str, float | int | str]:
    """Time one call, one task at a time, and the plain equations, in turns."""
    embeddings, candidates = make_tasks(n_tasks, n_way, n_shot, m, r)
    settings = FsPLLRule(n_neighbors=n_shot - 1)
    some = min(n_tasks, 100)  # one task at a time needs no more to be timed
    ways: dict[str, Callable[[], object]] = {
        "one_call_s": lambda: rectify(embeddings, candidates, settings),
        "task_at_a_time_s": lambda: [
            rectify(embeddings[i], candidates[i], settings) for i in range(some)
        ],
        "equations_one_call_s": lambda: rectify(
            embeddings, candidates, settings, engine="equations"
        ),
        "evidence_one_call_s": lambda: infer_labels(
            embeddings, candidates, EvidenceRule(n_shot - 1)
        ),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, work in ways.items():
            best[name] = min(best[name], seconds(work))
    best["task_at_a_time_s"] *= n_tasks / some
    return {
        "setting": f"{n_way}-way {n_shot}-shot, {m} features, r={r}",
        "tasks": n_tasks,
        **{name: round(value, 4) for name, value in best.items()},
        "times_faster": round(best["task_at_a_time_s"] / best["one_call_s"], 1),
        "times_faster_than_equations": round(best["equations_one_call_s"] / best["one_call_s"], 1),
        "evidence_to_paper": round(best["evidence_one_call_s"] / best["one_call_s"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for n_way, n_shot, m, r in [(30, 5, 64, 1), (30, 5, 64, 3), (5, 5, 64, 1), (20, 10, 1600, 1)]:
        n_tasks = args.tasks if m == 64 else max(1, args.tasks // 10)
        rows.append(measure(n_tasks, n_way, n_shot, m, r, args.repeats))
        print(json.dumps(rows[-1]))
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    report = {
        "rows": rows,
        "peak_memory_mb": round(peak),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    print(f"peak memory {peak:.0f} MB, {report['threads']} threads, torch {report['torch']}")
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
