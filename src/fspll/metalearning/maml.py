"""MAML on candidate sets: a network that a few gradient steps adapt to a task.

C. Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep
Networks" (2017). The weights theta are stepped on the support loss, theta' = theta - alpha grad
L_support, and the loss of theta' on the queries is differentiated through those steps. Where labels
are candidate sets, both losses are averaged over the candidates; with sets of one this is plain
MAML.

Shapes: n support samples, q queries, l classes, C channels, S pixels per side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings import Conv4Classifier, network_for_images
from fspll.metalearning import REGIMES
from fspll.metalearning.objectives import average_over_candidates
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Outcome
from fspll.tasks import Tasks

Weights = Mapping[str, Tensor]
Objective = Callable[[Tensor, Tensor], Tensor]


def adapt(
    network: nn.Module,
    weights: Weights,
    images: Tensor,
    labels: Tensor,
    *,
    steps: int,
    rate: float,
    second_order: bool = False,
    objective: Objective = average_over_candidates,
) -> dict[str, Tensor]:
    """Take gradient steps on the support set and return the adapted weights.

    Batch norm's scale and offset are meta-learned but not adapted, as in the authors' code.

    Parameters
    ----------
    network : nn.Module
        From images to scores.
    weights : mapping of str to Tensor
        Where to start.
    images : Tensor of shape (n, C, S, S)
    labels : bool Tensor of shape (n, l)
        Candidate sets.
    steps, rate : int, float
        How many steps, and their size for the *mean* loss.
    second_order : bool
        Keep the graph, so that a loss of the result reaches ``weights`` through the steps.
    objective : callable
        The loss of log-probabilities (n, l) under labels (n, l).
    """
    adapted = dict(weights)
    moving = [name for name, tensor in adapted.items() if tensor.ndim > 1 or "head" in name]
    for _ in range(steps):
        scores = functional_call(network, adapted, (images,))
        loss = objective(scores.log_softmax(dim=-1), labels)
        gradients = torch.autograd.grad(
            loss, [adapted[name] for name in moving], create_graph=second_order
        )
        for name, gradient in zip(moving, gradients, strict=True):
            adapted[name] = adapted[name] - rate * gradient
    return adapted


def weights_for(network: Conv4Classifier, n_way: int) -> dict[str, Tensor]:
    """Return the weights with a head for ``n_way`` classes.

    Classes come in random order, so any rows of the head serve as well as any others; for more
    classes than the head has, the mean row is repeated.
    """
    weights = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    for name in ("head.weight", "head.bias"):
        rows = weights[name]
        extra = rows.mean(dim=0, keepdim=True).expand(max(0, n_way - len(rows)), *rows.shape[1:])
        weights[name] = torch.cat([rows[:n_way], extra])
    return {name: tensor.requires_grad_() for name, tensor in weights.items()}


def solve_task(
    network: nn.Module, images: Tensor, candidates: Tensor, *, steps: int, rate: float
) -> tuple[Tensor, Tensor]:
    """Adapt to a meta-test task and classify.

    Parameters
    ----------
    network : Conv4Classifier
    images : Tensor of shape (n + q, C, S, S)
        Support first.
    candidates : bool Tensor of shape (n, l)
    steps, rate : int, float
        Of the adaptation.

    Returns
    -------
    support : Tensor of shape (n,)
        The most likely candidate of every support sample.
    query : Tensor of shape (q,)
        The most likely class of every query.
    """
    if not isinstance(network, Conv4Classifier):
        raise InputTypeError(f"MAML adapts a conv4-classifier, not a {type(network).__name__}")
    n, n_way = candidates.shape
    support, query = images[:n], images[n:]
    weights = adapt(
        network, weights_for(network, n_way), support, candidates, steps=steps, rate=rate
    )
    with torch.no_grad():
        known = functional_call(network, weights, (support,))
        known = known.masked_fill(~candidates, -torch.inf).argmax(dim=-1)
        return known, functional_call(network, weights, (query,)).argmax(dim=-1)


class MAMLLearner:
    """MAML for the trainer, on the labels that its regime shows.

    Parameters
    ----------
    plan : TrainingPlan
    in_channels, size : int
        Of the images.
    """

    adapts: ClassVar[bool] = True

    def __init__(self, plan: TrainingPlan, in_channels: int, size: int) -> None:
        self.plan, self.regime = plan, REGIMES.get(plan.regime)
        if self.regime.query == "none":
            raise InputError("MAML learns from labels of the queries, but the regime hides them")
        self.network = network_for_images(
            "conv4-classifier", in_channels, size, seed=plan.seed, n_way=plan.n_way
        )

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the query loss of the adapted weights; images (n + q, C, S, S)."""
        n = len(task.support_labels)
        support, query = self.regime.visible_labels(task)
        assert query is not None
        weights = adapt(
            self.network,
            dict(self.network.named_parameters()),
            images[:n],
            support.to(images.device),
            steps=self.plan.inner_steps,
            rate=self.plan.inner_rate,
            second_order=not self.plan.first_order,
            objective=self.regime.objective,
        )
        scores = functional_call(self.network, weights, (images[n:],))
        loss = self.regime.objective(scores.log_softmax(dim=-1), query.to(images.device))
        truth = torch.from_numpy(task.query_labels)
        accuracy = (scores.detach().argmax(dim=-1).cpu() == truth).float().mean().item()
        return Outcome(loss, accuracy)

    def held_out_score(self, images: Tensor, task: Tasks) -> float:
        """Adapt to every other support sample and count hits among the labels of the rest."""
        labels = self.regime.visible_labels(task)[0].to(images.device)
        known = torch.arange(len(labels)) % 2 == 0
        _, guess = solve_task(
            self.network,
            torch.cat([images[known], images[~known]]),
            labels[known],
            steps=self.plan.inner_steps,
            rate=self.plan.inner_rate,
        )
        return labels[~known].gather(-1, guess.unsqueeze(-1)).float().mean().item()
