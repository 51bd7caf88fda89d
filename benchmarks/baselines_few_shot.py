"""The partial-label baselines on few-shot tasks of Omniglot's meta-training classes.

    python benchmarks/baselines_few_shot.py [--tasks 200]

5-way 5-shot tasks with r = 1, 2, 3 false labels per sample and 15 queries per class, on features
of the packaged network `omniglot-conv4`. These are the classes that the network was trained on, so
features are better here than on new classes: compare the methods, not the level. Rows go to
results/baselines-few-shot.json as they come; a second start goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fspll import __version__
from fspll._common.files import write_beside
from fspll.baselines import BASELINES, CC, PALOC, PLECOC, POP, PRODEN
from fspll.datasets import load_omniglot
from fspll.embeddings import embed_images, load_embedding
from fspll.tasks import TaskSettings, TaskSource

PATH = Path(__file__).parents[1] / "results" / "baselines-few-shot.json"
METHODS: dict[str, Callable[[], Any]] = {
    **{name: BASELINES.get(name) for name in BASELINES if not BASELINES.get(name).uses_judgments},
    "PL-ECOC": lambda: PLECOC(random_state=0),
    "PRODEN": lambda: PRODEN(random_state=0),
    "CC": lambda: CC(random_state=0),
    "POP": lambda: POP(random_state=0),
    "PALOC, C=10": lambda: PALOC(C=10.0),
}


def measure(rows: np.ndarray, source: TaskSource, n_tasks: int, name: str) -> dict[str, Any]:
    """Return the mean shares of queries and of training samples that a method has right."""
    query, support = [], []
    for index in range(n_tasks):
        task = source.task(index)
        model = METHODS[name]().fit(rows[task.support], task.candidates)
        query.append(np.mean(model.predict(rows[task.query]) == task.query_labels))
        support.append(np.mean(model.labels_ == task.support_labels))
    return {
        "method": name,
        "r": source.settings.r,
        "mean": float(np.mean(query)),
        "standard_error": float(np.std(query, ddof=1) / n_tasks**0.5),
        "training_samples_right": float(np.mean(support)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200)
    args = parser.parse_args()
    setting = (
        f"5-way 5-shot, {args.tasks} tasks of Omniglot's meta-training classes, omniglot-conv4"
    )
    report: dict[str, Any] = {"setting": setting, "fspll": __version__, "rows": []}
    if PATH.exists() and json.loads(PATH.read_text())["setting"] == setting:
        report = json.loads(PATH.read_text())
    data = load_omniglot("train")
    network = load_embedding("omniglot-conv4")
    rows = embed_images(network, data).numpy().astype(np.float64)
    for name in METHODS:
        for r in (1, 2, 3):
            if any((row["method"], row["r"]) == (name, r) for row in report["rows"]):
                continue
            source = TaskSource(data.labels, TaskSettings(5, 5, 15, r=r), seed=1000)
            report["rows"].append(measure(rows, source, args.tasks, name))
            print(json.dumps(report["rows"][-1]), flush=True)
            with write_beside(PATH) as beside:
                beside.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
