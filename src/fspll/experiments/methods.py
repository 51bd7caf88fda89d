"""Methods that solve few-shot tasks, found by name: one place decides how each is scored.

:func:`find_method` knows the paper's methods (:data:`METHODS`), every rectifier of
:data:`fspll.rectifiers.RECTIFIERS` and every learner of :data:`fspll.baselines.BASELINES`, those of
other packages included. All score tasks in the same way, ``method.score(samples, tasks)``, whatever
they need of the samples.

Shapes: B tasks, n support samples, q queries, l classes, m features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll._common.registry import Registry
from fspll._common.words import did_you_mean
from fspll.baselines import BASELINES
from fspll.candidates.observed import Observed
from fspll.datasets.base import ImageSet
from fspll.diagnosis.analysis import ceiling
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.encoders.network import NetworkEncoder
from fspll.embeddings.features import embed_images
from fspll.embeddings.inputs import image_tensor
from fspll.embeddings.networks.conv4 import Conv4Classifier
from fspll.experiments.statistics import calibration_error
from fspll.metalearning import REGIMES
from fspll.metalearning.adaptation import solve_task
from fspll.rectifiers.base import Rectifier
from fspll.rectifiers.evidence import EvidenceRule
from fspll.rectifiers.paper import EqualWeights, FsPLLRule
from fspll.rectifiers.registry import RECTIFIERS
from fspll.tasks import Tasks, TaskSettings

_FEATURES_AT_ONCE = 1 << 26  # gathered support and query features, 256 MB in float32

# Seconds on one core of an ordinary server: an image of 28 x 28 through the network, with and
# without its gradient. Only ratios matter; see ``Method.seconds``.
STEP_SECONDS, FORWARD_SECONDS = 1.3e-3, 0.45e-3


class Scores(NamedTuple):
    """One accuracy per task, each of shape (B,), and how well probabilities are calibrated.

    A calibration error is the mean distance of confidence to accuracy, over confidence bins that
    run through all tasks; None for methods without probabilities.
    """

    query_accuracy: np.ndarray
    support_accuracy: np.ndarray
    query_calibration: float | None = None
    support_calibration: float | None = None


class Samples:
    """What tasks are drawn from, in the forms that methods need.

    Parameters
    ----------
    data : ImageSet, optional
    encoder : Encoder, optional
        The network that embeds the images, or that is adapted to tasks.
    features : Tensor of shape (n_samples, m), optional
        Without it the encoder embeds the images when a method first asks for features.
    """

    def __init__(
        self,
        data: ImageSet | None = None,
        encoder: Encoder | None = None,
        features: Tensor | None = None,
    ) -> None:
        self.data, self.encoder = data, encoder
        if features is not None:
            self.features = features

    @cached_property
    def features(self) -> Tensor:
        """The embedded samples, of shape (n_samples, m)."""
        if self.encoder is None or self.data is None:
            raise InputError("features need a data set and a network that embeds it")
        return embed_images(self.encoder, self.data)


class Method(ABC):
    """Something that solves tasks: learns from their support, predicts their queries.

    Attributes
    ----------
    name : str
    needs_features, adapts_network : bool
        Whether it works on features of the samples, or adapts a network to every task.
    """

    name: str
    needs_features: ClassVar[bool] = False
    adapts_network: ClassVar[bool] = False

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return all that decides a result, as JSON can hold it: settings, and a revision.

        The revision is that of the rule behind the method. It changes whenever the rule computes
        something else, so that kept results of the rule as it was are not taken for its own.
        """

    @abstractmethod
    def score(self, samples: Samples, tasks: Tasks) -> Scores:
        """Solve a batch of tasks.

        Returns
        -------
        Scores
            Share of queries whose class is right, and share of support samples whose most credible
            candidate is the true one. Among equally credible candidates the first is taken.
        """

    def seconds(self, shape: TaskSettings, pixels: float) -> float:
        """Return roughly what a task costs, for the order of work and the time left.

        Parameters
        ----------
        shape : TaskSettings
        pixels : float
            Of an image, in units of 28 x 28.
        """
        return 5e-5 * shape.n_way * (shape.n_shot + shape.n_query)


# -------------------------------------------------------------------- prototypes


