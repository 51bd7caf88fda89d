"""The one likelihood of which label each group of samples carries, one label per group.

Shapes: B tasks, n samples, l classes; groups are as many as classes.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from fspll.rectifiers.candidate_table import CandidateTable

SURE = 0.98  # no sample is surer than this to belong to a group
PREFERENCE = 0.001  # share of the naming that stands, see `naming_marginals`
_MOST_COUNTED = 8  # labels up to which matchings are summed over exactly
_ROUNDS = 10
_LEAST = 1e-12


def name_groups(member: Tensor, candidates: Tensor, prior: Tensor | None = None) -> Tensor:
    """Probability that each group carries each label, one label per group, of shape (B, l, l).

    Parameters
    ----------
    member : Tensor of shape (B, n, l)
        R, the probability that a sample belongs to each group.
    candidates : bool Tensor of shape (B, n, l)
        A label that is nobody's candidate keeps its own group.
    prior : Tensor of shape (B, n, l), optional
        See :func:`naming_scores`.
    """
    return naming_marginals(naming_scores(member, candidates, prior)).to(member.dtype)


def naming_scores(member: Tensor, candidates: Tensor, prior: Tensor | None = None) -> Tensor:
    """Log-likelihood of all candidate sets if group g carries label c, of shape (B, l, l).

    The sum of :func:`set_log_likelihood` over samples; minus infinity where a label that is
    nobody's candidate would leave its own group.

    Parameters
    ----------
    member : Tensor of shape (B, n, l)
    candidates : bool Tensor of shape (B, n, l)
    prior : Tensor of shape (B, n, l), optional
        How likely each candidate is, over the mean of its set, zero off the candidates; without
        it, one.
    """
    n_classes = candidates.shape[-1]
    present = candidates.any(dim=-2)
    # Samples with full sets say nothing, but must not say so in unequal ways.
    size = candidates.sum(dim=-1, keepdim=True).to(member.dtype)
    chance = size / present.sum(dim=-1)[:, None, None]
    member = member.clamp(max=SURE)
    lacks = ((1 - member) * chance).log()
    if prior is None:
        mask = candidates.to(member.dtype)
        holds = (member + (1 - member) * chance).log()
        score = (holds - lacks).transpose(-1, -2) @ mask + lacks.sum(dim=-2).unsqueeze(-1)
    else:
        table = CandidateTable.of(candidates)
        weight = table.narrow(prior.to(member.dtype))
        score = lacks.sum(dim=-2).unsqueeze(-2).expand(-1, n_classes, -1).clone()  # (B, c, g)
        for column in range(weight.shape[-1]):
            gain = (member * weight[..., column, None] + (1 - member) * chance).log() - lacks
            gain = gain.masked_fill(~table.real[..., column, None], 0)
            score.scatter_add_(-2, table.label[..., column, None].expand_as(gain), gain)
        score = score.transpose(-1, -2)
    score = score.to(widest_float(score))
    identity = torch.eye(n_classes, dtype=torch.bool, device=member.device)
    both = present.unsqueeze(-1) & present.unsqueeze(-2)
    return score.masked_fill(~both & ~identity, -torch.inf).masked_fill(~both & identity, 0)


def set_log_likelihood(member: Tensor, prior: Tensor, n_labels: int) -> Tensor:
    """Log-likelihood of one candidate set if group g carries label c, of shape (..., l, l).

    A sample that belongs to group g with probability R has its set S of size s, given the group's
    label c, with a probability proportional to R prior_c [c in S] + (1 - R) s/l, l counting the
    labels that occur.

    Parameters
    ----------
    member : Tensor of shape (..., l)
        R.
    prior : Tensor of shape (..., l)
        As in :func:`naming_scores`.
    n_labels : int
        How many labels occur.
    """
    member = member.clamp(max=SURE).unsqueeze(-1)
    chance = (prior > 0).sum(dim=-1)[..., None, None] / n_labels
    return (member * prior.unsqueeze(-2) + (1 - member) * chance).log()


def naming_marginals(score: Tensor) -> Tensor:
    """Marginals of the one-to-one maps of groups to labels, from log-likelihoods (..., l, l).

    Among equally good maps the identity is slightly preferred, so that two groups do not share a
    label.
    """
    allowed = ~score.isneginf()
    naming = matching_marginals(torch.where(allowed, relative_weights(score), 0))
    identity = torch.eye(score.shape[-1], dtype=naming.dtype, device=naming.device)
    return (1 - PREFERENCE) * naming + PREFERENCE * identity


def relative_weights(score: Tensor) -> Tensor:
    """Return exp(score) in units of each group's best label, then of each label's best group.

    Every map takes one entry of each row and one of each column, so such units change no marginal.
    But the weights have a floor: where a hundred samples say that a group carries a label, and a
    few outlying ones that another group does, both would be at the floor for every other label, and
    the label could go to any group.
    """
    score = score - score.amax(dim=-1, keepdim=True)
    score = score - score.amax(dim=-2, keepdim=True)
    return score.exp().clamp_min(_LEAST)


def matching_marginals(weight: Tensor) -> Tensor:
    """Marginals of the one-to-one maps of groups to labels, each as likely as its product.

    Exact for few labels. For more, belief propagation: exact where the open choices form no cycle;
    otherwise in the right order, but surer than it should be where maps differ little in weight.

    Parameters
    ----------
    weight : Tensor of shape (B, l, l)
        Non-negative; a perfect matching must exist.
    """
    counted = weight.shape[-1] <= _MOST_COUNTED
    return _counted_marginals(weight) if counted else _propagated_marginals(weight)


def widest_float(tensor: Tensor) -> torch.dtype:
    """Return float64, or float32 on a device that has no other."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


