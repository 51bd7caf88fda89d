"""Methods on many tasks: prototypes all at once from embeddings computed once, MAML one by one.

Shapes: B tasks, n support samples, q queries, l classes, m features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fspll.datasets.images import ImageSet
from fspll.embeddings import image_tensor
from fspll.episodes import Tasks
from fspll.errors import InputError
from fspll.metalearning.maml import solve_task
from fspll.rectification import Settings, distances, rectify

_FEATURES_AT_ONCE = 1 << 26  # gathered support and query features, 256 MB in float32


@dataclass(frozen=True)
class PrototypeMethod:
    """A way to get prototypes from candidate sets, for tasks of any number of shots.

    ``n_neighbors`` is k of Eq. (3); None takes the paper's choice, one less than the shots.
    """

    name: str
    settings: Settings
    n_neighbors: int | None = None

    def settings_for(self, n_shot: int) -> Settings:
        """Return the settings for tasks of ``n_shot`` support samples a class."""
        k = n_shot - 1 if self.n_neighbors is None else self.n_neighbors
        return replace(self.settings, n_neighbors=k)


METHODS = {
    "PN": PrototypeMethod("PN", Settings(n_iterations=0)),
    "FsPLL-nM": PrototypeMethod("FsPLL-nM", Settings(manifold_weight=0.0)),
    "FsPLL": PrototypeMethod("FsPLL", Settings()),
}


class Scores(NamedTuple):
    """One figure a task, each of shape (B,)."""

    query_accuracy: np.ndarray
    support_accuracy: np.ndarray


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
    settings = method.settings_for(tasks.support.shape[1] // n_way)
    per_task = (tasks.support.shape[1] + tasks.query.shape[1]) * features.shape[1]
    support_truth = torch.from_numpy(tasks.support_labels).to(features.device)
    query_truth = torch.from_numpy(tasks.query_labels).to(features.device)
    query, support = [], []
    for part in np.split(
        np.arange(len(tasks.support)),
        np.arange(0, len(tasks.support), max(1, _FEATURES_AT_ONCE // per_task))[1:],
    ):
        rectified = rectify(
            features[torch.from_numpy(tasks.support[part])],
            torch.from_numpy(tasks.candidates[part]).to(features.device),
            settings,
        )
        away = distances(
            features[torch.from_numpy(tasks.query[part])], rectified.prototypes, settings.metric
        )
        predicted = away.masked_fill(~rectified.present.unsqueeze(-2), torch.inf).argmin(-1)
        query.append((predicted == query_truth).float().mean(-1))
        support.append((rectified.confidence.argmax(-1) == support_truth).float().mean(-1))
    return Scores(torch.cat(query).cpu().numpy(), torch.cat(support).cpu().numpy())


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
