"""How an episode becomes a loss: prototypes under a regime. MAML has a file of its own."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from fspll.embeddings import build_network
from fspll.metalearning.objectives import leave_one_out_log_probabilities
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.regimes import find_regime
from fspll.rectifiers.paper import distances
from fspll.tasks import Tasks


class Outcome(NamedTuple):
    """What one episode gave."""

    loss: Tensor  # scalar, differentiable
    query_accuracy: float  # for the eyes of people only; no learner sees it


class Learner(Protocol):
    """What the trainer trains."""

    network: nn.Module

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the loss of a task whose support and query images follow one another."""

    def judge(self, images: Tensor, task: Tasks) -> float:
        """Return a figure of merit on a held-out task, larger is better, from visible labels."""


class PrototypeLearner:
    """An embedding network under a regime: PN, FsPLL, FsPLL-nM and their + forms.

    Parameters
    ----------
    plan : TrainingPlan
    in_channels, size : int
        Of the images.
    """

    def __init__(self, plan: TrainingPlan, in_channels: int, size: int) -> None:
        self.regime = find_regime(plan.regime)
        self.metric = plan.metric
        self.n_neighbors = plan.n_shot - 1
        settings = {"in_channels": in_channels}
        if plan.architecture == "conv4":
            settings["size"] = size
        self.network = build_network(plan.architecture, seed=plan.seed, **settings)

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the regime's loss; images (n + q, C, S, S), support first."""
        n = len(task.support_labels)
        embedded = self.network(images)
        view = self.regime.view(embedded[:n], embedded[n:], task)
        solved = self.regime.solve(view, self.n_neighbors, self.metric)
        loss = self.regime.loss(solved)
        with torch.no_grad():
            nearest = solved.query_log_p().argmax(dim=-1).cpu()
            accuracy = (nearest == torch.from_numpy(task.query_labels)).float().mean().item()
        return Outcome(loss, accuracy)

    @torch.no_grad()
    def judge(self, images: Tensor, task: Tasks) -> float:
        """Share of support samples whose class, found without them, is among their labels.

        It reads the labels that the regime shows and no others: choosing an epoch by it never
        looks at a truth that training may not see.
        """
        n = len(task.support_labels)
        support = self.network(images[:n])
        view = self.regime.view(support, support[:0], task)
        solved = self.regime.solve(view, self.n_neighbors, self.metric)
        log_p, _ = leave_one_out_log_probabilities(
            distances(support, solved.prototypes, self.metric),
            solved.confidence,
            squared=self.metric == "sqeuclidean",
        )
        best = log_p.argmax(dim=-1, keepdim=True)
        return view.support_labels.gather(-1, best).float().mean().item()
