"""The heart: prototypes, confidence and neighborhood, Eq. (1) to (3) of the paper.

Shapes: n support samples, l classes, m features, q queries; any leading batch dimensions ``...``
are allowed everywhere, so that a thousand tasks run as one call. Samples are rows: embeddings
``(..., n, m)``, candidates ``(..., n, l)`` bool, confidence ``(..., n, l)``, zero off the
candidates. The paper's matrices are the transposes.

The equations are written here once, plainly; :mod:`fspll.rectifiers.pairwise` computes the same
loop many times faster for batches of few-shot tasks, and :func:`rectify` chooses between the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import CandidateError, InputError
from fspll.rectifiers import neighbors as neighborhood
from fspll.rectifiers import pairwise

METRICS = ("euclidean", "sqeuclidean")
ENGINES = ("auto", "equations", "pairwise")


@dataclass(frozen=True)
class Settings:
    """How prototypes are rectified; the defaults are the paper's.

    Attributes
    ----------
    n_neighbors : int
        k of Eq. (3); the paper takes one less than the shots. 0 leaves Eq. (3) out.
    manifold_weight : float
        lambda of Eq. (3). 0 is the paper's variant FsPLL-nM.
    n_iterations : int
        Rounds of Eq. (1) to (3). 0 gives the plain prototypes of PN.
    metric : {"euclidean", "sqeuclidean"}
        The paper says Euclidean distance; prototypical networks use its square.
    """

    n_neighbors: int = 4
    manifold_weight: float = 0.5
    n_iterations: int = 10
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 0)
        check_count("n_iterations", self.n_iterations, 0)
        weight = self.manifold_weight
        if not isinstance(weight, Real) or not 0 <= weight < float("inf"):
            raise InputError(f"manifold_weight must be a number of 0 or more, not {weight!r}")
        check_metric(self.metric)


class History(NamedTuple):
    """Every round of a rectification, round 0 being the start (confidence = candidates)."""

    confidence: Tensor  # (T + 1, ..., n, l)
    prototypes: Tensor  # (T + 1, ..., l, m)


class Rectified(NamedTuple):
    """What :func:`rectify` returns.

    ``confidence`` is Q of the paper: not normalized, because a sample that its neighbors agree
    with is meant to weigh more. A class that is nobody's candidate has no prototype: its row is
    zero and ``present`` is False there.
    """

    prototypes: Tensor  # (..., l, m)
    present: Tensor  # (..., l) bool
    confidence: Tensor  # (..., n, l)
    history: History | None = None


# -------------------------------------------------------------------- the equations


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


def _rounds_by_equations(
    embeddings: Tensor, candidates: Tensor, settings: Settings
) -> list[pairwise.Round]:
    """Return the start and every round of Eq. (1) to (3) as they stand, for (B, n, ...) tensors.

    Within a class all weights may shrink below the smallest float (features of large scale) while
    their ratios stay meaningful, and Eq. (3) only mixes weights of one class. So each class is
    scaled by its largest weight, which Eq. (1) cancels.
    """
    spread = settings.manifold_weight > 0 and settings.n_neighbors > 0
    neighbors = nearest_neighbors(embeddings, settings.n_neighbors) if spread else None
    # A common shift changes nothing here and keeps float32 exact far from the origin.
    embeddings = embeddings - embeddings.mean(dim=-2, keepdim=True)
    start = candidates.to(embeddings.dtype)
    rounds = [pairwise.Round(start, torch.zeros_like(start[:, :1]))]
    for _ in range(settings.n_iterations):
        prototypes = class_prototypes(embeddings, rounds[-1].scaled)
        distance = exact_distances(embeddings, prototypes, settings.metric)
        log_q = log_confidence(distance, candidates)
        largest = log_q.amax(dim=-2, keepdim=True).clamp_min(torch.finfo(log_q.dtype).min)
        scaled = (log_q - largest).exp()
        if neighbors is not None:
            scaled = scaled + settings.manifold_weight * (neighbors @ scaled) * candidates
        rounds.append(pairwise.Round(scaled, largest))
    return rounds


# -------------------------------------------------------------------- the whole rectification


def rectify(
    embeddings: Tensor,
    candidates: Tensor,
    settings: Settings | None = None,
    *,
    history: bool = False,
    engine: str = "auto",
) -> Rectified:
    """Rectify prototypes by weighing the candidates, ``n_iterations`` rounds of Eq. (1) to (3).

    Nothing here is differentiated: the rectified confidence is a constant of the backward pass.

    Parameters
    ----------
    embeddings : float Tensor of shape (..., n, m)
    candidates : bool Tensor of shape (..., n, l)
        Every row needs at least one candidate.
    settings : Settings, optional
        The paper's by default.
    history : bool
        Also return every round's confidence and prototypes.
    engine : {"auto", "equations", "pairwise"}
        How to compute it; the result is the same.

    Examples
    --------
    Two ambiguous samples side by side agree on the one label they share:

    >>> e = torch.tensor([[0.0], [0.1], [5.0]])
    >>> y = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bool()
    >>> q = rectify(e, y, Settings(n_neighbors=1)).confidence
    >>> q[:2].argmax(dim=-1).tolist()
    [1, 1]
    """
    settings = settings or Settings()
    check_task(embeddings, candidates)
    check_choice("engine", engine, ENGINES)
    batch = candidates.shape[:-2]
    with torch.no_grad():
        e = embeddings.detach()
        e = e.to(torch.promote_types(e.dtype, torch.float32))
        e = e.reshape(-1, *e.shape[-2:])
        y = candidates.reshape(-1, *candidates.shape[-2:])
        if engine == "auto":
            engine = "pairwise" if pairwise.is_cheaper(y, e.shape[-1]) else "equations"
        if engine == "pairwise":
            rounds = pairwise.rounds(
                e,
                y,
                n_neighbors=settings.n_neighbors,
                manifold_weight=settings.manifold_weight,
                n_iterations=settings.n_iterations,
                squared=settings.metric == "sqeuclidean",
                keep_all=history,
            )
        else:
            rounds = _rounds_by_equations(e, y, settings)
        rounds = rounds if history else rounds[-1:]
        prototypes = [class_prototypes(e, q.scaled) for q in rounds]

        def unflatten(x: Tensor) -> Tensor:
            return x.reshape(*batch, *x.shape[1:])

        return Rectified(
            prototypes=unflatten(prototypes[-1]),
            present=candidates.any(dim=-2),
            confidence=unflatten(rounds[-1].confidence),
            history=History(
                torch.stack([unflatten(q.confidence) for q in rounds]),
                torch.stack([unflatten(p) for p in prototypes]),
            )
            if history
            else None,
        )


# -------------------------------------------------------------------- checking


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
