"""What to ask a person first: the answers from which most labels are expected to become right.

The model behind the labels (:mod:`fspll.rectifiers.evidence`) says how likely each sample belongs
to each group, and how likely each group carries each label. An answer settles its sample; it may
also tell what a whole group is called, and through it what other groups are not called. The gain of
a question is the expected number of labels that become right by the answer, over the answers that
are possible, with the groups where they are. (This is the expected error reduction of Roy and
McCallum, 2001, of which a question's own share is the doubt in its label.)

Questions are chosen one after the other; each is evaluated as if those before it had been answered
with their likeliest label.

Shapes: n samples, l classes that occur; groups are as many as classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fspll.rectifiers.assignment import naming_marginals, naming_scores, set_log_likelihood

OPEN = 0.98  # a group whose name is less sure than this may be worth a question
LEAST_GAIN = 0.01  # labels more to expect right
AT_MOST = 100  # questions
_PER_GROUP = 2  # members of an open group whose gains are computed
_LEAST_ANSWER = 0.01  # probability from which an answer is considered
_LEAST = 1e-12
_ENTRIES_AT_ONCE = 1 << 22
_MOST_ENTRIES = 1 << 25  # that the choice of a question may cost
_ROUNDS = 100  # about so many passes over (l, l) entries find the names of the groups
_LEAST_CHANGE = 1e-3  # a change of names by less than this changes no gain
MOST_CLASSES = 256  # up to which groups are looked at


@dataclass(frozen=True)
class Question:
    """A sample whose true label is worth asking for.

    Attributes
    ----------
    index : int
        Its row.
    candidates : tuple of label
        Its candidates, the likeliest first.
    gain : float
        How many labels are expected to become right by the answer, given those before it.
    right_after : float
        The share of right labels to expect then.
    reason : str
        Why it is asked; empty where it is only less than sure.
    """

    index: int
    candidates: tuple[Any, ...]
    gain: float
    right_after: float
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Groups:
    """What is known of one task, for classes that occur.

    Attributes
    ----------
    by_features : float64 array of shape (n, l)
        Probability of belonging to each group, by the features alone.
    member : float64 array of shape (n, l)
        The same with what the candidates say; see :class:`fspll.rectifiers.Groups`.
    weight : float64 array of shape (n, l)
        Zero off the candidates; else the prior of a candidate over the mean prior of its set.
    """

    by_features: np.ndarray
    member: np.ndarray
    weight: np.ndarray


def choose_questions(
    confidence: np.ndarray, groups: Groups | None, *, at_most: int = AT_MOST
) -> list[tuple[int, float, float]]:
    """Return (row, gain, share right after), the most useful question first.

    Parameters
    ----------
    confidence : array of shape (n,)
        Probability that the label is right.
    groups : Groups, optional
        Without them a question is worth the doubt in its own label.
    at_most : int
    """
    n = len(confidence)
    right = float(confidence.sum())
    if groups is None or groups.weight.shape[1] > MOST_CLASSES:
        order = np.argsort(confidence, kind="stable")[:at_most]
        chosen = []
        for row in order[1 - confidence[order] >= LEAST_GAIN]:
            right += 1 - float(confidence[row])
            chosen.append((int(row), 1 - float(confidence[row]), right / n))
        return chosen
    state = _State(confidence, groups)
    chosen = []
    while len(chosen) < at_most:
        row, gain = state.best()
        if gain < LEAST_GAIN:
            break
        right = min(float(n), right + gain)
        chosen.append((row, gain, right / n))
        state.answer(row)
    return chosen


class _State:
    """The posterior after the questions so far, were they answered with the likeliest label."""

    def __init__(self, confidence: np.ndarray, groups: Groups) -> None:
        self.rows = np.flatnonzero((groups.weight > 0).sum(axis=1) > 1)  # the others are settled
        self.confidence = confidence.copy()
        self.by_features = torch.from_numpy(groups.by_features)
        self.member = torch.from_numpy(groups.member)
        self.weight = torch.from_numpy(groups.weight)
        self.group = groups.by_features.argmax(axis=1)
        self.asked = np.zeros(len(confidence), dtype=bool)
        self.n_classes = groups.weight.shape[1]
        self.identity = torch.eye(self.n_classes, dtype=torch.float64)
        candidates = self.weight > 0
        self.score = naming_scores(self.member[None], candidates[None], self.weight[None])[0]
        self.gains: dict[int, float] = {}
        self.naming = torch.zeros_like(self.score)
        self._update_posterior()

    def _log_likelihood(self, row: int, weight: Tensor) -> Tensor:
        """Log-likelihood of one sample's set, by group and label, (l, l)."""
        return set_log_likelihood(self.member[row], weight, self.n_classes)

    def _posterior(self, naming: Tensor) -> Tensor:
        """Return the probability of every candidate of the ambiguous samples, (..., r, l)."""
        share = (self.by_features[self.rows] @ naming) * self.weight[self.rows]
        return share / share.sum(dim=-1, keepdim=True).clamp_min(_LEAST)

    def _update_posterior(self) -> None:
        before, self.naming = self.naming, naming_marginals(self.score[None])[0]
        if float((self.naming - before).abs().max()) > _LEAST_CHANGE:
            self.gains.clear()
        self.is_open = bool((self.naming.amax(dim=-1) < OPEN).any())
        self.posterior = self._posterior(self.naming)
        self.sure = self.posterior.amax(dim=-1)

    # ---------------------------------------------------------------- choosing

    def best(self) -> tuple[int, float]:
        """Return the best question and its gain."""
        doubt = np.where(self.asked, 0.0, 1 - self.confidence)
        row = int(doubt.argmax())
        best = row, float(doubt[row])
        for member in self._worth_evaluating():
            if member not in self.gains:
                self.gains[member] = self._gain(member)
            gain = self.gains[member]
            # Equal gains go to the first, whatever rounding says.
            if gain > best[1] + 1e-9:
                best = member, gain
        return best

    def _worth_evaluating(self) -> list[int]:
        """Return members of groups whose name is open, the surest members first."""
        open_groups = (self.naming.amax(dim=-1) < OPEN).nonzero().flatten().tolist()
        free = self.rows[~self.asked[self.rows]]
        sizes = np.bincount(self.group[self.rows], minlength=len(self.naming))
        chosen: list[int] = []
        for group in sorted(open_groups, key=lambda g: -sizes[g]):
            members = free[self.group[free] == group]
            member = self.by_features[members, group].numpy().round(6)
            width = (self.weight[members] > 0).sum(dim=-1).numpy()
            chosen += members[np.lexsort((width, -member))][:_PER_GROUP].tolist()
        cost = 4 * self.n_classes * (len(self.rows) + _ROUNDS * self.n_classes)
        return chosen[: max(2, _MOST_ENTRIES // cost)]

    def _gain(self, row: int) -> float:
        """Labels that are expected to become right by the answer for one sample."""
        at = int(np.searchsorted(self.rows, row))
        share = self.posterior[at]
        answers = (share >= _LEAST_ANSWER).nonzero().flatten()
        if not len(answers):  # its group rules all its candidates out: only its own label to gain
            return 1 - float(self.confidence[row])
        chance = share[answers] / share[answers].sum()
        before = self.score - self._log_likelihood(row, self.weight[row])
        scores = torch.stack(
            [before + self._log_likelihood(row, self.identity[c]) for c in answers]
        )
        others = torch.ones(len(self.rows), dtype=torch.float64)
        others[at] = 0
        others[torch.from_numpy(self.asked[self.rows])] = 0
        now = float(self.sure @ others)
        then = 0.0
        size = max(1, _ENTRIES_AT_ONCE // max(1, self.posterior.numel()))
        for part, weight in zip(scores.split(size), chance.split(size), strict=True):
            sure = self._posterior(naming_marginals(part)).amax(dim=-1)
            then += float(weight @ (sure @ others))
        # An answer never misleads: less than nothing is an error of the approximate marginals.
        return 1 - float(self.confidence[row]) + max(0.0, then - now)

    def answer(self, row: int) -> None:
        """Take the likeliest answer for a sample as given."""
        self.asked[row] = True
        at = int(np.searchsorted(self.rows, row))
        # Where every name is settled, an answer that confirms one changes nothing else.
        if self.is_open and at < len(self.rows) and self.rows[at] == row:
            label = int(self.posterior[at].argmax())
            self.score += self._log_likelihood(row, self.identity[label])
            self.score -= self._log_likelihood(row, self.weight[row])
            was = self.sure.numpy()
            self._update_posterior()
            # What was known before stays: the change is the model's, the level the labels' own.
            change = self.sure.numpy() - was
            level = self.confidence[self.rows] + change
            self.confidence[self.rows] = level.clip(self.confidence[self.rows], 1.0)
        self.confidence[row] = 1.0


def questions_of(
    chosen: Sequence[tuple[int, float, float]],
    ordered: Sequence[tuple[Any, ...]],
    reasons: dict[int, str],
) -> list[Question]:
    """Put words to the chosen rows; ``ordered`` has their candidates, the likeliest first."""
    return [
        Question(row, labels, gain, after, reasons.get(row, ""))
        for (row, gain, after), labels in zip(chosen, ordered, strict=True)
    ]
