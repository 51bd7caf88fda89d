"""Time PL-ECOC's predictions against a loop over samples and columns of the coding matrix.

    python benchmarks/baselines_decoding.py [--train 600] [--new 300] [--repeats 5]

Both take the machines of the same fitted PLECOC. The loop asks one machine about one sample at a
time, the kernel with its own support vectors only, and adds up the weighted exponential losses of
the classes as the method is written down. Both must give the same classes. Results go to
results/baselines-decoding.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from fspll import __version__
from fspll._common.files import write_beside
from fspll.baselines import PLECOC
from fspll.candidates import corrupt

RESULTS = Path(__file__).parents[1] / "results"


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Loop:
    """The predictions of a fitted PLECOC, one sample and one column at a time."""

    def __init__(self, fitted: PLECOC) -> None:
        self.fitted = fitted
        machines = fitted._machines
        kept = machines.coefficients
        coefficients = kept if isinstance(kept, np.ndarray) else kept.toarray()
        supports = [np.flatnonzero(column) for column in coefficients.T]
        self.vectors = [machines.X[support] for support in supports]
        self.coefficients = [coefficients[s, t] for t, s in enumerate(supports)]
        self.intercepts = machines.intercepts.tolist()

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes of new samples of shape (m, d), of shape (m,)."""
        fitted = self.fitted
        scaled, d = fitted._scaled(X), X.shape[1]
        code, weights = fitted.coding_matrix_, fitted.performance_
        found = []
        for x in scaled:
            loss = np.zeros(len(code))
            for t, vectors in enumerate(self.vectors):
                near = np.exp(-np.square(vectors - x).sum(axis=1) / d)
                output = float(self.coefficients[t] @ near) + self.intercepts[t]
                gain, pain = exp(-output), exp(output)
                loss += weights[:, t] * np.where(code[:, t] > 0, gain, pain)
            found.append(loss.argmin())
        return fitted.classes_[found]


def measure(n_train: int, n_new: int, repeats: int) -> dict[str, Any]:
    """Time both on the same samples, in turns."""
    rng = np.random.default_rng(0)
    centers = 0.5 * rng.normal(size=(20, 50))
    labels = rng.integers(20, size=n_train + n_new)
    X = centers[labels] + rng.normal(size=(len(labels), 50))
    sets = corrupt(labels[:n_train], 1, 1, rng, classes=range(20))
    fitted = PLECOC(random_state=0).fit(X[:n_train], sets)
    loop, new = Loop(fitted), X[n_train:]
    if not np.array_equal(loop.predict(new), fitted.predict(new)):
        raise SystemExit("the loop predicts other classes")
    times = [
        (seconds(lambda: fitted.predict(new)), seconds(lambda: loop.predict(new)))
        for _ in range(repeats)
    ]
    ours, plain = map(min, zip(*times, strict=True))
    return {
        "setting": f"20 classes, 50 features, {n_train} training samples, {n_new} new ones, "
        f"{fitted.n_columns_} columns, one thread, seconds of the processor",
        "predict_s": ours,
        "loop_s": plain,
        "times_faster": plain / ours,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=600)
    parser.add_argument("--new", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    report = measure(args.train, args.new, args.repeats)
    report |= {"fspll": __version__, "numpy": np.__version__, "machine": platform.machine()}
    with write_beside(RESULTS / "baselines-decoding.json") as beside:
        beside.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