@dataclass(frozen=True)
class Prototypes(Method):
    """Prototypes from candidate sets by a rectifier, for many tasks at once."""

    name: str
    rectifier: Rectifier

    needs_features: ClassVar[bool] = True

    def identity(self) -> dict[str, Any]:
        """Return the rectifier's revision and settings."""
        rule = self.rectifier
        return {"method": self.name, "revision": rule.revision, "settings": rule.settings()}

    def with_settings(self, **changes: Any) -> Prototypes:
        """Return the method with some settings of its rectifier changed."""
        rectifier: Any = self.rectifier  # a dataclass
        return replace(self, rectifier=replace(rectifier, **changes))

    def solve(self, support: Tensor, candidates: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of the support's candidates and of the queries' classes.

        Parameters
        ----------
        support : Tensor of shape (B, n, m)
        candidates : bool Tensor of shape (B, n, l)
        query : Tensor of shape (B, q, m)

        Returns
        -------
        support_probabilities : Tensor of shape (B, n, l)
        query_probabilities : Tensor of shape (B, q, l)
        """
        fitted = self.rectifier.fit(support, Observed(candidates))
        return torch.as_tensor(fitted.confidence), fitted.predict_proba(query)

    def score(self, samples: Samples, tasks: Tasks) -> Scores:
        """Solve as many tasks at once as memory allows."""
        if tasks.support.ndim != 2 or not tasks.query.shape[1]:
            raise InputError("scores need a batch of tasks with queries")
        features = samples.features
        per_task = (tasks.support.shape[1] + tasks.query.shape[1]) * features.shape[1]
        at_once = max(1, _FEATURES_AT_ONCE // per_task)
        truths = [torch.from_numpy(t) for t in (tasks.support_labels, tasks.query_labels)]
        hits: list[list[Tensor]] = [[], []]
        sure: list[list[Tensor]] = [[], []]
        for start in range(0, len(tasks.support), at_once):
            part = slice(start, start + at_once)
            solved = self.solve(
                features[torch.from_numpy(tasks.support[part])],
                torch.from_numpy(tasks.candidates[part]).to(features.device),
                features[torch.from_numpy(tasks.query[part])],
            )
            for probabilities, truth, hit, confidence in zip(
                solved, truths, hits, sure, strict=True
            ):
                best = probabilities.cpu().max(dim=-1)
                hit.append(best.indices == truth)
                confidence.append(best.values)
        support_hits, query_hits = (torch.cat(parts).numpy() for parts in hits)
        support_sure, query_sure = (torch.cat(parts).numpy() for parts in sure)
        return Scores(
            query_accuracy=query_hits.mean(axis=1),
            support_accuracy=support_hits.mean(axis=1),
            query_calibration=calibration_error(query_sure, query_hits),
            support_calibration=calibration_error(support_sure, support_hits),
        )

    def seconds(self, shape: TaskSettings, pixels: float) -> float:
        """Return roughly what a task costs."""
        return self.rectifier.seconds(shape.n_way * shape.n_shot, shape.n_way)


# -------------------------------------------------------------------- partial-label learners


@dataclass(frozen=True)
class Baseline(Method):
    """A partial-label learner of :data:`fspll.baselines.BASELINES`, fitted to each task."""

    name: str

    needs_features: ClassVar[bool] = True

    @cached_property
    def _estimator(self) -> Any:
        estimator = BASELINES.get(self.name)()
        # What is drawn is drawn the same again, so that a resumed run repeats itself.
        seeded = {"random_state": 0} if "random_state" in estimator.get_params() else {}
        return estimator.set_params(**seeded)

    def identity(self) -> dict[str, Any]:
        """Return the learner's revision and parameters."""
        revision = getattr(self._estimator, "revision", "1")
        parameters = self._estimator.get_params()
        return {"method": self.name, "revision": revision, "settings": parameters}

    def score(self, samples: Samples, tasks: Tasks) -> Scores:
        """Solve the tasks one by one."""
        from sklearn.base import clone

        rows = samples.features.cpu().numpy()
        query, support = [], []
        for known, asked, mask in zip(tasks.support, tasks.query, tasks.candidates, strict=True):
            model = clone(self._estimator).fit(rows[known], mask)
            query.append(np.mean(model.predict(rows[asked]) == tasks.query_labels))
            found = model.labels_ if hasattr(model, "labels_") else model.predict(rows[known])
            support.append(np.mean(found == tasks.support_labels))
        return Scores(np.array(query), np.array(support))

    def seconds(self, shape: TaskSettings, pixels: float) -> float:
        """Return roughly what a task costs."""
        return 0.01 + 6e-7 * (shape.n_way * shape.n_shot) ** 2


# -------------------------------------------------------------------- MAML and the ceiling


@dataclass(frozen=True)
class Maml(Method):
    """A network that was meta-trained to be adapted, by some gradient steps on each task.

    ``steps`` is how many, ``rate_factor`` their rate in units of the one that the network was
    trained with. The loss of a step is that of the network's regime.
    """

    name: str = "MAML"
    steps: int = 10
    rate_factor: float = 1.0

    revision: ClassVar[str] = "1"
    adapts_network: ClassVar[bool] = True

    def identity(self) -> dict[str, Any]:
        """Return the revision of the adaptation, its number of steps and their rate."""
        settings = {"steps": self.steps, "rate_factor": self.rate_factor}
        return {"method": self.name, "revision": self.revision, "settings": settings}

    def score(self, samples: Samples, tasks: Tasks) -> Scores:
        """Adapt the network to each task."""
        if samples.data is None or not isinstance(samples.encoder, NetworkEncoder):
            raise InputError(f"{self.name} needs images and a network to adapt")
        plan = samples.encoder.metadata.get("training", {}).get("plan", {})
        rate = float(plan.get("inner_rate", 0.5)) * self.rate_factor
        settings: dict[str, Any] = {"steps": self.steps, "rate": rate}
        if plan.get("regime") in REGIMES:
            settings["objective"] = REGIMES.get(plan["regime"]).objective
        return score_maml(samples.encoder.network, samples.data, tasks, **settings)

    def seconds(self, shape: TaskSettings, pixels: float) -> float:
        """Return roughly what a task costs."""
        adapting = STEP_SECONDS * shape.n_shot * self.steps
        return (adapting + FORWARD_SECONDS * shape.n_query) * shape.n_way * pixels


def score_maml(network: nn.Module, data: ImageSet, tasks: Tasks, **settings: Any) -> Scores:
    """Adapt a MAML network to each task of a batch and score it.

    ``settings`` are those of :func:`~fspll.metalearning.adaptation.solve_task`.
    """
    query, support = [], []
    for rows, candidates in zip(
        np.concatenate([tasks.support, tasks.query], axis=1), tasks.candidates, strict=True
    ):
        known, guessed = solve_task(
            network,
            image_tensor(data.images[rows]),
            torch.from_numpy(candidates),
            **settings,
        )
        support.append(np.mean(known.numpy() == tasks.support_labels))
        query.append(np.mean(guessed.numpy() == tasks.query_labels))
    return Scores(np.array(query), np.array(support))


@dataclass(frozen=True)
class Ceiling(Method):
    """The best share of right labels that the candidate sets allow anyone to expect."""

    name: str = "ceiling"

    revision: ClassVar[str] = "1"

    def identity(self) -> dict[str, Any]:
        """Return the revision of the counting; there is nothing to set."""
        return {"method": self.name, "revision": self.revision, "settings": {}}

    def score(self, samples: Samples, tasks: Tasks) -> Scores:
        """Count over the candidate sets; samples are not looked at."""
        best = np.array([ceiling(mask, tasks.support_labels) for mask in tasks.candidates])
        return Scores(best, best)


# -------------------------------------------------------------------- by name

METHODS: Registry[Method] = Registry(
    "method",
    "fspll.methods",
    {
        "PN": Prototypes("PN", EqualWeights()),
        "FsPLL-nM": Prototypes("FsPLL-nM", FsPLLRule(manifold_weight=0.0)),
        "FsPLL": Prototypes("FsPLL", FsPLLRule()),
        "Evidence": Prototypes("Evidence", EvidenceRule()),
        "MAML": Maml(),
        "ceiling": Ceiling(),
    },
)
"""What ``fspll evaluate`` knows by name, beside rectifiers and baselines."""
DEFAULT_METHODS = ("PN", "FsPLL-nM", "FsPLL", "adaptive")


def method_names() -> list[str]:
    """Return every name that :func:`find_method` knows."""
    others = dict.fromkeys([*RECTIFIERS, *BASELINES])
    return [*METHODS, *(name for name in others if name not in METHODS)]


def find_method(name: str) -> Method:
    """Return a method by its name; a wrong name lists the right ones.

    Examples
    --------
    >>> find_method("PL-KNN"), find_method("none")
    (Baseline(name='PL-KNN'), Prototypes(name='none', rectifier=EqualWeights(metric='euclidean')))
    """
    if name in METHODS:
        return METHODS.get(name)
    if name in RECTIFIERS:
        return Prototypes(RECTIFIERS.find(name) or name, RECTIFIERS.get(name)())
    if name in BASELINES:
        return Baseline(BASELINES.find(name) or name)
    known = method_names()
    raise InputError(
        f"there is no method {name!r}{did_you_mean(name, known)}; known are {', '.join(known)}"
    )


def adapts(encoder: Encoder) -> bool:
    """Tell whether a network is meant to be adapted to tasks rather than to embed samples."""
    return isinstance(getattr(encoder, "network", None), Conv4Classifier)
