"""What meta-training minimizes: small pure functions of one episode's distances.

Shapes: n samples (support or queries), l classes. ``log_p`` is the log of Eq. (4), of shape
``(..., n, l)``; ``candidates`` is bool of the same shape. Each objective returns a scalar, the mean
over samples.
"""

from __future__ import annotations

import torch
from torch import Tensor


def log_probabilities(distance: Tensor, present: Tensor) -> Tensor:
    """Log of Eq. (4): a log-softmax of minus the distances over the classes with a prototype.

    Parameters
    ----------
    distance : Tensor of shape (..., n, l)
    present : bool Tensor broadcastable to (..., n, l)
        Absent classes get minus infinity.
    """
    return (-distance).masked_fill(~present, -torch.inf).log_softmax(dim=-1)


def largest_probability(log_p: Tensor) -> Tensor:
    """Minus the log of the most likely class's probability, Eq. (5): the paper's objective.

    It reads no label of the queries at all: it sharpens the network's own predictions.
    """
    return -log_p.amax(dim=-1).mean()


def true_class(log_p: Tensor, labels: Tensor) -> Tensor:
    """Minus the log-probability of the true class: prototypical networks' objective.

    Parameters
    ----------
    log_p : Tensor of shape (..., n, l)
    labels : int Tensor of shape (..., n)
    """
    return -log_p.gather(-1, labels.unsqueeze(-1)).mean()


def average_over_candidates(log_p: Tensor, candidates: Tensor) -> Tensor:
    """Cross-entropy with a target that is uniform over the candidates.

    -1/|S| sum_{c in S} log p_c: every candidate is pulled equally, the false ones too.
    """
    inside = log_p.masked_fill(~candidates, 0).sum(dim=-1)
    return -(inside / candidates.sum(dim=-1)).mean()


def total_candidate_probability(log_p: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log of the candidates' total probability, -log sum_{c in S} p_c.

    The likelihood of "the truth is one of these": it does not say which, and does not pull the
    others up.
    """
    return -log_p.masked_fill(~candidates, -torch.inf).logsumexp(dim=-1).mean()


def leave_one_out_log_probabilities(
    distance: Tensor, confidence: Tensor, squared: bool
) -> tuple[Tensor, Tensor]:
    """Score every support sample against prototypes that were computed without it.

    With p_c = sum_i Q_ic e_i / M_c and M_c = sum_i Q_ic, leaving sample i out moves the prototype
    straight away from it: |e_i - p_c without i| = |e_i - p_c| M_c / (M_c - Q_ic). So distances to
    the ordinary prototypes are enough.

    Parameters
    ----------
    distance : Tensor of shape (..., n, l)
        Distances of the support samples to the prototypes.
    confidence : Tensor of shape (..., n, l)
        Q, a constant.
    squared : bool
        Whether ``distance`` is squared.

    Returns
    -------
    log_p : Tensor of shape (..., n, l)
        Minus infinity for a class that is left without any sample.
    left : bool Tensor of shape (..., n, l)
        Classes that still have a prototype without the sample.
    """
    mass = confidence.sum(dim=-2, keepdim=True)
    rest = mass - confidence
    left = rest > 1e-6 * mass
    stretch = torch.where(left, mass / torch.where(left, rest, 1), 1)
    return log_probabilities(distance * (stretch.square() if squared else stretch), left), left


def leave_one_out_support(log_p: Tensor, left: Tensor, candidates: Tensor) -> Tensor:
    """Minus the log of the candidates' total probability, each support sample left out in turn.

    Learns from candidate sets and nothing else: it uses what the paper allows, the support's
    candidates, but as evidence (the truth is inside) instead of through the model's own guess.
    A sample whose candidates are all its own (nobody else has them) carries no information and is
    skipped.

    Parameters
    ----------
    log_p, left : Tensors of shape (..., n, l)
        From :func:`leave_one_out_log_probabilities`.
    candidates : bool Tensor of shape (..., n, l)
    """
    usable = (candidates & left).any(dim=-1)
    inside = log_p.masked_fill(~(candidates & left), -torch.inf)
    # A row of minus infinities would poison the gradient even when its result is thrown away.
    inside = torch.where(usable.unsqueeze(-1), inside, 0)
    loss = -inside.logsumexp(dim=-1)
    return torch.where(usable, loss, 0).sum() / usable.sum().clamp_min(1)
