"""How many answers of a person make 99% of the labels right, against asking at random.

    python benchmarks/asking.py omniglot
    python benchmarks/asking.py photos --root FOLDER

FOLDER holds photos in miniImageNet's layout. Tasks are drawn from test classes, their candidate
sets evenly (r extra labels per sample). A simulated person answers with the true label; after every
few answers `fspll.labeling.label` runs again with all of them. Three ways to choose whom to ask:

* review: the samples at the top of the review list, in its order;
* least sure: the samples with the lowest confidence;
* random: any sample that has not been asked.

Results go to results/asking.json and .md; what was measured for other data there is kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll import __version__
from fspll.datasets import load_mini_imagenet, load_omniglot
from fspll.embeddings import embed_images, load_embedding
from fspll.labeling import Labeling, label
from fspll.tasks import TaskSettings, TaskSource

RESULTS = Path(__file__).parents[1] / "results"
ENOUGH = 0.99
STRATEGIES = ("review", "least sure", "random")
SETTINGS = {  # classes, samples per class, extra labels per sample
    "omniglot": [(5, 3, 3), (5, 5, 3), (10, 2, 3), (20, 2, 3)],
    "photos": [(5, 5, 2), (5, 10, 2), (10, 10, 2)],
}


def schedule(n: int) -> list[int]:
    """Return after how many answers the labels are looked at: every one at first, then fewer."""
    counts = list(range(11)) + list(range(12, 31, 2)) + list(range(35, n, 5))
    return [count for count in counts if count < n] + [n]


def order(found: Labeling, strategy: str, rng: np.random.Generator) -> list[int]:
    """Return the samples to ask next; those that the strategy says nothing of come last."""
    free = np.flatnonzero(~found.answered)
    if strategy == "random":
        return rng.permutation(free).tolist()
    unsure = free[np.argsort(found.confidence[free], kind="stable")].tolist()
    listed = [one.index for one in found.review] if strategy == "review" else []
    return listed + [row for row in unsure if row not in set(listed)]


def simulate(
    features: np.ndarray, mask: np.ndarray, truth: np.ndarray, strategy: str, seed: int
) -> dict[str, Any]:
    """Ask until all is answered or enough labels are right; return the share right on the way."""
    rng = np.random.default_rng(seed)
    answers: dict[str, int] = {}
    curve = []
    for count, then in zip(schedule(len(truth)), [*schedule(len(truth))[1:], 0], strict=True):
        found = label((features, mask), answers=answers)
        right = float((found.labels == truth).mean())
        curve.append((count, right))
        if right >= ENOUGH:
            return {"answers": count, "curve": curve}
        for row in order(found, strategy, rng)[: max(0, then - count)]:
            answers[f"row {row}"] = int(truth[row])
    return {"answers": len(truth), "curve": curve}


def measure(
    features: np.ndarray, labels: np.ndarray, n_way: int, n_shot: int, r: int, n_tasks: int
) -> dict[str, Any]:
    source = TaskSource(labels, TaskSettings(n_way, n_shot, 0, r=r), seed=0)
    runs: dict[str, list[dict[str, Any]]] = {strategy: [] for strategy in STRATEGIES}
    for index in range(n_tasks):
        task = source.task(index)
        X, truth = features[task.support], task.support_labels
        for strategy in STRATEGIES:
            runs[strategy].append(simulate(X, task.candidates, truth, strategy, index))
    row: dict[str, Any] = {"n_way": n_way, "n_shot": n_shot, "r": r, "tasks": n_tasks}
    row["samples"] = n_way * n_shot
    row["right_at_first"] = float(np.mean([run["curve"][0][1] for run in runs["review"]]))
    for strategy, found in runs.items():
        needed = np.array([run["answers"] for run in found])
        row[strategy] = {
            "answers_mean": float(needed.mean()),
            "answers_error": float(needed.std(ddof=1) / np.sqrt(len(needed))),
            "answers_median": float(np.median(needed)),
            "answers": needed.tolist(),
        }
    return row


def table(rows: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        "Answers needed until 99% of the labels are right: mean ± standard error over tasks. The "
        "labels are looked\nat after 0, 1, ... 10, 12, ... 30, 35, 40, ... answers.\n",
        "| data | classes | samples | candidates | right at first | review list | least sure | "
        "at random |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for data, found in rows.items():
        for row in found:
            cells = [data, row["n_way"], row["samples"], row["r"] + 1]
            cells.append(f"{row['right_at_first']:.1%}")
            for strategy in STRATEGIES:
                one = row[strategy]
                cells.append(f"{one['answers_mean']:.1f} ± {one['answers_error']:.1f}")
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=SETTINGS)
    parser.add_argument("--root", type=Path, help="folder of the data")
    parser.add_argument("--tasks", type=int, default=20)
    args = parser.parse_args()
    if args.data == "omniglot":
        data, encoder = load_omniglot("test", root=args.root), load_embedding("omniglot-conv4")
    else:
        data, encoder = load_mini_imagenet("test", root=args.root), load_embedding("photos")
    features = embed_images(encoder, data).numpy()
    rows = []
    for n_way, n_shot, r in SETTINGS[args.data]:
        rows.append(measure(features, data.labels, n_way, n_shot, r, args.tasks))
        print(
            json.dumps({k: v for k, v in rows[-1].items() if not isinstance(v, dict)}), flush=True
        )
    path = RESULTS / "asking.json"
    kept = json.loads(path.read_text())["rows"] if path.exists() else {}
    kept = {name: kept[name] for name in SETTINGS if name in kept} | {args.data: rows}
    kept = {name: kept[name] for name in SETTINGS if name in kept}
    about: dict[str, Any] = {
        "enough": ENOUGH,
        "seed": 0,
        "fspll": __version__,
        "torch": torch.__version__,
    }
    path.write_text(json.dumps({**about, "rows": kept}, indent=1) + "\n")
    (RESULTS / "asking.md").write_text(table(kept))
    print(table(kept))


if __name__ == "__main__":
    main()
