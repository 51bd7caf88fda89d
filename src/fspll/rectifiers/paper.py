"""The paper's rule: prototypes, confidence and neighborhood in turns, Eq. (1) to (3).

Yunfeng Zhao, Guoxian Yu, Lei Liu, Zhongmin Yan, Lizhen Cui and Carlotta Domeniconi, "Few-Shot
Partial-Label Learning", IJCAI 2021.

:mod:`fspll.rectifiers.equations` has the equations as they stand; :mod:`fspll.rectifiers.pairwise`
computes the same loop many times faster for batches of few-shot tasks, and :func:`rectify` chooses
between the two. Shapes as in :mod:`fspll.rectifiers.equations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fspll._common.arguments import check_choice, check_count, check_positive
from fspll.candidates.observed import Observed
from fspll.rectifiers import pairwise
from fspll.rectifiers.base import (
    Fitted,
    Rectifier,
    Trace,
    check_neighbors,
    resolve_neighbors,
)
from fspll.rectifiers.equations import (
    check_metric,
    check_task,
    class_prototypes,
    exact_distances,
    log_confidence,
    nearest_neighbors,
)
from fspll.rectifiers.prototypes import (
    ManyClassesModel,
    PrototypeModel,
    PrototypeRectifier,
    RestoresPrototypes,
    shares,
)
from fspll.rectifiers.sparse.paper import rectify_sparse

ENGINES = ("auto", "equations", "pairwise")


@dataclass(frozen=True)
class FsPLLRule(RestoresPrototypes, Rectifier):
    """The paper's rectifier; the defaults are the paper's settings.

    Attributes
    ----------
    n_neighbors : int or "auto"
        k of Eq. (3). "auto" is one less than the samples per class, as in the paper. 0 leaves
        Eq. (3) out.
    manifold_weight : float
        lambda of Eq. (3). 0 is the paper's variant FsPLL-nM.
    n_iterations : int
        Rounds of Eq. (1) to (3). 0 gives the plain prototypes of PN.
    metric : {"euclidean", "sqeuclidean"}
        The paper says Euclidean distance; prototypical networks use its square.

    Examples
    --------
    >>> from fspll import FsPLLClassifier
    >>> clf = FsPLLClassifier(rectifier=FsPLLRule(n_neighbors=1, manifold_weight=0.3))
    >>> clf.fit([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"a", "b"}]).labels_.tolist()
    ['a', 'a', 'b']
    """

    n_neighbors: int | str = "auto"
    manifold_weight: float = 0.5
    n_iterations: int = 10
    metric: str = "euclidean"

    name = "fspll"
    handles_many = True

    def __post_init__(self) -> None:
        check_neighbors(self.n_neighbors)
        check_count("n_iterations", self.n_iterations, 0)
        check_positive("manifold_weight", self.manifold_weight, zero=True)
        check_metric(self.metric)

    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Rectify tasks by :func:`rectify`."""
        mask = observed.mask(embeddings.device)
        found = rectify(embeddings, mask, self, history=trace)
        return PrototypeModel(
            confidence=shares(found.confidence),
            prototypes=found.prototypes,
            present=found.present,
            n_neighbors=resolve_neighbors(self.n_neighbors, observed),
            trace=None if found.history is None else Trace(*found.history),
            weights=found.confidence,
            metric=self.metric,
        )

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Rectify many samples, entry by entry."""
        k = resolve_neighbors(self.n_neighbors, observed, by_entries=True)
        prototypes, present, confidence = rectify_sparse(
            embeddings,
            observed.sets(),
            n_neighbors=k,
            manifold_weight=self.manifold_weight,
            n_iterations=self.n_iterations,
            metric=self.metric,
        )
        total = np.add.reduceat(confidence.data, confidence.indptr[:-1])
        confidence.data /= np.repeat(total, np.diff(confidence.indptr))
        return ManyClassesModel(
            confidence=confidence,
            prototypes=torch.from_numpy(prototypes),
            present=torch.from_numpy(present),
            n_neighbors=k,
            metric=self.metric,
        )


@dataclass(frozen=True)
class EqualWeights(PrototypeRectifier):
    """No rectification: all candidates of a sample have one weight, as in prototypical networks."""

    name = "none"
    handles_many = True

    def candidate_weights(self, embeddings: Tensor, mask: Tensor, prior: Tensor | None) -> Tensor:
        """Return one for every candidate."""
        return mask.to(embeddings.dtype)

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Compute the plain prototypes of many samples."""
        return FsPLLRule(0, n_iterations=0, metric=self.metric).fit_many(embeddings, observed)


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


