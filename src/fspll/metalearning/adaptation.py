"""Gradient steps that adapt a network to one task: MAML's inner loop, and its use on new tasks.

Shapes: n support samples, q queries, l classes, C channels, S pixels per side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fspll._common.errors import InputTypeError
from fspll.embeddings.networks.conv4 import Conv4Classifier
from fspll.metalearning.objectives import average_over_candidates

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


def with_head(weights: Weights, n_way: int) -> dict[str, Tensor]:
    """Return the weights with a head of ``n_way`` rows, through which gradients pass.

    Classes come in random order, so any rows of the head serve as well as any others; for more
    classes than the head has, the mean row is repeated.
    """
    adapted = dict(weights)
    for name in ("head.weight", "head.bias"):
        rows = adapted[name]
        extra = rows.mean(dim=0, keepdim=True).expand(max(0, n_way - len(rows)), *rows.shape[1:])
        adapted[name] = torch.cat([rows[:n_way], extra])
    return adapted


def weights_for(network: Conv4Classifier, n_way: int) -> dict[str, Tensor]:
    """Return a copy of the weights to adapt to a task of ``n_way`` classes."""
    weights = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    return {name: one.requires_grad_() for name, one in with_head(weights, n_way).items()}


def solve_task(
    network: nn.Module,
    images: Tensor,
    candidates: Tensor,
    *,
    steps: int,
    rate: float,
    objective: Objective = average_over_candidates,
) -> tuple[Tensor, Tensor]:
    """Adapt to a meta-test task and classify.

    Parameters
    ----------
    network : Conv4Classifier
    images : Tensor of shape (n + q, C, S, S)
        Support first.
    candidates : bool Tensor of shape (n, l)
    steps, rate, objective : int, float, callable
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
        network,
        weights_for(network, n_way),
        support,
        candidates,
        steps=steps,
        rate=rate,
        objective=objective,
    )
    with torch.no_grad():
        known = functional_call(network, weights, (support,))
        known = known.masked_fill(~candidates, -torch.inf).argmax(dim=-1)
        return known, functional_call(network, weights, (query,)).argmax(dim=-1)
