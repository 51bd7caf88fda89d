"""What benchmarks/real.py measures: every part yields where, and a function that measures there.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits, load_iris, load_wine

from fspll import FsPLLClassifier
from fspll._common.files import data_dir
from fspll.annotations import read_annotations
from fspll.baselines import BASELINES
from fspll.candidates.corruption import corrupt_mask
from fspll.datasets import DATASETS, load_mini_imagenet
from fspll.embeddings import embed_images
from fspll.experiments.statistics import calibration_error
from fspll.labeling import draw_audit, label
from fspll.rectifiers.adaptive import AdaptiveRule

Figures = dict[str, Any]
Jobs = Iterator[tuple[dict[str, Any], Callable[[], Figures]]]
DEFAULT, CHECKED = "default", "default, held out"
OURS: dict[str, Any] = {
    DEFAULT: "adaptive",
    CHECKED: AdaptiveRule(held_out=True),  # as fspll label does
    "default, not held out": AdaptiveRule(held_out=False),
    "evidence": "evidence",
    "paper's rule": "fspll",
}
LEARNERS = ("PL-AGGD", "PL-LEAF", "PL-ECOC", "PALOC", "PL-KNN", "PRODEN", "CC", "POP")
PEOPLE = ("Majority-Vote", "Dawid-Skene", "CROWDLAB")


class Problem(NamedTuple):
    """Training samples with candidate sets, their true labels, and new samples."""

    X: np.ndarray  # (n, m)
    mask: np.ndarray  # (n, l)
    truth: np.ndarray  # (n,)
    new: np.ndarray
    new_truth: np.ndarray


# -------------------------------------------------------------------- methods


def fitted(method: str, X: np.ndarray, mask: np.ndarray, seed: int = 0) -> Any:
    """Return a method fitted to candidate sets."""
    if method in OURS:
        return FsPLLClassifier(rectifier=OURS[method]).fit(X, mask)
    name, _, how = method.partition(", ")
    model = BASELINES.get(name)()
    if how == "not scaled":
        model.set_params(scale="none")
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model.fit(X, mask)


def measured(method: str, problem: Problem, seed: int = 0) -> Figures:
    """Return the shares of labels and of new samples that are right, and what was claimed."""
    start = time.perf_counter()
    model = fitted(method, problem.X, problem.mask, seed)
    found: Figures = {"seconds": time.perf_counter() - start}
    found["labels"] = float(np.mean(model.labels_ == problem.truth))
    if len(problem.new):
        found["test"] = float(np.mean(model.predict(problem.new) == problem.new_truth))
    if isinstance(model, FsPLLClassifier):
        confidence = np.asarray(model.confidence_).max(axis=1)
        found["claimed"] = float(confidence.mean())
        found["error"] = calibration_error(confidence, model.labels_ == problem.truth)
        if len(problem.new):
            best = model.predict_proba(problem.new).max(axis=1)
            found["claimed_test"] = float(best.mean())
        found |= of_check(model, problem.truth)
    return found


def of_check(model: FsPLLClassifier, truth: np.ndarray) -> Figures:
    """Return what held-out samples said, and how labels outside the sets fare."""
    check = getattr(model, "check_", None)
    if check is None:
        return {}
    names = ("hits", "chance", "gain", "gain_error")
    found: Figures = {name: float(getattr(check, name)) for name in names}
    found |= {"separates": bool(check.separates), "doubt": float(model.model_.doubt)}
    posterior = model.model_.posterior[: len(truth)].numpy()
    found["outside"] = float(np.mean(model.classes_[posterior.argmax(axis=1)] == truth))
    found["claimed_outside"] = float(posterior.max(axis=1).mean())
    return found


def z_scored(X: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with mean zero and variance one in the first; constant features stay."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    std = np.where(std > 0, std, 1)
    return (X - mean) / std, (new - mean) / std


# -------------------------------------------------------------------- Lost and MSRCv2


def partial_label(options: argparse.Namespace) -> Jobs:
    """Halves and four fifths of the permutation of every seed."""
    for seed in range(options.seeds):
        for data in ("lost", "MSRCv2"):
            whole = DATASETS.get(data).load("all")
            order = np.random.default_rng(seed).permutation(len(whole))
            for split, share in (("50/50", 0.5), ("80/20", 0.8)):
                train, test = np.split(order, [int(share * len(order))])
                yield from _on_real_set(data, whole, split, seed, train, test)


def folds(options: argparse.Namespace) -> Jobs:
    """Ten folds of the permutation of seed 0; the seed of a row is its fold."""
    del options
    for data in ("lost", "MSRCv2"):
        whole = DATASETS.get(data).load("all")
        parts = np.array_split(np.random.default_rng(0).permutation(len(whole)), 10)
        for fold, test in enumerate(parts):
            train = np.concatenate([part for i, part in enumerate(parts) if i != fold])
            yield from _on_real_set(data, whole, "ten folds", fold, train, test)


def _on_real_set(
    data: str, whole: Any, split: str, seed: int, train: np.ndarray, test: np.ndarray
) -> Jobs:
    truth, mask = np.asarray(whole.true_labels), whole.candidates.mask
    X, new = z_scored(whole.X[train], whole.X[test])
    problem = Problem(X, mask[train], truth[train], new, truth[test])
    for method in (DEFAULT, "evidence", "paper's rule", *LEARNERS):
        where = {"data": data, "split": split, "seed": seed, "method": method}
        yield where, lambda method=method: measured(method, problem, seed)


# -------------------------------------------------------------------- unequal classes


def unequal(options: argparse.Namespace) -> Jobs:
    """Classes of Pareto sizes: round ones in 64 features, near and far, and digits."""
    sizes = ((150, 10), (300, 10), (300, 20), (600, 20), (1000, 10), (1000, 50))
    settings = [(kind, *size) for kind in ("round", "round, near") for size in sizes]
    settings += [("digits", n, 10) for n in (150, 300, 1000)]
    for seed in range(options.seeds):
        for data, n, n_classes in settings:
            for r in (1, 2, 3):
                rng = np.random.default_rng([seed, n, n_classes, r, len(data)])
                problem = unequal_problem(data, n, n_classes, r, rng)
                more = ("PL-AGGD, not scaled",) if data == "digits" else ()
                for method in (DEFAULT, "evidence", "PL-AGGD", *more):
                    where = {"data": data, "n": n, "classes": n_classes, "r": r, "seed": seed}
                    yield (
                        {**where, "method": method},
                        lambda method=method, problem=problem: measured(method, problem),
                    )


def unequal_problem(data: str, n: int, n_classes: int, r: int, rng: np.random.Generator) -> Problem:
    """Draw classes in proportion to Pareto sizes plus .2, and r distractors evenly."""
    size = rng.pareto(1.0, n_classes) + 0.2
    share = size / size.sum()
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        weight = share[y] / np.bincount(y)[y]
        order = rng.choice(len(y), len(y), replace=False, p=weight / weight.sum())
        train, test = np.split(order, [n])
        X, truth, new, new_truth = X[train], y[train], X[test], y[test]
    else:
        means = rng.normal(size=(n_classes, 64)) * (0.6 if data == "round, near" else 1.0)
        truth, new_truth = (rng.choice(n_classes, size, p=share) for size in (n, 2000))
        X = means[truth] + rng.normal(size=(n, 64))
        new = means[new_truth] + rng.normal(size=(2000, 64))
    return Problem(X, corrupt_mask(truth, n_classes, 1, r, rng), truth, new, new_truth)


# -------------------------------------------------------------------- sets without the truth


def missing(options: argparse.Namespace) -> Jobs:
    """Digits and photos whose sets lack the truth, removed or replaced, with probability q."""
    for seed in range(options.seeds):
        for data in ("digits", "photos") if options.photos else ("digits",):
            for r in (1, 2):
                for how in ("removed", "replaced"):
                    for q in (0.0, 0.05, 0.1, 0.2):
                        if how == "replaced" and not q:
                            continue  # the same as "removed"
                        where = {"data": data, "r": r, "how": how, "q": q, "seed": seed}
                        fit = lambda w=where: _without_truth(options, **w)  # noqa: E731
                        yield {**where, "method": DEFAULT}, fit


def _without_truth(
    options: argparse.Namespace, data: str, r: int, how: str, q: float, seed: int
) -> Figures:
    rng = np.random.default_rng([seed, r])
    X, y = digits_or_photos(options, data, 800, rng)
    mask = corrupt_mask(y, int(y.max()) + 1, 1, r, rng)
    for row in rng.permutation(len(y))[: round(q * len(y))]:
        if how == "replaced":
            mask[row, rng.choice(np.flatnonzero(~mask[row]))] = True
        mask[row, y[row]] = False
    empty = X[:0]
    found = measured(DEFAULT, Problem(X, mask, y, empty, y[:0]))
    return {**found, "inside": float(mask[np.arange(len(y)), y].mean())}


def digits_or_photos(
    options: argparse.Namespace, data: str, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return n samples of scikit-learn's digits, or of the photos' test classes."""
    X, y = load_digits(return_X_y=True) if data == "digits" else photos(options.photos)
    rows = rng.permutation(len(y))[:n]
    return X[rows], y[rows]


