"""Methods on many tasks: prototypes all at once from embeddings computed once, MAML one by one.

Shapes: B tasks, n support samples, q queries, l classes, m features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.datasets import ImageSet
from fspll.embeddings import image_tensor
from fspll.experiments.statistics import calibration_error
from fspll.metalearning.maml import solve_task
from fspll.rectifiers import EqualWeights, EvidenceRule, FsPLLRule, Rectifier
from fspll.tasks import Tasks

_FEATURES_AT_ONCE = 1 << 26  # gathered support and query features, 256 MB in float32


@dataclass(frozen=True)
class PrototypeMethod:
    """A rectifier on few-shot tasks of any number of shots."""

    name: str
    rectifier: Rectifier

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
        return fitted.confidence, fitted.predict_proba(query)


METHODS = {
    "PN": PrototypeMethod("PN", EqualWeights()),
    "FsPLL-nM": PrototypeMethod("FsPLL-nM", FsPLLRule(manifold_weight=0.0)),
    "FsPLL": PrototypeMethod("FsPLL", FsPLLRule()),
    "Evidence": PrototypeMethod("Evidence", EvidenceRule()),
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
