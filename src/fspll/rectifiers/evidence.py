"""The default rectifier: approximate inference in a stated model of a task.

The model. Shapes as in :mod:`fspll.rectifiers.paper`; samples are centered on the task's mean.

1. *Classes.* Class c has a mean mu_c ~ N(0, s_b^2); a sample of it is e ~ N(mu_c, s_w^2). Features
   are correlated, so their number says little: the log-density is -sharpness |e - mu|^2 / s_w^2,
   sharpness being half the number of features that count.
2. *Candidate sets.* A set S holds the true class and distractors drawn evenly from the others, so
   p(S | c) is the same for every c in S and zero for the others. Where it is known how many people
   gave each label, p(S | c) is proportional to a ``prior`` instead.
3. *Neighbors.* The k nearest samples share a sample's class with a probability rho that falls
   with their squared distance, in relation to that of the first sample that is no neighbor (the
   mean of both sides'): logit rho = slope (midpoint - ratio) + shift. The shift belongs to the task
   and is estimated from its candidate sets alone: two sets that overlap little are unlikely to
   share their class, and disjoint ones cannot.

The inference. Neighbors' sets give the first beliefs, as a product (an intersection softened by
rho), not as a mean; the search starts from classes of even size, which keeps one class from taking
two groups, and soon forgets that. Then beliefs and class means take turns: the sharpness rises, the
neighbors' say fades, and every sample is judged by means computed *without it* and shrunk to the
task's mean by kappa = s_w^2 / s_b^2, both estimated as beliefs settle. Last, samples near one mean
form a group; which label a group carries is decided over all groups at once, as each label belongs
to one group only (:mod:`fspll.rectifiers.assignment`). Where candidate sets leave that open, the
probabilities say so.

Nothing depends on the place, the scale or the orientation of the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fspll._common.arguments import check_count
from fspll._common.errors import InputError
from fspll.rectifiers import neighbors as neighborhood
from fspll.rectifiers.assignment import (
    PREFERENCE,
    SURE,
    matching_marginals,
    name_groups,
    relative_weights,
    widest_float,
)
from fspll.rectifiers.paper import check_task, exact_distances

# Chosen on meta-training classes of Omniglot and of small photos; accuracy is flat around them.
SLOPE, MIDPOINT = 10.4, 0.92  # of a neighbor's reliability, fitted by logistic regression
SHIFT_SPREAD = 1.0  # standard deviation of a task's shift, in logits
SHARPNESS, FIRST_SHARE = 16.0, 0.125  # at most, and the share of it in the first round
FIRST_SHRINKAGE, SHRINKAGE_RANGE = 0.3, (0.02, 2.0)  # kappa
SIZE_WEIGHT = 0.2  # share of the predictive density's normalizer, which favors larger classes
EVEN_START = 0.3  # share of the rounds over which the even sizes of the start are forgotten
LEAST_MASS = 0.5  # belief, in samples, from which new samples may be of a class
SYMMETRY = 1.0  # logits that part labels which occur in the same sets
_SHIFT_STEPS, _BALANCE_ROUNDS = 3, 4
_LONGEST_STEP = 4 * SHIFT_SPREAD
_ENTRIES_AT_ONCE = 1 << 20  # of (sample, class) or (sample, sample): what processor caches hold


@dataclass(frozen=True)
class EvidenceSettings:
    """What a user may set.

    Attributes
    ----------
    n_neighbors : int
        k, how many neighbors a sample listens to at first; 0 for none.
    n_iterations : int
        Rounds of beliefs and class means, 1 or more.
    balance : bool
        Tell the model that all classes are about equally frequent.
    """

    n_neighbors: int = 4
    n_iterations: int = 10
    balance: bool = False

    def __post_init__(self) -> None:
        check_count("n_neighbors", self.n_neighbors, 0)
        check_count("n_iterations", self.n_iterations, 1)


class ClassModel(NamedTuple):
    """What a task taught: enough to give probabilities to new samples.

    ``naming[g, c]`` is the probability that the group around prototype g carries label c: the
    identity where candidate sets decide everything.
    """

    prototypes: Tensor  # (..., l, m), shrunk to the task's mean
    present: Tensor  # (..., l) bool
    spread: Tensor  # (...,) s_w^2
    naming: Tensor  # (..., l, l)
    believed: Tensor  # (..., l) bool; groups that some sample is believed to belong to

    def probabilities(self, queries: Tensor) -> Tensor:
        """Return the probability of every class for samples (..., q, m), as (..., q, l).

        A sample's result does not depend on the other samples of the call.
        """
        queries = queries.to(self.prototypes.dtype)
        root = self.spread.sqrt()[..., None, None]  # first: squares of features may overflow
        square = exact_distances(queries / root, self.prototypes / root, "sqeuclidean")
        fit = (-square).clamp_min(torch.finfo(square.dtype).min / SHARPNESS)  # far from everything
        fit = fit.masked_fill(~self.believed.unsqueeze(-2), -torch.inf)
        return (sharpness_for(queries.shape[-1]) * fit).softmax(dim=-1) @ self.naming


def sharpness_for(n_features: int) -> float:
    """Return half the number of features that count: all of few, 32 of many."""
    return min(SHARPNESS, n_features / 2)


class Posterior(NamedTuple):
    """What :func:`weigh_evidence` returns; ``confidence`` rows sum to one."""

    confidence: Tensor  # (..., n, l), zero off the candidates
    model: ClassModel


class Explained(NamedTuple):
    """What :func:`explain_evidence` returns, for T rounds."""

    confidence: Tensor  # (n, l), as of `weigh_evidence`
    model: ClassModel
    by_place: Tensor  # (n, l); probability to belong to each group, by place alone
    member: Tensor  # (n, l); the same, with what the candidates say: what groups are named by
    beliefs: Tensor  # (T + 1, n, l); label by label, before groups are named
    prototypes: Tensor  # (T + 1, l, m); class means placed by these beliefs


def weigh_evidence(
    embeddings: Tensor,
    candidates: Tensor,
    settings: EvidenceSettings | None = None,
    prior: Tensor | None = None,
) -> Posterior:
    """Infer the labels of ambiguous samples and a model of their classes.

    Samples without any label may be given with full candidate sets: they say nothing about labels
    but help to place the classes. Nothing is differentiated.

    Parameters
    ----------
    embeddings : float Tensor of shape (..., n, m)
    candidates : bool Tensor of shape (..., n, l)
        Every row needs at least one candidate.
    settings : EvidenceSettings, optional
    prior : float Tensor of shape (..., n, l), optional
        How likely each candidate was before anything was seen, e.g. the votes of annotators; only
        the ratios between a sample's candidates count. Without it, all are equally likely.

    Examples
    --------
    The middle pair could be b or c; that nobody else can be c tells:

    >>> e = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.2]])
    >>> y = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1], [1, 1, 0]]).bool()
    >>> weigh_evidence(e, y, EvidenceSettings(n_neighbors=1)).confidence.argmax(-1).tolist()
    [0, 0, 2, 2, 1, 1]
    """
    settings = settings or EvidenceSettings()
    check_task(embeddings, candidates)
    lean = None if prior is None else _leaning(prior, candidates, embeddings)
    batch = candidates.shape[:-2]
    n, n_classes = candidates.shape[-2:]
    with torch.no_grad():
        e = embeddings.detach()
        e = e.to(torch.promote_types(e.dtype, torch.float32)).reshape(-1, n, e.shape[-1])
        y = candidates.reshape(-1, n, n_classes)
        at_once = max(1, _ENTRIES_AT_ONCE // (n * max(n, n_classes, e.shape[-1])))
        parts = [
            _weigh(
                e[start:stop], y[start:stop], settings, None if lean is None else lean[start:stop]
            )
            for start, stop in _spans(len(e), at_once)
        ]
        confidence, *model = (
            (tensors[0] if len(tensors) == 1 else torch.cat(tensors)).reshape(
                batch + tensors[0].shape[1:]
            )
            for tensors in zip(*((p.confidence, *p.model) for p in parts), strict=True)
        )
    return Posterior(confidence, ClassModel(*model))


def explain_evidence(
    embeddings: Tensor,
    candidates: Tensor,
    settings: EvidenceSettings | None = None,
    prior: Tensor | None = None,
) -> Explained:
    """Do what :func:`weigh_evidence` does for one task (n, m), and keep every round.

    Parameters and results are those of :func:`weigh_evidence`, without leading dimensions.
    """
    settings = settings or EvidenceSettings()
    check_task(embeddings, candidates)
    if candidates.ndim != 2:
        raise InputError(f"one task at a time can be explained, not {tuple(candidates.shape)}")
    lean = None if prior is None else _leaning(prior, candidates, embeddings)
    trace = _Trace()
    with torch.no_grad():
        e = embeddings.detach()
        e = e.to(torch.promote_types(e.dtype, torch.float32))
        found = _weigh(e[None], candidates[None], settings, lean, trace)
    return Explained(
        found.confidence[0],
        ClassModel(*(part[0] for part in found.model)),
        trace.by_place[0],
        trace.member[0],
        torch.cat(trace.beliefs),
        torch.cat(trace.prototypes),
    )


# -------------------------------------------------------------------- the steps


def _spans(length: int, size: int) -> list[tuple[int, int]]:
    return [(start, start + size) for start in range(0, length, size)]


def _leaning(prior: Tensor, candidates: Tensor, embeddings: Tensor) -> Tensor:
    """Return log(prior / its mean over the candidates), zero elsewhere, of shape (B, n, l)."""
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
    lean = torch.where(candidates, (torch.where(candidates, prior, 1) / mean).log(), 0)
    return lean.reshape(-1, *candidates.shape[-2:])


class _Trace:
    """Every round of one task, noted on the way."""

    by_place: Tensor
    member: Tensor

    def __init__(self) -> None:
        self.beliefs: list[Tensor] = []
        self.prototypes: list[Tensor] = []


def _weigh(
    embeddings: Tensor,
    candidates: Tensor,
    settings: EvidenceSettings,
    lean: Tensor | None = None,
    trace: _Trace | None = None,
) -> Posterior:
    """Solve tasks (B, n, m) with candidates (B, n, l) and leanings (B, n, l)."""
    first = embeddings[:, :1]  # so that equal samples are all at zero, whatever rounding does
    center = first + (embeddings - first).mean(dim=-2, keepdim=True)
    e = embeddings - center
    # In units of a power of two, which rounds nothing, squares neither overflow nor vanish.
    exponent = torch.frexp(e.abs().amax(dim=(-1, -2), keepdim=True)).exponent - 1
    unit = torch.ldexp(torch.ones_like(e[:, :1, :1]), exponent)
    e = e / unit
    table = _Table.of(candidates)
    # Not centered: rounding would make equal distances unequal.
    told = table.narrow(_neighbors_say(embeddings / unit, candidates, settings.n_neighbors))
    told = told + SYMMETRY * table.narrow(_part_twins(e, candidates))
    final = sharpness_for(e.shape[-1])
    leaning = None if lean is None else table.narrow(lean)
    belief = table.balanced(told if leaning is None else told + leaning, 1.0)
    classes = _Classes(e, table)
    classes.place(belief)
    if trace is not None:
        classes.note(trace, center, unit)
    for turn in range(settings.n_iterations):
        # A single round is a last round.
        progress = turn / (settings.n_iterations - 1) if settings.n_iterations > 1 else 1.0
        sharpness = final * FIRST_SHARE ** (1 - progress)
        score = sharpness * classes.judge(belief) + (1 - progress) * told
        if leaning is not None:
            score = score + leaning
        even = 1.0 if settings.balance else max(0.0, 1 - progress / EVEN_START)
        belief = table.balanced(score, even)
        classes.place(belief)
        if trace is not None:
            classes.note(trace, center, unit)
    by_place = (final * classes.judge_all()).softmax(dim=-1)
    # Membership by place alone overlooks classes of one sample; membership by candidates alone
    # confirms itself. Their mean does neither.
    member = 0.5 * (by_place + table.widen(belief))
    if leaning is None:
        naming = name_groups(member, candidates)
        confidence = (by_place @ naming).to(e.dtype) * candidates
    else:
        naming = _name_by_votes(member, candidates, table, leaning)
        confidence = (by_place @ naming).to(e.dtype) * candidates * table.widen(leaning.exp())
    if trace is not None:
        trace.by_place, trace.member = by_place, member
    total = confidence.sum(dim=-1, keepdim=True)
    tiny = torch.finfo(total.dtype).tiny
    confidence = torch.where(total > tiny, confidence / total, table.widen(belief))
    return Posterior(confidence, classes.model(center, unit, naming))


def _neighbors_say(embeddings: Tensor, candidates: Tensor, k: int) -> Tensor:
    """Log-likelihood of the neighbors' candidate sets for every label, up to a constant a sample.

    A neighbor of reliability rho has a set S of size s with a probability proportional to
    rho + (1 - rho)(s - 1)/(l - 1) if it holds the label, and to (1 - rho) s/(l - 1) if not.

    Parameters
    ----------
    embeddings : Tensor of shape (B, n, m)
    candidates : bool Tensor of shape (B, n, l)

    Returns
    -------
    Tensor of shape (B, n, l)
    """
    n, n_classes = candidates.shape[-2:]
    mask = candidates.to(embeddings.dtype)
    k = min(k, n - 1)
    if k <= 0 or n_classes == 1:
        return torch.zeros_like(mask)
    square = neighborhood.squared_distances(embeddings)
    near = neighborhood.neighbors(square, embeddings, neighborhood.squared_norms(embeddings), k)
    edge = square.masked_fill(near, torch.inf).amin(dim=-1)
    farthest = square.masked_fill(~near, 0).amax(dim=-1)
    edge = torch.where(edge.isfinite(), edge, farthest)
    task, i, j = near.nonzero(as_tuple=True)
    reference = (edge[task, i] + edge[task, j]) / 2
    ratio = square[task, i, j] / reference.clamp_min(torch.finfo(square.dtype).tiny)
    size = mask.sum(dim=-1)
    mine, other = size[task, i], size[task, j]
    overlap = (mask @ mask.transpose(-1, -2))[task, i, j]
    # Labels that are nobody's candidate are no distractors: they must not count.
    others = (candidates.any(dim=-2).sum(dim=-1) - 1).clamp_min(1)[task]
    same = overlap / mine  # likelihood of the neighbor's set given mine, if they share a class
    different = (other - same) / others  # and if not; a common factor is left out
    logit = SLOPE * (MIDPOINT - ratio)
    logit = logit + _task_shift(logit, same, different, task, len(candidates))[task]
    rho = logit.sigmoid().clamp(1e-3, 1 - 1e-3)
    holds = (rho + (1 - rho) * (other - 1) / others).log()
    lacks = ((1 - rho) * other / others).log()
    weight = torch.zeros_like(square)
    weight[task, i, j] = holds - lacks
    return weight @ mask


def _part_twins(embeddings: Tensor, candidates: Tensor) -> Tensor:
    """Part labels that the same samples have: towards the outermost sample, or away from it.

    Nothing tells such labels apart, so their means would stay on top of each other for ever, even
    if the samples form two groups. Zero for all other labels; of shape (B, n, l).
    """
    mask = candidates.to(embeddings.dtype)
    shared = mask.transpose(-1, -2) @ mask
    size = mask.sum(dim=-2)
    twins = (shared == size.unsqueeze(-1)) & (shared == size.unsqueeze(-2))  # itself too
    earlier = twins.tril(-1).sum(dim=-1)
    side = earlier - (twins.sum(dim=-1) - 1) / 2
    norms = embeddings.square().sum(dim=-1)
    far = embeddings.take_along_dim(norms.argmax(dim=-1)[:, None, None], dim=-2)
    near = (embeddings * far).sum(dim=-1) / norms.amax(dim=-1, keepdim=True).clamp_min(1e-30)
    return near.unsqueeze(-1) * side.unsqueeze(-2).to(near.dtype)


def _task_shift(
    logit: Tensor, same: Tensor, different: Tensor, task: Tensor, n_tasks: int
) -> Tensor:
    """Most likely shift of the reliabilities of each task, given its candidate sets, (B,).

    A few bounded, cautious Newton steps, which may stop short of the maximum, on
    sum_pairs log(rho same + (1 - rho) different) - shift^2 / (2 SHIFT_SPREAD^2).
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(n_tasks).index_add_(0, task, values)

    shift = logit.new_zeros(n_tasks)
    prior = 1 / SHIFT_SPREAD**2
    for _ in range(_SHIFT_STEPS):
        rho = (logit + shift[task]).sigmoid()
        shared = rho * same
        posterior = shared / (shared + (1 - rho) * different).clamp_min(1e-12)
        slope = total(posterior - rho) - prior * shift
        step = slope / (total(rho * (1 - rho)) + prior)
        # Sure neighbors leave no curvature: unbounded steps would run away.
        shift = shift + step.clamp(-_LONGEST_STEP, _LONGEST_STEP)
    return shift


