"""What was observed about a sample's label, as a probability of every class: P(c | S).

Everything else about labels enters the inference through one matrix, the *label prior*: how likely
each class is for each sample, given its candidate set or its annotators' judgments and nothing
else. A label model computes it and updates its parameters from the current confidences.

- :class:`EvenSets`: distractors are drawn evenly, so the candidates of a set are as likely as their
  classes are frequent.
- :class:`SetOdds`: every class c has odds g_c, and P(c | S) = g_c / (sum of g over S), a
  Bradley-Terry model of which candidate is the true one. A label that is popular as a distractor
  gets small odds. Sets that list what is present in one picture (every label of the set is some
  sample's) have nearly equal odds, however frequent the classes are.
- :class:`Annotators`: every annotator has a confusion matrix.

Shapes: n samples, l classes, t judgments, A annotators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from fspll.candidates.observed import Observed

# Chosen on Lost, on scikit-learn's digits and on simulated crowds; see docs/real.md.
PSEUDO_WINS = 5.0  # that pull the odds of a class towards one
SHARED = 10.0  # judgments that the pooled confusion matrix counts as, beside an annotator's own
_DIAGONAL = 4.0  # pseudo-judgments per class that are right
_UNSEEN = 1.0  # and that are spread over all labels
_MISSING = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08, 0.11, 0.14, 0.18, 0.23, 0.3)
_DISCOUNTS = (1.0, 0.85, 0.7, 0.55, 0.45, 0.35, 0.25, 0.15)
_NEARLY_FULL = 0.95  # mean share of the other labels in a set, from which counts tell nothing
_TINY = 1e-30


class LabelModel(ABC):
    """How likely every class is for each sample before its features are seen."""

    doubts: tuple[float, ...]  # values of the one setting that held-out samples decide, none first
    doubt_scale: float  # standard deviation of its prior
    # Whether held-out samples see less of the doubt than there is, as features that learned from
    # wrong labels agree with them. Of doubts that are about as likely, the largest is taken then.
    doubt_is_hidden = False

    def start(self, present: Tensor) -> Tensor:
        """Return the frequencies (l,) that the inference starts from: equal ones.

        Parameters
        ----------
        present : bool Tensor of shape (l,)
            Classes that may occur.
        """
        return present / present.sum().double()

    @abstractmethod
    def prior(self, frequency: Tensor, doubt: float | None = None) -> Tensor:
        """Return the label prior (n, l), whose rows sum to one.

        Parameters
        ----------
        frequency : Tensor of shape (l,)
            How frequent each class is.
        doubt : float, optional
            One of ``doubts``: how far the observed labels are to be distrusted. By default, not at
            all.
        """

    @abstractmethod
    def update(self, shares: Tensor) -> None:
        """Estimate the parameters from the current confidences (n, l)."""

    @abstractmethod
    def take(self, rows: Tensor) -> LabelModel:
        """Return the model of other samples (a bool or int index), with the same parameters."""


@dataclass
class EvenSets(LabelModel):
    """Candidate sets whose distractors are drawn evenly.

    The doubt is the share of sets that lack their true label.

    Attributes
    ----------
    weight : Tensor of shape (n, l)
        Zero off the candidates; one for a candidate, or in proportion to its votes.
    certain : bool Tensor of shape (n,)
        Samples that a person settled, whose sets are not doubted.
    """

    weight: Tensor
    certain: Tensor

    doubts = _MISSING
    doubt_scale = 0.05

    def start(self, present: Tensor) -> Tensor:
        """Return the frequencies by which the labels would be in so many sets.

        With even distractors, a label is in a share pi + (1 - pi) rho of the sets, where rho is the
        mean of (size - 1) / (l - 1). The frequencies that follow are drawn towards equal ones as
        far as their differences may be chance. Small classes that started as large as the others
        would keep samples of a class that has most of them.

        >>> sets = torch.tensor([[1, 1, 0], [1, 0, 1]] * 45 + [[1, 1, 0], [0, 1, 1]] * 5)
        >>> EvenSets(sets.double(), torch.zeros(100).bool()).start(torch.ones(3).bool())
        tensor([0.8767, 0.1096, 0.0137], dtype=torch.float64)
        """
        even = super().start(present)
        n_classes = int(present.sum())
        sets = (self.weight > 0).double()
        rho = (sets.sum(dim=-1) - 1) / max(1, n_classes - 1)
        mean = float(rho.mean())
        if n_classes < 2 or mean >= _NEARLY_FULL:
            return even
        off = (sets.mean(dim=0) - mean) / (1 - mean) - even
        chance = float((rho * (1 - rho)).mean()) / len(sets) / (1 - mean) ** 2
        variance = float(off[present].square().sum()) / (n_classes - 1)
        found = even + max(0.0, 1 - chance / max(variance, _TINY)) * off
        found = torch.where(present, found.clamp_min(0.5 / len(sets)), 0)
        return found / found.sum()

    def odds(self, frequency: Tensor) -> Tensor:
        """Return how the candidates of a set compare with one another, (l,)."""
        return frequency

    def prior(self, frequency: Tensor, doubt: float | None = None) -> Tensor:
        """Return (1 - doubt) times the candidates' odds, the rest by frequency to the others."""
        inside = self.weight * self.odds(frequency)
        inside = inside / inside.sum(dim=-1, keepdim=True).clamp_min(_TINY)
        if not doubt:
            return inside
        outside = torch.where(self.weight > 0, 0, frequency)
        total = outside.sum(dim=-1, keepdim=True)
        missing = torch.where(self.certain.unsqueeze(-1) | (total <= 0), 0, doubt)
        return (1 - missing) * inside + missing * outside / total.clamp_min(_TINY)

    def update(self, shares: Tensor) -> None:
        """Nothing to estimate: odds are the frequencies."""

    def take(self, rows: Tensor) -> EvenSets:
        """Return the model of other samples."""
        return EvenSets(self.weight[rows], self.certain[rows])


