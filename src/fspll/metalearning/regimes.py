"""Regimes: which labels meta-training may see, and what it does with them.

PN, FsPLL, FsPLL-nM, MAML and their + forms are data for one trainer. Their names are in
:data:`fspll.metalearning.REGIMES`; other packages add regimes through the entry point
``fspll.regimes``. Shapes: n support samples, q queries, l classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fspll._common.arguments import check_choice
from fspll._common.errors import InputError
from fspll.metalearning import objectives
from fspll.metalearning.maml import MAMLLearner
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.prototypes import Learner, PrototypeLearner, Solved
from fspll.rectifiers.base import Rectifier
from fspll.rectifiers.paper import FsPLLRule
from fspll.tasks import Tasks

SUPPORT_LABELS = ("candidates", "precise")
QUERY_LABELS = ("none", *SUPPORT_LABELS)


@dataclass(frozen=True)
class Regime:
    """Which labels an episode shows, what is minimized, and by which learner.

    Attributes
    ----------
    support : {"candidates", "precise"}
        Labels of the support samples that may be seen.
    query : {"none", "candidates", "precise"}
        Labels of the queries that may be seen.
    objective : callable
        What is minimized, a scalar tensor. A learner with prototypes calls it with a
        :class:`~fspll.metalearning.prototypes.Solved`; MAML calls it with log-probabilities and
        labels, both of shape (n, l).
    rectifier : callable, optional
        From the training plan to the rectifier of the support's confidence; None gives every
        candidate the same weight.
    learner : type
        How an episode becomes a loss; see :class:`~fspll.metalearning.prototypes.Learner`.
    reads_queries : bool
        Whether the objective looks at queries at all, labeled or not.
    about : str
        One line for people.
    revision : str
        Changed whenever the same plan would train another network, so that stored results of an
        earlier revision are not taken for those of this one.

    Examples
    --------
    >>> from fspll.metalearning import REGIMES
    >>> REGIMES.get("precise").query, REGIMES.get("maml").learner.adapts
    ('precise', True)
    """

    support: str
    query: str
    objective: Callable[..., Tensor]
    rectifier: Callable[[TrainingPlan], Rectifier] | None = None
    learner: type[Learner] = PrototypeLearner
    reads_queries: bool = True
    about: str = ""
    revision: str = "1"

    def __post_init__(self) -> None:
        check_choice("support", self.support, SUPPORT_LABELS)
        check_choice("query", self.query, QUERY_LABELS)
        if not callable(self.objective):
            raise InputError(f"objective must be a function, not {self.objective!r}")

    def visible_labels(self, task: Tasks) -> tuple[Tensor, Tensor | None]:
        """Return the labels of support (n, l) and queries (q, l) as candidate sets.

        Precise labels are sets of one; those of the queries are None where they are hidden.
        """
        support = _labels(self.support, task.candidates, task.support_labels)
        if self.query == "none":
            return support, None
        return support, _labels(self.query, task.query_candidates, task.query_labels)


def _labels(kind: str, candidates: np.ndarray, truth: np.ndarray) -> Tensor:
    if kind == "candidates":
        return torch.from_numpy(candidates)
    return torch.from_numpy(np.eye(candidates.shape[-1], dtype=bool)[truth])


# -------------------------------------------------------------------- objectives of prototypes


def largest_probability(solved: Solved) -> Tensor:
    """Eq. (5), the paper's objective: reads no label of the queries."""
    return objectives.largest_probability(solved.query_log_p())


def true_class(solved: Solved) -> Tensor:
    """Cross-entropy with the queries' true classes."""
    return objectives.true_class(solved.query_log_p(), solved.query_labels.long().argmax(-1))


def average_over_candidates(solved: Solved) -> Tensor:
    """Cross-entropy averaged over the queries' candidates."""
    return objectives.average_over_candidates(solved.query_log_p(), solved.query_labels)


def query_candidates(solved: Solved) -> Tensor:
    """Minus the log of the total probability of the queries' candidates."""
    return objectives.total_candidate_probability(solved.query_log_p(), solved.query_labels)


def leave_one_out(solved: Solved) -> Tensor:
    """Minus the log of the support's candidates' probability, each sample left out in turn."""
    return objectives.leave_one_out_support(*solved.support_log_p(), solved.view.support_labels)


def all_candidates(solved: Solved) -> Tensor:
    """Both of the above."""
    return leave_one_out(solved) + query_candidates(solved)


# -------------------------------------------------------------------- the regimes


def paper_rule(plan: TrainingPlan, manifold_weight: float = 0.5) -> FsPLLRule:
    """Return the paper's rectification: one neighbor less than the shots, lambda, ten rounds."""
    return FsPLLRule(plan.n_shot - 1, manifold_weight, 10, plan.metric)


FSPLL = Regime(
    "candidates",
    "none",
    largest_probability,
    paper_rule,
    about="the paper's FsPLL",
)
FSPLL_NM = Regime(
    "candidates",
    "none",
    largest_probability,
    partial(paper_rule, manifold_weight=0.0),
    about="FsPLL without the neighborhood",
)
PN = Regime(
    "candidates",
    "none",
    largest_probability,
    about="PN on candidate sets, as in the paper",
)
PN_AVERAGE = Regime(
    "candidates",
    "candidates",
    average_over_candidates,
    about="PN whose queries carry candidate sets: a stronger baseline than the paper's",
)
PRECISE = Regime(
    "precise",
    "precise",
    true_class,
    about="true labels in meta-training: FsPLL+, PN+, FsPLL++ and PN++ share it",
)
LEAVE_ONE_OUT = Regime(
    "candidates",
    "none",
    leave_one_out,
    paper_rule,
    reads_queries=False,
    about="learns from the support's candidate sets alone, as evidence",
)
QUERY_CANDIDATES = Regime(
    "candidates",
    "candidates",
    query_candidates,
    paper_rule,
    about="learns from candidate sets of the queries",
)
ALL_CANDIDATES = Regime(
    "candidates",
    "candidates",
    all_candidates,
    paper_rule,
    about="leave-one-out and query-candidates together, where queries carry sets",
)
MAML = Regime(
    "candidates",
    "candidates",
    objectives.average_over_candidates,
    learner=MAMLLearner,
    about="MAML on candidate sets: its losses are averaged over the candidates",
    revision="2",
)
MAML_TOTAL = Regime(
    "candidates",
    "candidates",
    objectives.total_candidate_probability,
    learner=MAMLLearner,
    about="MAML on candidate sets, by the candidates' total probability",
)
MAML_PLUS = Regime(
    "precise",
    "precise",
    objectives.average_over_candidates,
    learner=MAMLLearner,
    about="MAML with true labels in meta-training",
    revision="2",
)
