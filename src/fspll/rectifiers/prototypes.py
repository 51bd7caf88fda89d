"""Nearest prototypes: the model of every rectifier that gives each class one weighted mean.

Shapes: n support samples, l classes, m features, q queries; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fspll._common.errors import InputError
from fspll._common.stored_arrays import FLOATS, require
from fspll.candidates.observed import Observed
from fspll.rectifiers.base import Fitted, Rectifier, StoredState, Trace, to_tensor
from fspll.rectifiers.equations import (
    check_metric,
    check_task,
    class_probabilities,
    class_prototypes,
    distances,
    exact_distances,
)
from fspll.rectifiers.sparse.prediction import ClassGeometry, all_probabilities, most_probable

MOST_PROBABILITIES = 1 << 26  # of queries x classes, with many samples


@dataclass(frozen=True, eq=False, kw_only=True)
class PrototypeModel(Fitted):
    """Prototypes; probabilities are the softmax of minus the distances to them, Eq. (4)."""

    metric: str = "euclidean"

    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return the softmax of minus the distances over the classes that have a prototype.

        For one task a query's result does not depend on the other queries, to the last bit; for a
        batch of tasks distances come from products, which are faster.
        """
        apart = exact_distances if queries.ndim == 2 else distances
        distance = apart(queries, self.prototypes.to(queries), self.metric)
        return class_probabilities(distance, self.present.to(queries.device))


@dataclass(frozen=True, eq=False, kw_only=True)
class ManyClassesModel(Fitted):
    """Classes of many samples: nothing of queries x classes is built unless it is asked for."""

    metric: str = "euclidean"

    @property
    def geometry(self) -> ClassGeometry:
        """How distances become probabilities."""
        return ClassGeometry(self.prototypes.numpy(), self.present.numpy(), 1.0, self.metric)

    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return (q, l) probabilities, for as many as dense arrays may hold."""
        n_queries, n_classes = len(queries), len(self.prototypes)
        if n_queries * n_classes > MOST_PROBABILITIES:
            raise InputError(
                f"probabilities of {n_queries} samples x {n_classes} classes are more than "
                f"{MOST_PROBABILITIES} numbers; ask for fewer samples at a time"
            )
        return torch.from_numpy(all_probabilities(queries.numpy(), self.geometry))

    def most_probable(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable class of each query, by column, and its probability."""
        best, probability = most_probable(queries.numpy(), self.geometry)
        return torch.from_numpy(best), torch.from_numpy(probability)


class RestoresPrototypes:
    """How a rectifier whose models are prototypes reads them from a model file."""

    metric: str

    def restore(self, stored: StoredState) -> Fitted:
        """Return the model of nearest prototypes, of few samples or of many."""
        dense = isinstance(stored.confidence, np.ndarray)
        kind = PrototypeModel if dense else ManyClassesModel
        return kind(**read_prototypes(stored), metric=self.metric)


@dataclass(frozen=True)
class PrototypeRectifier(RestoresPrototypes, Rectifier):
    """The smallest way to write a rectifier: say the weight of each candidate.

    Subclasses implement :meth:`candidate_weights`. The prototype of a class is the mean of the
    samples by these weights, Eq. (1); queries take the nearest.

    Attributes
    ----------
    metric : {"euclidean", "sqeuclidean"}
        Distance to the prototypes.

    Examples
    --------
    Small sets say more than large ones:

    >>> @dataclass(frozen=True)
    ... class BySize(PrototypeRectifier):
    ...     name = "by-size"
    ...
    ...     def candidate_weights(self, embeddings, mask, prior):
    ...         return mask / mask.sum(dim=-1, keepdim=True) ** 2
    >>> from fspll import FsPLLClassifier
    >>> clf = FsPLLClassifier(rectifier=BySize()).fit([[0.0], [3.0]], [{"a"}, {"a", "b"}])
    >>> clf.prototypes_.ravel().tolist()
    [0.6, 3.0]
    """

    metric: str = "euclidean"

    def __post_init__(self) -> None:
        check_metric(self.metric)

    @abstractmethod
    def candidate_weights(self, embeddings: Tensor, mask: Tensor, prior: Tensor | None) -> Tensor:
        """Return the weight of each candidate, of shape (..., n, l).

        Parameters
        ----------
        embeddings : Tensor of shape (..., n, m)
        mask : bool Tensor of shape (..., n, l)
            The candidates. What is returned elsewhere is not used.
        prior : Tensor of shape (..., n, l), or None
            The annotators' votes, where ``uses_votes`` says that they are used.
        """

    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Weight the candidates and compute the prototypes."""
        mask = observed.mask(embeddings.device)
        check_task(embeddings, mask)
        prior = observed.prior(embeddings.device) if self.uses_votes else None
        e = embeddings.detach()
        e = e.to(torch.promote_types(e.dtype, torch.float32))
        with torch.no_grad():
            weights = self.candidate_weights(e, mask, prior).to(e) * mask
            prototypes = class_prototypes(e, weights)
        confidence = shares(weights)
        kept = Trace(confidence[None], prototypes[None]) if trace and mask.ndim == 2 else None
        return PrototypeModel(
            confidence=confidence,
            prototypes=prototypes,
            present=mask.any(dim=-2),
            trace=kept,
            weights=weights,
            metric=self.metric,
        )


def shares(weights: Tensor) -> Tensor:
    """Return weights (..., n, l) as shares of each sample, which sum to one."""
    return weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-30)


def read_prototypes(stored: StoredState) -> dict[str, Any]:
    """Return what every model has: confidence, checked prototypes, and which classes have one."""
    prototypes, present = stored.tensors["prototypes"], stored.tensors["has_prototype"]
    n_classes = stored.candidates.n_classes
    require(
        prototypes.dtype in FLOATS
        and prototypes.ndim == 2
        and len(prototypes) == n_classes
        and prototypes.shape[1] > 0,
        f"its prototypes are {prototypes.dtype} of shape {tuple(prototypes.shape)}, but there are "
        f"{n_classes} classes",
    )
    require(bool(prototypes.isfinite().all()), "its prototypes hold NaN or infinity")
    occurs = np.bincount(stored.candidates.matrix.indices, minlength=n_classes) > 0
    require(
        present.dtype == torch.bool and np.array_equal(present.numpy(), occurs),
        "its candidate sets and prototypes are of different classes",
    )
    confidence = stored.confidence
    if isinstance(confidence, np.ndarray):
        confidence = to_tensor(confidence)
    return {"confidence": confidence, "prototypes": prototypes, "present": present}
