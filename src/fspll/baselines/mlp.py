"""A small network trained on candidate sets: what the deep baselines share.

A multilayer perceptron with batch normalization, trained by AdamW over minibatches. A method says
only what the loss of a minibatch is and what happens between epochs (:class:`Objective`). Training
takes float64: on such small networks it costs little, and results hardly depend on the machine.

Shapes: n samples, m of a minibatch, d features, l classes that are somebody's candidate.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch.nn.functional import batch_norm

from fspll._common.arguments import check_count, check_positive, is_integer
from fspll._common.errors import InputError
from fspll.baselines.base import PartialLabelClassifier, check_random_state, random_generator

FARTHEST = 1e6  # scaled coordinate; beyond, squares of activations lose the other samples
_NORM_EPSILON = 1e-5
_BETAS, _ADAM_EPSILON = (0.9, 0.999), 1e-8
_RISE, _START = 0.3, 0.04  # share of the steps in which the rate rises, and from what share of it
_ROWS_AT_ONCE = 1 << 14


class Objective:
    """What a method minimizes over the candidate sets, and what it keeps about each sample.

    Parameters
    ----------
    mask : bool tensor of shape (n, l)
        The candidate sets.
    """

    def __init__(self, mask: torch.Tensor) -> None:
        self.mask = mask

    def loss(self, log_p: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return the loss of a minibatch, a scalar.

        ``log_p`` (m, l) is the network's log-softmax output, ``rows`` (m,) says which samples.
        """
        raise NotImplementedError

    def end_epoch(self, epoch: int) -> None:
        """Do what the method does after an epoch, counted from zero; by default nothing."""


