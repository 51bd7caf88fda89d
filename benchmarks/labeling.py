"""Labels of photos: ``fspll label`` against partial-label methods on the same features.

    python benchmarks/labeling.py ROOT        # a folder in miniImageNet's layout; extra "photos"

For each number of classes and of extra labels, tasks of ten photos per class are drawn from the
test classes; the figure is the share of these photos whose label is found. Results go to
results/labeling-photos.json and .md; tasks that are there already are not repeated.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from fspll.baselines import BASELINES
from fspll.datasets import load_mini_imagenet
from fspll.embeddings import embed_images
from fspll.experiments.statistics import signed_rank_p, summarize
from fspll.labeling import label
from fspll.tasks import TaskSettings, TaskSource

OUT = Path(__file__).parents[1] / "results" / "labeling-photos"
SETTINGS = [(n_way, r) for n_way in (5, 10, 20) for r in (1, 2, 3)]
N_SHOT = 10
OURS = "fspll label"
LEARNERS = ("PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF", "PL-KNN")  # for networks see docs/real.md


def labels_found(method: str, features: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the label that a method finds for every sample, (n,)."""
    if method == OURS:
        return label((features, mask)).labels.astype(int)
    model = BASELINES.get(method)()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(features, mask)
    return model.labels_ if hasattr(model, "labels_") else model.predict(features)


def measure(root: Path, n_tasks: int) -> dict[str, dict[str, list[float]]]:
    done = (
        json.loads(OUT.with_suffix(".json").read_text())
        if OUT.with_suffix(".json").exists()
        else {}
    )
    shares: dict[str, dict[str, list[float]]] = done.get("shares", {})
    data = load_mini_imagenet("test", root=root)
    features = embed_images("photos", data).numpy()
    for n_way, r in SETTINGS:
        setting = TaskSettings(n_way, N_SHOT, 0, r)
        tasks = TaskSource(data.labels, setting, 0, data.class_names).batch(range(n_tasks))
        found = shares.setdefault(f"{n_way} classes, r = {r}", {})
        for method in (OURS, *LEARNERS):
            known = found.setdefault(method, [])
            for rows, mask in list(zip(tasks.support, tasks.candidates, strict=True))[len(known) :]:
                right = labels_found(method, features[rows], mask) == tasks.support_labels
                known.append(float(right.mean()))
            write(shares, data.name, n_tasks)
            print(n_way, r, method, summarize(np.array(known)), flush=True)
    return shares


def write(shares: dict[str, dict[str, list[float]]], name: str, n_tasks: int) -> None:
    about = {"data": name, "encoder": "photos", "samples per class": N_SHOT, "seed": 0}
    text = json.dumps({**about, "tasks": n_tasks, "shares": shares}, indent=1)
    OUT.with_suffix(".json").write_text(text + "\n")
    methods = (OURS, *LEARNERS)
    lines = ["| | " + " | ".join(methods) + " | largest p against ours |"]
    lines.append("|---|" + "---:|" * (len(methods) + 1))
    for setting, found in shares.items():
        if len(found) < len(methods) or any(len(v) < n_tasks for v in found.values()):
            continue
        figures = {method: np.array(found[method]) for method in methods}
        best = max(values.mean() for values in figures.values())
        cells = [
            f"**{summarize(values)}**" if values.mean() == best else str(summarize(values))
            for values in figures.values()
        ]
        p = max(signed_rank_p(figures[OURS], figures[method]) for method in LEARNERS)
        lines.append(f"| {setting} | " + " | ".join(cells) + f" | {p:.1g} |")
    lines += [
        "",
        f"{name}, {N_SHOT} photos per class, features of EfficientNet-Lite0, {n_tasks} tasks per "
        "line, seed 0; share of right labels, mean ± 95% interval; p of the signed-rank test.",
    ]
    OUT.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--tasks", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    measure(options.root, options.tasks)
