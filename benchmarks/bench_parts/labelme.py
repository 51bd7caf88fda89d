"""Real annotators: the scenes of LabelMe, labeled by us, by cleanlab and by crowd-kit.

All get the same judgments, and where they use features, the same features of the photo encoder.
cleanlab's function takes out-of-sample probabilities of a classifier, for which its guide
proposes a cross-validated one fitted to the majority's labels; that fit is part of its time.
"""

from __future__ import annotations

import csv
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench_parts.rows import SECONDS, SHARE, Row, compare, load, missing, take_turns, value
from fspll._common.errors import MissingPackageError
from fspll._common.files import data_dir
from fspll.annotations import Annotations, read_annotations
from fspll.baselines import BASELINES
from fspll.embeddings import load_embedding
from fspll.labeling import label

Labels = np.ndarray  # (n,) columns of the classes


def labelme(short: bool) -> Iterator[Row]:
    """Label 1,000 scenes from what 59 people said."""
    folder = data_dir() / "labelme"
    absent = [n for n in ("labels.csv", "truth.csv", "images.zip") if not (folder / n).exists()]
    if absent:
        yield missing("LabelMe", f"{', '.join(absent)} not in $FSPLL_DATA/labelme")
        return
    said = read_annotations(folder / "labels.csv")
    if short:
        said = said.take(np.arange(0, len(said), 5))  # they are sorted by class
    try:
        features, seconds = encode(said)
    except MissingPackageError as error:
        yield missing("LabelMe", str(error))
        return
    work = f"{len(said)} scenes, {len(said.judgments or ())} labels"
    yield value("decode and encode the scenes", "pictures/s", len(said) / seconds, work)
    said = replace(said, files=None, features=features)
    truth = true_columns(said)
    reasons: list[Row] = []
    functions = peers(said, reasons)
    repeats = 1 if short else 3
    ours: dict[str, Callable[[], Labels]] = {
        "fspll label": partial(labeled, said),
        **{name: partial(own, name, said) for name in ("CROWDLAB", "Dawid-Skene", "Majority-Vote")},
    }
    right = {name: float(np.mean(find() == truth)) for name, find in ours.items()}
    for name, find in list(functions.items()):
        try:
            right[name] = float(np.mean(find() == truth))
        except Exception as error:  # of theirs; ours are not stopped by it
            reasons.append(missing(name, str(error)))
            del functions[name]
    # Ours against each peer, and the same method by both.
    pairs = [("fspll label", name) for name in functions]
    same = {"CROWDLAB": "cleanlab, CROWDLAB", "Dawid-Skene": "crowd-kit, Dawid-Skene"}
    same["Majority-Vote"] = "crowd-kit, majority vote"
    pairs += [(mine, theirs) for mine, theirs in same.items() if theirs in functions]
    for mine, theirs in pairs:
        both = right[mine], (theirs, right[theirs])
        yield compare(f"{mine}: labels of LabelMe", SHARE, *both, work=work)
        times = take_turns({mine: ours[mine], theirs: functions[theirs]}, repeats)
        both_times = times[mine], (theirs, times[theirs])
        yield compare(f"{mine}: time", SECONDS, *both_times, work=work)
    yield from reasons


def encode(said: Annotations) -> tuple[np.ndarray, float]:
    """Return the photo features (n, m) of the scenes, and the seconds that took."""
    encoder = load_embedding("photos")
    with tempfile.TemporaryDirectory() as name:
        with zipfile.ZipFile(data_dir() / "labelme" / "images.zip") as archive:
            archive.extractall(name)
        found = {path.name: path for path in Path(name).rglob("*.jpg")}
        files = [found[sample] for sample in said.names]
        start = time.perf_counter()
        features = np.asarray(encoder.encode(files))
        return features, time.perf_counter() - start


def true_columns(said: Annotations) -> Labels:
    """Return the true class of each scene, as a column of the classes."""
    with (data_dir() / "labelme" / "truth.csv").open(newline="") as file:
        known = {row["image"]: row["label"] for row in csv.DictReader(file)}
    return np.array([said.classes.index(known[name]) for name in said.names])


def labeled(said: Annotations) -> Labels:
    """Label as the command does, without a page."""
    return columns_of(said, label(said, progress=False).labels)


def own(method: str, said: Annotations) -> Labels:
    """Fit one of our baselines for people."""
    mask = said.votes.toarray() > 0
    return BASELINES.get(method)().fit(said.features, mask, said.judgments).labels_


def columns_of(said: Annotations, labels: np.ndarray) -> Labels:
    """Return names of classes as columns."""
    return np.array([said.classes.index(name) for name in labels])


# -------------------------------------------------------------------- peers


def peers(said: Annotations, reasons: list[Row]) -> dict[str, Callable[[], Labels]]:
    """Return the peers that are installed; why others are not goes to ``reasons``."""
    found: dict[str, Callable[[], Labels]] = {}
    cleanlab = load("cleanlab.multiannotator", reasons)
    if cleanlab is not None:
        found["cleanlab, CROWDLAB"] = partial(by_cleanlab, cleanlab, said)
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")  # which crowd-kit imports
    crowdkit = load("crowdkit.aggregation", reasons, what="crowd-kit")
    if crowdkit is not None:
        table = votes_table(said)
        find = partial(by_crowdkit, said, table)
        found["crowd-kit, majority vote"] = partial(find, crowdkit.MajorityVote)
        found["crowd-kit, Dawid-Skene"] = partial(find, partial(crowdkit.DawidSkene, n_iter=100))
    return found


def votes_table(said: Annotations) -> Any:
    """Return the judgments as a table of task, worker and label."""
    import pandas as pd

    judgments = said.judgments
    assert judgments is not None
    rows = {"task": judgments.rows, "worker": judgments.annotators, "label": judgments.labels}
    return pd.DataFrame(rows)


def by_crowdkit(said: Annotations, table: Any, make: Callable[[], Any]) -> Labels:
    """Aggregate the table."""
    return make().fit_predict(table).reindex(range(len(said))).to_numpy()


def by_cleanlab(cleanlab: Any, said: Annotations) -> Labels:
    """Cross-validate a logistic regression, and let cleanlab find the consensus."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    judgments = said.judgments
    assert judgments is not None
    given = np.full((len(said), judgments.n_annotators), np.nan)
    given[judgments.rows, judgments.annotators] = judgments.labels
    given = given[:, ~np.isnan(given).all(axis=0)]
    majority = cleanlab.get_majority_vote_label(given, verbose=False)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probability = np.zeros((len(said), len(said.classes)))
    present = np.unique(majority)
    found = cross_val_predict(model, said.features, majority, cv=5, method="predict_proba")
    probability[:, present] = found
    result = cleanlab.get_label_quality_multiannotator(given, probability, verbose=False)
    return result["label_quality"]["consensus_label"].to_numpy()
