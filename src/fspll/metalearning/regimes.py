"""Regimes: which labels meta-training may see, and what it does with them.

PN, FsPLL, FsPLL-nM and their + forms are settings of one trainer, not classes. The trainer hands an
episode to a regime as a :class:`View` that holds only what the regime declares, so no objective can
read a label it is not meant to see. Shapes: n support samples, q queries, l classes, m features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fspll._common.arguments import check_choice
from fspll._common.errors import InputError
from fspll.metalearning import objectives
from fspll.rectifiers.paper import Settings, class_prototypes, distances, rectify
from fspll.tasks import Tasks


class View(NamedTuple):
    """What a regime may see of an episode.

    Labels are candidate sets throughout; precise labels are sets of one.
    """

    support: Tensor  # (n, m) embeddings
    support_labels: Tensor  # (n, l) bool
    query: Tensor  # (q, m) embeddings
    query_labels: Tensor | None  # (q, l) bool


class Solved(NamedTuple):
    """The view together with what its support set says."""

    view: View
    confidence: Tensor  # (n, l), a constant of the backward pass
    prototypes: Tensor  # (l, m), differentiable
    present: Tensor  # (l,) bool
    metric: str

    def query_log_p(self) -> Tensor:
        """Log of Eq. (4) for the queries, of shape (q, l)."""
        away = distances(self.view.query, self.prototypes, self.metric)
        return objectives.log_probabilities(away, self.present)


def _largest(solved: Solved) -> Tensor:
    return objectives.largest_probability(solved.query_log_p())


def _true_class(solved: Solved) -> Tensor:
    return objectives.true_class(solved.query_log_p(), _query_labels(solved).long().argmax(-1))


def _average(solved: Solved) -> Tensor:
    return objectives.average_over_candidates(solved.query_log_p(), _query_labels(solved))


def _total(solved: Solved) -> Tensor:
    return objectives.total_candidate_probability(solved.query_log_p(), _query_labels(solved))


def _leave_one_out(solved: Solved) -> Tensor:
    return objectives.leave_one_out_support(
        distances(solved.view.support, solved.prototypes, solved.metric),
        solved.view.support_labels,
        solved.confidence,
        squared=solved.metric == "sqeuclidean",
    )


def _all_candidates(solved: Solved) -> Tensor:
    return _leave_one_out(solved) + _total(solved)


def _query_labels(solved: Solved) -> Tensor:
    if solved.view.query_labels is None:
        raise InputError("this objective reads query labels, but the regime hides them")
    return solved.view.query_labels


OBJECTIVES: dict[str, Callable[[Solved], Tensor]] = {
    "largest-probability": _largest,
    "true-class": _true_class,
    "average-over-candidates": _average,
    "query-candidates": _total,
    "leave-one-out": _leave_one_out,
    "all-candidates": _all_candidates,
}
LABELS = ("none", "candidates", "precise")
MAML_REGIMES = ("maml", "maml+")  # without prototypes: see fspll.metalearning.maml


@dataclass(frozen=True)
class Regime:
    """Which labels an episode shows and what is minimized.

    Attributes
    ----------
    support : {"candidates", "precise"}
        Labels of the support samples.
    query : {"none", "candidates", "precise"}
        Labels of the queries.
    objective : str
        A name of :data:`OBJECTIVES`.
    n_iterations : int
        Rounds of rectification of the support set; 0 weighs all candidates equally.
    manifold_weight : float
        lambda of Eq. (3).
    about : str
        One sentence for people.
    """

    support: str
    query: str
    objective: str
    n_iterations: int
    manifold_weight: float
    about: str

    def __post_init__(self) -> None:
        if self.support not in LABELS[1:] or self.query not in LABELS:
            raise InputError(
                f"labels are candidates or precise (or none, for queries), not "
                f"support={self.support!r}, query={self.query!r}"
            )
        check_choice("objective", self.objective, OBJECTIVES)

    @property
    def reads_queries(self) -> bool:
        """Whether the objective looks at queries at all, labeled or not."""
        return self.objective != "leave-one-out"

    def view(self, support: Tensor, query: Tensor, task: Tasks) -> View:
        """Return what this regime may see of a task whose samples are embedded already."""
        device = support.device
        hidden = self.query == "none"
        return View(
            support=support,
            support_labels=_labels(self.support, task.candidates, task.support_labels).to(device),
            query=query,
            query_labels=None
            if hidden
            else _labels(self.query, task.query_candidates, task.query_labels).to(device),
        )

    def solve(self, view: View, n_neighbors: int, metric: str) -> Solved:
        """Weigh the support's candidates and compute the prototypes, Eq. (1) to (3)."""
        labels = view.support_labels
        if self.n_iterations and bool((labels.sum(dim=-1) > 1).any()):
            settings = Settings(n_neighbors, self.manifold_weight, self.n_iterations, metric)
            confidence = rectify(view.support, labels, settings).confidence
        else:  # nothing to weigh; with sets of one, Eq. (3) would only blur the class means
            confidence = labels.to(view.support.dtype)
        return Solved(
            view=view,
            confidence=confidence.to(view.support.dtype),
            prototypes=class_prototypes(view.support, confidence.to(view.support.dtype)),
            present=labels.any(dim=-2),
            metric=metric,
        )

    def loss(self, solved: Solved) -> Tensor:
        """Return the objective, a scalar."""
        return OBJECTIVES[self.objective](solved)


def _labels(kind: str, candidates: object, truth: object) -> Tensor:
    mask = torch.as_tensor(candidates)
    if kind == "candidates":
        return mask
    return torch.nn.functional.one_hot(torch.as_tensor(truth), mask.shape[-1]).bool()


REGIMES = {
    "fspll": Regime(
        "candidates",
        "none",
        "largest-probability",
        10,
        0.5,
        "the paper's FsPLL",
    ),
    "fspll-nm": Regime(
        "candidates", "none", "largest-probability", 10, 0.0, "FsPLL without the neighborhood"
    ),
    "pn": Regime(
        "candidates", "none", "largest-probability", 0, 0.0, "PN on candidate sets, as in the paper"
    ),
    "pn-average": Regime(
        "candidates",
        "candidates",
        "average-over-candidates",
        0,
        0.0,
        "PN whose queries carry candidate sets: a stronger baseline than the paper's",
    ),
    "precise": Regime(
        "precise",
        "precise",
        "true-class",
        0,
        0.0,
        "true labels in meta-training: FsPLL+, PN+, FsPLL++ and PN++ share it",
    ),
    "leave-one-out": Regime(
        "candidates",
        "none",
        "leave-one-out",
        10,
        0.5,
        "learns from the support's candidate sets alone, as evidence",
    ),
    "query-candidates": Regime(
        "candidates",
        "candidates",
        "query-candidates",
        10,
        0.5,
        "learns from candidate sets of the queries",
    ),
    "all-candidates": Regime(
        "candidates",
        "candidates",
        "all-candidates",
        10,
        0.5,
        "leave-one-out and query-candidates together, where queries carry sets",
    ),
}
DEFAULT = "leave-one-out"


def find_regime(name: str) -> Regime:
    """Return a regime by its name, in any case; a wrong name lists the right ones."""
    try:
        return REGIMES[name.lower()]
    except KeyError:
        known = ", ".join([*REGIMES, *MAML_REGIMES])
        raise InputError(f"regime must be one of {known}, not {name!r}") from None
