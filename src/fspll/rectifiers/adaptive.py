"""The default rectifier: class means and a kernel, mixed as held-out samples ask for.

Few samples of equally frequent classes are best told apart by class means
(:mod:`fspll.rectifiers.evidence`). Where classes are unequal, where some labels are popular as
distractors, where there are hundreds of samples per class or where people gave the labels, a kernel
that needs none of these assumptions does better (:mod:`fspll.rectifiers.kernel_inference`).
Which of them counts how much, how candidate sets came about, and how often they lack the truth is
decided by the likelihood of samples that were held out (:mod:`fspll.rectifiers.held_out`); the same
samples calibrate the probabilities and show whether the features tell anything about the labels.

With few samples per class and no sign of uneven labels nothing is held out, as too little could be
learned: labels are then those of the class means. New samples are classified by class means and
kernel in equal parts.

Shapes: B tasks, n samples, l classes, m features, q queries; ``...`` for leading batch dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import sparse, stats
from torch import Tensor

from fspll._common.arguments import check_count, is_flag
from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.rectifiers.adaptive_model import (
    AdaptiveModel,
    few_samples_model,
    joined,
    restore_adaptive,
    task_of,
)
from fspll.rectifiers.base import Fitted, Rectifier, StoredState, check_neighbors, to_tensor
from fspll.rectifiers.class_model import ClassModel, ManyClassModel, restore_class_model
from fspll.rectifiers.evidence import EvidenceRule, infer_labels
from fspll.rectifiers.held_out import (
    Check,
    Weights,
    choose_weights,
    folds,
    is_sure,
    kernel_held_out,
    matched,
    standard_error,
)
from fspll.rectifiers.kernel import MOST_EXACT, RIDGE, WIDTH, KernelRidge
from fspll.rectifiers.kernel_inference import class_probability, infer_with_kernel
from fspll.rectifiers.label_models import Annotators, EvenSets, LabelModel, SetOdds

# Chosen on meta-training classes of photos, on Lost and on scikit-learn's digits; docs/real.md.
MANY, PER_CLASS = 300, 20  # samples, and per class, from which held-out samples are always asked
UNEVEN = 1e-3  # p-value of equal label counts below which they are asked with fewer
NEARLY_FULL = 0.8  # mean share of the classes in a set, above which held-out samples tell nothing
LEAST_CHECKED = 20  # samples, below which they are not asked
MOST_SAMPLES, MOST_ENTRIES = 1 << 16, 1 << 24  # of samples, and samples x classes, for a kernel
_ROWS_AT_ONCE = 1 << 12
KERNELS = ((WIDTH, RIDGE), (0.3, RIDGE), (3.0, 0.03))  # width and ridge, the usual first
_LEAST = 1e-12


@dataclass(frozen=True)
class AdaptiveRule(Rectifier):
    """The default rectifier.

    Attributes
    ----------
    n_neighbors : int or "auto"
        As of :class:`fspll.rectifiers.EvidenceRule`.
    n_iterations : int
        Rounds of confidences and class means.
    class_balance : bool
        Say that all classes are about equally frequent.
    held_out : bool or None
        Whether samples are held out. None asks them where there are many samples or uneven labels.

    Examples
    --------
    >>> from fspll import FsPLLClassifier
    >>> clf = FsPLLClassifier(rectifier=AdaptiveRule(n_neighbors=1))
    >>> clf.fit([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"a", "b"}]).labels_.tolist()
    ['a', 'a', 'b']
    """

    n_neighbors: int | str = "auto"
    n_iterations: int = 10
    class_balance: bool = False
    held_out: bool | None = None

    name = "adaptive"
    uses_votes = True
    uses_judgments = True
    uses_unlabeled = True
    handles_many = True
    calibrated = True

    def __post_init__(self) -> None:
        check_neighbors(self.n_neighbors)
        check_count("n_iterations", self.n_iterations, 1)
        if not is_flag(self.class_balance):
            raise InputError(f"class_balance must be True or False, not {self.class_balance!r}")
        if self.held_out is not None and not is_flag(self.held_out):
            raise InputError(f"held_out must be True, False or None, not {self.held_out!r}")

    def checked(self) -> AdaptiveRule:
        """Hold samples out, unless it was said not to."""
        return replace(self, held_out=True) if self.held_out is None else self

    @property
    def _means_rule(self) -> EvidenceRule:
        return EvidenceRule(self.n_neighbors, self.n_iterations, self.class_balance)

    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Infer the labels of tasks; each is solved as it would be alone."""
        mask, votes = observed.mask(embeddings.device), observed.prior(embeddings.device)
        means = infer_labels(embeddings, mask, self._means_rule, votes, trace=trace)
        if mask.ndim == 2 and self._asks(mask[None], observed)[0]:
            labels = label_models(observed, mask, votes)
            return self._fit_checked(embeddings, mask, labels, means, votes)
        model = few_samples_model(embeddings, means)
        if mask.ndim == 2:
            return model
        shape = mask.shape[:-2]
        flat = mask.reshape(-1, *mask.shape[-2:])
        asked = np.flatnonzero(self._asks(flat, observed)).tolist()
        if not asked:
            return model
        e = embeddings.reshape(-1, *embeddings.shape[-2:])
        parts = [task_of(model, shape, task) for task in range(len(flat))]
        for task in asked:
            of_task = None if votes is None else votes.reshape(flat.shape)[task]
            labels = set_models(flat[task], of_task)
            part = task_of(means, shape, task)
            parts[task] = self._fit_checked(e[task], flat[task], labels, part, of_task)
        return joined(parts, shape)

    def _asks(self, mask: Tensor, observed: Observed) -> np.ndarray:
        """Tell of which tasks (B, n, l) samples are held out, (B,)."""
        n = mask.shape[-2]
        n_labels = mask.any(dim=-2).sum(dim=-1).cpu().numpy()
        possible = (n >= LEAST_CHECKED) & (n_labels > 1) & (self.held_out is not False)
        if self.held_out or observed.judgments is not None:
            return possible
        return possible & (
            (n >= np.maximum(MANY, PER_CLASS * n_labels)) | (evenness(mask) < UNEVEN)
        )

    def _fit_checked(
        self,
        embeddings: Tensor,
        mask: Tensor,
        labels: list[LabelModel],
        means: ClassModel | ManyClassModel,
        votes: Tensor | None,
    ) -> AdaptiveModel:
        """Solve one task (n, m), (n, l) by what held-out samples say, on the processor."""
        embeddings, mask = embeddings.cpu(), mask.cpu()
        votes = None if votes is None else votes.cpu()
        present = mask.any(dim=0)
        rows = torch.cat(list(folds(len(mask))))
        by_means = torch.cat(
            [self._means_without(embeddings, mask, votes, held) for held in folds(len(mask))]
        )
        best = best_fit(embeddings, labels, present, by_means)
        kernel = KernelRidge(embeddings, *best.kernel)
        fresh = best.labels.take(torch.ones(len(mask), dtype=torch.bool))  # nothing estimated yet
        found = infer_with_kernel(kernel, replace(fresh), present)  # type: ignore[type-var]
        weights = best.weights
        useless = not is_sure(weights.gain, weights.gain_error) and evenness(mask) >= UNEVEN
        check = check_of(best, rows, mask, by_means, present)
        if useless and check.chance > NEARLY_FULL and isinstance(means, ClassModel):
            # Such sets could not tell good features from bad ones; clusters may still be clear.
            model = few_samples_model(embeddings, means)
            return replace(model, check=check, posterior=means.confidence.double())
        if useless:
            weights = replace(weights, kernel=0.0, means=0.0, doubt=best.labels.doubts[0])
        log_means = by_class_means(means, embeddings).to(found.scores).clamp_min(_LEAST).log()
        logits = weights.kernel * (found.scores + found.bias) + weights.means * log_means
        raw = class_probability(logits, present).mean(dim=0)
        prior = found.labels.prior(found.frequency, weights.doubt)
        if len(rows) == len(mask):
            # What was found without a sample errs independently of what only leaves it out of the
            # last step, and nothing in it confirms itself: the mean of both is better than either.
            order = rows.argsort()
            without = weights.kernel * best.scores + weights.means * by_means
            logits = 0.5 * (logits + without[order])
            prior = (prior * best.prior[order]).sqrt()
        if useless:
            # Frequencies and odds were estimated with features that tell nothing: so do they.
            prior = fresh.prior(present / present.sum().to(prior))
            found = replace(found, frequency=present / present.sum().to(prior))
        probability = matched(logits, found.frequency, present)
        joint = prior * probability / found.frequency.clamp_min(_LEAST)
        shares = joint / joint.sum(dim=-1, keepdim=True).clamp_min(_LEAST)
        shift = torch.where(present, (found.frequency / raw.clamp_min(_LEAST)).log(), 0)
        confidence = (shares * mask).to(means.prototypes)
        return AdaptiveModel(
            confidence=confidence
            if isinstance(means, ClassModel)
            else on_entries(confidence, means.confidence),
            posterior=shares,
            prototypes=means.prototypes,
            present=means.present,
            n_neighbors=means.n_neighbors,
            trace=means.trace,
            means=means,
            basis=kernel.basis,
            center=kernel.center,
            reach=kernel.reach,
            dual=kernel.dual(shares),
            kernel_weight=torch.tensor(weights.kernel, dtype=shares.dtype)[None, None],
            means_weight=torch.tensor(weights.means, dtype=shares.dtype)[None, None],
            bias=(weights.kernel * found.bias + shift)[None],
            check=check,
            doubt=weights.doubt,
        )

    def _means_without(
        self, embeddings: Tensor, mask: Tensor, votes: Tensor | None, held: Tensor
    ) -> Tensor:
        """Log-probabilities of held-out samples by class means of the others, (h, l)."""
        seen = torch.ones(len(mask), dtype=torch.bool)
        seen[held] = False
        observed = Observed(mask[seen], None if votes is None else votes[seen])
        part = self._means_rule.fit(embeddings[seen], observed)
        return part.predict_proba(embeddings[held]).double().clamp_min(_LEAST).log()

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Infer the labels of many samples, their class means entry by entry."""
        means = self._means_rule.fit_many(embeddings, observed)
        if not self._has_kernel(observed) or self.held_out is False:
            return means
        mask = observed.mask()
        labels = label_models(observed, mask, observed.prior())
        assert isinstance(means, ManyClassModel)
        return self._fit_checked(to_tensor(embeddings), mask, labels, means, None)

    def _has_kernel(self, observed: Observed) -> bool:
        n, n_classes = observed.n_samples, observed.n_classes
        return n <= MOST_SAMPLES and n * n_classes <= MOST_ENTRIES and not observed.n_unlabeled

    def check(self, observed: Observed) -> None:
        """Raise when this cannot take what was observed; a kernel takes votes of many samples."""
        if not self._has_kernel(observed) or self.held_out is False:
            super().check(observed)

    def restore(self, stored: StoredState) -> Fitted:
        """Read the class means and the kernel of a model file."""
        means = restore_class_model(stored)
        if "kernel.basis" not in stored.tensors:
            return means
        return restore_adaptive(stored, means)


def evenness(mask: Tensor) -> np.ndarray:
    """Return the p-values of equal label counts in candidate sets (..., n, l), of shape (...).

    A chi-squared test over the labels that occur; one where there is nothing to test.

    >>> uneven = torch.tensor([[1, 1, 0]] * 20 + [[0, 1, 1]] * 20).bool()
    >>> bool(evenness(uneven) < 0.001)
    True
    """
    sets = mask.double()
    present = mask.any(dim=-2)
    n_labels = present.sum(dim=-1)
    chance = sets.sum(dim=-1) / n_labels.unsqueeze(-1).clamp_min(1)  # (..., n)
    variance = (chance * (1 - chance)).sum(dim=-1)
    off = torch.where(present, sets.sum(dim=-2) - chance.sum(dim=-1, keepdim=True), 0)
    statistic = off.square().sum(dim=-1) / variance.clamp_min(_LEAST) * (n_labels - 1) / n_labels
    p = stats.chi2.sf(statistic.cpu().numpy(), (n_labels - 1).clamp_min(1).cpu().numpy())
    return np.where(((n_labels > 1) & (variance > _LEAST)).cpu().numpy(), p, 1.0)


# -------------------------------------------------------------------- by held-out samples


@dataclass(frozen=True, eq=False)
class BestFit:
    """The label model, the kernel and the weights under which held-out samples are likeliest."""

    labels: LabelModel
    kernel: tuple[float, float]
    weights: Weights
    scores: Tensor  # (h, l)
    frequency: Tensor  # (h, l)
    prior: Tensor  # (h, l), with the doubt that was chosen


def best_fit(
    embeddings: Tensor, labels: list[LabelModel], present: Tensor, by_means: Tensor
) -> BestFit:
    """Choose the label model with the usual kernel, then the kernel with that model.

    A label model takes the place of one before it, which has fewer parameters, where it is better
    by two standard errors: with one large class a model of popular labels may fit as well, and
    split that class.

    With many samples, for which a kernel is approximated, it is the usual one.
    """

    def trial(model: LabelModel, width: float, ridge: float) -> BestFit:
        held = kernel_held_out(embeddings, model, present, width, ridge)
        weights = choose_weights(held, by_means, model, present)
        prior = held.priors[model.doubts.index(weights.doubt)]
        return BestFit(model, (width, ridge), weights, held.scores, held.frequency, prior)

    def gain(fit: BestFit) -> float:
        return fit.weights.gain

    best = trial(labels[0], *KERNELS[0])
    for model in labels[1:]:
        other = trial(model, *KERNELS[0])
        more = other.weights.gains - best.weights.gains
        if is_sure(float(more.mean()), standard_error(more)):
            best = other
    few = len(embeddings) <= MOST_EXACT
    others = [trial(best.labels, *kernel) for kernel in KERNELS[1:] if few]
    return max([best, *others], key=gain)


def label_models(observed: Observed, mask: Tensor, votes: Tensor | None) -> list[LabelModel]:
    """Return the label models that what was observed of one task allows."""
    mask, votes = mask.cpu(), None if votes is None else votes.cpu()
    certain = torch.zeros(len(mask), dtype=torch.bool)
    if observed.settled is not None:
        certain[: len(observed.settled)] = torch.from_numpy(observed.settled)
    said = observed.judgments
    if said is None:
        return set_models(mask, votes, certain)
    inside = said.labels >= 0
    return [
        Annotators(
            torch.from_numpy(said.rows[inside]),
            torch.from_numpy(said.annotators[inside]),
            torch.from_numpy(said.labels[inside]),
            torch.from_numpy(said.shares[inside]),
            len(said.names),
            mask.double(),
            certain,
        )
    ]


def set_models(
    mask: Tensor, votes: Tensor | None = None, certain: Tensor | None = None
) -> list[LabelModel]:
    """Return the label models of candidate sets (n, l)."""
    mask, votes = mask.cpu(), None if votes is None else votes.cpu()
    weight = mask.double() if votes is None else mask * votes.double()
    if certain is None:
        certain = torch.zeros(len(mask), dtype=torch.bool)
    return [EvenSets(weight, certain), SetOdds(weight, certain)]


def by_class_means(means: ClassModel | ManyClassModel, embeddings: Tensor) -> Tensor:
    """Probabilities of the training samples by class means (n, l), without the sample if few."""
    if isinstance(means, ClassModel) and means.left_out is not None:
        return means.left_out
    return torch.cat([means.predict_proba(part) for part in embeddings.split(_ROWS_AT_ONCE)])


def on_entries(dense: Tensor, pattern: sparse.csr_array) -> sparse.csr_array:
    """Return the values of a dense (n, l) where a sparse matrix has entries."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    values = dense.numpy()[rows, pattern.indices]
    return sparse.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)


def check_of(best: BestFit, rows: Tensor, mask: Tensor, by_means: Tensor, present: Tensor) -> Check:
    """Count how often the best class of held-out samples is among their candidates."""
    weights = best.weights
    logits = weights.kernel * best.scores + weights.means * by_means
    probability, top = matched(logits, best.frequency, present).max(dim=-1)
    sets = mask[rows].double()
    sizes, n_others = sets.sum(dim=-1), max(1, int(present.sum()) - 1)
    expected = probability + (1 - probability) * (sizes - 1) / n_others
    if isinstance(best.labels, EvenSets):  # whose doubt is the share of sets without the truth
        lacking = (1 - probability) * sizes / n_others
        expected = (1 - weights.doubt) * expected + weights.doubt * lacking
    return Check(
        n_samples=len(rows),
        hits=float(sets.gather(1, top.unsqueeze(1)).mean()),
        expected=float(expected.mean()),
        chance=float(sets.mean(dim=-1).mean() * mask.shape[1] / int(present.sum())),
        commonest=float(sets.mean(dim=0).max()),
        gain=weights.gain,
        gain_error=weights.gain_error,
    )
