"""The partial-label methods on real partial-label sets: halves and ten folds.

    python benchmarks/partial_label.py FOLDER [--folds]

FOLDER holds lost.mat and MSRCv2.mat as distributed by M.-L. Zhang. Half of a set is for training,
the other half for test, by `numpy.random.default_rng(seed).permutation`, seeds 0 to 4; with --folds
also ten folds of the permutation of seed 0. Results go to results/partial-label.json and .md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fspll import FsPLLClassifier, __version__
from fspll.baselines import PALOC, PLAGGD, PLECOC, PLKNN, PLLEAF
from fspll.datasets.partial_label import load_partial_label_mat

RESULTS = Path(__file__).parents[1] / "results"
METHODS: dict[str, Callable[[int], object]] = {
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


def splits(n: int, folds: bool) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    if not folds:
        for seed in range(5):
            order = np.random.default_rng(seed).permutation(n)
            yield seed, order[: n // 2], order[n // 2 :]
        return
    parts = np.array_split(np.random.default_rng(0).permutation(n), 10)
    for fold, test in enumerate(parts):
        yield 0, np.concatenate([p for i, p in enumerate(parts) if i != fold]), test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--folds", action="store_true")
    args = parser.parse_args()
    rows = []
    for name in ("lost", "MSRCv2"):
        data = load_partial_label_mat(args.folder / f"{name}.mat")
        truth = np.asarray(data.true_labels)
        for folds in (False, True) if args.folds else (False,):
            for method, make in METHODS.items():
                hits, seconds = [], 0.0
                for seed, train, test in splits(len(truth), folds):
                    X = data.X
                    if "Fs" in method or "fspll" in method:
                        mean, std = X[train].mean(axis=0), X[train].std(axis=0)
                        X = (X - mean) / np.where(std > 0, std, 1)
                    model = make(seed)
                    start = time.perf_counter()
                    model.fit(X[train], data.candidates.mask[train])  # type: ignore[attr-defined]
                    found = model.predict(X[test])  # type: ignore[attr-defined]
                    hits.append(np.mean(found == truth[test]))
                    seconds += time.perf_counter() - start
                rows.append(
                    {
                        "data": name,
                        "splits": "ten folds" if folds else "halves",
                        "method": method,
                        "mean": float(np.mean(hits)),
                        "std": float(np.std(hits, ddof=1)),
                        "seconds_a_split": seconds / len(hits),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
    (RESULTS / "partial-label.json").write_text(
        json.dumps({"fspll": __version__, "rows": rows}, indent=1) + "\n"
    )
    (RESULTS / "partial-label.md").write_text(table(rows))


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


if __name__ == "__main__":
    main()
