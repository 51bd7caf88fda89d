"""Eq. (1) to (4) of the paper, one function each, for any number of tasks at once.

Shapes: n support samples, l classes, m features, q queries; any leading batch dimensions ``...``
are allowed everywhere, so that a thousand tasks run as one call. Samples are rows: embeddings
``(..., n, m)``, candidates ``(..., n, l)`` bool, confidence ``(..., n, l)``, zero off the
candidates. The paper's matrices are the transposes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fspll._common.arguments import check_choice
from fspll._common.errors import CandidateError, InputError
from fspll.rectifiers import neighbors as neighborhood

METRICS = ("euclidean", "sqeuclidean")


def class_prototypes(embeddings: Tensor, confidence: Tensor) -> Tensor:
    """Compute the confidence-weighted mean of each class, Eq. (1).

    p_c = sum_i Q_ic e_i / sum_i Q_ic

    Parameters
    ----------
    embeddings : Tensor of shape (..., n, m)
    confidence : Tensor of shape (..., n, l)
        Q; a class without any weight gets a prototype of zeros.

    Returns
    -------
    Tensor of shape (..., l, m)

    Examples
    --------
    >>> e = torch.tensor([[0.0], [1.0], [4.0]])
    >>> class_prototypes(e, torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).flatten().tolist()
    [0.5, 2.5]
    """
    mass = confidence.sum(dim=-2).unsqueeze(-1)
    total = confidence.transpose(-1, -2) @ embeddings
    return torch.where(mass > 0, total / torch.where(mass > 0, mass, 1), 0)


def distances(samples: Tensor, prototypes: Tensor, metric: str = "euclidean") -> Tensor:
    """Distance of every sample to every prototype.

    Parameters
    ----------
    samples : Tensor of shape (..., n, m)
    prototypes : Tensor of shape (..., l, m)
    metric : {"euclidean", "sqeuclidean"}

    Returns
    -------
    Tensor of shape (..., n, l)
    """
    check_metric(metric)
    # A common shift changes no distance and keeps float32 from canceling far from the origin.
    center = prototypes.mean(dim=-2, keepdim=True)
    a, b = samples - center, prototypes - center
    if metric == "euclidean":
        return torch.cdist(a, b)
    square = a.square().sum(-1).unsqueeze(-1) + b.square().sum(-1).unsqueeze(-2)
    return (square - 2 * a @ b.transpose(-1, -2)).clamp_min(0)


def exact_distances(samples: Tensor, prototypes: Tensor, metric: str = "euclidean") -> Tensor:
    """Distances from differences taken one by one: slower than :func:`distances`, exact near zero.

    The result for a sample does not depend on the other samples of the call, to the last bit.
    """
    check_metric(metric)
    d = torch.cdist(samples, prototypes, compute_mode="donot_use_mm_for_euclid_dist")
    return d.square() if metric == "sqeuclidean" else d


def log_confidence(distance: Tensor, candidates: Tensor) -> Tensor:
    """Log of the softmax of minus the distances over the candidates only, Eq. (2).

    Q_ic = exp(-d_ic) / sum_{c' in S_i} exp(-d_ic') on the candidates S_i, and 0 (its log minus
    infinity) elsewhere.

    Parameters
    ----------
    distance : Tensor of shape (..., n, l)
    candidates : bool Tensor of shape (..., n, l)
    """
    return (-distance).masked_fill(~candidates, -torch.inf).log_softmax(dim=-1)


def nearest_neighbors(embeddings: Tensor, k: int) -> Tensor:
    """Weights of the k nearest other samples of each sample: 1/k for a neighbor, else 0.

    Samples at the same distance as the k-th are neighbors too, so the result does not depend on
    the order of the samples. Fewer than k others: all of them.

    Returns
    -------
    Tensor of shape (..., n, n)
        Rows sum to one, or to zero where there is no neighbor.
    """
    n = embeddings.shape[-2]
    k = min(k, n - 1)
    if k <= 0:
        return embeddings.new_zeros((*embeddings.shape[:-1], n))
    tasks = embeddings.reshape(-1, n, embeddings.shape[-1])
    square, norms = neighborhood.squared_distances(tasks), neighborhood.squared_norms(tasks)
    near = neighborhood.neighbors(square, tasks, norms, k)
    weights = near.reshape(*embeddings.shape[:-1], n).to(embeddings.dtype)
    return weights / weights.sum(dim=-1, keepdim=True)


def class_probabilities(distance: Tensor, present: Tensor) -> Tensor:
    """Softmax of minus the distances over the classes that have a prototype, Eq. (4).

    Parameters
    ----------
    distance : Tensor of shape (..., q, l)
    present : bool Tensor of shape (..., l)
    """
    return (-distance).masked_fill(~present.unsqueeze(-2), -torch.inf).softmax(dim=-1)


# -------------------------------------------------------------------- checks


def check_metric(metric: str) -> None:
    """Raise unless the metric is known."""
    check_choice("metric", metric, METRICS)


def check_task(embeddings: Tensor, candidates: Tensor) -> None:
    """Raise unless embeddings (..., n, m) and candidates (..., n, l) make tasks."""
    if not embeddings.is_floating_point():
        raise InputError(f"embeddings must be floating point, not {embeddings.dtype}")
    if candidates.dtype != torch.bool:
        raise InputError(f"candidates must be a bool mask, not {candidates.dtype}")
    if embeddings.ndim < 2 or embeddings.shape[:-1] != candidates.shape[:-1]:
        raise InputError(
            f"embeddings of shape {tuple(embeddings.shape)} and candidates of shape "
            f"{tuple(candidates.shape)} do not fit: expected (..., n, m) and (..., n, l)"
        )
    if embeddings.numel() == 0:
        raise InputError(
            f"embeddings of shape {tuple(embeddings.shape)} hold nothing; at least one task, one "
            f"sample and one feature are needed"
        )
    empty = ~candidates.any(dim=-1)
    if empty.any():
        where = empty.nonzero()[0].tolist()
        row = f"row {where[-1]}" + (f" of task {where[:-1]}" if len(where) > 1 else "")
        raise CandidateError(
            f"{row} of candidates is empty; every sample needs at least one candidate label"
        )
    if embeddings.numel() and not torch.stack(torch.aminmax(embeddings)).isfinite().all():
        raise InputError("embeddings hold NaN or infinite values")