def _name_by_votes(member: Tensor, candidates: Tensor, table: _Table, leaning: Tensor) -> Tensor:
    """Do what :func:`name_groups` does where candidates are not equally likely.

    A sample of the group has its set, given the group's label c, with a probability proportional
    to R exp(leaning_c) [c in S] + (1 - R) s/l; with even leanings this is the plain rule.
    """
    present = candidates.any(dim=-2)
    size = candidates.sum(dim=-1, keepdim=True)
    chance = size.to(member.dtype) / present.sum(dim=-1)[:, None, None]
    member = member.clamp(max=SURE)
    lacks = ((1 - member) * chance).log()
    score = (
        lacks.sum(dim=-2).unsqueeze(-2).expand(-1, candidates.shape[-1], -1).clone()
    )  # (B, c, g)
    for column in range(table.label.shape[-1]):
        weight = leaning[..., column, None].exp()
        gain = (member * weight + (1 - member) * chance).log() - lacks
        gain = gain.masked_fill(~table.real[..., column, None], 0)
        score.scatter_add_(-2, table.label[..., column, None].expand_as(gain), gain)
    score = score.transpose(-1, -2).to(widest_float(score))
    identity = torch.eye(candidates.shape[-1], dtype=torch.bool, device=member.device)
    both = present.unsqueeze(-1) & present.unsqueeze(-2)
    score = score.masked_fill(~both, -torch.inf).masked_fill(~both & identity, 0)
    weight = relative_weights(score)
    naming = matching_marginals(torch.where(both | identity, weight, 0))
    naming = (1 - PREFERENCE) * naming + PREFERENCE * identity.to(naming.dtype)
    return naming.to(member.dtype)


