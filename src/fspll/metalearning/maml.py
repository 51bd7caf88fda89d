"""MAML on candidate sets: a network that a few gradient steps adapt to a task.

C. Finn, P. Abbeel and S. Levine, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep
Networks" (2017). The weights theta are stepped on the support loss, theta' = theta - alpha grad
L_support, and the loss of theta' on the queries is differentiated through those steps. Where labels
are candidate sets, both losses are averaged over the candidates, or are those of the candidates'
total probability; with sets of one both are plain MAML. The steps themselves are in
:mod:`fspll.metalearning.adaptation`.

One departure: all classes start from the same row of the last layer. Its authors learn one row per
class, but classes come in random order, so that no row can know which class it will be. H.-J. Ye
and W.-L. Chao, "How to Train Your MAML to Excel in Few-Shot Classification" (2022), found one row
better; here it also makes a network for any number of classes, and learns in minutes at 20-way,
where separate rows stay near chance.

Shapes: n support samples, q queries, C channels, S pixels per side.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.func import functional_call

from fspll._common.errors import InputError
from fspll.embeddings.networks.architectures import network_for_images
from fspll.metalearning import REGIMES
from fspll.metalearning.adaptation import adapt, solve_task, with_head
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Outcome
from fspll.tasks import Tasks


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
            "conv4-classifier", in_channels, size, seed=plan.seed, n_way=1
        )

    def episode(self, images: Tensor, task: Tasks) -> Outcome:
        """Return the query loss of the adapted weights; images (n + q, C, S, S)."""
        n = len(task.support_labels)
        support, query = self.regime.visible_labels(task)
        assert query is not None
        weights = adapt(
            self.network,
            with_head(dict(self.network.named_parameters()), self.plan.n_way),
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
            objective=self.regime.objective,
        )
        return labels[~known].gather(-1, guess.unsqueeze(-1)).float().mean().item()
