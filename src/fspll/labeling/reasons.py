"""Why a label is not settled.

Shapes: n samples, l classes; groups are as many as classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fspll._common.words import listed
from fspll.candidates.sets import Candidates

SURE = 0.9  # probability from which a label counts as settled
FEW = 1.5  # samples that a class is expected to have, below which it has too few
# A set lacks its label about as often as this: what its features make less likely contradicts it.
UNLIKELY = 0.01
MISSING = 0.5  # probability that none of the candidates is right, above which a set is contradicted
_SHOWN = 6


@dataclass(frozen=True)
class Undecided:
    """A sample whose label is not settled, or that contradicts its candidate set.

    Attributes
    ----------
    index : int
        Its row.
    kind : {"inseparable", "naming", "contradiction", "few", "between"}
        "inseparable": its labels always come together, so that no sample tells them apart.
        "naming": the sets leave open which label its whole group carries. "contradiction": its true
        label is probably not among its candidates. "few": a label that it may have has hardly a
        sample of its own. "between": it lies between two classes.
    reason : str
        The same in words, with the labels.
    labels : tuple of label
        The labels in question.
    """

    index: int
    kind: str
    reason: str
    labels: tuple[Any, ...]


def find_undecided(
    candidates: Candidates,
    confidence: np.ndarray,
    top: np.ndarray,
    second: np.ndarray,
    label_mass: np.ndarray,
    by_features: np.ndarray | None,
    naming: np.ndarray | None,
    answered: np.ndarray,
    posterior: np.ndarray | None = None,
) -> list[Undecided]:
    """Explain every label that is less than :data:`SURE`, and every contradiction.

    Parameters
    ----------
    candidates : Candidates
    confidence : array of shape (n,)
    top, second : int arrays of shape (n,)
        Columns of the two likeliest candidates; -1 where there is no second.
    label_mass : array of shape (l,)
        How many samples each label is expected to have.
    by_features : array of shape (n, l), optional
        Probability of belonging to each group, by the features alone.
    naming : array of shape (l, l), optional
        Probability that a group carries a label.
    answered : bool array of shape (n,)
        What a person has settled needs no reason.
    posterior : array of shape (n, l), optional
        The probability of every class, also outside the sets, where held-out samples tell it. Then
        a set is contradicted if none of its labels is right with more than :data:`MISSING`;
        otherwise if the class means make all of them less likely than :data:`UNLIKELY`.
    """
    inseparable = _inseparable(candidates)
    if posterior is None:
        looks_like, contradicts = _contradictions(candidates, by_features, naming)
        rival = second
    else:
        outside = np.where(candidates.mask, 0.0, posterior)
        looks_like, contradicts = outside.argmax(axis=1), outside.sum(axis=1) > MISSING
        rows = np.arange(len(outside))
        others = outside.copy()
        others[rows, top] = 0.0  # a label outside the set may be the one that was given
        best = others.argmax(axis=1)
        likelier = others[rows, best] > np.where(second < 0, 0.0, posterior[rows, second])
        rival = np.where(likelier, best, second)
    found = []
    for row in np.flatnonzero(~answered & (contradicts | (confidence < SURE))).tolist():
        if contradicts[row]:
            found.append(_contradiction(row, candidates, int(looks_like[row])))
        else:
            group = -1 if by_features is None else int(by_features[row].argmax())
            names = None if naming is None else naming[group]
            pair = int(top[row]), int(rival[row])
            if rival[row] != second[row] or rival[row] < 0:
                found.append(_doubted(row, candidates, *pair))
            else:
                found.append(_reason(row, candidates, *pair, inseparable, names, label_mass))
    return found


def _inseparable(candidates: Candidates) -> dict[int, int]:
    """Return, for columns that occur in the same sets as others, the number of their group."""
    column = {label: number for number, label in enumerate(candidates.classes.tolist())}
    groups = candidates.summary().always_together
    return {column[label]: number for number, group in enumerate(groups) for label in group}


def _contradictions(
    candidates: Candidates, by_features: np.ndarray | None, naming: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each sample looks like, and whether that rules its candidates out."""
    if by_features is None or naming is None:
        nothing = np.zeros(len(candidates), dtype=np.int64)
        return nothing, nothing.astype(bool)
    by_label = by_features @ naming
    inside = (by_label * candidates.mask).sum(axis=1)
    return by_label.argmax(axis=1), inside < UNLIKELY


def _contradiction(row: int, candidates: Candidates, looks_like: int) -> Undecided:
    label = candidates.classes[looks_like].item()
    labels = candidates.names(row)
    given = listed(labels, _SHOWN)
    reason = f"lies among samples of {label}, which is not among its candidates ({given})"
    return Undecided(row, "contradiction", reason, (label, *labels))


def _doubted(row: int, candidates: Candidates, top: int, rival: int) -> Undecided:
    """Explain a label whose rival, if there is any, is not among the candidates."""
    label = candidates.classes[top].item()
    if rival < 0:
        return Undecided(row, "between", f"{label} is its only candidate, but not sure", (label,))
    other = candidates.classes[rival].item()
    reason = f"lies between {label} and {other}, which is not among its candidates"
    return Undecided(row, "between", reason, (label, other))


def _reason(
    row: int,
    candidates: Candidates,
    top: int,
    second: int,
    inseparable: dict[int, int],
    names: np.ndarray | None,
    label_mass: np.ndarray,
) -> Undecided:
    classes = candidates.classes
    labels = tuple(classes[[top, second]].tolist())
    both = f"{labels[0]} and {labels[1]}"
    if top in inseparable and inseparable[top] == inseparable.get(second):
        first, last = classes[sorted((top, second))]  # which of two equals comes first is chance
        reason = f"{first} and {last} always come together: no sample tells them apart"
        return Undecided(row, "inseparable", reason, labels)
    if names is not None and names.max() < SURE:
        likely = np.argsort(-names, kind="stable")
        open_names = classes[[c for c in likely if names[c] > 0.05]].tolist()
        reason = f"the sets leave open whether its group is {listed(open_names, _SHOWN, ' or ')}"
        return Undecided(row, "naming", reason, tuple(open_names))
    few = [c for c in (top, second) if label_mass[c] < FEW]
    if few:
        label = classes[few[0]]
        reason = f"hardly any sample of {label} is known, so {both} are hard to tell apart"
        return Undecided(row, "few", reason, labels)
    return Undecided(row, "between", f"lies between {both}", labels)