def on_candidates(log_p: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return probabilities restricted to the candidates, of shape (m, l); rows sum to one."""
    return log_p.masked_fill(~mask, -math.inf).softmax(dim=1)


class NetworkClassifier(PartialLabelClassifier):
    """Base of the methods that train a network; a method fills in ``_objective``.

    The rate of AdamW rises from 4% to ``learning_rate`` over the first 30% of the steps and falls
    to zero after them, both along a cosine. No true label is needed: the number of epochs is fixed,
    and the network of the last step is kept. After training, the statistics of all training samples
    take the place of the minibatches' in the normalization, which is then folded into the weights.

    Parameters
    ----------
    hidden : tuple of int, default=(500,)
        Widths of the hidden layers, each followed by ReLU and batch normalization; () for a linear
        model.
    n_epochs : int, default=100
        Passes over the training samples.
    batch_size : int, default=32
        Least number of samples in a minibatch; all samples where there are fewer.
    learning_rate : float, default=0.01
        Highest rate of AdamW.
    weight_decay : float, default=1.0
        Share by which weights shrink, times the rate, in each step.
    scale, classes
        See :class:`fspll.baselines.base.PartialLabelClassifier`.
    random_state : int, generator or None, default=None
        Draws the initial weights and the minibatches.

    Attributes
    ----------
    coefs_, intercepts_ : list of ndarray
        The trained layers: h becomes h @ coefs_[i] + intercepts_[i], with ReLU between layers.
    confidence_ : ndarray of shape (n, all classes)
        The network's probabilities of each training sample's candidates; rows sum to one.
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the most credible candidate of each.
    """

    hidden: tuple[int, ...]
    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    random_state: Any

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the network's probability of each class, of shape (n, all classes)."""
        return np.exp(self._checked_scores(X))

    def _objective(self, mask: torch.Tensor) -> Objective:
        """Return what is to be minimized; the mask is bool, of shape (n, l)."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        widths = self.hidden if isinstance(self.hidden, tuple | list) else (None,)
        if not all(is_integer(width) and width >= 1 for width in widths):
            raise InputError(
                f"hidden must be a tuple of whole numbers of 1 or more, not {self.hidden!r}"
            )
        check_count("n_epochs", self.n_epochs, 1)
        check_count("batch_size", self.batch_size, 1)
        check_positive("learning_rate", self.learning_rate)
        check_positive("weight_decay", self.weight_decay, zero=True)
        check_random_state(self.random_state)

    def _fit(self, X: np.ndarray, mask: np.ndarray) -> None:
        self._present = np.flatnonzero(mask.any(axis=0))
        rows = torch.from_numpy(_clipped(X))
        objective = self._objective(torch.from_numpy(mask[:, self._present]))
        seed = int(random_generator(self.random_state).integers(2**63))
        sizes = [X.shape[1], *map(int, self.hidden), len(self._present)]
        network = _Network(sizes, torch.Generator().manual_seed(seed))
        self._train(network, rows, objective, torch.Generator().manual_seed(seed ^ 1))
        self.coefs_, self.intercepts_ = network.fold(rows)
        # What a method has ruled out by the end stays out.
        log_p = torch.from_numpy(self._scores(X)[:, self._present])
        self.confidence_ = np.zeros(mask.shape)
        self.confidence_[:, self._present] = on_candidates(log_p, objective.mask).numpy()
        self.labels_ = self._most_credible(self.confidence_, mask)

    def _train(
        self,
        network: _Network,
        X: torch.Tensor,
        objective: Objective,
        generator: torch.Generator,
    ) -> None:
        """Minimize the objective over minibatches, as many epochs as wanted."""
        n_batches = max(1, len(X) // int(self.batch_size))
        optimizer = _AdamW(network.parameters, float(self.weight_decay))
        for epoch in range(int(self.n_epochs)):
            order = torch.randperm(len(X), generator=generator)
            for number, rows in enumerate(order.tensor_split(n_batches)):
                done = (epoch + number / n_batches) / self.n_epochs
                log_p = network.log_probabilities(X[rows])
                (gradient,) = torch.autograd.grad(objective.loss(log_p, rows), network.parameters)
                optimizer.step(gradient, self.learning_rate * rate_at(done))
            objective.end_epoch(epoch)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        """Return log-probabilities; zero stands where a class is nobody's candidate."""
        scores = np.zeros((len(X), len(self.classes_)))
        for start in range(0, len(X), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            h = _clipped(X[part])
            for number, (coef, intercept) in enumerate(
                zip(self.coefs_, self.intercepts_, strict=True)
            ):
                h = (np.maximum(h, 0) if number else h) @ coef + intercept
            h = h - h.max(axis=1, keepdims=True)
            scores[part, self._present] = h - np.log(np.exp(h).sum(axis=1, keepdims=True))
        return scores


# -------------------------------------------------------------------- the network and its training


def rate_at(done: float) -> float:
    """Return the share of the highest rate that is due after a share of the steps.

    >>> [round(rate_at(done), 3) for done in (0, 0.15, 0.3, 0.65, 1)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    if done < _RISE:
        return 1 - (1 - _START) * (1 + math.cos(math.pi * done / _RISE)) / 2
    return (1 + math.cos(math.pi * (done - _RISE) / (1 - _RISE))) / 2


class _Network:
    """Linear layers with ReLU and batch normalization between them, in one vector of parameters."""

    def __init__(self, sizes: list[int], generator: torch.Generator) -> None:
        parts: list[torch.Tensor] = []
        for number, (inner, outer) in enumerate(itertools.pairwise(sizes)):
            if number:  # scale and shift of the normalization
                parts += [torch.ones(inner, dtype=torch.float64)]
                parts += [torch.zeros(inner, dtype=torch.float64)]
            bound = 1 / math.sqrt(inner)
            for shape in ((inner, outer), (outer,)):
                drawn = torch.rand(shape, dtype=torch.float64, generator=generator)
                parts.append((2 * drawn - 1) * bound)
        self.shapes = [tuple(part.shape) for part in parts]
        self.parameters = torch.cat([part.flatten() for part in parts]).requires_grad_()

    def _parts(self) -> list[torch.Tensor]:
        sizes = [math.prod(shape) for shape in self.shapes]
        pieces = self.parameters.split(sizes)
        return [piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]

    def log_probabilities(self, X: torch.Tensor) -> torch.Tensor:
        """Return log-softmax outputs of shape (m, l), normalized by this minibatch."""
        weight, bias, *rest = self._parts()
        h = torch.addmm(bias, X, weight)
        while rest:
            scale, shift, weight, bias, *rest = rest
            h = h.relu()
            if len(h) > 1:  # of a single sample, nothing can be told from the mean
                h = batch_norm(h, None, None, scale, shift, training=True, eps=_NORM_EPSILON)
            h = torch.addmm(bias, h, weight)
        return h.log_softmax(dim=1)

    @torch.no_grad()
    def fold(self, X: torch.Tensor) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return weights and biases of plain layers, normalized by the statistics of X."""
        weight, bias, *rest = (part.clone() for part in self._parts())
        coefs, intercepts, h = [weight], [bias], X
        while rest:
            scale, shift, weight, bias, *rest = rest
            h = torch.addmm(intercepts[-1], h, coefs[-1]).relu()
            if len(h) > 1:
                factor = scale / (h.var(dim=0, correction=0) + _NORM_EPSILON).sqrt()
                bias = bias + (shift - h.mean(dim=0) * factor) @ weight
                weight = factor[:, None] * weight
            coefs.append(weight)
            intercepts.append(bias)
        return [coef.numpy() for coef in coefs], [intercept.numpy() for intercept in intercepts]


class _AdamW:
    """Adam with decoupled weight decay, for one vector of parameters."""

    def __init__(self, parameters: torch.Tensor, weight_decay: float) -> None:
        self.parameters, self.weight_decay = parameters, weight_decay
        self.mean, self.square = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.mean.requires_grad_(False)
        self.square.requires_grad_(False)
        self.n_steps = 0

    @torch.no_grad()
    def step(self, gradient: torch.Tensor, rate: float) -> None:
        """Move the parameters in place."""
        self.n_steps += 1
        self.mean.lerp_(gradient, 1 - _BETAS[0])
        self.square.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        size = rate / (1 - _BETAS[0] ** self.n_steps)
        root = (self.square / (1 - _BETAS[1] ** self.n_steps)).sqrt_().add_(_ADAM_EPSILON)
        self.parameters.mul_(1 - rate * self.weight_decay).addcdiv_(self.mean, root, value=-size)


def _clipped(X: np.ndarray) -> np.ndarray:
    return np.clip(X, -FARTHEST, FARTHEST)
