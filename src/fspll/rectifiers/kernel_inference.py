"""Labels inferred with a kernel: predictions without the sample, times what its labels say.

The likelihood is that of the features *given* the observed labels,

    p(x | S) / p(x) = sum over c of P(c | S) P(c | x) / pi_c,

where P(c | S) is the label prior (:mod:`fspll.rectifiers.label_models`), pi_c the frequency of
class c, and P(c | x) a softmax of leave-one-out kernel predictions (:mod:`fspll.rectifiers.kernel`)
whose sharpness and biases are estimated too. A label that is in every set gains nothing by being
predicted everywhere: its P(c | x) / pi_c is one then. The mean logarithm, in nats per sample, is
zero where features tell nothing about labels.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fspll.rectifiers.kernel import KernelRidge
from fspll.rectifiers.label_models import LabelModel

ROUNDS = 25
FIRST_SHARPNESS, SHARPNESS_RANGE = 12.0, (0.5, 64.0)
_STEP = 0.25  # by which the logarithm of the sharpness changes in one of the first rounds, at most
_LATE_STEP = 0.1
_SETTLED = 2e-3  # mean change of a sample's shares, below which the rounds end
_PSEUDO = 0.5  # samples that every class has beside those that are believed to be its own
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class KernelLabels:
    """What the inference found.

    Attributes
    ----------
    shares : Tensor of shape (n, l)
        Q, the probability of every class for every sample.
    scores : Tensor of shape (n, l)
        F, the predictions for every sample without it.
    sharpness : float
    bias : Tensor of shape (l,)
        P(c | x) is the softmax of sharpness * (F + bias).
    frequency : Tensor of shape (l,)
        pi.
    labels : LabelModel
        With estimated parameters.
    gain : float
        Mean log-likelihood of the samples given their labels, relative to p(x), in nats.
    """

    shares: Tensor
    scores: Tensor
    sharpness: float
    bias: Tensor
    frequency: Tensor
    labels: LabelModel
    gain: float


def infer_with_kernel(kernel: KernelRidge, labels: LabelModel, present: Tensor) -> KernelLabels:
    """Infer the labels of one task.

    Parameters
    ----------
    kernel : KernelRidge
        Of the n samples.
    labels : LabelModel
        What was observed about their labels; its parameters are estimated in place.
    present : bool Tensor of shape (l,)
        Classes that may occur.
    """
    frequency = labels.start(present).to(kernel.center)
    shares = labels.prior(frequency)
    bias = torch.zeros_like(frequency)
    sharpness = torch.tensor(FIRST_SHARPNESS, dtype=frequency.dtype)
    n = len(shares)
    for turn in range(ROUNDS):
        scores = kernel.left_out(shares)
        frequency = class_frequency(shares, present)
        for _ in range(2):
            bias = matched_bias(sharpness * scores, bias, frequency)
        probability = class_probability(sharpness * scores + bias, present)
        joint = labels.prior(frequency) * probability / frequency.clamp_min(_LEAST / n)
        total = joint.sum(dim=-1, keepdim=True).clamp_min(_LEAST)
        before, shares = shares, joint / joint.sum(dim=-1, keepdim=True).clamp_min(1e-300)
        slope = ((shares - probability) * scores).sum(dim=-1).mean() * sharpness
        limit = _STEP if turn < ROUNDS // 2 else _LATE_STEP
        sharpness = (sharpness * (4 * slope).clamp(-limit, limit).exp()).clamp(*SHARPNESS_RANGE)
        labels.update(shares)
        if float((shares - before).abs().sum(dim=-1).mean()) < _SETTLED:
            break
    return KernelLabels(
        shares=shares,
        scores=scores,
        sharpness=float(sharpness),
        bias=bias / sharpness,
        frequency=frequency,
        labels=labels,
        gain=float(total.log().mean()),
    )


def class_frequency(shares: Tensor, present: Tensor) -> Tensor:
    """Return the frequency of every class (l,), zero for one that does not occur."""
    mass = (shares.sum(dim=0) + _PSEUDO) * present
    return mass / mass.sum()


def class_probability(logits: Tensor, present: Tensor) -> Tensor:
    """Softmax over the classes that occur, (n, l)."""
    return logits.masked_fill(~present, -torch.inf).softmax(dim=-1)


def matched_bias(logits: Tensor, bias: Tensor, frequency: Tensor) -> Tensor:
    """Move the biases (l,) one step towards mean probabilities equal to the frequencies."""
    present = frequency > 0
    mean = class_probability(logits + bias, present).mean(dim=0)
    bias = bias + torch.where(present, (frequency / (mean + _LEAST)).clamp_min(_LEAST).log(), 0)
    return torch.where(present, bias - bias[present].mean(), 0)
