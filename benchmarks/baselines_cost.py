"""Time the partial-label baselines against the number of samples, up to 20,000.

    python benchmarks/baselines_cost.py [--methods PLKNN ...] [--sizes 500 1000 ...] [--limit 400]
    python benchmarks/baselines_cost.py --plot

Every point is measured in a process of its own, on one thread, in seconds of the processor's time,
and written to results/baselines-cost.json at once; a second start goes on where the first one
stopped. Beside the methods stands what their definitions demand whatever the program: the nearest
neighbors of every sample, the kernel matrix, and its factor, without which no kernel regression is
solved. The samples are Gaussian classes. A point that takes longer than the limit ends its curve.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fspll import __version__
from fspll._common.files import write_beside
from fspll.baselines import BASELINES
from fspll.baselines.graph import nearest_others, unit_rows
from fspll.baselines.kernel_ridge import KernelRidge, training_kernel
from fspll.candidates import corrupt

RESULTS = Path(__file__).parents[1] / "results"
SIZES = [500, 1000, 2000, 5000, 10_000, 20_000]
N_CLASSES, N_FEATURES, N_FALSE, N_NEW = 20, 50, 2, 1000
PARTS: dict[str, Callable[[np.ndarray], object]] = {
    "neighbors": lambda X: nearest_others(unit_rows(X), 10),
    "kernel": training_kernel,
    "factored kernel": lambda X: KernelRidge(training_kernel(X)[0], 0.05),
}
LEARNERS = (kind for kind in map(BASELINES.get, sorted(BASELINES)) if not kind.uses_judgments)
METHODS = {kind.__name__: kind for kind in LEARNERS}
# Methods that go together in a panel of the plot, with the parts that they cannot do without.
PANELS = {
    "neighbors and kernel regression": (["PLAGGD", "PLLEAF", "PLKNN"], list(PARTS)),
    "support vector machines": (["PALOC", "PLECOC"], ["kernel"]),
}


def make_samples(n: int) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray]:
    """Return training samples, their candidate sets, new samples and their classes."""
    rng = np.random.default_rng(0)
    centers = 0.5 * rng.normal(size=(N_CLASSES, N_FEATURES))
    labels = rng.integers(N_CLASSES, size=n + N_NEW)
    X = centers[labels] + rng.normal(size=(len(labels), N_FEATURES))
    sets = corrupt(labels[:n], 1, N_FALSE, rng, classes=range(N_CLASSES))
    return X[:n], sets, X[n:], labels[n:]


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's time that the work takes, the least of three when it takes little."""
    taken: list[float] = []
    while not taken or (len(taken) < 3 and taken[0] < 3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def measure(name: str, n: int) -> dict[str, Any]:
    """Time one method or part on n samples."""
    X, sets, new, truth = make_samples(n)
    row: dict[str, Any] = {"what": name, "n": n}
    if name in PARTS:
        row["fit_s"] = seconds(lambda: PARTS[name](X))
    else:
        method = METHODS[name]()
        if "random_state" in method.get_params():
            method.set_params(random_state=0)
        row["fit_s"] = seconds(lambda: method.fit(X, sets))
        row["predict_s"] = seconds(lambda: method.predict(new))
        row["accuracy"] = float(method.score(new, truth))
    row["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return row


def _send(pipe: Any, name: str, n: int, limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    with threadpool_limits(1):
        pipe.send(measure(name, n))


def measure_apart(name: str, n: int, limit: int) -> dict[str, Any]:
    """Measure in a new process, whose memory is its own, and which is ended at the limit."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, name, n, limit))
    process.start()
    there.close()
    try:
        row = here.recv()
    except EOFError:
        row = {"what": name, "n": n, "stopped_after_s": limit}
    process.join()
    if process.exitcode not in (0, -signal.SIGXCPU):
        raise SystemExit(f"{name} failed with {n} samples")
    return row


def run(path: Path, names: list[str], sizes: list[int], limit: int) -> None:
    report: dict[str, Any] = {
        "setting": f"{N_CLASSES} Gaussian classes, {N_FEATURES} features, r={N_FALSE}, one thread",
        "fspll": __version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "rows": [],
    }
    if path.exists():
        report = json.loads(path.read_text())
    for n in sorted(sizes):
        for name in names:
            rows = [row for row in report["rows"] if row["what"] == name]
            if any(row["n"] == n or "stopped_after_s" in row for row in rows):
                continue
            report["rows"].append(measure_apart(name, n, limit))
            print(json.dumps(report["rows"][-1]), flush=True)
            with write_beside(path) as beside:
                beside.write_text(json.dumps(report, indent=1) + "\n")


# -------------------------------------------------------------------- what it shows


def curve(rows: list[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes and seconds of one curve."""
    points = sorted((r["n"], r["fit_s"]) for r in rows if r["what"] == name and "fit_s" in r)
    n, seconds = np.array(points, dtype=float).reshape(-1, 2).T
    return n, seconds


def growth(rows: list[dict[str, Any]], name: str) -> float:
    """Return the exponent of n with which the time grows, over the three largest sizes."""
    n, seconds = curve(rows, name)
    return float(np.polyfit(np.log(n[-3:]), np.log(seconds[-3:]), 1)[0])


def plot(path: Path) -> None:
    import matplotlib.pyplot as plt

    report = json.loads(path.read_text())
    rows = report["rows"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
    colors = {name: f"C{number}" for number, name in enumerate(METHODS)}
    for axis, (title, (methods, parts)) in zip(axes, PANELS.items(), strict=True):
        for name in methods:
            n, seconds = curve(rows, name)
            label = f"{name}, $n^{{{growth(rows, name):.1f}}}$"
            axis.plot(n, seconds, "o-", color=colors[name], label=label)
        for name, style in zip(PARTS, (":", "--", "-."), strict=True):
            if name in parts:
                n, seconds = curve(rows, name)
                label = f"{name} alone, $n^{{{growth(rows, name):.1f}}}$"
                axis.plot(n, seconds, style, color="0.35", label=label)
        axis.set(xscale="log", yscale="log", xlabel="training samples n", title=title)
        axis.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(loc="upper left", fontsize=9)
    axes[0].set_ylabel("seconds to fit")
    figure.suptitle(f"{report['setting']}; growth over the three largest sizes", fontsize=10)
    figure.savefig(path.with_suffix(".png"), dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=[*PARTS, *METHODS])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--limit", type=int, default=400, help="seconds a point may take")
    parser.add_argument("--plot", action="store_true", help="only draw what was measured")
    parser.add_argument("--json", type=Path, default=RESULTS / "baselines-cost.json")
    args = parser.parse_args()
    if not args.plot:
        run(args.json, args.methods, args.sizes, args.limit)
    plot(args.json)


if __name__ == "__main__":
    main()
