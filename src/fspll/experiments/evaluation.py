"""Methods on many tasks: prototypes all at once from embeddings computed once, MAML one by one.

Shapes: B tasks, n support samples, q queries, l classes, m features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll.datasets import ImageSet
from fspll.embeddings import image_tensor
from fspll.experiments.statistics import calibration_error
from fspll.metalearning.maml import solve_task
from fspll.rectifiers.evidence import EvidenceSettings, weigh_evidence
from fspll.rectifiers.paper import Settings, class_probabilities, distances, rectify
from fspll.tasks import Tasks

_FEATURES_AT_ONCE = 1 << 26  # gathered support and query features, 256 MB in float32


@dataclass(frozen=True)
class PrototypeMethod:
    """A way to get prototypes from candidate sets, for tasks of any number of shots.

    ``n_neighbors`` is k of Eq. (3); None takes the paper's choice, one less than the shots.
    """

    name: str
    settings: Settings | EvidenceSettings
    n_neighbors: int | None = None

    def settings_for(self, n_shot: int) -> Settings | EvidenceSettings:
        """Return the settings for tasks of ``n_shot`` support samples a class."""
        k = n_shot - 1 if self.n_neighbors is None else self.n_neighbors
        return replace(self.settings, n_neighbors=k)

    def solve(
        self, support: Tensor, candidates: Tensor, query: Tensor, n_shot: int
    ) -> tuple[Tensor, Tensor]:
        """Return the probabilities of the support's candidates and of the queries' classes.

        Parameters
        ----------
        support : Tensor of shape (B, n, m)
        candidates : bool Tensor of shape (B, n, l)
        query : Tensor of shape (B, q, m)
        n_shot : int

        Returns
        -------
        support_probabilities : Tensor of shape (B, n, l)
        query_probabilities : Tensor of shape (B, q, l)
        """
        settings = self.settings_for(n_shot)
        if isinstance(settings, EvidenceSettings):
            posterior = weigh_evidence(support, candidates, settings)
            return posterior.confidence, posterior.model.probabilities(query)
        rectified = rectify(support, candidates, settings)
        confidence = rectified.confidence
        away = distances(query, rectified.prototypes, settings.metric)
        return (
            confidence / confidence.sum(dim=-1, keepdim=True).clamp_min(1e-30),
            class_probabilities(away, rectified.present),
        )


METHODS = {
    "PN": PrototypeMethod("PN", Settings(n_iterations=0)),
    "FsPLL-nM": PrototypeMethod("FsPLL-nM", Settings(manifold_weight=0.0)),
    "FsPLL": PrototypeMethod("FsPLL", Settings()),
    "Evidence": PrototypeMethod("Evidence", EvidenceSettings()),
}


class Scores(NamedTuple):
    """One figure a task, each of shape (B,), and how well probabilities are calibrated.

    A calibration error is the mean distance of confidence to accuracy, over confidence bins that
    run through all tasks; None for methods without probabilities.
    """

    query_accuracy: np.ndarray
    support_accuracy: np.ndarray
    query_calibration: float | None = None
    support_calibration: float | None = None


def score_tasks(features: Tensor, tasks: Tasks, method: PrototypeMethod) -> Scores:
    """Solve a batch of tasks with one method.

    Parameters
    ----------
    features : Tensor of shape (n_samples, m)
        Embeddings of the whole data set; tasks name its rows.
    tasks : Tasks
        With a leading batch dimension.
    method : PrototypeMethod

    Returns
    -------
    Scores
        Share of queries whose class is right, and share of support samples whose most credible
        candidate is the true one. Among equally credible candidates the first is taken.
    """
    if tasks.support.ndim != 2 or not tasks.query.shape[1]:
        raise InputError("score_tasks needs a batch of tasks with queries")
    n_way = tasks.candidates.shape[-1]
    n_shot = tasks.support.shape[1] // n_way
    per_task = (tasks.support.shape[1] + tasks.query.shape[1]) * features.shape[1]
    at_once = max(1, _FEATURES_AT_ONCE // per_task)
    truths = [torch.from_numpy(t) for t in (tasks.support_labels, tasks.query_labels)]
    hits: list[list[Tensor]] = [[], []]
    sure: list[list[Tensor]] = [[], []]
    for start in range(0, len(tasks.support), at_once):
        part = slice(start, start + at_once)
        solved = method.solve(
            features[torch.from_numpy(tasks.support[part])],
            torch.from_numpy(tasks.candidates[part]).to(features.device),
            features[torch.from_numpy(tasks.query[part])],
            n_shot,
        )
        for probabilities, truth, hit, confidence in zip(solved, truths, hits, sure, strict=True):
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


def score_maml(
    network: nn.Module, data: ImageSet, tasks: Tasks, *, steps: int, rate: float
) -> Scores:
    """Adapt a MAML network to each task of a batch and score it, as :func:`score_tasks` does."""
    query, support = [], []
    for rows, candidates in zip(
        np.concatenate([tasks.support, tasks.query], axis=1), tasks.candidates, strict=True
    ):
        known, guessed = solve_task(
            network,
            image_tensor(data.images[rows]),
            torch.from_numpy(candidates),
            steps=steps,
            rate=rate,
        )
        support.append(np.mean(known.numpy() == tasks.support_labels))
        query.append(np.mean(guessed.numpy() == tasks.query_labels))
    return Scores(np.array(query), np.array(support))
