"""What the pages show of a result: first what its files say, then what the model says.

Samples have numbers: their rows among the annotations, which never change while the page runs,
whatever is answered or discarded.

Shapes: n samples, l classes, m features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fspll._common.errors import DataError
from fspll.annotations.grid import Grid
from fspll.annotations.samples import Annotations
from fspll.annotations.tables import read_table
from fspll.labeling.folder import LABELS, REVIEW

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling

SETTLED = 0.98  # probability from which a sample may explain another
NEIGHBORS = 6


@dataclass(frozen=True)
class Asked:
    """A question of the review list.

    Attributes
    ----------
    sample : int
    gain : float
        How many labels are expected to become right by the answer.
    right_after : float
        The share of right labels to expect then; 0 where it is not known.
    """

    sample: int
    gain: float
    right_after: float


@dataclass(frozen=True, eq=False)
class View:
    """How sure the labels are, by sample.

    Attributes
    ----------
    labels : list of str or None, of length n
        None for a sample that has none: discarded, or it cannot be read.
    confidence : array of shape (n,)
        NaN where there is no label.
    probabilities : list of dict of str to float, of length n
        Of the candidates, as far as they are known.
    questions : list of Asked
        What to ask, the most useful first.
    reasons : mapping of int to (str, str)
        Why samples need a look: the kind, and a sentence.
    calibrated : bool
        Whether confidences are probabilities.
    labeling : Labeling or None
        Where the view is the model's own.
    features : array of shape (n, m) or None
        With NaN rows for samples that could not be read.
    """

    labels: list[str | None]
    confidence: np.ndarray
    probabilities: list[dict[str, float]]
    questions: list[Asked]
    reasons: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    calibrated: bool = True
    labeling: Labeling | None = None
    features: np.ndarray | None = None

    def neighbors(self, sample: int, settled: np.ndarray, count: int = NEIGHBORS) -> list[int]:
        """Return the nearest samples that are settled, the nearest first.

        Parameters
        ----------
        sample : int
        settled : bool array of shape (n,)
        count : int
        """
        if self.features is None or np.isnan(self.features[sample]).any():
            return []
        others = np.flatnonzero(settled)
        others = others[others != sample]
        if not len(others):
            return []
        apart = self.features[others] - self.features[sample]
        distance = np.einsum("ij,ij->i", apart, apart)
        nearest = np.argsort(distance, kind="stable")[:count]
        return others[nearest].tolist()


def view_of_files(folder: Path, annotations: Annotations) -> View:
    """Return what ``labels.csv`` and ``review.csv`` say, without computing anything."""
    number = {name: row for row, name in enumerate(annotations.names)}
    n = len(number)
    labels: list[str | None] = [None] * n
    confidence = np.full(n, np.nan)
    probabilities: list[dict[str, float]] = [{} for _ in range(n)]
    for row in _rows(folder / LABELS, ("sample", "label", "confidence", "runner_up", "margin")):
        sample = number.get(row["sample"])
        if sample is None:
            continue  # the table has changed since; the model will tell
        labels[sample] = row["label"]
        confidence[sample] = _number(row["confidence"])
        probabilities[sample] = {row["label"]: float(confidence[sample])}
        if row["runner_up"]:
            rest = float(confidence[sample]) - _number(row["margin"])
            probabilities[sample][row["runner_up"]] = max(0.0, rest)
    questions, reasons = [], {}
    for row in _rows(folder / REVIEW, ("sample", "expected_gain", "right_after", "reason")):
        sample = number.get(row["sample"])
        if sample is not None and labels[sample] is not None:
            gain, after = _number(row["expected_gain"]), _number(row["right_after"])
            questions.append(Asked(sample, gain, after))
            if row["reason"]:
                reasons[sample] = ("", row["reason"])
    return View(labels, confidence, probabilities, questions, reasons)


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    grid: Grid = read_table(path, may_be_empty=True)
    missing = [name for name in columns if name not in grid.header]
    if missing:
        raise DataError(f"{path} lacks the column {missing[0]!r}; run fspll label once more")
    places = {name: grid.header.index(name) for name in columns}
    return [{name: str(row[place]) for name, place in places.items()} for row in grid.rows]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def view_of_labeling(result: Labeling, annotations: Annotations) -> View:
    """Return what a model says."""
    number = {name: row for row, name in enumerate(annotations.names)}
    samples = np.array([number[name] for name in result.names], dtype=np.int64)
    n = len(number)
    labels: list[str | None] = [None] * n
    confidence = np.full(n, np.nan)
    confidence[samples] = result.confidence
    probabilities: list[dict[str, float]] = [{} for _ in range(n)]
    classes = list(map(str, result.classes.tolist()))
    entries = result.probabilities
    for row, sample in enumerate(samples.tolist()):
        labels[sample] = str(result.labels[row])
        start, stop = entries.indptr[row : row + 2]
        probabilities[sample] = {
            classes[column]: float(value)
            for column, value in zip(
                entries.indices[start:stop], entries.data[start:stop], strict=True
            )
        }
    features = np.full((n, result.features.shape[1]), np.nan, dtype=np.float32)
    features[samples] = result.features
    return View(
        labels,
        confidence,
        probabilities,
        [Asked(int(samples[one.index]), one.gain, one.right_after) for one in result.review],
        {int(samples[one.index]): (one.kind, one.reason) for one in result.undecided},
        result.calibrated,
        result,
        features,
    )
