"""The parts that compute on vectors: rectification, the classifier, and the baselines.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import baselines
import baselines_decoding
import rectification
from bench_parts.rows import SECONDS, SHARE, Limit, Row, compare, load, missing, point, take_turns
from fspll import FsPLLClassifier
from fspll._common.files import data_dir
from fspll._common.words import counted
from fspll.candidates.corruption import corrupt_mask
from real_parts import DEFAULT, LEARNERS, Problem, partial_label
from training import product_rate

CURVES = (
    ("ours", "paper's rule", "one_call_s"),
    ("ours", "evidence rule", "evidence_one_call_s"),
    ("peer", "paper's rule, one task at a time", "task_at_a_time_s"),
    ("peer", "paper's rule, the equations as they stand", "equations_one_call_s"),
)


def rectify_tasks(short: bool) -> Iterator[Row]:
    """Rectify 1,000 tasks in one call."""
    rate = product_rate(3 if short else 10)
    for n_way, n_shot, m, r in [(30, 5, 64, 1), (30, 5, 64, 3), (5, 5, 64, 1), (20, 10, 1600, 1)]:
        n_tasks = (20 if short else 1000) // (10 if m > 64 else 1)
        found = rectification.measure(n_tasks, n_way, n_shot, m, r, 1 if short else 5)
        operations = 2.0 * n_tasks * (n_way * n_shot) ** 2 * m
        limit = Limit("distances at the product rate", operations / rate)
        work = f"{n_tasks} tasks"
        name = f"paper's rule, {found['setting']}"
        one_call = float(found["one_call_s"])
        for peer, key in (
            ("one task at a time", "task_at_a_time_s"),
            ("the equations as they stand", "equations_one_call_s"),
        ):
            theirs = (peer, float(found[key]))
            yield compare(name, SECONDS, one_call, theirs, limit=limit, work=work)
        name = f"evidence rule, {found['setting']}"
        yield compare(name, SECONDS, float(found["evidence_one_call_s"]), limit=limit, work=work)
    for n_tasks in (5, 10, 20) if short else (10, 100, 1000):
        found = rectification.measure(n_tasks, 30, 5, 64, 1, 1 if short else 3)
        for kind, curve, key in CURVES:
            yield point("tasks", kind, curve, n_tasks, float(found[key]))


# -------------------------------------------------------------------- scikit-learn


class RidgeClassifier:
    """Kernel ridge regression of 0/1 targets, the largest output being the class."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> RidgeClassifier:
        """Fit samples (n, m) and labels (n,)."""
        # The width of the kernel is that of SVC.
        self.model = KernelRidge(kernel="rbf", gamma=1 / (X.shape[1] * X.var()))
        self.classes, columns = np.unique(y, return_inverse=True)
        self.model.fit(X, np.eye(len(self.classes))[columns])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes (n,) of new samples."""
        return self.classes[self.model.predict(X).argmax(axis=1)]


PEERS: dict[str, Callable[[], Any]] = {
    "NearestCentroid": NearestCentroid,
    "SVC": SVC,
    "KernelRidge": RidgeClassifier,
}


def digits(r: int, n: int, seed: int = 0) -> Problem:
    """Return n of scikit-learn's digits with r false candidates each, and the others as new."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [n])
    mask = corrupt_mask(y[train], 10, 1.0, r, rng)
    return Problem(X[train], mask, y[train], X[test], y[test])


def gaussian_task(seed: int = 0) -> Problem:
    """Return a 30-way 10-shot task with two false candidates per sample, and classes that overlap.

    With 64 features instead of 16, ours and whoever gets true labels are right about all new ones.
    """
    X, sets, new, new_truth = baselines.make_task(30, 10, d=16, seed=seed)
    return Problem(X, sets.mask, np.repeat(np.arange(30), 10), new, new_truth)


