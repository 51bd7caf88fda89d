"""PRODEN, CC and POP on real partial-label sets, beside published figures.

    python benchmarks/networks.py FOLDER
    python benchmarks/networks.py

FOLDER holds lost.mat and MSRCv2.mat as distributed by M.-L. Zhang. Four fifths of a set are for
training and the rest for test, by `numpy.random.default_rng(seed).permutation`, seeds 0 to 4.
Results go to results/networks.json and .md as they come; a second start goes on. Without a folder,
the table is written again from the results.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fspll import __version__
from fspll._common.files import write_beside
from fspll.baselines import BASELINES
from fspll.datasets import PartialLabelSet, load_partial_label_mat

PATH = Path(__file__).parents[1] / "results" / "networks.json"
N_SPLITS = 5
SETS = ("lost", "MSRCv2")
# Test samples and training labels right, from the prediction files published with "Partial-Label
# Learning with Conformal Candidate Cleaning", UAI 2025. There, features have the range from zero to
# one, classes beyond 99% of the samples are left out, and POP is combined with that paper's method.
PUBLISHED = {
    ("PRODEN", "lost"): (0.789, 0.896),
    ("PRODEN", "MSRCv2"): (0.543, 0.686),
    ("CC", "lost"): (0.782, 0.916),
    ("CC", "MSRCv2"): (0.510, 0.674),
    ("POP", "lost"): (0.784, 0.907),
    ("POP", "MSRCv2"): (0.548, 0.701),
}


def measure(data: PartialLabelSet, name: str) -> dict[str, Any]:
    """Return the shares of test samples and of training labels that are right, and the time."""
    truth = np.asarray(data.true_labels)
    test_hits, label_hits, seconds = [], [], 0.0
    for seed in range(N_SPLITS):
        order = np.random.default_rng(seed).permutation(len(truth))
        train, test = np.split(order, [int(0.8 * len(truth))])
        start = time.process_time()
        model = BASELINES.get(name)().set_params(random_state=seed)
        model.fit(data.X[train], data.candidates.mask[train])
        seconds += time.process_time() - start
        test_hits.append(np.mean(model.predict(data.X[test]) == truth[test]))
        label_hits.append(np.mean(model.labels_ == truth[train]))
    return {
        "method": name,
        "test": float(np.mean(test_hits)),
        "test_std": float(np.std(test_hits, ddof=1)),
        "labels": float(np.mean(label_hits)),
        "labels_std": float(np.std(label_hits, ddof=1)),
        "fit_seconds": seconds / N_SPLITS,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures, with the published ones in brackets."""
    cells = {(row["method"], row["data"]): row for row in rows}
    heads = [f"{data}, {what}" for data in SETS for what in ("test", "training labels")]
    lines = ["| method | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for name in dict.fromkeys(method for method, _ in PUBLISHED):
        figures = [
            f"{row[what]:.3f} ± {row[f'{what}_std']:.3f} ({published:.3f})"
            for data in SETS
            if (row := cells.get((name, data)))
            for what, published in zip(("test", "labels"), PUBLISHED[name, data], strict=True)
        ]
        lines.append(f"| {name} | " + " | ".join(figures) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    args = parser.parse_args()
    torch.set_num_threads(1)
    report: dict[str, Any] = {"fspll": __version__, "torch": torch.__version__, "rows": []}
    if PATH.exists():
        report = json.loads(PATH.read_text())
    for name, data in PUBLISHED if args.folder else ():
        if any((row["method"], row["data"]) == (name, data) for row in report["rows"]):
            continue
        found = measure(load_partial_label_mat(args.folder / f"{data}.mat"), name)
        report["rows"].append({"data": data, **found})
        print(json.dumps(report["rows"][-1]), flush=True)
        with write_beside(PATH) as beside:
            beside.write_text(json.dumps(report, indent=1) + "\n")
    PATH.with_suffix(".md").write_text(table(report["rows"]))


if __name__ == "__main__":
    main()
