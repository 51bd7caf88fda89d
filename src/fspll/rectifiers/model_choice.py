"""Which label model and which kernel suit the data, by the likelihood of held-out samples.

Shapes: n samples, l classes, h held-out samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from fspll.rectifiers.held_out import (
    Check,
    HeldOutKernel,
    HeldOutScores,
    Weights,
    choose_weights,
    held_out_kernels,
    is_better,
    kernel_held_out,
    matched,
    means_as_they_are,
)
from fspll.rectifiers.kernel import MOST_EXACT, RIDGE, WIDTH, tempering
from fspll.rectifiers.label_models import EvenSets, LabelModel

# Chosen on meta-training classes of photos, on Lost and on scikit-learn's digits; docs/real.md.
KERNELS = ((WIDTH, RIDGE), (0.3, RIDGE), (3.0, 0.03))  # width and ridge, the usual first


@dataclass(frozen=True, eq=False)
class BestFit:
    """The label model, the kernel and the weights under which held-out samples are likeliest.

    Attributes
    ----------
    labels : LabelModel
    kernel : tuple of float
        Width and ridge.
    weights : Weights
    held : HeldOutScores
    by_means : Tensor of shape (h, l)
        Log-probabilities of the held-out samples by class means.
    """

    labels: LabelModel
    kernel: tuple[float, float]
    weights: Weights
    held: HeldOutScores
    by_means: Tensor

    @property
    def logits(self) -> Tensor:
        """Of kernel and class means together, for the held-out samples, (h, l)."""
        return self.weights.logits(self.held.scores, self.by_means)

    @property
    def prior(self) -> Tensor:
        """The label prior of the held-out samples (h, l), with the doubt that was chosen."""
        return self.held.priors[self.labels.doubts.index(self.weights.doubt)]

    def weights_of_new(self, present: Tensor) -> Weights:
        """Choose the weights for new samples, whose predictions are less sure far from all others.

        Training samples have what their own labels say; there it costs more than it gains.
        """
        temper = tempering(self.held.nearest, self.held.usual)
        return choose_weights(self.held, self.by_means, self.labels, present, temper)

    def with_means_as_they_are(self, present: Tensor) -> tuple[BestFit, float]:
        """Return the same with class means alone, and the doubt that suits them."""
        weights, doubt = means_as_they_are(self.held, self.by_means, self.labels, present)
        return replace(self, weights=weights), doubt

    def check(self, mask: Tensor, present: Tensor) -> Check:
        """Count how often the best class of held-out samples is among their candidates.

        Parameters
        ----------
        mask : bool Tensor of shape (n, l)
            The candidates of all samples.
        present : bool Tensor of shape (l,)
        """
        probability, top = matched(self.logits, self.held.frequency, present).max(dim=-1)
        sets = mask[self.held.rows].double()
        sizes, n_others = sets.sum(dim=-1), max(1, int(present.sum()) - 1)
        expected = probability + (1 - probability) * (sizes - 1) / n_others
        doubt = self.weights.doubt
        if isinstance(self.labels, EvenSets):  # whose doubt is the share of sets without the truth
            lacking = (1 - probability) * sizes / n_others
            expected = (1 - doubt) * expected + doubt * lacking
        return Check(
            n_samples=len(sets),
            hits=float(sets.gather(1, top.unsqueeze(1)).mean()),
            expected=float(expected.mean()),
            chance=float(sets.mean(dim=-1).mean() * mask.shape[1] / int(present.sum())),
            commonest=float(sets.mean(dim=0).max()),
            gain=self.weights.gain,
            gain_error=self.weights.gain_error,
        )


def best_fit(
    embeddings: Tensor,
    labels: list[LabelModel],
    present: Tensor,
    by_means: Tensor,
    square: Tensor | None = None,
) -> BestFit:
    """Choose the label model with the usual kernel, then the kernel with that model.

    A label model takes the place of one before it, which has fewer parameters, where it is better
    by two standard errors: with one large class a model of popular labels may fit as well, and
    split that class.

    With many samples, for which a kernel is approximated, it is the usual one.

    Parameters
    ----------
    embeddings : Tensor of shape (n, m)
    labels : list of LabelModel
    present : bool Tensor of shape (l,)
        Classes that may occur.
    by_means : Tensor of shape (h, l)
        Log-probabilities of held-out samples by class means.
    square : Tensor of shape (n, n), optional
        What :func:`fspll.rectifiers.kernel.distances_within` returns of the embeddings.
    """

    def trial(
        model: LabelModel, width: float, ridge: float, kernels: list[HeldOutKernel]
    ) -> BestFit:
        held = kernel_held_out(embeddings, kernels, model, present, width)
        weights = choose_weights(held, by_means, model, present)
        return BestFit(model, (width, ridge), weights, held, by_means)

    kernels = held_out_kernels(embeddings, *KERNELS[0], square)
    best = trial(labels[0], *KERNELS[0], kernels)
    for model in labels[1:]:
        other = trial(model, *KERNELS[0], kernels)
        if is_better(other.weights.gains, best.weights.gains):
            best = other
    others = []
    for one in KERNELS[1:] if len(embeddings) <= MOST_EXACT else ():
        kernels = held_out_kernels(embeddings, *one, square)
        others.append(trial(best.labels, *one, kernels))
    best = max([best, *others], key=lambda fit: fit.weights.gain)
    if best.labels.doubt_is_hidden:
        # Predictions that are sure far from all samples, from wrong labels there, hide most of it.
        doubt = best.weights_of_new(present).doubt
        best = replace(best, weights=replace(best.weights, doubt=doubt))
    return best
