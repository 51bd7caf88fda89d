"""Classes of new samples by their distances to prototypes, without an array of queries x classes.

Shapes: q queries, l classes, m features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fspll.rectifiers.equations import class_probabilities, exact_distances
from fspll.rectifiers.sparse.centering import blocks

_DISTANCES_AT_ONCE = 1 << 22
_CLASSES_AT_ONCE = 1 << 12


class ClassGeometry(NamedTuple):
    """Where classes are, and how distances become probabilities: softmax of -scale x distance."""

    prototypes: np.ndarray  # (l, m)
    allowed: np.ndarray  # (l,) bool; classes that may be predicted, at least one
    scale: float = 1.0
    metric: str = "euclidean"

    @property
    def factor(self) -> float:
        """By what features are multiplied before anything is squared, which might overflow."""
        return self.scale**0.5 if self.metric == "sqeuclidean" else self.scale

    def tensors(self, queries: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return queries and prototypes, scaled first so that squares do not overflow."""
        samples = torch.from_numpy(np.require(queries, requirements=["C", "W"]))
        prototypes = torch.from_numpy(self.prototypes.astype(queries.dtype))
        return samples * self.factor, prototypes * self.factor


def all_probabilities(queries: np.ndarray, geometry: ClassGeometry) -> np.ndarray:
    """Return the probability of every class, of shape (q, l); for as many as memory holds."""
    samples, prototypes = geometry.tensors(queries)
    allowed = torch.from_numpy(geometry.allowed.copy())
    return scaled_probabilities(samples, prototypes, allowed, geometry.metric).numpy()


def scaled_probabilities(
    samples: Tensor, prototypes: Tensor, allowed: Tensor, metric: str
) -> Tensor:
    """Return the softmax (q, l) of minus the distances of samples (q, m) that are scaled."""
    return class_probabilities(_distances(samples, prototypes, metric), allowed)


def most_probable(queries: np.ndarray, geometry: ClassGeometry) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable class of each query and its probability, of shape (q,) each."""
    samples, prototypes = geometry.tensors(queries)
    columns = np.flatnonzero(geometry.allowed)
    prototypes = prototypes[torch.from_numpy(columns)]
    best = np.empty(len(queries), dtype=np.int64)
    probability = np.empty(len(queries), dtype=queries.dtype)
    at_once = max(1, _DISTANCES_AT_ONCE // min(len(columns), _CLASSES_AT_ONCE))
    for a, b in blocks(len(queries), at_once):
        where, share = _best_of_blocks(samples[a:b], prototypes, geometry.metric)
        best[a:b], probability[a:b] = columns[where.numpy()], share.numpy()
    return best, probability


def _distances(samples: Tensor, prototypes: Tensor, metric: str) -> Tensor:
    """Distances that stay finite far from everything, where classes are then equally likely."""
    distance = exact_distances(samples, prototypes, metric)
    return distance.clamp_max_(torch.finfo(distance.dtype).max)


def _best_of_blocks(samples: Tensor, prototypes: Tensor, metric: str) -> tuple[Tensor, Tensor]:
    """Return the nearest class of each sample and its share of the softmax, (b,) each."""
    least = samples.new_full((len(samples),), torch.inf)
    where = torch.zeros(len(samples), dtype=torch.int64)
    total = torch.zeros_like(least)  # sum of exp(least - distance) over the classes so far
    for a, b in blocks(len(prototypes), _CLASSES_AT_ONCE):
        distance = _distances(samples, prototypes[a:b], metric)
        nearest, column = distance.min(dim=1)
        then = torch.minimum(least, nearest)
        total = total * (then - least).exp() + (then.unsqueeze(1) - distance).exp_().sum(dim=1)
        where = torch.where(nearest < least, column + a, where)
        least = then
    return where, 1 / total