def _rounds_by_equations(
    embeddings: Tensor, candidates: Tensor, rule: FsPLLRule, k: int
) -> list[pairwise.Round]:
    """Return the start and every round of Eq. (1) to (3) as they stand, for (B, n, ...) tensors.

    Within a class all weights may shrink below the smallest float (features of large scale) while
    their ratios stay meaningful, and Eq. (3) only mixes weights of one class. So each class is
    scaled by its largest weight, which Eq. (1) cancels.
    """
    spread = rule.manifold_weight > 0 and k > 0
    neighbors = nearest_neighbors(embeddings, k) if spread else None
    # A common shift changes nothing here and keeps float32 exact far from the origin.
    embeddings = embeddings - embeddings.mean(dim=-2, keepdim=True)
    start = candidates.to(embeddings.dtype)
    rounds = [pairwise.Round(start, torch.zeros_like(start[:, :1]))]
    for _ in range(rule.n_iterations):
        prototypes = class_prototypes(embeddings, rounds[-1].scaled)
        distance = exact_distances(embeddings, prototypes, rule.metric)
        log_q = log_confidence(distance, candidates)
        largest = log_q.amax(dim=-2, keepdim=True).clamp_min(torch.finfo(log_q.dtype).min)
        scaled = (log_q - largest).exp()
        if neighbors is not None:
            scaled = scaled + rule.manifold_weight * (neighbors @ scaled) * candidates
        rounds.append(pairwise.Round(scaled, largest))
    return rounds


# -------------------------------------------------------------------- the whole rectification


def rectify(
    embeddings: Tensor,
    candidates: Tensor,
    rule: FsPLLRule | None = None,
    *,
    history: bool = False,
    engine: str = "auto",
) -> Rectified:
    """Rectify prototypes by weighting the candidates, ``n_iterations`` rounds of Eq. (1) to (3).

    Nothing here is differentiated: the rectified confidence is a constant of the backward pass.

    Parameters
    ----------
    embeddings : float Tensor of shape (..., n, m)
    candidates : bool Tensor of shape (..., n, l)
        Every row needs at least one candidate.
    rule : FsPLLRule, optional
        The paper's settings by default.
    history : bool
        Also return every round's confidence and prototypes.
    engine : {"auto", "equations", "pairwise"}
        How to compute it; the result is the same.

    Examples
    --------
    Two ambiguous samples side by side agree on the one label they share:

    >>> e = torch.tensor([[0.0], [0.1], [5.0]])
    >>> y = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bool()
    >>> q = rectify(e, y, FsPLLRule(n_neighbors=1)).confidence
    >>> q[:2].argmax(dim=-1).tolist()
    [1, 1]
    """
    rule = rule or FsPLLRule()
    check_task(embeddings, candidates)
    check_choice("engine", engine, ENGINES)
    k = resolve_neighbors(rule.n_neighbors, Observed(candidates))
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
                n_neighbors=k,
                manifold_weight=rule.manifold_weight,
                n_iterations=rule.n_iterations,
                squared=rule.metric == "sqeuclidean",
                keep_all=history,
            )
        else:
            rounds = _rounds_by_equations(e, y, rule, k)
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
