"""A few-shot task to play with: drawn characters, candidate sets, three methods, the ceiling.

Characters are drawn by code and have letters for names. Everything follows from four numbers, so
an address that holds them shows the same task again.

Shapes: n given drawings, q new ones, l classes, m features, T steps.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fspll._common.arguments import is_integer
from fspll._common.errors import InputError
from fspll.classifier import FsPLLClassifier
from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.diagnosis.analysis import Diagnosis, diagnose
from fspll.embeddings.registry import load_embedding
from fspll.rectifiers.prototypes import shares
from fspll.tasks import TaskSettings, TaskSource

ENCODER = "omniglot-conv4"
LETTERS = "ABCDEFGHIJKLMNOPQRST"
AS_GIVEN = "as given"  # the step before anything is computed
N_QUERY = 5  # new drawings per class
_CHARACTERS = 100  # to draw classes from, all of the test split
_MOST_SEED = 999_999
_KEPT = 32  # solved tasks, so that drawing on the pad fits nothing again
_TINY = 1e-3  # difference of probabilities that nobody sees


class Method(NamedTuple):
    """One of the methods that are compared."""

    key: str
    title: str
    rectifier: str
    about: str  # one sentence for somebody who has never read of it


METHODS = (
    Method(
        "pn",
        "PN",
        "none",
        "Averages over all candidates, each counting the same; its label for a drawing is a blind "
        "pick.",
    ),
    Method(
        "fspll",
        "FsPLL",
        "fspll",
        "The paper's rule: candidates count more where their class is near and similar drawings "
        "agree.",
    ),
    Method(
        "default",
        "fspll's default",
        "adaptive",
        "Compares the candidate sets of similar drawings and gives each label to one group only.",
    ),
)


@dataclass(frozen=True)
class Settings:
    """Which task to show.

    Attributes
    ----------
    classes : int
        How many characters, 3 to 20.
    samples : int
        Drawings of each, 1 to 10.
    candidates : int
        Labels per drawing, 1 to ``classes``.
    seed : int
        The number of the task.
    """

    classes: int
    samples: int
    candidates: int
    seed: int

    def __post_init__(self) -> None:
        _check_between("classes", self.classes, 3, len(LETTERS))
        _check_between("samples", self.samples, 1, 10)
        _check_between("candidates", self.candidates, 1, self.classes)
        _check_between("seed", self.seed, 0, _MOST_SEED)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Settings:
        """Read the settings of a request."""
        return cls(**{field.name: given.get(field.name) for field in fields(cls)})  # type: ignore[arg-type]


def _check_between(name: str, value: Any, least: int, most: int) -> None:
    if not is_integer(value) or not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, not {value!r:.60}")


class Characters(NamedTuple):
    """All drawings that tasks are made of."""

    images: np.ndarray  # (N, 28, 28) uint8, bright ink
    labels: np.ndarray  # (N,)
    features: np.ndarray  # (N, m)


@dataclass(frozen=True, eq=False)
class Solved:
    """A task and what the methods made of it.

    Attributes
    ----------
    given, new : int64 arrays of shape (n,) and (q,)
        Rows of the drawings among all characters, class by class, as the task has them.
    truth, new_truth : int64 arrays of shape (n,) and (q,)
        Their true labels.
    given_order, new_order : int64 arrays of shape (n,) and (q,)
        Orders to show them in that do not give their classes away.
    candidates : bool array of shape (n, l)
    models : dict of str to FsPLLClassifier
        Fitted to the given drawings, by the keys of ``METHODS``.
    diagnosis : Diagnosis
        What the candidate sets can decide.
    """

    given: np.ndarray
    truth: np.ndarray
    candidates: np.ndarray
    new: np.ndarray
    new_truth: np.ndarray
    given_order: np.ndarray
    new_order: np.ndarray
    models: dict[str, FsPLLClassifier]
    diagnosis: Diagnosis


_WORKING = threading.Lock()


def solve(settings: Settings) -> Solved:
    """Return the task with these settings, solved; one at a time, the latest ones are kept."""
    with _WORKING:
        return _solve(settings)


@lru_cache(maxsize=_KEPT)
def _solve(settings: Settings) -> Solved:
    drawn = characters()
    shape = TaskSettings(settings.classes, settings.samples, N_QUERY, r=settings.candidates - 1)
    task = TaskSource(drawn.labels, shape, seed=settings.seed).task(0)
    models = {
        method.key: FsPLLClassifier(rectifier=method.rectifier, device="cpu").fit(
            drawn.features[task.support], task.candidates, trace=True
        )
        for method in METHODS
    }
    rng = np.random.default_rng(settings.seed)
    given_order, new_order = (
        np.argsort(rng.random(len(rows)), kind="stable") for rows in (task.support, task.query)
    )
    return Solved(
        given=task.support,
        truth=task.support_labels,
        candidates=task.candidates,
        new=task.query,
        new_truth=task.query_labels,
        given_order=given_order,
        new_order=new_order,
        models=models,
        diagnosis=diagnose(task.candidates, task.support_labels, n_ask=0),
    )


@cache
def characters() -> Characters:
    """Draw and embed all characters, once; about two seconds."""
    drawn = load_glyphs(_CHARACTERS, split="test")
    return Characters(drawn.images, drawn.labels, encode(drawn.images))


def encode(images: np.ndarray) -> np.ndarray:
    """Return the features (n, m) of pictures (n, 28, 28), uint8 with bright ink."""
    return _encoder().encode(images, polarity="bright-ink")


@cache
def _encoder() -> Any:
    return load_embedding(ENCODER, device="cpu")


def classify(solved: Solved, picture: np.ndarray) -> dict[str, list[float]]:
    """Return each method's probability of every class for a picture (28, 28)."""
    features = encode(picture[None])
    return {key: model.predict_proba(features)[0].tolist() for key, model in solved.models.items()}