@cache
def photos(root: Path, encoder: str = "photos") -> tuple[np.ndarray, np.ndarray]:
    """Return the features of all photos of the test classes, and their labels."""
    data = load_mini_imagenet("test", root=root)
    return embed_images(encoder, data).numpy(), np.asarray(data.labels)


# -------------------------------------------------------------------- small tables


def small(options: argparse.Namespace) -> Jobs:
    """Half of digits, iris and wine, or 25 photos of each of 20 classes; the rest is new."""
    load = {"digits": load_digits, "iris": load_iris, "wine": load_wine}
    for seed in range(options.seeds):
        for data in (*load, "photos") if options.photos else load:
            X, y = load[data](return_X_y=True) if data in load else photos(options.photos)
            rng = np.random.default_rng(seed)
            n = len(y) // 2 if data in load else 500
            train, test = np.split(rng.permutation(len(y)), [n])
            features, new = X[train], X[test]
            if data in ("iris", "wine"):
                features, new = z_scored(features, new)
            for r in (1, 2):
                mask = corrupt_mask(y[train], int(y.max()) + 1, 1, r, np.random.default_rng(seed))
                problem = Problem(features, mask, y[train], new, y[test])
                for method in (DEFAULT, CHECKED, "evidence", "PL-AGGD"):
                    yield (
                        {"data": data, "r": r, "seed": seed, "method": method},
                        lambda method=method, problem=problem: measured(method, problem),
                    )


