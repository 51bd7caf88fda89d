"""Many samples: time, memory and right labels from ten thousand to a million samples.

    python benchmarks/large.py [--sizes 10000 30000 ...] [--out results/large]

Growth: n samples of n/100 Gaussian classes that overlap, 64 features, 4 candidates each, both
rules, each size and rule in a process of its own. Few classes: 200,000 samples of ten classes,
where groups are too large to be searched whole; *recall* is the share of the true nearest found.
Quality: problems small enough for the dense rules, and what these make of them. Mapped: the whole
of `fspll label --parquet` on files that are memory-mapped; peak memory is that of its process, with
the pages of files that are mapped, and *anonymous* without these (Linux says it; sampled).

Every row is added to OUT.json as soon as it is measured, so that a run can be continued; OUT.md
holds the tables and OUT.png the plot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.files import write_beside

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
RULES = ("fspll", "evidence")
FEATURES, DISTRACTORS, NEIGHBORS = 64, 3, 10
ASKED = 200  # samples whose true neighbors are looked up for the recall


def make_problem(
    n: int, n_classes: int, noise: float, shape: str = "round", seed: int = 0
) -> tuple[np.ndarray, sparse.csr_array, np.ndarray]:
    """Return features (n, 64), candidates (n, l) and true labels.

    ``shape``: "round" classes are equal spheres, "flat" ones spread along six directions of their
    own, "uneven" ones are spheres of very unequal size.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    if shape == "uneven":
        size = rng.pareto(1.0, n_classes) + 0.2
        truth = rng.choice(n_classes, n, p=size / size.sum())
    features = rng.standard_normal((n, FEATURES), dtype=np.float32)
    if shape == "flat":
        axes = rng.standard_normal((n_classes, FEATURES, 6), dtype=np.float32)
        place = rng.standard_normal((n, 6), dtype=np.float32)
        features = 0.3 * features + noise * np.einsum("nmk,nk->nm", axes[truth], place)
    else:
        features *= noise
    features += rng.standard_normal((n_classes, FEATURES), dtype=np.float32)[truth]
    labels = np.concatenate([truth[:, None], np.zeros((n, DISTRACTORS), dtype=np.int64)], axis=1)
    again = np.arange(n)
    while len(again):  # until the distractors of every sample differ
        labels[again, 1:] = rng.integers(0, n_classes, (len(again), DISTRACTORS))
        drawn = np.sort(labels[again], axis=1)
        again = again[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    labels.sort(axis=1)
    start = np.arange(0, labels.size + 1, labels.shape[1])
    flags = np.ones(labels.size, dtype=bool)
    return features, sparse.csr_array((flags, labels.ravel(), start), (n, n_classes)), truth


def peak_mb() -> int:
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # bytes there, kilobytes elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


class Stopwatch:
    """Seconds on the clock and of the processors, by what they were spent on."""

    def __init__(self) -> None:
        self.clock: dict[str, float] = {}
        self.processors: dict[str, float] = {}
        self.last = time.perf_counter(), time.process_time()

    def __call__(self, what: str) -> None:
        """Count the time since the last call as spent on this."""
        now = time.perf_counter(), time.process_time()
        for kept, a, b in zip((self.clock, self.processors), self.last, now, strict=True):
            kept[what] = kept.get(what, 0) + b - a
        self.last = now

    def figures(self) -> dict[str, float]:
        """Return the seconds so far, rounded."""
        self("rest")
        return {
            "neighbors_s": round(self.clock["neighbors"], 2),
            "rounds_s": round(self.clock["round"], 2),
            "total_s": round(sum(self.clock.values()), 2),
            "total_processor_s": round(sum(self.processors.values()), 2),
        }


# -------------------------------------------------------------------- what a child process does


def solve(rule: str, features: Any, candidates: Any, progress: Any = None) -> Any:
    from fspll.rectifiers.sparse.evidence import infer_labels_sparse
    from fspll.rectifiers.sparse.paper import rectify_sparse

    if rule == "evidence":
        return infer_labels_sparse(features, candidates, n_neighbors=NEIGHBORS, progress=progress)
    return rectify_sparse(features, candidates, n_neighbors=NEIGHBORS, progress=progress)


def right_share(confidence: sparse.csr_array, truth: np.ndarray) -> float:
    from fspll.rectifiers.sparse.entries import best_labels

    return round(float((best_labels(confidence) == truth).mean()), 4)


def measure_growth(n: int, n_classes: int, noise: float, rule: str) -> dict[str, Any]:
    """Solve one problem; the peak includes the data and everything imported."""
    import torch

    import fspll.rectifiers.sparse  # noqa: F401  # so that loading it is not timed

    features, candidates, truth = make_problem(n, n_classes, noise)
    before = peak_mb()
    watch = Stopwatch()
    confidence = solve(rule, features, candidates, watch).confidence
    row = {"samples": n, "classes": n_classes, "entries": candidates.nnz, "noise": noise}
    row |= {"rule": rule, **watch.figures(), "peak_mb": peak_mb(), "peak_before_mb": before}
    row |= {"right": right_share(confidence, truth), "threads": torch.get_num_threads()}
    return row


def measure_recall(n: int, n_classes: int, noise: float) -> dict[str, Any]:
    """Compare the neighbors found with all samples that share a label, for a few samples."""
    from fspll.rectifiers.sparse.entries import Entries
    from fspll.rectifiers.sparse.grouped_neighbors import nearest_in_groups

    features, candidates, _ = make_problem(n, n_classes, noise)
    entries = Entries.of(candidates)
    start = time.process_time()
    links = nearest_in_groups(features, entries, NEIGHBORS).links
    spent = time.process_time() - start
    hits = 0
    mask = candidates.toarray() if n_classes <= 100 else candidates
    for i in np.random.default_rng(1).choice(n, ASKED, replace=False):
        shares = np.asarray(mask @ mask[[i]].T.astype(np.int32)).ravel() > 0
        shares[i] = False
        away = np.where(shares, ((features - features[i]) ** 2).sum(axis=1), np.inf)
        true = np.argpartition(away, NEIGHBORS)[:NEIGHBORS]
        mine = slice(links.indptr[entries.start[i]], links.indptr[entries.start[i + 1]])
        hits += len(np.intersect1d(true, entries.row[links.indices[mine]]))
    row = {"samples": n, "classes": n_classes, "noise": noise, "processor_s": round(spent, 2)}
    return row | {"recall": round(hits / (ASKED * NEIGHBORS), 3), "peak_mb": peak_mb()}


def measure_quality(shape: str, n: int, n_classes: int, noise: float) -> dict[str, Any]:
    """Share of right labels of the dense rules and of these, averaged over three problems."""
    import torch

    from fspll.rectifiers import EvidenceRule, FsPLLRule, infer_labels, rectify

    rights = []
    for seed in range(3):
        features, candidates, truth = make_problem(n, n_classes, noise, shape, seed)
        e, sets = torch.from_numpy(features), torch.from_numpy(candidates.toarray())
        dense = [
            rectify(e, sets, FsPLLRule(NEIGHBORS)).confidence,
            infer_labels(e, sets, EvidenceRule(NEIGHBORS)).confidence,
        ]
        right = [(c.argmax(dim=-1).numpy() == truth).mean() for c in dense]
        right += [
            right_share(solve(rule, features, candidates).confidence, truth) for rule in RULES
        ]
        rights.append(right)
    mean = np.mean(rights, axis=0).round(4).tolist()
    names = ("fspll_dense", "evidence_dense", "fspll_large", "evidence_large")
    row = {"shape": shape, "samples": n, "classes": n_classes, "noise": noise}
    return row | dict(zip(names, mean, strict=True))


def write_problem(folder: Path, n: int, n_classes: int, noise: float) -> np.ndarray:
    """Write round classes as of :func:`make_problem` to files, in blocks; return true labels."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(n) % n_classes)
    means = rng.standard_normal((n_classes, FEATURES), dtype=np.float32)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (n, FEATURES))
    for a in range(0, n, 100_000):
        part = truth[a : a + 100_000]
        drawn = rng.standard_normal((len(part), FEATURES), dtype=np.float32)
        features[a : a + len(part)] = noise * drawn + means[part]
    features.flush()
    labels = np.zeros((n, 1 + DISTRACTORS), dtype=np.int32)
    labels[:, 0], again = truth, np.arange(n)
    while len(again):  # until the distractors of every sample differ
        labels[again, 1:] = rng.integers(0, n_classes, (len(again), DISTRACTORS))
        drawn = np.sort(labels[again], axis=1)
        again = again[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
    labels.sort(axis=1)
    start = np.arange(0, labels.size + 1, labels.shape[1])
    shape = np.array([n, n_classes])
    np.savez(folder / "candidates.npz", indptr=start, indices=labels.ravel(), shape=shape)
    return truth


def memory_mb(pid: int, what: str) -> int:
    """Return how much memory a process holds now, of the kind that Linux calls ``what``."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith(f"{what}:")]
    return int(found[0]) // 1024 if found else 0


def measure_mapped(n: int, n_classes: int, noise: float) -> dict[str, Any]:
    """Label memory-mapped files by the command, in a process of its own."""
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        truth = write_problem(folder, n, n_classes, noise)
        files = "candidates.npz", "--features", "features.npy", "--out", "result", "--parquet"
        command = [sys.executable, "-m", "fspll", "label", *files]
        start, anonymous = time.perf_counter(), 0
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            anonymous = max(anonymous, memory_mb(process.pid, "RssAnon"))
            time.sleep(0.05)
        total = time.perf_counter() - start
        if status:
            raise SystemExit(f"fspll label ended with status {status}")
        table = parquet.read_table(folder / "result" / "labels.parquet", columns=["label"])
        right = (table["label"].to_numpy().astype(np.int64) == truth).mean()
        sizes = {
            name: round((folder / name).stat().st_size / 2**20)
            for name in ("features.npy", "result/labels.parquet", "result/model.fspll")
        }
    row = {"samples": n, "classes": n_classes, "noise": noise, "total_s": round(total, 1)}
    row |= {"total_processor_s": round(used.ru_utime + used.ru_stime, 1)}
    row |= {"peak_mb": used.ru_maxrss // 1024, "anonymous_mb": anonymous}
    row |= {"features_mb": sizes["features.npy"], "labels_mb": sizes["result/labels.parquet"]}
    return row | {"model_mb": sizes["result/model.fspll"], "right": round(float(right), 4)}


TASKS = {
    "growth": measure_growth,
    "recall": measure_recall,
    "quality": measure_quality,
    "mapped": measure_mapped,
}


# -------------------------------------------------------------------- the whole


def plan(sizes: list[int], few: int, mapped: int) -> list[tuple[str, list[Any]]]:
    work: list[tuple[str, list[Any]]] = [
        ("growth", [n, n // 100, 2.5, rule]) for n in sizes for rule in RULES
    ]
    if few:
        work += [("recall", [few // 4, 10, noise]) for noise in (1.0, 2.5)]
        work += [("growth", [few, 10, 2.5, rule]) for rule in RULES]
    work += [
        ("quality", ["round", 5000, 100, 2.5]),
        ("quality", ["round", 5000, 100, 3.5]),
        ("quality", ["round", 5000, 10, 3.0]),
        ("quality", ["flat", 5000, 100, 1.0]),
        ("quality", ["flat", 5000, 100, 2.0]),
        ("quality", ["uneven", 5000, 100, 2.5]),
    ]
    if mapped:
        work.append(("mapped", [mapped, 10_000, 2.5]))
    return work


def run_child(task: str, arguments: list[Any]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", json.dumps([task, arguments])]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    return json.loads(shown.stdout)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and memory against the number of samples, with lines of linear growth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    names = {"fspll": "paper's rule", "evidence": "default rule"}
    for rule, color in zip(RULES, ("#c44e52", "#4c72b0"), strict=True):
        mine = sorted((row["samples"], row) for row in rows if row["rule"] == rule)
        n = [size for size, _ in mine]
        for axis, key, style in ((0, "total_s", "o-"), (0, "total_processor_s", "s:")):
            label = names[rule] + (", processors" if "processor" in key else ", clock")
            axes[axis].plot(n, [r[key] for _, r in mine], style, color=color, label=label)
        added = [r["peak_mb"] / 1024 for _, r in mine]
        axes[1].plot(n, added, "o-", color=color, label=names[rule])
    least = min(rows, key=lambda row: row["samples"])
    n = np.array(sorted({row["samples"] for row in rows}))
    axes[0].plot(n, least["total_processor_s"] * n / n[0], "--", color="0.6", label="linear growth")
    axes[0].axhline(600, color="0.3", linewidth=0.8)
    axes[0].text(n[0], 630, "10 minutes", va="bottom", color="0.3")
    axes[1].axhline(6, color="0.3", linewidth=0.8)
    axes[1].text(n[0], 6.3, "6 GB", va="bottom", color="0.3")
    for axis, title, unit in zip(axes, ("Time", "Peak memory of the process"), "s ", strict=True):
        axis.set(xscale="log", yscale="log", xlabel="samples (a hundredth as many classes)")
        axis.set_ylabel("seconds" if unit == "s" else "GB")
        axis.set_title(title)
        axis.legend(fontsize=8, loc="lower right")
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylim(top=1500)
    axes[1].set_ylim(0.2, 12)
    with write_beside(path) as beside:
        figure.savefig(beside, dpi=120, format="png")


COLUMNS = {
    "growth": {
        "samples": "samples",
        "classes": "classes",
        "rule": "rule",
        "neighbors_s": "neighbors, s",
        "rounds_s": "rounds, s",
        "total_s": "together, s",
        "total_processor_s": "processor time, s",
        "threads": "threads",
        "peak_mb": "peak memory, MB",
        "right": "right labels",
    },
    "recall": {
        "samples": "samples",
        "classes": "classes",
        "noise": "noise",
        "processor_s": "processor time, s",
        "recall": "recall",
    },
    "quality": {
        "shape": "classes are",
        "samples": "samples",
        "classes": "classes",
        "noise": "noise",
        "fspll_dense": "paper's rule, dense",
        "fspll_large": "paper's rule, by entry",
        "evidence_dense": "default, dense",
        "evidence_large": "default, by entry",
    },
    "mapped": {
        "samples": "samples",
        "classes": "classes",
        "total_s": "together, s",
        "total_processor_s": "processor time, s",
        "peak_mb": "peak memory, MB",
        "anonymous_mb": "of it anonymous, MB",
        "features_mb": "features, MB",
        "labels_mb": "labels.parquet, MB",
        "model_mb": "model.fspll, MB",
        "right": "right labels",
    },
}


def tables(rows: dict[str, dict[str, Any]]) -> str:
    """Return the rows as Markdown, a table for each kind of measurement."""
    text = "# Many samples\n\nWritten by `benchmarks/large.py`, which says what is measured.\n"
    for task, columns in COLUMNS.items():
        mine = [row for name, row in rows.items() if name.split()[0] == task]
        mine.sort(key=lambda row: (row["samples"] // 100 != row["classes"], row["samples"]))
        if mine:
            text += f"\n## {task.capitalize()}\n\n| " + " | ".join(columns.values()) + " |\n"
            text += "|" + "---|" * len(columns) + "\n"
            for row in mine:
                cells = (f"{row[key]:,}" if key == "samples" else f"{row[key]}" for key in columns)
                text += "| " + " | ".join(cells) + " |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--few", type=int, default=200_000, help="samples of ten classes; 0: none")
    parser.add_argument(
        "--mapped", type=int, default=5_000_000, help="samples in files of 300 bytes each; 0: none"
    )
    parser.add_argument("--out", type=Path, default=Path("results/large"))
    parser.add_argument("--again", action="store_true", help="measure known rows again")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        task, arguments = json.loads(args.child)
        print(json.dumps(TASKS[task](*arguments)))
        return
    target = args.out.with_suffix(".json")
    report: dict[str, Any] = {"rows": {}}
    if target.exists():
        report = json.loads(target.read_text(encoding="utf-8"))
    for task, arguments in plan(args.sizes, args.few, args.mapped):
        name = " ".join(map(str, [task, *arguments]))
        if name in report["rows"] and not args.again:
            continue
        report["rows"][name] = run_child(task, arguments)
        print(name, json.dumps(report["rows"][name]), flush=True)
        report["python"], report["machine"] = platform.python_version(), platform.machine()
        report["processors"] = os.cpu_count()
        with write_beside(target) as beside:
            beside.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    with write_beside(args.out.with_suffix(".md")) as beside:
        beside.write_text(tables(report["rows"]), encoding="utf-8")
    growth = [
        row
        for row in report["rows"].values()
        if "rule" in row and row["classes"] == row["samples"] // 100
    ]
    if growth:
        draw(growth, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
