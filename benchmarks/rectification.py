"""Rectify a thousand tasks in one call, against the same core called a task at a time.

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

from fspll import Settings, rectify
from fspll.candidates import corrupt_mask


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for n_way, n_shot, m, r in [(30, 5, 64, 1), (30, 5, 64, 3), (5, 5, 64, 1), (20, 10, 1600, 1)]:
        n_tasks = args.tasks if m == 64 else args.tasks // 10
        embeddings, candidates = make_tasks(n_tasks, n_way, n_shot, m, r)
        settings = Settings(n_neighbors=n_shot - 1)
        one_by_one, together, plainly = [], [], []
        some = min(n_tasks, 100)  # a task at a time needs no more to be timed
        for _ in range(args.repeats):
            together.append(seconds(lambda: rectify(embeddings, candidates, settings)))
            alone = seconds(
                lambda: [rectify(embeddings[i], candidates[i], settings) for i in range(some)]
            )
            one_by_one.append(alone * n_tasks / some)
            plainly.append(
                seconds(lambda: rectify(embeddings, candidates, settings, engine="equations"))
            )
        rows.append(
            {
                "setting": f"{n_way}-way {n_shot}-shot, {m} features, r={r}",
                "tasks": n_tasks,
                "one_call_s": round(min(together), 4),
                "task_at_a_time_s": round(min(one_by_one), 4),
                "equations_one_call_s": round(min(plainly), 4),
                "times_faster": round(min(one_by_one) / min(together), 1),
                "times_faster_than_equations": round(min(plainly) / min(together), 1),
            }
        )
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
