"""Classes as the default rectifier sees them: normal, of one spread, around shrunk means.

Class c has a mean mu_c ~ N(0, s_b^2) around the task's mean; a sample of it is e ~ N(mu_c, s_w^2).
Features are correlated, so their number says little: the log-density is
-sharpness |e - mu|^2 / s_w^2, sharpness being half the number of features that count.

Shapes: l classes, m features, q queries; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll._common.stored_arrays import (
    FLOATS,
    SLACK,
    is_share,
    matrix_to_tensors,
    read_sparse,
    require,
)
from fspll.rectifiers.base import Fitted, StoredState
from fspll.rectifiers.equations import exact_distances
from fspll.rectifiers.prototypes import ManyClassesModel, read_prototypes
from fspll.rectifiers.sparse.prediction import ClassGeometry

# Chosen on meta-training classes of Omniglot and of small photos; accuracy is flat around them.
SHARPNESS = 16.0  # at most
FIRST_SHRINKAGE, SHRINKAGE_RANGE = 0.3, (0.02, 2.0)  # kappa = s_w^2 / s_b^2
SIZE_WEIGHT = 0.2  # share of the predictive density's normalizer, which favors larger classes
LEAST_MASS = 0.5  # total confidence, in samples, from which new samples may be of a class


def sharpness_for(n_features: int) -> float:
    """Return half the number of features that count: all of few, 32 of many."""
    return min(SHARPNESS, n_features / 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassModel(Fitted):
    """What a task taught about its classes: enough to give probabilities to new samples.

    Attributes
    ----------
    spread : Tensor of shape (...,)
        s_w^2, the mean squared distance of a sample to its class.
    naming : Tensor of shape (..., l, l)
        Probability that the group around prototype g carries label c: the identity where candidate
        sets decide everything.
    has_support : bool Tensor of shape (..., l)
        Groups to which at least half a sample belongs; others are never predicted.
    left_out : Tensor of shape (..., n, l), optional
        Probability of every class for every training sample, by its features alone and from means
        computed without it. Not kept in a model file.
    """

    spread: Tensor
    naming: Tensor
    has_support: Tensor
    left_out: Tensor | None = None

    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return the probability of every class for queries (..., q, m), as (..., q, l).

        A query's result does not depend on the other queries of the call.
        """
        queries = queries.to(torch.promote_types(queries.dtype, torch.float32))
        prototypes, naming = self.prototypes.to(queries), self.naming.to(queries)
        # First: squares of features may overflow.
        root = self.spread.to(queries).sqrt()[..., None, None]
        square = exact_distances(queries / root, prototypes / root, "sqeuclidean")
        fit = (-square).clamp_min(torch.finfo(square.dtype).min / SHARPNESS)  # far from everything
        fit = fit.masked_fill(~self.has_support.to(queries.device).unsqueeze(-2), -torch.inf)
        return (sharpness_for(queries.shape[-1]) * fit).softmax(dim=-1) @ naming

    def attributes(self) -> dict[str, Any]:
        """Return what a classifier shows of the model."""
        return {
            **super().attributes(),
            "spread_": float(self.spread),
            "naming_": self.naming.cpu().numpy(),
            "has_support_": self.has_support.cpu().numpy(),
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors of a model file."""
        tensors, about = super().state()
        tensors |= {"spread": self.spread.double(), "believed": self.has_support}
        return tensors | {"naming": self.naming}, about


@dataclass(frozen=True, eq=False, kw_only=True)
class ManyClassModel(ManyClassesModel):
    """The same for many samples: every group carries the label of its class.

    ``spread`` is s_w^2 scaled so that the sharpness of the dense model suits these classes.
    """

    spread: float
    has_support: Tensor

    @property
    def geometry(self) -> ClassGeometry:
        """How distances become probabilities."""
        prototypes = self.prototypes.numpy()
        scale = sharpness_for(prototypes.shape[1]) / self.spread
        return ClassGeometry(prototypes, self.has_support.numpy(), scale, "sqeuclidean")

    @property
    def naming(self) -> sparse.csr_array:
        """The identity: which label a group carries is not in question, (l, l)."""
        return sparse.eye_array(len(self.prototypes), format="csr")

    def attributes(self) -> dict[str, Any]:
        """Return what a classifier shows of the model."""
        return {
            **super().attributes(),
            "spread_": self.spread,
            "naming_": self.naming,
            "has_support_": self.has_support.numpy(),
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors of a model file."""
        tensors, about = super().state()
        spread = torch.tensor(self.spread, dtype=torch.float64)
        tensors |= {"spread": spread, "believed": self.has_support}
        return tensors | matrix_to_tensors("naming", self.naming), about


def restore_class_model(stored: StoredState) -> Fitted:
    """Make the model again that a file holds, of few samples or of many."""
    common, tensors = read_prototypes(stored), stored.tensors
    spread, has_support = tensors["spread"], tensors["believed"]
    n_classes = stored.candidates.n_classes
    require(
        spread.dtype in FLOATS and spread.shape == () and 0 < float(spread) < float("inf"),
        "its spread is no positive number",
    )
    require(
        has_support.dtype == torch.bool
        and has_support.shape == (n_classes,)
        and bool(has_support.any()),
        "its classes with support are no choice of its classes",
    )
    complaint = "its naming is no share of each group among the classes"
    if not isinstance(stored.confidence, np.ndarray):
        data = tensors["naming.data"]
        require(data.dtype in FLOATS, complaint)
        matrix = read_sparse(tensors, "naming", data, (n_classes, n_classes), complaint)
        require(bool(matrix.has_canonical_format) and is_share(matrix), complaint)
        return ManyClassModel(**common, spread=float(spread), has_support=has_support)
    naming = tensors["naming"]
    require(
        naming.dtype in FLOATS
        and naming.shape == (n_classes, n_classes)
        and bool((naming >= 0).all())
        and bool(((naming.sum(dim=-1) - 1).abs() < SLACK).all()),
        complaint,
    )
    return ClassModel(**common, spread=spread, naming=naming, has_support=has_support)