# -------------------------------------------------------------------- exactly


def _counted_marginals(weight: Tensor) -> Tensor:
    """Sum over all matchings by the set of labels given away: 2^l sums instead of l! products.

    ``before[S]`` is the total weight of the maps of the first |S| groups onto the labels S,
    ``after[S]`` that of the maps of the other groups onto the labels outside S.
    """
    size = weight.shape[-1]
    before = weight.new_zeros(len(weight), 1 << size)
    after = before.clone()
    before[:, 0] = after[:, -1] = 1
    steps = [tuple(t.to(weight.device) for t in step) for step in _steps(size)]
    for group, (given, label, then) in enumerate(steps):
        before.index_add_(1, then, before[:, given] * weight[:, group, label])
    for group in reversed(range(size)):
        given, label, then = steps[group]
        after.index_add_(1, given, after[:, then] * weight[:, group, label])
    share = torch.zeros_like(weight)
    for group, (given, label, then) in enumerate(steps):
        through = before[:, given] * weight[:, group, label] * after[:, then]
        share[:, group].index_add_(1, label, through)
    return share / share.sum(dim=-1, keepdim=True)


@functools.cache
def _steps(size: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return, for each group, all (labels given before, its label, labels given then)."""
    steps: list[list[tuple[int, int, int]]] = [[] for _ in range(size)]
    for given in range(1 << size):
        for label in range(size):
            if not given >> label & 1:
                steps[given.bit_count()].append((given, label, given | 1 << label))
    return [tuple(torch.tensor(step).T) for step in steps]


# -------------------------------------------------------------------- by messages


def _propagated_marginals(weight: Tensor) -> Tensor:
    """Belief propagation on odds.

    A group's message to a label is w / (sum over its other labels of w times their messages), a
    label's message to a group is 1 / (sum of its other groups').
    """
    from_label = torch.ones_like(weight)
    from_group = weight
    for turn in range(_ROUNDS):
        from_group = weight / _sum_of_others(weight * from_label, -1).clamp_min(_LEAST)
        news = 1 / _sum_of_others(from_group, -2).clamp_min(_LEAST)
        from_label = news if turn == 0 else (from_label * news).sqrt()  # damped
    odds = from_group * from_label
    share = odds / (1 + odds)
    return share / share.sum(dim=-1, keepdim=True)


def _sum_of_others(values: Tensor, dim: int) -> Tensor:
    """Sum over a dimension without each entry itself, exact where the entry is the largest too.

    Taking the largest off the sum would leave rounding only, and for samples whose
    features and candidates disagree the small odds are what matters.
    """
    top = values.argmax(dim, keepdim=True)
    total = values.sum(dim, keepdim=True)
    rest = values.scatter(dim, top, 0).sum(dim, keepdim=True)
    return (total - values).scatter_(dim, top, rest)
