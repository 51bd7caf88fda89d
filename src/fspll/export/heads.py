"""From features to probabilities: a fitted model as a function that torch can trace into a graph.

The models of rectifiers are traced as they are, so that a formula stands in one place. Only what
leaves torch gets a form of its own here: models of many samples, and baselines, whose arrays are
NumPy's.

Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fspll._common.errors import InputError
from fspll.baselines.base import FARTHEST
from fspll.baselines.mlp import FARTHEST as FARTHEST_OF_NETWORKS
from fspll.baselines.mlp import NetworkClassifier
from fspll.baselines.people.base import PeopleClassifier
from fspll.classifier import FsPLLClassifier
from fspll.labeling.baseline_model import BaselineModel
from fspll.rectifiers.adaptive_model import AdaptiveModel
from fspll.rectifiers.prototypes import ManyClassesModel
from fspll.rectifiers.scaling import ScaledModel
from fspll.rectifiers.sparse.prediction import scaled_probabilities


class Head(nn.Module):
    """The probabilities (n, l) of features (n, m) by a fitted classifier."""

    def __init__(self, classifier: FsPLLClassifier | BaselineModel) -> None:
        super().__init__()
        if isinstance(classifier, BaselineModel):
            self.model: Any = _Layers(classifier)
        else:
            self.model = traceable(classifier.model_)

    def forward(self, features: Tensor) -> Tensor:
        """Return the probability of every class, float32 or float64 as the features are."""
        return self.model.predict_proba(features)


def traceable(model: Any) -> Any:
    """Return a fitted model, or parts of it, with ``predict_proba`` in torch alone."""
    if isinstance(model, ScaledModel):
        return replace(model, inner=traceable(model.inner))
    if isinstance(model, AdaptiveModel):
        return replace(model, means=traceable(model.means))
    return _ManyClasses(model) if isinstance(model, ManyClassesModel) else model


class _ManyClasses:
    """A model of many samples, for as many probabilities as whoever runs the graph asks for."""

    def __init__(self, model: ManyClassesModel) -> None:
        geometry = model.geometry
        self.factor, self.metric = geometry.factor, geometry.metric
        self.prototypes = torch.from_numpy(geometry.prototypes)
        self.has_support = torch.from_numpy(geometry.allowed.copy())

    def predict_proba(self, queries: Tensor) -> Tensor:
        prototypes = self.prototypes.to(queries.dtype) * self.factor
        return scaled_probabilities(
            queries * self.factor, prototypes, self.has_support, self.metric
        )


class _Layers:
    """A baseline whose scores are linear layers of scaled features, with ReLU between them."""

    def __init__(self, model: BaselineModel) -> None:
        estimator = model.estimator
        if isinstance(estimator, NetworkClassifier):
            layers = list(zip(estimator.coefs_, estimator.intercepts_, strict=True))
            self.farthest = FARTHEST_OF_NETWORKS
        elif isinstance(estimator, PeopleClassifier):
            layers, self.farthest = [(estimator.coef_, estimator.intercept_)], FARTHEST
        else:
            raise InputError(
                f"the method {model.name!r} cannot be exported; what can are the default and other "
                f"rectifiers, and methods that end in a network or a logistic regression, such as "
                f"PRODEN, CC, POP, Majority-Vote, Dawid-Skene and CROWDLAB"
            )
        self.layers = [(torch.tensor(a).double(), torch.tensor(b).double()) for a, b in layers]
        self.mean, self.scale = (torch.tensor(v) for v in (estimator.mean_, estimator.scale_))
        present = torch.tensor(estimator.candidates_.mask.any(axis=0))
        # From the classes that are somebody's candidate to all classes.
        self.places = torch.eye(len(present), dtype=torch.float64)[present]

    def predict_proba(self, features: Tensor) -> Tensor:
        h = (features.double() - self.mean) / self.scale
        h = h.clamp(-self.farthest, self.farthest)
        for number, (coef, intercept) in enumerate(self.layers):
            h = (h.relu() if number else h) @ coef + intercept
        return (h.softmax(dim=1) @ self.places).to(features.dtype)
