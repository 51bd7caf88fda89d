"""The default rectifier: approximate inference in a stated model of a task.

The model. Samples are centered on the task's mean.

1. *Classes* are normal around shrunk means: :mod:`fspll.rectifiers.class_model`.
2. *Candidate sets.* A set S holds the true class and distractors drawn evenly from the others, so
   p(S | c) is the same for every c in S and zero for the others. Where it is known how many people
   gave each label, p(S | c) is proportional to a ``prior`` instead.
3. *Neighbors* share a sample's class with a probability that falls with their distance:
   :mod:`fspll.rectifiers.neighbor_likelihood`.

The inference. Neighbors' sets give the first confidences, as a product (an intersection softened by
their reliability), not as a mean; the search starts from classes of even size, which keeps one
class from taking two groups, and soon forgets that. Then confidences and class means take turns:
the sharpness rises, the neighbors' weight fades, and every sample is scored against means computed
*without it* and shrunk to the task's mean (:mod:`fspll.rectifiers.class_means`). Last, samples near
one mean form a group; which label a group carries is decided over all groups at once, as each label
belongs to one group only (:mod:`fspll.rectifiers.assignment`). Where candidate sets leave that
open, the probabilities say so.

Nothing depends on the origin, the scale or the orientation of the features. Shapes: B tasks, n
samples, l classes, m features, T rounds; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fspll._common.arguments import check_count, is_flag
from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.rectifiers.assignment import name_groups
from fspll.rectifiers.base import (
    Fitted,
    Groups,
    Rectifier,
    StoredState,
    Trace,
    check_neighbors,
    resolve_neighbors,
)
from fspll.rectifiers.candidate_table import CandidateTable
from fspll.rectifiers.class_means import ClassMeans
from fspll.rectifiers.class_model import ClassModel, restore_class_model, sharpness_for
from fspll.rectifiers.equations import check_task
from fspll.rectifiers.neighbor_likelihood import SYMMETRY, break_symmetry, neighbor_log_likelihood
from fspll.rectifiers.sparse.evidence import infer_labels_sparse

# Chosen on meta-training classes of Omniglot and of small photos; accuracy is flat around them.
FIRST_SHARE = 0.125  # of the final sharpness, in the first round
EVEN_START = 0.3  # share of the rounds over which the even sizes of the start are forgotten
_ENTRIES_AT_ONCE = 1 << 20  # of (sample, class) or (sample, sample): what processor caches hold


@dataclass(frozen=True)
class EvidenceRule(Rectifier):
    """The default rectifier.

    Attributes
    ----------
    n_neighbors : int or "auto"
        k, how many neighbors' sets give the first confidences; 0 for none. "auto" is one less than
        the samples per class.
    n_iterations : int
        Rounds of confidences and class means, 1 or more.
    class_balance : bool
        Say that all classes are about equally frequent.

    Examples
    --------
    >>> from fspll import FsPLLClassifier
    >>> clf = FsPLLClassifier(rectifier=EvidenceRule(n_neighbors=1))
    >>> clf.fit([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"a", "b"}]).labels_.tolist()
    ['a', 'a', 'b']
    """

    n_neighbors: int | str = "auto"
    n_iterations: int = 10
    class_balance: bool = False

    name = "evidence"
    uses_votes = True
    uses_unlabeled = True
    handles_many = True
    calibrated = True
    ignores_scale = True

    def __post_init__(self) -> None:
        check_neighbors(self.n_neighbors)
        check_count("n_iterations", self.n_iterations, 1)
        if not is_flag(self.class_balance):
            raise InputError(f"class_balance must be True or False, not {self.class_balance!r}")

    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Infer the labels of tasks by :func:`infer_labels`."""
        mask, prior = observed.mask(embeddings.device), observed.prior(embeddings.device)
        return infer_labels(embeddings, mask, self, prior, trace=trace)

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Infer the labels of many samples, entry by entry."""
        return infer_labels_sparse(
            embeddings,
            observed.sets(),
            votes=observed.candidate_votes(),
            n_neighbors=resolve_neighbors(self.n_neighbors, observed, by_entries=True),
            n_iterations=self.n_iterations,
            class_balance=bool(self.class_balance),
        )

    def restore(self, stored: StoredState) -> Fitted:
        """Read the class model of a model file."""
        return restore_class_model(stored)


def infer_labels(
    embeddings: Tensor,
    candidates: Tensor,
    rule: EvidenceRule | None = None,
    prior: Tensor | None = None,
    *,
    trace: bool = False,
) -> ClassModel:
    """Infer the labels of ambiguous samples and a model of their classes.

    Samples without any label may be given with full candidate sets: they say nothing about labels
    but help to place the classes. Nothing is differentiated.

    Parameters
    ----------
    embeddings : float Tensor of shape (..., n, m)
    candidates : bool Tensor of shape (..., n, l)
        Every row needs at least one candidate.
    rule : EvidenceRule, optional
        The settings.
    prior : float Tensor of shape (..., n, l), optional
        How likely each candidate was before anything was seen, such as the votes of annotators;
        only the ratios between a sample's candidates count. Without it, all are equally likely.
    trace : bool
        Keep every round; for one task (n, m) only.

    Returns
    -------
    ClassModel
        With ``confidence`` (..., n, l) and ``predict_proba``.

    Examples
    --------
    The middle pair could be b or c; that nobody else can be c tells:

    >>> e = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.2]])
    >>> y = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1], [1, 1, 0]]).bool()
    >>> infer_labels(e, y, EvidenceRule(n_neighbors=1)).confidence.argmax(-1).tolist()
    [0, 0, 2, 2, 1, 1]
    """
    rule = rule or EvidenceRule()
    check_task(embeddings, candidates)
    if trace and candidates.ndim != 2:
        raise InputError(f"one task at a time can be traced, not {tuple(candidates.shape)}")
    k = resolve_neighbors(rule.n_neighbors, Observed(candidates))
    weight = None if prior is None else _relative_prior(prior, candidates, embeddings)
    batch = candidates.shape[:-2]
    n, n_classes = candidates.shape[-2:]
    with torch.no_grad():
        e = embeddings.detach()
        e = e.to(torch.promote_types(e.dtype, torch.float32)).reshape(-1, n, e.shape[-1])
        y = candidates.reshape(-1, n, n_classes)
        at_once = max(1, _ENTRIES_AT_ONCE // (n * max(n, n_classes, e.shape[-1])))
        rounds = _Rounds() if trace else None
        parts = [
            _infer(e[part], y[part], rule, k, None if weight is None else weight[part], rounds)
            for part in (slice(start, start + at_once) for start in range(0, len(e), at_once))
        ]
        found = _Inferred(
            *(
                (tensors[0] if len(tensors) == 1 else torch.cat(tensors)).reshape(
                    batch + tensors[0].shape[1:]
                )
                for tensors in zip(*parts, strict=True)
            )
        )
    return ClassModel(
        **found._asdict(),
        n_neighbors=k,
        trace=None if rounds is None else rounds.as_trace(found.naming),
    )


# -------------------------------------------------------------------- the steps


class _Inferred(NamedTuple):
    """What is found about B tasks, by the names of :class:`ClassModel`."""

    confidence: Tensor
    prototypes: Tensor
    present: Tensor
    spread: Tensor
    naming: Tensor
    has_support: Tensor
    left_out: Tensor


class _Rounds:
    """Every round of one task."""

    by_features: Tensor
    member: Tensor

    def __init__(self) -> None:
        self.confidence: list[Tensor] = []
        self.prototypes: list[Tensor] = []

    def as_trace(self, naming: Tensor) -> Trace:
        return Trace(
            torch.cat(self.confidence),
            torch.cat(self.prototypes),
            Groups(self.by_features[0], self.member[0], naming),
        )


def _relative_prior(prior: Tensor, candidates: Tensor, embeddings: Tensor) -> Tensor:
    """Return the prior over its mean over the candidates, zero elsewhere, of shape (B, n, l)."""
    if prior.shape != candidates.shape:
        raise InputError(
            f"prior has shape {tuple(prior.shape)}, but the candidates {tuple(candidates.shape)}"
        )
    prior = prior.to(candidates.device, torch.promote_types(embeddings.dtype, torch.float32))
    inside = prior[candidates]
    if not bool((inside > 0).all()) or not bool(inside.isfinite().all()):
        raise InputError("prior must be a positive, finite number for every candidate")
    inside = torch.where(candidates, prior, 0)
    mean = inside.sum(dim=-1, keepdim=True) / candidates.sum(dim=-1, keepdim=True)
    return (inside / mean).reshape(-1, *candidates.shape[-2:])


def _infer(
    embeddings: Tensor,
    candidates: Tensor,
    rule: EvidenceRule,
    k: int,
    prior: Tensor | None,
    rounds: _Rounds | None,
) -> _Inferred:
    """Solve tasks (B, n, m) with candidates (B, n, l) and relative priors (B, n, l)."""
    first = embeddings[:, :1]  # so that equal samples are all at zero, whatever rounding does
    center = first + (embeddings - first).mean(dim=-2, keepdim=True)
    e = embeddings - center
    # In units of a power of two, which rounds nothing, squares neither overflow nor vanish.
    exponent = torch.frexp(e.abs().amax(dim=(-1, -2), keepdim=True)).exponent - 1
    unit = torch.ldexp(torch.ones_like(e[:, :1, :1]), exponent)
    e = e / unit
    table = CandidateTable.of(candidates)
    present = table.present.unsqueeze(-1)
    # Not centered: rounding would make equal distances unequal.
    neighbors = table.narrow(neighbor_log_likelihood(embeddings / unit, candidates, k))
    neighbors = neighbors + SYMMETRY * table.narrow(break_symmetry(e, candidates))
    log_prior = None if prior is None else _log_on_candidates(table, prior)
    final = sharpness_for(e.shape[-1])
    means = ClassMeans(e, table)

    def update(confidence: Tensor) -> None:
        means.update(confidence)
        if rounds is not None:
            rounds.confidence.append(means.confidence)
            rounds.prototypes.append(torch.where(present, means.means() * unit + center, 0))

    confidence = table.balanced(neighbors if log_prior is None else neighbors + log_prior, 1.0)
    update(confidence)
    for turn in range(rule.n_iterations):
        # A single round is a last round.
        progress = turn / (rule.n_iterations - 1) if rule.n_iterations > 1 else 1.0
        sharpness = final * FIRST_SHARE ** (1 - progress)
        score = sharpness * means.candidate_fit(confidence) + (1 - progress) * neighbors
        if log_prior is not None:
            score = score + log_prior
        even = 1.0 if rule.class_balance else max(0.0, 1 - progress / EVEN_START)
        confidence = table.balanced(score, even)
        update(confidence)
    by_features = (final * means.class_fit()).softmax(dim=-1)
    # Membership by features alone overlooks classes of one sample; membership by candidates alone
    # confirms itself. Their mean does neither.
    member = 0.5 * (by_features + table.widen(confidence))
    if rounds is not None:
        rounds.by_features, rounds.member = by_features, member
    naming = name_groups(member, candidates, prior)
    left_out = (by_features @ naming).to(e.dtype)
    share = left_out * (candidates if prior is None else prior)
    total = share.sum(dim=-1, keepdim=True)
    tiny = torch.finfo(total.dtype).tiny
    return _Inferred(
        confidence=torch.where(total > tiny, share / total, table.widen(confidence)),
        prototypes=torch.where(present, means.means() * unit + center, 0),
        present=table.present,
        spread=(means.spread * unit * unit).flatten(),
        naming=naming,
        has_support=means.has_support(),
        left_out=left_out,
    )


def _log_on_candidates(table: CandidateTable, prior: Tensor) -> Tensor:
    """Log of the relative prior at the candidates, (B, n, w), zero where a set is smaller."""
    return torch.where(table.real, table.narrow(prior), 1).log()