# -------------------------------------------------------------------- people


def people(options: argparse.Namespace) -> Jobs:
    """Label the 1,000 scenes of LabelMe from what 59 people said."""
    del options
    for method in (DEFAULT, "default, votes only", "default, sets only", "evidence", *PEOPLE):
        yield {"data": "LabelMe", "method": method}, lambda method=method: on_labelme(method)


def on_labelme(method: str, encoder: str = "photos") -> Figures:
    """Label the scenes as ``fspll label`` does."""
    folder = data_dir() / "labelme"
    said = read_annotations(folder / "labels.csv")
    if method in ("default, votes only", "default, sets only"):
        said = replace(said, judgments=None)
    if method == "default, sets only":
        said = replace(said, votes=(said.votes > 0).astype(float))
    if method in PEOPLE:
        how = {"method": method}
    else:
        how = {"rectifier": "evidence" if method == "evidence" else "adaptive"}
    start = time.perf_counter()
    found = label(said, encoder=encoder, images=_labelme_pictures(), **how)
    seconds = time.perf_counter() - start
    truth = _labelme_truth(found.names)
    right, confidence = found.labels == truth, np.asarray(found.confidence)
    column = {name: place for place, name in enumerate(found.classes.tolist())}
    at = np.array([column[name] for name in truth.tolist()])
    sure = confidence >= 0.99
    figures: Figures = {
        "labels": float(right.mean()),
        "claimed": float(confidence.mean()),
        "error": calibration_error(confidence, right),
        "inside": float(found.candidates.mask[np.arange(len(at)), at].mean()),
        "sure": float(sure.mean()),
        "sure_right": float(right[sure].mean()) if sure.any() else None,
        "seconds": seconds,
    }
    if isinstance(found.classifier, FsPLLClassifier):
        figures |= of_check(found.classifier, truth)
    return figures


