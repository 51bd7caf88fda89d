"""Time the partial-label baselines: PL-AGGD against a general solver, and few-shot tasks.

    python benchmarks/baselines.py [--lost FILE] [--turns 2] [--json FILE]

PL-AGGD runs on the reference split of Lost (``lost_reference_split.mat``) and is compared with a
straightforward transcription of the method that hands every quadratic program to cvxopt
(``pip install cvxopt``). The transcription is measured for a few turns, whose mean is taken for the
rest; it is spared the entries off the candidate sets, without which it would be slower by far. Both
run on features as they come and must agree. Times are seconds of one processor, the best of several
runs on one thread; ratios within one run of this script are what counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fspll._common.files import write_beside
from fspll.baselines import BASELINES, PLAGGD
from fspll.candidates import Candidates, corrupt
from fspll.datasets.partial_label import load_partial_label_split

RESULTS = Path(__file__).parents[1] / "results"
N_TURNS = 20


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return float(best)


# -------------------------------------------------------------------- the plain transcription


class Transcription:
    """PL-AGGD as published: one quadratic program per sample, and one for all confidences."""

    def __init__(self, X: np.ndarray, mask: np.ndarray) -> None:
        from cvxopt import matrix, solvers, spmatrix

        self.matrix, self.solvers, self.spmatrix = matrix, solvers, spmatrix
        solvers.options.update(show_progress=False, abstol=1e-11, reltol=1e-11, feastol=1e-11)
        self.mask, self.n = mask, len(X)
        self.unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        distance = cdist(self.unit, self.unit)
        np.fill_diagonal(distance, np.inf)
        self.neighbors = np.argsort(distance, axis=1, kind="stable")[:, :10]
        distance = cdist(X, X)
        sigma = distance.sum() / (self.n * (self.n - 1))
        self.K = np.exp(-(distance**2) / (2 * sigma**2))

    def weights(self, Y: np.ndarray | None) -> np.ndarray:
        """Solve for the weights of each sample's neighbors."""
        W, k = np.zeros((self.n, self.n)), 10
        inequality, zeros = self.matrix(-np.eye(k)), self.matrix(np.zeros(k))
        ones, one = self.matrix(np.ones((1, k))), self.matrix(1.0)
        for i, near in enumerate(self.neighbors):
            D = self.unit[i] - self.unit[near]
            G = D @ D.T
            if Y is not None:
                E = Y[i] - Y[near]
                G = G + E @ E.T
            found = self.solvers.qp(self.matrix(2 * G), zeros, inequality, zeros, ones, one)
            W[i, near] = np.array(found["x"]).ravel()
        return W

    def confidence(self, W: np.ndarray, F: np.ndarray | None) -> np.ndarray:
        """Solve for the confidences of all candidates at once."""
        A = np.eye(self.n) - W
        H = A.T @ A + (0 if F is None else np.eye(self.n))
        rows, columns = np.nonzero(self.mask)
        size = len(rows)
        P = np.where(columns[:, None] == columns, H[np.ix_(rows, rows)], 0.0)
        q = np.zeros(size) if F is None else -2 * F[rows, columns]
        at = range(size)
        sums = self.spmatrix(1.0, rows.tolist(), at, (self.n, size))
        found = self.solvers.qp(
            self.matrix(2 * P),
            self.matrix(q),
            self.spmatrix(-1.0, at, at),
            self.matrix(np.zeros(size)),
            sums,
            self.matrix(np.ones(self.n)),
        )
        Y = np.zeros(self.mask.shape)
        Y[rows, columns] = np.array(found["x"]).ravel()
        return Y

    def outputs(self, Y: np.ndarray) -> np.ndarray:
        """Regress the confidences on the samples."""
        inverse = np.linalg.inv(self.K + 0.05 * np.eye(self.n))
        b = inverse.sum(axis=0) @ Y / inverse.sum()
        return self.K @ (inverse @ (Y - b)) + b

    def run(self, n_turns: int) -> tuple[np.ndarray, list[float]]:
        """Return the confidences and the seconds of the first phase and of each turn."""
        start = time.process_time()
        Y = self.confidence(self.weights(None), None)
        F = self.outputs(Y)
        taken = [time.process_time() - start]
        for _ in range(n_turns):
            start = time.process_time()
            Y = self.confidence(self.weights(Y), F)
            F = self.outputs(Y)
            taken.append(time.process_time() - start)
        return Y, taken


