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
from scipy import stats
from torch import Tensor

from fspll._common.arguments import check_count, is_flag
from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.rectifiers.adaptive_model import few_samples_model, restore_adaptive, task_of, with_tasks
from fspll.rectifiers.base import Fitted, Rectifier, StoredState, check_neighbors, to_tensor
from fspll.rectifiers.checked_fit import CheckedFit, fit_checked
from fspll.rectifiers.class_model import ClassModel, ManyClassModel, restore_class_model
from fspll.rectifiers.evidence import EvidenceRule, infer_labels
from fspll.rectifiers.held_out import MOST_IN_FOLDS
from fspll.rectifiers.label_models import LabelModel, label_models, set_models

# Chosen on meta-training classes of photos, on Lost and on scikit-learn's digits; docs/real.md.
MANY, PER_CLASS = 300, 20  # samples, and per class, from which held-out samples are always asked
UNEVEN = 1e-2  # p-value of equal label counts below which they are asked with fewer
LEAST_CHECKED = 20  # samples, below which they are not asked
# Samples, and samples x classes, that a kernel learns from; and per class, below which it does not.
MOST_SAMPLES, MOST_ENTRIES, LEAST_PER_CLASS = 1 << 16, 1 << 24, 5
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
    ignores_scale = True

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

    def seconds(self, n_samples: int, n_classes: int) -> float:
        """Return roughly what a task costs: most of it goes into held-out samples."""
        asks = bool(self.held_out) or (self.held_out is None and is_many(n_samples, n_classes))
        return 0.1 + 3.5e-6 * n_samples**2 if asks else 1e-4 * n_samples

    @property
    def _means_rule(self) -> EvidenceRule:
        return EvidenceRule(self.n_neighbors, self.n_iterations, self.class_balance)

    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Infer the labels of tasks; each is solved as it would be alone."""
        mask, votes = observed.mask(embeddings.device), observed.prior(embeddings.device)
        means = infer_labels(embeddings, mask, self._means_rule, votes, trace=trace)
        if mask.ndim == 2 and self._asks(mask[None], observed)[0]:
            labels = label_models(observed)
            return self._fit_checked(embeddings, mask, labels, means, votes).model
        model = few_samples_model(embeddings, means)
        if mask.ndim == 2:
            return model
        shape = mask.shape[:-2]
        flat = mask.reshape(-1, *mask.shape[-2:])
        asked = np.flatnonzero(self._asks(flat, observed)).tolist()
        if not asked:
            return model
        e = embeddings.reshape(-1, *embeddings.shape[-2:])
        found = {}
        for task in asked:
            of_task = None if votes is None else votes.reshape(flat.shape)[task]
            labels = set_models(flat[task], of_task)
            part = task_of(means, shape, task)
            found[task] = self._fit_checked(e[task], flat[task], labels, part, of_task).model
        return with_tasks(model, shape, found)

    def _asks(self, mask: Tensor, observed: Observed) -> np.ndarray:
        """Tell of which tasks (B, n, l) samples are held out, (B,)."""
        n = mask.shape[-2]
        n_labels = mask.any(dim=-2).sum(dim=-1).cpu().numpy()
        possible = (n >= LEAST_CHECKED) & (n_labels > 1) & (self.held_out is not False)
        if self.held_out or observed.judgments is not None:
            return possible
        return possible & (is_many(n, n_labels) | (evenness(mask) < UNEVEN))

    def _fit_checked(
        self,
        embeddings: Tensor,
        mask: Tensor,
        labels: list[LabelModel],
        means: ClassModel | ManyClassModel,
        votes: Tensor | None,
    ) -> CheckedFit:
        uneven = bool(evenness(mask) < UNEVEN)
        n_labels = int(mask.any(dim=0).sum())
        few = not uneven and len(mask) <= MOST_IN_FOLDS and not is_many(len(mask), n_labels)
        rule = self._means_rule
        return fit_checked(embeddings, mask, labels, means, rule, votes, uneven=uneven, few=few)

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Infer the labels of many samples, their class means entry by entry.

        The kernel learns from as many samples as its arrays allow, drawn at random, and labels the
        others as it would new ones, with what their own sets say. Where these are too few per
        class, class means are alone.
        """
        means = self._means_rule.fit_many(embeddings, observed)
        rows = self._learned_from(observed)
        if rows is None:
            return means
        assert isinstance(means, ManyClassModel)
        part = observed.take(rows)
        found = self._fit_checked(
            to_tensor(embeddings[rows]), part.mask(), label_models(part), means, None
        )
        return found.extend(embeddings, observed, rows, MOST_ENTRIES)

    def _learned_from(self, observed: Observed) -> np.ndarray | None:
        """Return the rows that a kernel learns from, settled ones first, or None."""
        n, n_classes = observed.n_samples, observed.n_classes
        most = min(n, MOST_SAMPLES, MOST_ENTRIES // n_classes)
        if observed.n_unlabeled or self.held_out is False or most < LEAST_PER_CLASS * n_classes:
            return None
        order = np.random.default_rng(0).permutation(n)
        if observed.settled is not None:
            order = order[np.argsort(~observed.settled[order], kind="stable")]
        return np.sort(order[:most])

    def restore(self, stored: StoredState) -> Fitted:
        """Read the class means and the kernel of a model file."""
        means = restore_class_model(stored)
        if "kernel.basis" not in stored.tensors:
            return means
        return restore_adaptive(stored, means)


def is_many(n_samples: int, n_labels: np.ndarray | int) -> np.ndarray:
    """Tell whether there are enough samples for held-out ones to be asked in any case."""
    return n_samples >= np.maximum(MANY, PER_CLASS * n_labels)


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