@dataclass
class SetOdds(EvenSets):
    """Candidate sets in which some labels are more often the true one than others.

    Attributes
    ----------
    g : Tensor of shape (l,)
        The odds, of geometric mean one.
    """

    g: Tensor | None = None

    def odds(self, frequency: Tensor) -> Tensor:
        """Return the odds, equal until they are first estimated."""
        return torch.ones_like(frequency) if self.g is None else self.g

    def update(self, shares: Tensor) -> None:
        """Take one step of the usual iteration for Bradley-Terry models (Hunter, 2004).

        g_c = (expected number of samples of c) / (sum over sets with c of 1 / total odds), with
        ``PSEUDO_WINS`` added to both.
        """
        mask = (self.weight > 0).to(shares.dtype)
        g = self.odds(shares[0])
        games = (mask / (mask @ g).clamp_min(_TINY).unsqueeze(-1)).sum(dim=0)
        g = (shares.sum(dim=0) + PSEUDO_WINS) / (games + PSEUDO_WINS)
        self.g = g / g.log().mean().exp()

    def take(self, rows: Tensor) -> SetOdds:
        """Return the model of other samples, with the same odds."""
        return SetOdds(self.weight[rows], self.certain[rows], self.g)


@dataclass
class Annotators(LabelModel):
    """Judgments of people, each of whom confuses classes in a way of their own.

    The doubt is the exponent of the judgments' likelihood: people who make the same mistake are
    not independent witnesses.

    Attributes
    ----------
    row, person, label : int Tensors of shape (t,)
        Who gave which label to which sample; ``row`` counts the samples of this model.
    share : Tensor of shape (t,)
        One, or less where a judgment consists of several labels.
    n_people : int
    weight : Tensor of shape (n, l)
        The candidates; used for samples without any judgment, and for settled ones.
    certain : bool Tensor of shape (n,)
    confusion : Tensor of shape (A * l, l)
        log P(person a gives label k | class c) at row a * l + k and column c; None until it is
        first estimated.
    """

    row: Tensor
    person: Tensor
    label: Tensor
    share: Tensor
    n_people: int
    weight: Tensor
    certain: Tensor
    confusion: Tensor | None = None

    doubts = _DISCOUNTS
    doubt_scale = 0.5
    doubt_is_hidden = True

    def prior(self, frequency: Tensor, doubt: float | None = None) -> Tensor:
        """Return frequencies times the likelihood of the judgments, (n, l)."""
        if self.confusion is None:
            votes = self._add(self.weight.new_ones(len(self.row), 1) * self._one_hot())
            votes = torch.where(votes.sum(dim=-1, keepdim=True) > 0, votes, self.weight)
            return votes / votes.sum(dim=-1, keepdim=True).clamp_min(_TINY)
        n_classes = len(frequency)
        said = self.confusion[self.person * n_classes + self.label] * self.share.unsqueeze(-1)
        score = self._add(said) * (1.0 if doubt is None else doubt)
        score = score + frequency.clamp_min(_TINY).log()
        score = score.masked_fill(frequency <= 0, -torch.inf)
        fixed = self.certain | self._silent()
        inside = (self.weight * frequency).clamp_min(_TINY).log()
        return torch.where(fixed.unsqueeze(-1), inside, score).softmax(dim=-1)

    def update(self, shares: Tensor) -> None:
        """Count who gave which label to which class, pooled where a person gave few."""
        n_classes = shares.shape[-1]
        count = shares.new_zeros(self.n_people * n_classes, n_classes)
        count.index_add_(
            0,
            self.person * n_classes + self.label,
            shares[self.row] * self.share.unsqueeze(-1),
        )
        count = count.reshape(self.n_people, n_classes, n_classes)  # (person, label, class)
        identity = torch.eye(n_classes, dtype=shares.dtype, device=shares.device)
        pooled = count.sum(dim=0) + _DIAGONAL * identity + _UNSEEN / n_classes
        pooled = pooled / pooled.sum(dim=0, keepdim=True)
        own = count + SHARED * pooled
        own = own / own.sum(dim=1, keepdim=True)
        self.confusion = own.clamp_min(_TINY).log().reshape(-1, n_classes)

    def take(self, rows: Tensor) -> Annotators:
        """Return the model of other samples, with the same confusion matrices."""
        place = torch.full((len(self.weight),), -1, dtype=torch.int64)
        chosen = torch.arange(len(self.weight))[rows]
        place[chosen] = torch.arange(len(chosen))
        kept = place[self.row] >= 0
        return Annotators(
            place[self.row[kept]],
            self.person[kept],
            self.label[kept],
            self.share[kept],
            self.n_people,
            self.weight[rows],
            self.certain[rows],
            self.confusion,
        )

    def _one_hot(self) -> Tensor:
        shares = self.weight.new_zeros(len(self.row), self.weight.shape[-1])
        return shares.scatter_(1, self.label.unsqueeze(1), self.share.unsqueeze(1))

    def _add(self, values: Tensor) -> Tensor:
        """Sum values (t, l) over the judgments of each sample, (n, l)."""
        return torch.zeros_like(self.weight).index_add_(0, self.row, values)

    def _silent(self) -> Tensor:
        """Tell which samples have no judgment, (n,)."""
        heard = torch.zeros(len(self.weight), dtype=torch.bool)
        heard[self.row] = True
        return ~heard


def label_models(observed: Observed) -> list[LabelModel]:
    """Return the label models that what was observed of one task (n, l) allows."""
    mask = observed.mask()
    certain = torch.zeros(len(mask), dtype=torch.bool)
    if observed.settled is not None:
        certain[: len(observed.settled)] = torch.from_numpy(observed.settled)
    said = observed.judgments
    if said is None:
        return set_models(mask, observed.prior(), certain)
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
