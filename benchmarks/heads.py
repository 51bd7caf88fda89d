"""What adapting the photo encoder to earlier tasks brings on other classes: 18 settings.

    python benchmarks/heads.py --root FOLDER [--tasks 200] [--per-class 100] [--rule adaptive]

FOLDER holds photos in miniImageNet's layout. Heads are fitted to the meta-training classes, on
candidate sets of r = 1, 2, 3 and on precise labels, and compared with the encoder as it is on the
tasks of `beyond.py photos`. Settings that results/heads.json has already are not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll import __version__
from fspll.datasets import ImageSet, load_mini_imagenet
from fspll.embeddings import embed_images
from fspll.experiments.methods import Samples, find_method
from fspll.experiments.statistics import summarize
from fspll.metalearning.head_tasks import HeadPlan, tasks_of_classes
from fspll.metalearning.heads import fit_head
from fspll.tasks import TaskSettings, TaskSource

RESULTS = Path(__file__).parents[1] / "results"
ENCODER = "efficientnet-lite0"
HEADS = {
    "r=1": HeadPlan(r=(1,)),
    "r=2": HeadPlan(r=(2,)),
    "r=3": HeadPlan(r=(3,)),
    "precise": HeadPlan(regime="precise"),
}
SETTINGS = list(product((5, 10, 20), (5, 10), (1, 2, 3)))


def first_of_each_class(data: ImageSet, n: int) -> ImageSet:
    """Return the first n images of every class."""
    chosen = [np.flatnonzero(data.labels == label)[:n] for label in np.unique(data.labels)]
    rows = np.sort(np.concatenate(chosen))
    name = f"{data.name}, {n} images per class"
    return replace(data, name=name, images=data.images[rows], labels=data.labels[rows])


def fit_heads(data: ImageSet) -> tuple[dict[str, torch.nn.Module], dict[str, Any]]:
    """Return the heads, and how each was chosen."""
    features = embed_images(ENCODER, data)
    heads: dict[str, torch.nn.Module] = {}
    about = {}
    for name, plan in HEADS.items():
        start = time.perf_counter()
        fitted = fit_head(features, tasks_of_classes(features, data.labels, plan))
        heads[name] = fitted.network
        about[name] = {
            "plan": plan.to_dict(),
            "seconds": round(time.perf_counter() - start, 1),
            "power": fitted.network.power,
            "shrinkage": fitted.shrinkage,
            "held_out": fitted.held_out._asdict(),
            "unadapted": fitted.unadapted._asdict(),
        }
        print(name, json.dumps(about[name]), flush=True)
    return heads, about


def measure(
    features: dict[str, torch.Tensor], data: ImageSet, setting: tuple[int, int, int], args: Any
) -> dict[str, Any]:
    """Return one row: the encoder as it is, and what every head adds, on the same tasks."""
    n_way, n_shot, r = setting
    source = TaskSource(data.labels, TaskSettings(n_way, n_shot, 15, r), 0)
    tasks = source.batch(range(args.tasks))
    method = find_method(args.rule)
    scores = {name: method.score(Samples(features=x), tasks) for name, x in features.items()}
    raw = scores.pop("raw")
    row: dict[str, Any] = {"n_way": n_way, "n_shot": n_shot, "r": r, "tasks": args.tasks}
    row |= {"raw": float(raw.query_accuracy.mean())}
    row |= {"raw_support": float(raw.support_accuracy.mean())}
    row |= {"raw_calibration": raw.query_calibration}
    for name, score in scores.items():
        row[name] = {
            "queries": float(score.query_accuracy.mean()),
            "gain": summarize(score.query_accuracy - raw.query_accuracy)._asdict(),
            "support": float(score.support_accuracy.mean()),
            "support_gain": summarize(score.support_accuracy - raw.support_accuracy)._asdict(),
            "calibration": score.query_calibration,
        }
    return row


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table, with a line of means."""

    def short(value: float) -> str:
        return f"{value:.3f}".lstrip("0")

    head = ["N2", "K2", "r", "as it is"]
    for name in HEADS:
        head += [f"head of {name}", "gain"]
    head += ["labels: as it is", "head of r=2", "gain", "ECE: as it is", "head of r=2"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)]
    for row in rows:
        cells = [str(row[key]) for key in ("n_way", "n_shot", "r")] + [short(row["raw"])]
        for name in HEADS:
            gain = row[name]["gain"]
            interval = f"{gain['mean']:+.3f} ± {short(gain['half_width'])}"
            cells += [short(row[name]["queries"]), interval]
        gain = row["r=2"]["support_gain"]
        cells += [short(row["raw_support"]), short(row["r=2"]["support"])]
        cells.append(f"{gain['mean']:+.3f} ± {short(gain['half_width'])}")
        cells += [short(row["raw_calibration"]), short(row["r=2"]["calibration"])]
        lines.append("| " + " | ".join(cells) + " |")
    cells = ["mean", "", "", short(np.mean([row["raw"] for row in rows]))]
    for name in HEADS:
        cells.append(short(np.mean([row[name]["queries"] for row in rows])))
        cells.append(f"{np.mean([row[name]['gain']['mean'] for row in rows]):+.3f}")
    cells.append(short(np.mean([row["raw_support"] for row in rows])))
    cells.append(short(np.mean([row["r=2"]["support"] for row in rows])))
    cells.append(f"{np.mean([row['r=2']['support_gain']['mean'] for row in rows]):+.3f}")
    cells.append(short(np.mean([row["raw_calibration"] for row in rows])))
    cells.append(short(np.mean([row["r=2"]["calibration"] for row in rows])))
    return "\n".join([*lines, "| " + " | ".join(cells) + " |"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--per-class", type=int, default=100)
    parser.add_argument("--rule", default="adaptive")
    parser.add_argument("--out", default="heads")
    args = parser.parse_args()
    data = first_of_each_class(load_mini_imagenet("train", root=args.root), args.per_class)
    test = load_mini_imagenet("test", root=args.root)
    heads, about = fit_heads(data)
    raw = embed_images(ENCODER, test)
    features = {"raw": raw} | {name: head(raw) for name, head in heads.items()}
    settings = {
        "encoder": ENCODER,
        "learned_from": data.name,
        "tested_on": test.name,
        "tasks": args.tasks,
        "rule": args.rule,
        "seed": 0,
        "fspll": __version__,
        "torch": torch.__version__,
    }
    path = RESULTS / f"{args.out}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    same = all(found.get(name) == value for name, value in settings.items())
    rows = found["rows"] if same else []
    done = {(row["n_way"], row["n_shot"], row["r"]) for row in rows}
    for setting in SETTINGS:
        if setting in done:
            continue
        rows.append(measure(features, test, setting, args))
        print(json.dumps(rows[-1]), flush=True)
        contents = {**settings, "heads": about, "rows": rows}
        path.write_text(json.dumps(contents, indent=1) + "\n")
        path.with_suffix(".md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