class Step(NamedTuple):
    """What a method thinks after a round, or in the end."""

    name: str
    confidence: np.ndarray  # (n, l)
    prototypes: np.ndarray  # (l, m)


def steps(model: FsPLLClassifier, features: np.ndarray) -> list[Step]:
    """Return how a method came to its result, step by step.

    First come the candidates as given, all of a drawing equally likely; last comes the result. It
    is a step of its own where it is not what the last round says: the default settles which label
    each group of drawings has after the rounds.

    Parameters
    ----------
    model : FsPLLClassifier
        Fitted with ``trace=True``.
    features : array of shape (n, m)
    """
    mask = model.candidates_.mask
    given, result = mask / mask.sum(axis=1, keepdims=True), np.asarray(model.confidence_)
    found = []
    if model.trace_ is not None:
        rounds = shares(model.trace_.confidence).cpu().numpy()
        moving = model.trace_.prototypes.cpu().numpy()
        found = [
            Step(f"round {number}" if number else "start", one, where)
            for number, (one, where) in enumerate(zip(rounds, moving, strict=True))
        ]
    if found and _are_close(found[-1].confidence, result):
        found[-1] = found[-1]._replace(confidence=result)
    else:
        found.append(Step("result", result, _class_means(result, features)))
    if _are_close(found[0].confidence, given):
        return [found[0]._replace(name=AS_GIVEN), *found[1:]]
    return [Step(AS_GIVEN, given, _class_means(given, features)), *found]


def _are_close(one: np.ndarray, other: np.ndarray) -> bool:
    return np.allclose(one, other, rtol=0, atol=_TINY)


def _class_means(confidence: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the means (l, m) of drawings, each weighted by how likely it is of the class."""
    mass = confidence.sum(axis=0)[:, None]
    means = confidence.T @ features / np.maximum(mass, _TINY)
    return np.where(mass > _TINY, means, features.mean(axis=0))
