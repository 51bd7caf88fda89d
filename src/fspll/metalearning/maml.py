"""MAML on candidate sets: a network that a few gradient steps adapt to a task.

C. Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep
Networks" (2017). The weights theta are stepped on the support loss, theta' = theta - alpha grad
L_support, and the loss of theta' on the queries is differentiated through those steps. Where labels
are candidate sets, both losses are averaged over the candidates; with sets of one this is plain
MAML.

Shapes: n support samples, q queries, l classes, C channels, S pixels a side.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from fspll._common.errors import InputTypeError
from fspll.embeddings import Conv4Classifier, build_network
from fspll.metalearning.learners import Outcome
from fspll.metalearning.objectives import average_over_candidates
from fspll.metalearning.plan import TrainingPlan
from fspll.tasks import Tasks

Weights = Mapping[str, Tensor]


def label_mask(task: Tasks, precise: bool, which: str) -> Tensor:
    """Return the labels that may be seen, as candidate sets of shape (n, l) or (q, l)."""
    candidates = task.candidates if which == "support" else task.query_candidates
    if not precise:
        return torch.from_numpy(candidates)
    truth = task.support_labels if which == "support" else task.query_labels
    return torch.from_numpy(np.eye(candidates.shape[-1], dtype=bool)[truth])


def adapt(
    network: nn.Module,
    weights: Weights,
    images: Tensor,
    labels: Tensor,
    *,
    steps: int,
    rate: float,
    second_order: bool = False,
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
    """
    adapted = dict(weights)
    moving = [name for name, tensor in adapted.items() if tensor.ndim > 1 or "head" in name]
    for _ in range(steps):
        scores = functional_call(network, adapted, (images,))
        loss = average_over_candidates(scores.log_softmax(dim=-1), labels)
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
    """MAML ("maml": candidate sets) or MAML+ ("maml+": precise labels) for the trainer.

    Parameters
    ----------
    plan : TrainingPlan
    in_channels, size : int
        Of the images.
    """

    def __init__(self, plan: TrainingPlan, in_channels: int, size: int) -> None:
        self.plan = plan
        self.precise = plan.regime.endswith("+")
        settings = {"in_channels": in_channels, "size": size, "n_way": plan.n_way}
        self.network = build_network("conv4-classifier", seed=plan.seed, **settings)

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the query loss of the adapted weights; images (n + q, C, S, S)."""
        n = len(task.support_labels)
        device = images.device
        weights = adapt(
            self.network,
            dict(self.network.named_parameters()),
            images[:n],
            label_mask(task, self.precise, "support").to(device),
            steps=self.plan.inner_steps,
            rate=self.plan.inner_rate,
            second_order=not self.plan.first_order,
        )
        scores = functional_call(self.network, weights, (images[n:],))
        labels = label_mask(task, self.precise, "query").to(device)
        loss = average_over_candidates(scores.log_softmax(dim=-1), labels)
        truth = torch.from_numpy(task.query_labels)
        accuracy = (scores.detach().argmax(dim=-1).cpu() == truth).float().mean().item()
        return Outcome(loss, accuracy)

    def judge(self, images: Tensor, task: Tasks) -> float:
        """Adapt to every other support sample and count hits among the labels of the rest."""
        labels = label_mask(task, self.precise, "support").to(images.device)
        known = torch.arange(len(labels)) % 2 == 0
        _, guess = solve_task(
            self.network,
            torch.cat([images[known], images[~known]]),
            labels[known],
            steps=self.plan.inner_steps,
            rate=self.plan.inner_rate,
        )
        return labels[~known].gather(-1, guess.unsqueeze(-1)).float().mean().item()
