"""The audit of a labeling: which labels are drawn, and what the model claimed of them."""

from __future__ import annotations

import numpy as np

from fspll.classifier import FsPLLClassifier
from fspll.labeling.audit import Audit, draw
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.result import Labeling


def draw_audit(
    found: Labeling, size: int, earlier: Audit | None = None, *, seed: int = 0
) -> Audit | None:
    """Draw labels at random for a person to check; see :mod:`fspll.labeling.audit`.

    Parameters
    ----------
    found : Labeling
        Samples that a person answered for are not drawn.
    size : int
        How many labels to draw, those of ``earlier`` included.
    earlier : Audit, optional
        A draw to go on with. Its answers stay; labels without an answer are those of ``found``.
    seed : int, default=0
    """
    label_of = dict(zip(found.names, found.labels.tolist(), strict=True))
    samples, labels, answers = [], [], []
    if earlier is not None:
        for name, given, answer in zip(
            earlier.samples, earlier.labels, earlier.answers, strict=True
        ):
            if answer is None and (name not in label_of or name in found.answers):
                continue  # settled in another way
            samples.append(name)
            labels.append(label_of[name] if answer is None else given)
            answers.append(answer)
    if size > len(samples):
        taken = set(samples)
        free = [
            row
            for row, name in enumerate(found.names)
            if not found.answered[row] and name not in taken
        ]
        if free:
            places = draw(found.confidence[free], size - len(samples), (seed, len(samples)))
            for row in np.array(free)[places].tolist():
                samples.append(found.names[row])
                labels.append(label_of[found.names[row]])
                answers.append(None)
    if not samples:
        return None
    content_of = dict(zip(found.names, found.contents, strict=True)) if found.contents else {}
    contents = tuple(content_of.get(name, "") for name in samples)
    return Audit(tuple(samples), tuple(labels), tuple(answers), contents)


def claimed(
    classifier: FsPLLClassifier | BaselineModel, audit: Audit, names: tuple[str, ...]
) -> np.ndarray:
    """Return the probability of every audited label that a person has checked, of shape (k,).

    Parameters
    ----------
    classifier : FsPLLClassifier or BaselineModel
        Fitted without the answers.
    audit : Audit
    names : tuple of str
        The samples that it was fitted to.
    """
    probability = posterior_of(classifier)
    values = classifier.confidence_ if probability is None else probability
    row_of = {name: row for row, name in enumerate(names)}
    column = {str(name): place for place, name in enumerate(classifier.classes_.tolist())}
    found = []
    for name, given, answer in zip(audit.samples, audit.labels, audit.answers, strict=True):
        if answer is not None:
            place = column.get(str(given))
            found.append(0.0 if place is None else float(values[row_of[name], place]))
    return np.array(found)


def posterior_of(classifier: FsPLLClassifier | BaselineModel) -> np.ndarray | None:
    """Return the probability of every class (n, l), where samples were held out."""
    if isinstance(classifier, BaselineModel):
        return None
    found = getattr(classifier.model_, "posterior", None)
    return None if found is None else found.double().cpu().numpy()
