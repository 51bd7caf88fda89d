"""How far predictions can be trusted, from samples that the fit did not see.

Samples are held out in folds, from the start: leaving one sample out of the last step would not do,
as its candidate set has shaped its neighbors' labels, which come back to it. What a held-out
sample's own labels say is then independent evidence. It decides

- which label model and which kernel suit these data;
- how much the kernel and the class means count (sharpness of each), which calibrates them;
- how far the observed labels are to be doubted (the share of sets that lack their label; how far
  annotators make the same mistakes).

All of them maximize the mean of log sum over c of P(c | S) P(c | x) / pi_c over held-out samples,
the likelihood of :mod:`fspll.rectifiers.kernel_inference`, with weak priors that matter where there
are few samples only.

Shapes: n samples, l classes, h held-out samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from fspll.rectifiers.kernel import KernelRidge, usual_distance
from fspll.rectifiers.kernel_inference import class_probability, infer_with_kernel
from fspll.rectifiers.label_models import LabelModel

FOLDS = 5
MOST_IN_FOLDS = 4096  # samples up to which all are held out in turn
MOST_HELD_OUT = 2000  # samples otherwise
SHARPNESSES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0)
MEANS_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
LEAST_RIGHT = 0.2  # share of held-out predictions that are right, where features tell labels apart
LIKELIHOOD_BOUND = 2.0  # nats below the best, within which a doubt is as good as any other
INDEPENDENT = 60  # samples, from which those of one fold count as independent
SURE_GAIN = 2.0  # standard errors by which a gain is above zero, for features to count at all
# Standard deviations of the priors: class means as they are, and no kernel.
_MEANS_PRIOR, _KERNEL_PRIOR = 0.5, 6.0
_LEAST = 1e-9
_RAREST = 1e-4  # mean probability of a class, below which it gains nothing more


class HeldOutScores(NamedTuple):
    """Predictions for held-out samples.

    Attributes
    ----------
    rows : int Tensor of shape (h,)
    scores : Tensor of shape (h, l)
        Of the kernel, biases included; logits per unit of sharpness.
    nearest : Tensor of shape (h, 1)
        Squared distance to the nearest sample that was not held out.
    usual : Tensor of shape ()
        Beyond which predictions are less sure.
    frequency : Tensor of shape (h, l)
        Of the classes, as estimated from the other samples.
    priors : list of Tensors of shape (h, l)
        Label priors, one for each doubt.
    """

    rows: Tensor
    scores: Tensor
    nearest: Tensor
    usual: Tensor
    frequency: Tensor
    priors: list[Tensor]


@dataclass(frozen=True, eq=False)
class Weights:
    """How much each kind of evidence counts.

    Attributes
    ----------
    kernel : float
        Sharpness of the kernel's predictions.
    means : float
        Exponent of the class means' probabilities.
    doubt : float
        Of the label model.
    gains : Tensor of shape (h,)
        Log-likelihood of every held-out sample given its labels, relative to p(x), in nats.
    """

    kernel: float
    means: float
    doubt: float
    gains: Tensor

    def logits(self, scores: Tensor, means: Tensor) -> Tensor:
        """Combine the kernel's scores and the class means' log-probabilities, (n, l)."""
        return self.kernel * scores + self.means * means

    @property
    def gain(self) -> float:
        """The mean of the gains."""
        return float(self.gains.mean())

    @property
    def gain_error(self) -> float:
        """Its standard error."""
        return standard_error(self.gains)


@dataclass(frozen=True)
class Check:
    """What held-out samples say about a fit, without any true label.

    Attributes
    ----------
    n_samples : int
        How many were held out.
    hits : float
        Share of them whose most probable class is among their candidates.
    expected : float
        What that share would be if the probabilities were right.
    chance : float
        What it would be if a class were drawn at random.
    commonest : float
        What it would be if always the commonest candidate were predicted.
    gain : float
        Mean log-likelihood of the features given the labels, relative to that without them, in
        nats: zero where the features tell nothing.
    gain_error : float
        Its standard error.
    decides : bool
        Whether there are enough samples to tell. Where there are not, the model is that of the
        class means, and so are these figures.
    """

    n_samples: int
    hits: float
    expected: float
    chance: float
    commonest: float
    gain: float
    gain_error: float
    decides: bool = True

    @property
    def separates(self) -> bool:
        """Whether the features tell the labels apart, or could do so as far as samples can tell.

        The gain has to be two standard errors above zero, and the share of right predictions that
        explains the hits, (hits - chance) / (1 - chance), at least a fifth.
        """
        right = (self.hits - self.chance) / max(1 - self.chance, _LEAST)
        return not self.decides or (is_sure(self.gain, self.gain_error) and right >= LEAST_RIGHT)


def standard_error(values: Tensor) -> float:
    """Return the standard error of the mean of values (h,)."""
    return float(values.std(correction=0)) / len(values) ** 0.5


def is_sure(gain: float, error: float) -> bool:
    """Tell whether a gain is above zero by more than chance, and than rounding, would have it."""
    return gain > max(SURE_GAIN * error, _LEAST)


def is_better(gains: Tensor, others: Tensor) -> bool:
    """Tell whether gains (h,) are above those of another model for the same held-out samples."""
    more = gains - others
    return is_sure(float(more.mean()), standard_error(more))


def is_proved(gains: Tensor, others: Tensor) -> bool:
    """Tell whether gains (h,) are enough to give up a model that is known to suit few samples.

    The samples are all held out in turn, in order of the folds. One standard error is enough: noise
    as features is noticed by it, and good features lose little where another model is chosen.

    With very few, samples of a fold share their mistakes: where the other folds do not tell which
    class is which, all predictions are wrong together. So the means of folds are what is
    independent there; the test is Student's, at .5%.
    """
    if len(gains) >= INDEPENDENT:
        more = gains - others
        return float(more.mean()) > max(standard_error(more), _LEAST)
    differences = (gains - others).numpy()
    sizes = [len(rows) for rows in folds(len(differences))]
    means = np.array([part.mean() for part in np.split(differences, np.cumsum(sizes)[:-1])])
    error = means.std(ddof=1) / len(means) ** 0.5
    return bool(means.mean() > max(stats.t.ppf(0.995, len(means) - 1) * error, _LEAST))


def folds(n: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield rows to hold out: all in turn, or one part where there are many samples."""
    order = np.random.default_rng(seed).permutation(n)
    if n <= MOST_IN_FOLDS:
        for start in range(min(FOLDS, n)):
            yield torch.from_numpy(np.sort(order[start::FOLDS]))
    else:
        yield torch.from_numpy(np.sort(order[: min(MOST_HELD_OUT, n // FOLDS)]))


class HeldOutKernel(NamedTuple):
    """The regression of a fold, which does not depend on any labels.

    Attributes
    ----------
    rows : int Tensor of shape (h,)
        The samples held out.
    seen : bool Tensor of shape (n,)
        The others.
    kernel : KernelRidge
        Of the others.
    square : Tensor of shape (h, n - h), optional
        Squared distances between the two, where they are known.
    """

    rows: Tensor
    seen: Tensor
    kernel: KernelRidge
    square: Tensor | None


def held_out_kernels(
    embeddings: Tensor, width: float, ridge: float, square: Tensor | None = None
) -> list[HeldOutKernel]:
    """Prepare the regressions of all folds.

    ``square`` is what :func:`fspll.rectifiers.kernel.distances_within` returns of the embeddings.
    """
    found = []
    for rows in folds(len(embeddings)):
        seen = torch.ones(len(embeddings), dtype=torch.bool)
        seen[rows] = False
        among = None if square is None else square[seen][:, seen]
        between = None if square is None else square[rows][:, seen]
        kernel = KernelRidge(embeddings[seen], width, ridge, among)
        found.append(HeldOutKernel(rows, seen, kernel, between))
    return found


def kernel_held_out(
    embeddings: Tensor,
    kernels: list[HeldOutKernel],
    labels: LabelModel,
    present: Tensor,
    width: float,
) -> HeldOutScores:
    """Predict held-out samples from labels that were inferred without them."""
    all_rows, scores, nearest, frequency, priors = [], [], [], [], []
    for rows, seen, kernel, square in kernels:
        found = infer_with_kernel(kernel, labels.take(seen), present)
        predicted, distance = kernel.predict(embeddings[rows], kernel.dual(found.shares), square)
        held = replace_rows(found.labels, labels, rows)
        all_rows.append(rows)
        scores.append(predicted + found.bias)
        nearest.append(distance)
        frequency.append(found.frequency.expand_as(predicted))
        priors.append([held.prior(found.frequency, doubt) for doubt in labels.doubts])
    distances = torch.cat(nearest)
    return HeldOutScores(
        torch.cat(all_rows),
        torch.cat(scores),
        distances,
        usual_distance(distances, width),
        torch.cat(frequency),
        [torch.cat(of_doubt) for of_doubt in zip(*priors, strict=True)],
    )


def replace_rows(fitted: LabelModel, whole: LabelModel, rows: Tensor) -> LabelModel:
    """Return the fitted parameters with the observations of other samples of the whole."""
    names = {name: getattr(fitted, name) for name in ("g", "confusion") if hasattr(fitted, name)}
    return replace(whole.take(rows), **names)  # type: ignore[type-var]


def choose_weights(
    held: HeldOutScores,
    means: Tensor | None,
    labels: LabelModel,
    present: Tensor,
    temper: Tensor | float = 1.0,
) -> Weights:
    """Find the weights under which held-out samples are likeliest.

    Parameters
    ----------
    held : HeldOutScores
    means : Tensor of shape (h, l), optional
        Log-probabilities of the class means.
    labels : LabelModel
        Whose doubts ``held.priors`` were made with.
    present : bool Tensor of shape (l,)
    temper : Tensor of shape (h, 1), optional
        Factors of the logits.
    """
    doubts = labels.doubts
    penalties = [-0.5 * ((one - doubts[0]) / labels.doubt_scale) ** 2 for one in doubts]
    nothing = Weights(0.0, 0.0, doubts[0], held.scores.new_zeros(len(held.rows)))
    trials = [(-torch.inf, nothing)] * len(doubts)  # the best of each doubt
    for sharpness in SHARPNESSES:
        for weight in MEANS_WEIGHTS if means is not None else (0.0,):
            logits = sharpness * held.scores
            known = -0.5 * (sharpness / _KERNEL_PRIOR) ** 2 if means is not None else 0.0
            if means is not None:
                logits = logits + weight * means
                known -= 0.5 * ((weight - 1) / _MEANS_PRIOR) ** 2
            density = density_ratio(temper * logits, held.frequency, present)
            for i, (doubt, prior) in enumerate(zip(doubts, held.priors, strict=True)):
                total = (prior * density).sum(dim=-1).clamp_min(_LEAST).log()
                value = float(total.sum()) + known + penalties[i]
                if value > trials[i][0]:
                    trials[i] = value, Weights(sharpness, weight, doubt, total)
    best = max(value for value, _ in trials)
    if labels.doubt_is_hidden:
        return [found for value, found in trials if value > best - LIKELIHOOD_BOUND][-1]
    return next(found for value, found in trials if value == best)


def means_as_they_are(
    held: HeldOutScores, means: Tensor, labels: LabelModel, present: Tensor
) -> tuple[Weights, float]:
    """Return the weights of class means alone without any doubt, and the likeliest doubt."""
    density = density_ratio(means, held.frequency, present)
    trials = []
    for doubt, prior in zip(labels.doubts, held.priors, strict=True):
        total = (prior * density).sum(dim=-1).clamp_min(_LEAST).log()
        known = -0.5 * ((doubt - labels.doubts[0]) / labels.doubt_scale) ** 2
        trials.append((float(total.sum()) + known, Weights(0.0, 1.0, doubt, total)))
    return trials[0][1], max(trials, key=lambda trial: trial[0])[1].doubt


def density_ratio(logits: Tensor, frequency: Tensor, present: Tensor) -> Tensor:
    """Return p(x | c) / p(x) for every sample and class, (h, l)."""
    probability = matched(logits, frequency, present)
    # The mean over samples, not the frequency: only then is this a ratio of densities of x, and
    # predicting rare classes too often gains nothing.
    return probability / probability.mean(dim=0).clamp_min(_RAREST)


def matched(logits: Tensor, frequency: Tensor, present: Tensor) -> Tensor:
    """Return probabilities (n, l) whose means are about the frequencies, (l,) or (n, l)."""
    probability = class_probability(logits, present)
    mean = probability.mean(dim=0, keepdim=True)
    probability = probability * frequency / mean.clamp_min(_LEAST)
    return probability / probability.sum(dim=-1, keepdim=True).clamp_min(_LEAST)