# -------------------------------------------------------------------- beliefs and classes


@dataclass(frozen=True, eq=False)
class _Table:
    """Candidates side by side: (B, n, w) for sets of at most w labels, instead of (B, n, l)."""

    label: Tensor  # (B, n, w) int64
    real: Tensor  # (B, n, w) bool; False where a set is smaller than w
    ragged: bool  # whether any set is smaller than w
    present: Tensor  # (B, l) bool; classes that are somebody's candidate
    shape: torch.Size  # (B, n, l)

    @classmethod
    def of(cls, candidates: Tensor) -> _Table:
        sizes = candidates.sum(dim=-1)
        widest = int(sizes.max())
        order = candidates.to(torch.int8).topk(widest, dim=-1)
        return cls(
            label=order.indices,
            real=order.values > 0,
            ragged=int(sizes.min()) < widest,
            present=candidates.any(dim=-2),
            shape=candidates.shape,
        )

    def narrow(self, dense: Tensor) -> Tensor:
        """Return the candidates' entries of (B, n, l) or (B, 1, l) values."""
        return dense.expand(self.shape).gather(-1, self.label)

    def widen(self, belief: Tensor) -> Tensor:
        """Return (B, n, l) beliefs, zero off the candidates."""
        return belief.new_zeros(self.shape).scatter_add_(-1, self.label, belief)

    def softmax(self, score: Tensor) -> Tensor:
        """Return (B, n, w) beliefs, zero where there is no candidate."""
        if self.ragged:
            score = score.masked_fill(~self.real, -torch.inf)
        return score.softmax(dim=-1)

    def balanced(self, score: Tensor, strength: float) -> Tensor:
        """Softmax whose classes weigh about the same, by a few Sinkhorn rounds.

        At ``strength`` 0 it is a plain softmax.
        """
        for _ in range(_BALANCE_ROUNDS if strength > 0 else 0):
            mass = self.widen(self.softmax(score)).sum(dim=-2, keepdim=True)
            score = score - self.narrow(0.5 * strength * mass.clamp_min(1e-6).log())
        return self.softmax(score)


