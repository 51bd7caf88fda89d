"""How an episode becomes a loss by way of prototypes, under any regime that uses them.

The learner hands a regime's objective a :class:`Solved` that holds only the labels which the regime
declares, so no objective can read a label it is not meant to see. Shapes: n support samples, q
queries, l classes, m features, C channels, S pixels per side.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.embeddings.networks.architectures import network_for_images
from fspll.metalearning import REGIMES, objectives
from fspll.metalearning.plan import TrainingPlan
from fspll.rectifiers.base import Rectifier
from fspll.rectifiers.equations import class_prototypes, distances
from fspll.tasks import Tasks


class Outcome(NamedTuple):
    """What one episode gave."""

    loss: Tensor  # scalar, differentiable
    query_accuracy: float  # for people to follow; nothing is learned from it


class Learner(Protocol):
    """What the trainer trains."""

    adapts: ClassVar[bool]  # whether the network takes gradient steps on every task's support set
    network: nn.Module

    def __init__(self, plan: TrainingPlan, in_channels: int, size: int) -> None:
        """Make the network for images of ``size`` with ``in_channels``."""

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the loss of a task; images (n + q, C, S, S), support first."""

    def held_out_score(self, images: Tensor, task: Tasks) -> float:
        """Return a score on a held-out task, larger is better, from the labels it may see.

        ``images`` of shape (n, C, S, S) are those of the support set.
        """


class View(NamedTuple):
    """What a regime may see of an episode.

    Labels are candidate sets throughout; precise labels are sets of one.
    """

    support: Tensor  # (n, m) embeddings
    support_labels: Tensor  # (n, l) bool
    query: Tensor  # (q, m) embeddings
    query_labels: Tensor | None  # (q, l) bool


class Solved(NamedTuple):
    """A view with its confidence and prototypes: what an objective is a function of."""

    view: View
    confidence: Tensor  # (n, l), a constant in the backward pass
    prototypes: Tensor  # (l, m), differentiable
    present: Tensor  # (l,) bool, whether a class has a prototype
    metric: str

    @property
    def query_labels(self) -> Tensor:
        """Candidate sets of the queries, (q, l) bool, unless the regime hides them."""
        if self.view.query_labels is None:
            raise InputError("this objective reads query labels, but the regime hides them")
        return self.view.query_labels

    def query_log_p(self) -> Tensor:
        """Log of Eq. (4) for the queries, of shape (q, l)."""
        distance = distances(self.view.query, self.prototypes, self.metric)
        return objectives.log_probabilities(distance, self.present)

    def support_log_p(self) -> tuple[Tensor, Tensor]:
        """Log of Eq. (4) for each support sample by prototypes computed without it.

        See :func:`fspll.metalearning.objectives.leave_one_out_log_probabilities`.
        """
        return objectives.leave_one_out_log_probabilities(
            distances(self.view.support, self.prototypes, self.metric),
            self.confidence,
            squared=self.metric == "sqeuclidean",
        )


def solve(view: View, rectifier: Rectifier | None, metric: str) -> Solved:
    """Rectify the support's confidence and compute the prototypes, Eq. (1).

    Parameters
    ----------
    view : View
    rectifier : Rectifier, optional
        None gives every candidate the same weight.
    metric : {"euclidean", "sqeuclidean"}
    """
    labels = view.support_labels
    if rectifier is not None and bool((labels.sum(dim=-1) > 1).any()):
        with torch.no_grad():
            fitted = rectifier.fit(view.support.detach(), Observed(labels))
        weights = fitted.confidence if fitted.weights is None else fitted.weights
        assert isinstance(weights, Tensor)  # sparse only where there are very many samples
        confidence = weights.to(view.support.dtype)
    else:  # with sets of one, Eq. (3) would only blur the class means
        confidence = labels.to(view.support.dtype)
    return Solved(
        view=view,
        confidence=confidence,
        prototypes=class_prototypes(view.support, confidence),
        present=labels.any(dim=-2),
        metric=metric,
    )


class PrototypeLearner:
    """An embedding network under a regime: PN, FsPLL, FsPLL-nM, their + forms and the default.

    Parameters
    ----------
    plan : TrainingPlan
    in_channels, size : int
        Of the images.
    """

    adapts: ClassVar[bool] = False

    def __init__(self, plan: TrainingPlan, in_channels: int, size: int) -> None:
        self.regime = REGIMES.get(plan.regime)
        self.metric = plan.metric
        self.rectifier = self.regime.rectifier(plan) if self.regime.rectifier else None
        self.network = network_for_images(plan.architecture, in_channels, size, seed=plan.seed)

    def solve(self, support: Tensor, query: Tensor, task: Tasks) -> Solved:
        """Return what the regime may see of embeddings (n, m) and (q, m), with prototypes."""
        shown, asked = self.regime.visible_labels(task)
        device = support.device
        view = View(support, shown.to(device), query, None if asked is None else asked.to(device))
        return solve(view, self.rectifier, self.metric)

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the regime's loss; images (n + q, C, S, S), support first."""
        n = len(task.support_labels)
        embedded = self.network(images)
        solved = self.solve(embedded[:n], embedded[n:], task)
        loss = self.regime.objective(solved)
        with torch.no_grad():
            nearest = solved.query_log_p().argmax(dim=-1).cpu()
            accuracy = (nearest == torch.from_numpy(task.query_labels)).float().mean().item()
        return Outcome(loss, accuracy)

    @torch.no_grad()
    def held_out_score(self, images: Tensor, task: Tasks) -> float:
        """Share of support samples whose class, found without them, is among their labels.

        It reads the labels that the regime shows and no others: choosing an epoch by it never
        looks at a truth that training may not see.
        """
        support = self.network(images[: len(task.support_labels)])
        solved = self.solve(support, support[:0], task)
        log_p, _ = solved.support_log_p()
        best = log_p.argmax(dim=-1, keepdim=True)
        return solved.view.support_labels.gather(-1, best).float().mean().item()