def compare_on_lost(path: Path, n_turns: int, repeats: int) -> dict[str, Any]:
    train, _ = load_partial_label_split(path)
    return compare(train.X, train.candidates, "of Lost", n_turns, repeats)


def compare(
    X: np.ndarray, candidates: Candidates, origin: str, n_turns: int, repeats: int
) -> dict[str, Any]:
    """Compare PL-AGGD with its transcription on samples of shape (n, d)."""
    ours = PLAGGD(n_iterations=N_TURNS, scale="none")
    before = seconds(lambda: ours.fit(X, candidates), repeats)
    Y, taken = Transcription(X, candidates.mask).run(n_turns)
    after = seconds(lambda: ours.fit(X, candidates), repeats)
    short = PLAGGD(n_iterations=n_turns, scale="none").fit(X, candidates)
    whole = taken[0] + N_TURNS * float(np.mean(taken[1:]))
    mine = min(before, after)
    return {
        "setting": f"PL-AGGD, {len(X)} samples {origin}, {N_TURNS} turns",
        "ours_s": round(mine, 3),
        "transcription_s": round(whole, 1),
        "transcription_measured": f"first phase and {n_turns} turns: {sum(taken):.1f} s",
        "times_faster": round(whole / mine, 1),
        "largest_difference_of_confidences": float(np.abs(short.confidence_ - Y).max()),
    }


# -------------------------------------------------------------------- tasks


def make_task(n_way: int, n_shot: int, d: int = 64, r: int = 2, seed: int = 0) -> tuple[Any, ...]:
    """Return Gaussian classes with candidate sets of r extra labels, and 15 queries per class."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_way, d))
    labels, truth = np.repeat(np.arange(n_way), n_shot), np.repeat(np.arange(n_way), 15)
    X = centers[labels] + rng.normal(size=(len(labels), d))
    queries = centers[truth] + rng.normal(size=(len(truth), d))
    return X, corrupt(labels, 1, r, rng, classes=range(n_way)), queries, truth


def methods() -> dict[str, Callable[[], Any]]:
    """Return the baselines that learn from sets by name, each with its defaults."""
    classes = [kind for kind in map(BASELINES.get, BASELINES) if not kind.uses_judgments]
    return {kind.__name__: kind for kind in sorted(classes, key=lambda kind: kind.__name__)}


def time_tasks(repeats: int) -> list[dict[str, Any]]:
    rows = []
    for n_way, n_shot, r in ((5, 5, 2), (30, 10, 2), (30, 10, 10)):
        X, sets, queries, truth = make_task(n_way, n_shot, r=r)
        for name, make in methods().items():
            clf = make()
            fit = seconds(partial(clf.fit, X, sets), repeats)
            predict = seconds(partial(clf.predict, queries), repeats)
            rows.append(
                {
                    "task": f"{n_way}-way {n_shot}-shot, 64 features, r={r}",
                    "method": name,
                    "fit_s": round(fit, 4),
                    "predict_s": round(predict, 4),
                    "accuracy": round(clf.score(queries, truth), 3),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lost", type=Path, help="lost_reference_split.mat")
    parser.add_argument("--turns", type=int, default=2, help="turns of the transcription")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, default=RESULTS / "baselines-speed.json")
    args = parser.parse_args()
    report: dict[str, Any] = {"machine": platform.machine(), "numpy": np.__version__}
    if args.lost:
        report["lost"] = compare_on_lost(args.lost, args.turns, args.repeats)
        print(json.dumps(report["lost"]), flush=True)
    report["tasks"] = time_tasks(args.repeats)
    with write_beside(args.json) as beside:
        beside.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
