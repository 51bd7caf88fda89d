"""Labels of one task by class means and a kernel, as held-out samples ask for.

Shapes: n samples, l classes, m features, h held-out samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll.candidates.observed import Observed
from fspll.rectifiers.adaptive_model import AdaptiveModel, few_samples_model
from fspll.rectifiers.base import Fitted
from fspll.rectifiers.class_model import ClassModel, ManyClassModel
from fspll.rectifiers.evidence import EvidenceRule
from fspll.rectifiers.held_out import (
    Check,
    Weights,
    folds,
    is_proved,
    is_sure,
    matched,
    replace_rows,
)
from fspll.rectifiers.kernel import KernelRidge, distances_within, tempering, usual_distance
from fspll.rectifiers.kernel_inference import class_probability, infer_with_kernel
from fspll.rectifiers.label_models import EvenSets, LabelModel, label_models
from fspll.rectifiers.model_choice import BestFit, best_fit

NEARLY_FULL = 0.8  # mean share of the classes in a set, above which held-out samples tell nothing
_ROWS_AT_ONCE = 1 << 12
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class CheckedFit:
    """A fitted model, and what else it takes to label further samples.

    Attributes
    ----------
    model : AdaptiveModel
        Whose posterior has a row for every sample.
    labels : LabelModel
        With the estimated parameters.
    frequency : Tensor of shape (l,)
    """

    model: AdaptiveModel
    labels: LabelModel
    frequency: Tensor

    def extend(
        self, embeddings: np.ndarray, observed: Observed, learned: np.ndarray, most_entries: int
    ) -> AdaptiveModel:
        """Label all samples, those too that the kernel did not learn from.

        Parameters
        ----------
        embeddings : array of shape (n, m)
        observed : Observed
            Of all n samples.
        learned : int array
            Rows of the samples that were learned from.
        most_entries : int
            Of the posterior (n, l), up to which it is kept.
        """
        n, n_classes = observed.shape
        matrix = observed.sets().matrix
        posterior = self.model.posterior
        assert posterior is not None
        entries = np.empty(matrix.nnz)
        kept = posterior.new_empty(n, n_classes) if n * n_classes <= most_entries else None

        def store(rows: np.ndarray, shares: Tensor) -> None:
            sizes = np.diff(matrix.indptr)[rows]
            first = np.repeat(matrix.indptr[rows] - np.cumsum(sizes) + sizes, sizes)
            place = first + np.arange(sizes.sum())
            inside = shares.numpy()[np.repeat(np.arange(len(rows)), sizes), matrix.indices[place]]
            entries[place] = inside
            if kept is not None:
                kept[rows] = shares

        store(learned, posterior)
        others = np.setdiff1d(np.arange(n), learned)
        for start in range(0, len(others), _ROWS_AT_ONCE):
            rows = others[start : start + _ROWS_AT_ONCE]
            store(rows, self._posterior(torch.from_numpy(embeddings[rows]), observed.take(rows)))
        dtype = self.model.prototypes.numpy().dtype
        confidence = sparse.csr_array(
            (entries.astype(dtype), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        return replace(self.model, confidence=confidence, posterior=kept)

    def _posterior(self, embeddings: Tensor, observed: Observed) -> Tensor:
        """Probability of every class for samples that were not learned from, (n, l)."""
        models = label_models(observed)
        whole = next(one for one in models if type(one) is type(self.labels))
        labels = replace_rows(self.labels, whole, torch.arange(len(embeddings)))
        prior = labels.prior(self.frequency, self.model.doubt)
        probability = self.model.predict_proba(embeddings).to(prior)
        return posterior_shares(prior, probability, self.frequency)


def fit_checked(
    embeddings: Tensor,
    mask: Tensor,
    labels: list[LabelModel],
    means: ClassModel | ManyClassModel,
    rule: EvidenceRule,
    votes: Tensor | None,
    *,
    uneven: bool,
    few: bool = False,
) -> CheckedFit:
    """Solve one task by what held-out samples say, on the processor.

    Parameters
    ----------
    embeddings : Tensor of shape (n, m)
    mask : bool Tensor of shape (n, l)
        The candidates.
    labels : list of LabelModel
        Among which to choose, simpler ones first.
    means : ClassModel or ManyClassModel
        The class means of all samples, by ``rule``.
    rule : EvidenceRule
    votes : Tensor of shape (n, l), optional
    uneven : bool
        Whether some labels are visibly more frequent than others.
    few : bool
        Whether there are so few samples of even labels that the class means stay unless another
        model is better for held-out samples by more than chance. Without a fifth of five samples
        per class, sets of four may no longer tell which class is which, whatever the features are.
    """
    embeddings, mask = embeddings.cpu(), mask.cpu()
    votes = None if votes is None else votes.cpu()
    present = mask.any(dim=0)
    # Held-out samples judge class means that are inferred as those of all samples are: entry by
    # entry, where the whole is too large for anything else and a part would not be.
    fit = rule.fit if isinstance(means, ClassModel) else fit_by_entries(rule)
    by_means = torch.cat(
        [means_without(fit, embeddings, mask, votes, held) for held in folds(len(mask))]
    )
    square = distances_within(embeddings)
    best = best_fit(embeddings, labels, present, by_means, square)
    kernel = KernelRidge(embeddings, *best.kernel, square)
    plain, doubt = best.with_means_as_they_are(present)
    few = few and isinstance(means, ClassModel) and isinstance(best.labels, EvenSets)
    unproven = few and not is_proved(best.weights.gains, plain.weights.gains)
    fresh = best.labels.take(torch.ones(len(mask), dtype=torch.bool))  # nothing estimated yet
    found = infer_with_kernel(kernel, replace(fresh), present)  # type: ignore[type-var]
    weights, of_new = best.weights, best.weights_of_new(present)
    useless = not is_sure(weights.gain, weights.gain_error) and not uneven
    check = best.check(mask, present)
    if unproven:
        check = plain.check(mask, present)
        check = replace(check, decides=check.separates)
    nearly_full = useless and check.chance > NEARLY_FULL
    if (unproven or nearly_full) and isinstance(means, ClassModel):
        # Such samples could not tell good features from bad ones; clusters may still be clear.
        return with_doubt(embeddings, mask, means, fresh, doubt if unproven else 0.0, check)
    if useless:
        weights = replace(weights, kernel=0.0, means=0.0, doubt=best.labels.doubts[0])
        of_new = weights
    log_means = by_class_means(means, embeddings).to(found.scores).clamp_min(_LEAST).log()
    logits = weights.logits(found.scores + found.bias, log_means)
    prior = found.labels.prior(found.frequency, weights.doubt)
    logits, prior = averaged(logits, prior, best, weights)
    if useless:
        # Frequencies and odds were estimated with features that tell nothing: so do they.
        found = replace(found, labels=fresh, frequency=present / present.sum().to(prior))
        prior = fresh.prior(found.frequency)
    probability = matched(logits, found.frequency, present)
    shares = posterior_shares(prior, probability, found.frequency)
    nearest = kernel.nearest_others(embeddings)
    usual = usual_distance(nearest, best.kernel[0])
    raw = of_new.logits(found.scores + found.bias, log_means) * tempering(nearest, usual)
    raw = class_probability(raw, present).mean(dim=0)
    shift = torch.where(present, (found.frequency / raw.clamp_min(_LEAST)).log(), 0)
    model = AdaptiveModel(
        confidence=(shares * mask).to(means.prototypes),
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
        kernel_weight=torch.tensor(of_new.kernel, dtype=shares.dtype)[None, None],
        means_weight=torch.tensor(of_new.means, dtype=shares.dtype)[None, None],
        bias=(of_new.kernel * found.bias + shift)[None],
        usual=usual[None, None],
        check=check,
        doubt=weights.doubt,
    )
    return CheckedFit(model, found.labels, found.frequency)


def with_doubt(
    embeddings: Tensor,
    mask: Tensor,
    means: ClassModel,
    labels: LabelModel,
    doubt: float,
    check: Check,
) -> CheckedFit:
    """Label by class means, but for the probability that a set (n, l) lacks the truth."""
    frequency = mask.any(dim=0).double()
    frequency = frequency / frequency.sum()
    probability = by_class_means(means, embeddings).double()
    shares = posterior_shares(labels.prior(frequency, doubt), probability, frequency)
    outside = shares * ~mask
    inside = means.confidence.double() * (1 - outside.sum(dim=-1, keepdim=True))
    model = replace(
        few_samples_model(embeddings, means),
        confidence=inside.to(means.prototypes),
        posterior=inside + outside,
        check=check,
        doubt=doubt,
    )
    return CheckedFit(model, labels, frequency)


def averaged(
    logits: Tensor, prior: Tensor, best: BestFit, weights: Weights
) -> tuple[Tensor, Tensor]:
    """Average logits and label priors (n, l) with those of folds that held the samples out.

    What was found without a sample errs independently of what only leaves it out of the last step,
    and nothing in it confirms itself: the mean of both is better than either. Where only some
    samples were held out, both stay as they are.
    """
    if len(best.held.rows) < len(logits):
        return logits, prior
    order = best.held.rows.argsort()
    without = best.logits[order] if weights is best.weights else torch.zeros_like(logits)
    return 0.5 * (logits + without), (prior * best.prior[order]).sqrt()


def posterior_shares(prior: Tensor, probability: Tensor, frequency: Tensor) -> Tensor:
    """Return P(c | x, S) from the label prior P(c | S), P(c | x) and the frequencies, (n, l)."""
    joint = prior * probability / frequency.clamp_min(_LEAST)
    return joint / joint.sum(dim=-1, keepdim=True).clamp_min(_LEAST)


def fit_by_entries(rule: EvidenceRule) -> Callable[[Tensor, Observed], Fitted]:
    """Return what infers class means entry by entry, however few the samples (n, m) are."""
    return lambda embeddings, observed: rule.fit_many(embeddings.numpy(), observed)


def means_without(
    fit: Callable[[Tensor, Observed], Fitted],
    embeddings: Tensor,
    mask: Tensor,
    votes: Tensor | None,
    held: Tensor,
) -> Tensor:
    """Log-probabilities of held-out samples by class means of the others, (h, l)."""
    seen = torch.ones(len(mask), dtype=torch.bool)
    seen[held] = False
    observed = Observed(mask[seen], None if votes is None else votes[seen])
    part = fit(embeddings[seen], observed)
    return part.predict_proba(embeddings[held]).double().clamp_min(_LEAST).log()


def by_class_means(means: ClassModel | ManyClassModel, embeddings: Tensor) -> Tensor:
    """Probabilities of the training samples by class means (n, l), without the sample if few."""
    if isinstance(means, ClassModel) and means.left_out is not None:
        return means.left_out
    return torch.cat([means.predict_proba(part) for part in embeddings.split(_ROWS_AT_ONCE)])