def _labelme_truth(names: Sequence[str]) -> np.ndarray:
    with (data_dir() / "labelme" / "truth.csv").open(newline="") as file:
        known = {row["image"]: row["label"] for row in csv.DictReader(file)}
    return np.array([known[name] for name in names])


@cache
def _labelme_pictures() -> Path:
    """Unpack the pictures; features are found again by their content."""
    folder = tempfile.mkdtemp(prefix="labelme-")
    with zipfile.ZipFile(data_dir() / "labelme" / "images.zip") as archive:
        archive.extractall(folder)
    return Path(folder)


def audit(options: argparse.Namespace) -> Jobs:
    """Check 30 labels of LabelMe drawn at random, 20 times; label again after some of them."""
    del options
    for seed in range(20):
        yield (
            {"data": "LabelMe", "seed": seed, "method": DEFAULT},
            lambda seed=seed: _audited(seed, again=seed < 6),
        )


def _audited(seed: int, *, again: bool) -> Figures:
    """Return what an audit says of the share of right labels, and what is claimed after it."""
    said, found, truth = _labelme_labeling()
    drawn = draw_audit(found, 30, seed=seed)
    assert drawn is not None
    known = dict(zip(found.names, truth.tolist(), strict=True))
    checked = drawn.answered({name: known[name] for name in drawn.samples})
    low, high = checked.interval
    figures: Figures = {
        "labels": float(np.mean(found.labels == truth)),
        "audited": checked.share,
        "low": low,
        "high": high,
    }
    if again:
        after = label(said, encoder="photos", images=_labelme_pictures(), audited=checked)
        figures["labels_after"] = float(np.mean(after.labels == truth))
        figures["claimed_after"] = float(np.mean(after.confidence))
    return figures


@cache
def _labelme_labeling() -> tuple[Any, Any, np.ndarray]:
    said = read_annotations(data_dir() / "labelme" / "labels.csv")
    found = label(said, encoder="photos", images=_labelme_pictures())
    return said, found, _labelme_truth(found.names)


# -------------------------------------------------------------------- other writers


def writers(options: argparse.Namespace) -> Jobs:
    """Predict all other digits with the model of docs/examples/characters.md, of a few writers."""
    for seed in range(options.seeds):
        where = {"data": "digits", "seed": seed, "method": CHECKED}
        yield where, lambda seed=seed: _other_writers(seed)


def _other_writers(seed: int) -> Figures:
    digits = load_digits()
    pictures = [
        Image.fromarray((one * 15).astype(np.uint8)).resize((28, 28), Image.Resampling.BICUBIC)
        for one in digits.images
    ]
    rng = np.random.default_rng(seed)
    train = np.concatenate([np.flatnonzero(digits.target == digit)[:20] for digit in range(10)])
    new = np.setdiff1d(np.arange(len(pictures)), train)
    truth = digits.target[train]
    mask = corrupt_mask(truth, 10, 1.0, 2, rng)
    model = FsPLLClassifier(embedding="omniglot-conv4", rectifier=OURS[CHECKED])
    model.fit([pictures[row] for row in train], mask)
    probability = model.predict_proba([pictures[row] for row in new])
    return {
        "labels": float(np.mean(model.labels_ == truth)),
        "claimed": float(np.asarray(model.confidence_).max(axis=1).mean()),
        "test": float(np.mean(probability.argmax(axis=1) == digits.target[new])),
        "claimed_test": float(probability.max(axis=1).mean()),
    }