def one_candidate(problem: Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples (n, m) with one of their candidates each, drawn evenly."""
    drawn = np.random.default_rng(seed).random(problem.mask.shape)
    return problem.X, np.where(problem.mask, drawn, -1.0).argmax(axis=1)


def all_candidates(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return every sample once per candidate, with that candidate as its label."""
    rows, columns = np.nonzero(problem.mask)
    return problem.X[rows], columns


# What classifiers that know no candidate sets can be given.
GIVEN: dict[str, Callable[[Problem], tuple[np.ndarray, np.ndarray]]] = {
    "one candidate each": one_candidate,
    "all candidates": all_candidates,
    "true labels": lambda problem: (problem.X, problem.truth),
}


def classifier(short: bool) -> Iterator[Row]:
    """Fit and predict, against classifiers of scikit-learn on the same features."""
    n, seeds, repeats = (200, 1, 1) if short else (898, 5, 7)
    kinds = {"digits": partial(digits, 2, n), "30-way 10-shot": gaussian_task}
    for name, make_problem in kinds.items():
        problems = [make_problem(seed=seed) for seed in range(seeds)]
        models = [FsPLLClassifier().fit(problem.X, problem.mask) for problem in problems]
        right = mean_right(models, problems)
        first = problems[0]
        sizes = f"{len(first.X)} samples, {len(first.new)} new ones"
        for peer, make in PEERS.items():
            given = one_candidate(first)
            theirs = make().fit(*given)
            for what, work in (
                ("fit", (partial(FsPLLClassifier().fit, first.X, first.mask), make().fit, given)),
                ("predict", (partial(models[0].predict, first.new), theirs.predict, (first.new,))),
            ):
                run, other, arguments = work
                times = take_turns({"ours": run, peer: partial(other, *arguments)}, repeats)
                both = times["ours"], (peer, times[peer])
                yield compare(f"{what}, {name}", SECONDS, *both, work=sizes)
            for how, give in GIVEN.items():
                found = mean_right([make().fit(*give(one)) for one in problems], problems)
                both_right = right, (f"{peer}, {how}", found)
                size = f"{sizes}, {counted(seeds, 'draw')}"
                yield compare(f"new samples, {name}", SHARE, *both_right, work=size)


def mean_right(models: Sequence[Any], problems: Sequence[Problem]) -> float:
    """Return the mean share of new samples whose class is found, one model per problem."""
    pairs = zip(models, problems, strict=True)
    return float(np.mean([share_right(model, problem) for model, problem in pairs]))


def share_right(model: Any, problem: Problem) -> float:
    """Return the share of new samples whose class is found."""
    return float(np.mean(model.predict(problem.new) == problem.new_truth))


# -------------------------------------------------------------------- baselines


def quadratic_programs(short: bool) -> Iterator[Row]:
    """Solve the quadratic programs of PL-AGGD, against cvxopt; decode PL-ECOC, against a loop."""
    with threadpool_limits(1):
        found = baselines_decoding.measure(*(100, 50, 1) if short else (600, 300, 5))
        yield compare(
            "PL-ECOC, predict",
            SECONDS,
            found["predict_s"],
            ("a loop over samples and columns", found["loop_s"]),
            work=found["setting"].partition(", one thread")[0],
        )
        reasons: list[Row] = []
        if load("cvxopt", reasons) is None:
            yield from reasons
            return
        lost = data_dir() / "pll" / "lost_reference_split.mat"
        if short or not lost.exists():
            if not short:
                yield missing("Lost", "lost_reference_split.mat is not in $FSPLL_DATA/pll")
            X, sets, _, _ = baselines.make_task(5, 10 if short else 60)
            found = baselines.compare(X, sets, "of Gaussian classes", 1, 1 if short else 3)
        else:
            found = baselines.compare_on_lost(lost, 2, 3)
        yield compare(
            "PL-AGGD, fit",
            SECONDS,
            found["ours_s"],
            ("one program per sample by cvxopt", found["transcription_s"]),
            work=found["setting"].partition(", ")[2],
        )


def lost(short: bool) -> Iterator[Row]:
    """Real candidate sets: test samples that are right, one split of Lost."""
    if not (data_dir() / "pll" / "lost.mat").exists():
        yield missing("Lost", "lost.mat is not in $FSPLL_DATA/pll")
        return
    torch.set_num_threads(1)
    wanted = (DEFAULT, "PL-KNN", "PL-AGGD") if short else (DEFAULT, *LEARNERS)
    ours: dict[str, Any] = {}
    for where, fit in partial_label(SimpleNamespace(seeds=1)):  # type: ignore[arg-type]
        if where["data"] != "lost":
            break
        if where["split"] != "80/20" or where["method"] not in wanted:
            continue
        found = fit()
        if where["method"] == DEFAULT:
            ours = fit()  # the first fit of a process pays for torch's start
            continue
        peer = where["method"]
        yield compare("test samples of Lost", SHARE, ours["test"], (peer, found["test"]))
        yield compare("fit, Lost", SECONDS, ours["seconds"], (peer, found["seconds"]))
