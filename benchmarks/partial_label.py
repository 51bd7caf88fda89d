"""The partial-label methods on real partial-label sets: halves and ten folds.

    python benchmarks/partial_label.py FOLDER [--folds]
    python benchmarks/partial_label.py

FOLDER holds lost.mat and MSRCv2.mat as distributed by M.-L. Zhang. Half of a set is for training,
the other half for test, by `numpy.random.default_rng(seed).permutation`, seeds 0 to 4; with --folds
also ten folds of the permutation of seed 0. Results go to results/partial-label.json and .md.
Without a folder, the tables are written again from the results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fspll import FsPLLClassifier, __version__
from fspll.baselines import PALOC, PLAGGD, PLECOC, PLKNN, PLLEAF
from fspll.datasets import PartialLabelSet, load_partial_label_mat

RESULTS = Path(__file__).parents[1] / "results"
METHODS: dict[str, Callable[[int], Any]] = {
    "PL-AGGD, z-scored": lambda seed: PLAGGD(),
    "PL-LEAF exact, z-scored": lambda seed: PLLEAF(),
    "PL-LEAF reference, z-scored": lambda seed: PLLEAF(solver="reference"),
    "PL-ECOC, RBF, z-scored": lambda seed: PLECOC(random_state=seed),
    "PL-ECOC, linear, min-max": lambda seed: PLECOC(
        kernel="linear", scale="minmax", random_state=seed
    ),
    "PALOC, RBF C=1, z-scored": lambda seed: PALOC(),
    "PL-KNN, z-scored": lambda seed: PLKNN(),
    "FsPLLClassifier, z-scored": lambda seed: FsPLLClassifier(),
    "its rectifier fspll, z-scored": lambda seed: FsPLLClassifier(rectifier="fspll"),
}
N_SPLITS = {"halves": 5, "ten folds": 10}
# Means of another program made from the same formulas, on the same splits, with the same scaling
# and base learner: halves and ten folds of Lost, then of MSRCv2.
REFERENCES = {
    "PL-AGGD, z-scored": (0.700, 0.782, 0.439, 0.493),
    "PL-LEAF exact, z-scored": (0.680, 0.758, 0.453, 0.513),
    "PL-LEAF reference, z-scored": (0.676, 0.763, 0.449, 0.508),
    "PL-ECOC, RBF, z-scored": (0.540, 0.647, 0.392, 0.422),
    "PL-ECOC, linear, min-max": (0.594, None, 0.329, None),
    "PALOC, RBF C=1, z-scored": (0.446, 0.540, 0.323, 0.337),
}


def splits(n: int, folds: bool) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    if not folds:
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(n)
            yield seed, order[: n // 2], order[n // 2 :]
        return
    parts = np.array_split(np.random.default_rng(0).permutation(n), 10)
    for fold, test in enumerate(parts):
        yield 0, np.concatenate([p for i, p in enumerate(parts) if i != fold]), test


def measure(data: PartialLabelSet, method: str, folds: bool) -> dict[str, Any]:
    """Return the share of test samples right and the time, over the splits."""
    truth = np.asarray(data.true_labels)
    hits, seconds = [], 0.0
    for seed, train, test in splits(len(truth), folds):
        X = data.X
        if "Fs" in method or "fspll" in method:  # the baselines scale themselves
            mean, std = X[train].mean(axis=0), X[train].std(axis=0)
            X = (X - mean) / np.where(std > 0, std, 1)
        start = time.perf_counter()
        model = METHODS[method](seed).fit(X[train], data.candidates.mask[train])
        hits.append(np.mean(model.predict(X[test]) == truth[test]))
        seconds += time.perf_counter() - start
    return {
        "splits": "ten folds" if folds else "halves",
        "method": method,
        "mean": float(np.mean(hits)),
        "std": float(np.std(hits, ddof=1)),
        "seconds_a_split": seconds / len(hits),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--folds", action="store_true")
    args = parser.parse_args()
    path = RESULTS / "partial-label.json"
    if args.folder:
        rows = []
        for name in ("lost", "MSRCv2"):
            data = load_partial_label_mat(args.folder / f"{name}.mat")
            for folds in (False, True) if args.folds else (False,):
                for method in METHODS:
                    rows.append({"data": name, **measure(data, method, folds)})
                    print(json.dumps(rows[-1]), flush=True)
        path.write_text(json.dumps({"fspll": __version__, "rows": rows}, indent=1) + "\n")
    rows = json.loads(path.read_text())["rows"]
    path.with_suffix(".md").write_text(table(rows) + "\n" + comparison(rows))


def table(rows: list[dict]) -> str:
    columns = list(dict.fromkeys((row["data"], row["splits"]) for row in rows))
    cells = {(row["method"], row["data"], row["splits"]): row for row in rows}
    lines = ["| method | " + " | ".join(f"{a}, {b}" for a, b in columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    for method in METHODS:
        found = [cells[method, *column] for column in columns]
        figures = [f"{row['mean']:.3f} ± {row['std']:.3f}" for row in found]
        lines.append(f"| {method} | " + " | ".join(figures) + " |")
    return "\n".join(lines) + "\n"


def comparison(rows: list[dict]) -> str:
    """Return how far we are from the references, in standard errors of our mean."""
    columns = [(data, splits) for data in ("lost", "MSRCv2") for splits in N_SPLITS]
    head = " | ".join(f"{data}, {splits}" for data, splits in columns)
    lines = [f"| reference, and ours less it in standard errors | {head} |"]
    lines.append("|---|" + "---:|" * len(columns))
    cells = {(row["method"], row["data"], row["splits"]): row for row in rows}
    for method, means in REFERENCES.items():
        shown = []
        for (data, kind), reference in zip(columns, means, strict=True):
            row = cells.get((method, data, kind))
            if row is None or reference is None:
                shown.append("")
                continue
            error = row["std"] / N_SPLITS[kind] ** 0.5
            shown.append(f"{reference:.3f} ({(row['mean'] - reference) / error:+.1f})")
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