class _Classes:
    """Class means of a batch of tasks, shrunk to the task's mean, and how samples fit them."""

    def __init__(self, embeddings: Tensor, table: _Table) -> None:
        self.e, self.table = embeddings, table
        self.norms = embeddings.square().sum(dim=-1, keepdim=True)  # (B, n, 1)
        n = embeddings.shape[-2]
        self.total = self.norms.sum(dim=(-1, -2), keepdim=True) / max(1, n - 1)  # (B, 1, 1)
        self.floor = torch.finfo(embeddings.dtype).eps * self.total + 1e-30
        self.shrinkage = torch.full_like(self.total, FIRST_SHRINKAGE)
        self.spread = self.total
        # Products between samples serve every round; with many samples, class means are cheaper.
        few = n <= 2 * embeddings.shape[-1]
        self.products = embeddings @ embeddings.transpose(-1, -2) if few else None

    def place(self, belief: Tensor) -> None:
        """Place the class means by beliefs (B, n, w)."""
        self.belief = self.table.widen(belief)
        self.mass = self.belief.sum(dim=-2, keepdim=True)  # (B, 1, l)
        self.placed_with = self.shrinkage

    def note(self, trace: _Trace, center: Tensor, unit: Tensor) -> None:
        """Write down where the classes stand."""
        trace.beliefs.append(self.belief)
        present = self.table.present.unsqueeze(-1)
        trace.prototypes.append(torch.where(present, self.means() * unit + center, 0))

    def means(self) -> Tensor:
        """Return the class means, (B, l, m)."""
        weight = (self.mass + self.placed_with).transpose(-1, -2)
        return (self.belief.transpose(-1, -2) @ self.e) / weight

    def judge(self, belief: Tensor) -> Tensor:
        """Fit of samples to their candidates, each left out in turn; also settles the spread."""
        square = self.table.narrow(self._squares())
        fit, spread = self._left_out(square, belief, self.table.narrow(self.mass))
        between = (self.total - spread).clamp_min(1e-3 * self.total + 1e-30)
        self.shrinkage = (spread / between).clamp(*SHRINKAGE_RANGE)
        return fit

    def judge_all(self) -> Tensor:
        """Fit of samples to all classes, (B, n, l); minus infinity where a class has no sample."""
        fit, _ = self._left_out(self._squares(), self.belief, self.mass)
        return fit.masked_fill(~self.table.present.unsqueeze(-2), -torch.inf)

    def model(self, center: Tensor, unit: Tensor, naming: Tensor) -> ClassModel:
        mass = self.mass.squeeze(-2)
        present = self.table.present
        return ClassModel(
            prototypes=torch.where(present.unsqueeze(-1), self.means() * unit + center, 0),
            present=present,
            spread=(self.spread * unit * unit).flatten(),
            naming=naming,
            # The mean of a class without samples is the task's: it would win all that fits badly.
            # The factor lets rounding decide nothing where masses are even.
            believed=mass > 0.99 * mass.amax(dim=-1, keepdim=True).clamp(max=LEAST_MASS),
        )

    def _squares(self) -> Tensor:
        """Squared distances of the samples to the means, (B, n, l)."""
        if self.products is not None:
            weight = self.mass + self.placed_with
            cross = (self.products @ self.belief).div_(weight)
            own = (self.belief * cross).sum(dim=-2, keepdim=True) / weight
        else:
            means = self.means()
            cross = self.e @ means.transpose(-1, -2)
            own = means.square().sum(dim=-1).unsqueeze(-2)
        return cross.mul_(-2).add_(self.norms).add_(own).clamp_min_(0)

    def _left_out(self, square: Tensor, belief: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        """Predictive fit without the sample itself, and the spread that follows.

        With mean p = sum_i Q_i e_i / (M + kappa), leaving i out moves it straight away from e_i:
        |e_i - p without i| = |e_i - p| (M + kappa) / (M - Q_i + kappa).
        """
        kappa = self.placed_with
        rest = (mass - belief).clamp_min(0) + kappa
        inflation = 1 + 1 / rest
        square = square * ((mass + kappa) / rest).square() / inflation
        spread = (belief * square).sum(dim=(-1, -2), keepdim=True) / belief.shape[-2]
        self.spread = spread.maximum(self.floor)
        return -(square / self.spread + SIZE_WEIGHT * inflation.log()), self.spread