# -------------------------------------------------------------------- features that tell nothing


def wrong(options: argparse.Namespace) -> Jobs:
    """Noise, shuffled rows and the wrong encoder, and the same samples with good features."""
    for seed in range(options.seeds):
        for data in ("digits", "photos") if options.photos else ("digits",):
            kinds = ("good", "shuffled", "noise")
            for features in (*kinds, "omniglot-conv4") if data == "photos" else kinds:
                for n, r in ((100, 1), (100, 2), (500, 1), (500, 2), (1500, 2)):
                    where = {"data": data, "features": features, "n": n, "r": r, "seed": seed}
                    fit = lambda w=where: _with_features(options, **w)  # noqa: E731
                    yield {**where, "method": CHECKED}, fit
    for data in ("lost", "MSRCv2"):
        whole = DATASETS.get(data).load("all")
        truth = np.asarray(whole.true_labels)
        for features in ("good", "shuffled"):
            X, _ = z_scored(whole.X, whole.X)
            if features == "shuffled":
                X = X[np.random.default_rng(0).permutation(len(X))]
            problem = Problem(X, whole.candidates.mask, truth, X[:0], truth[:0])
            where = {"data": data, "features": features, "n": len(X), "seed": 0}
            yield {**where, "method": CHECKED}, lambda p=problem: measured(CHECKED, p)
    for encoder in ("photos", "omniglot-conv4"):
        features = "good" if encoder == "photos" else encoder
        where = {"data": "LabelMe", "features": features, "n": 1000, "seed": 0}
        yield {**where, "method": CHECKED}, lambda e=encoder: on_labelme(DEFAULT, e)


def _with_features(
    options: argparse.Namespace, data: str, features: str, n: int, r: int, seed: int
) -> Figures:
    rng = np.random.default_rng([seed, n, r])
    X, y = load_digits(return_X_y=True) if data == "digits" else photos(options.photos)
    if features == "omniglot-conv4":
        X, y = photos(options.photos, features)
    rows = rng.permutation(len(y))[:n]
    X, y = X[rows], y[rows]
    if features == "shuffled":
        X = X[rng.permutation(n)]
    if features == "noise":
        X = rng.normal(size=(n, 64))
    mask = corrupt_mask(y, int(y.max()) + 1, 1, r, rng)
    return measured(CHECKED, Problem(X, mask, y, X[:0], y[:0]))


# -------------------------------------------------------------------- cost


def cost(options: argparse.Namespace) -> Jobs:
    """Seconds of a fit on one core: 20 round classes, 16 features, three candidates."""
    for seed in range(min(3, options.seeds)):
        for n in (500, 2000, 5000):
            rng = np.random.default_rng(seed)
            y = rng.integers(0, 20, n)
            X = rng.normal(size=(20, 16))[y] + 0.7 * rng.normal(size=(n, 16))
            problem = Problem(X, corrupt_mask(y, 20, 1, 2, rng), y, X[:0], y[:0])
            for method in (CHECKED, "default, not held out", "evidence", "PL-AGGD"):
                if method == "PL-AGGD" and n > 2000:
                    continue
                yield (
                    {"n": n, "seed": seed, "method": method},
                    lambda method=method, problem=problem: {
                        "busy": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
                        **measured(method, problem),
                    },
                )


PARTS: dict[str, Callable[[argparse.Namespace], Jobs]] = {
    "partial-label": partial_label,
    "folds": folds,
    "unequal": unequal,
    "missing": missing,
    "small": small,
    "people": people,
    "audit": audit,
    "writers": writers,
    "wrong": wrong,
    "cost": cost,
}
