"""What candidate sets can and cannot decide, given which samples belong together.

A cluster holds the samples of one class, distinct clusters are distinct classes, and nobody says
which: a *map* gives every cluster a label of its own. All maps that agree with every candidate set
are equally likely, and nothing but a further answer can choose among them. When none agrees with
all sets, a map costs the factor ``eps`` for every sample whose set lacks its label.

Shapes: n samples, K clusters, l classes with K <= l; a *group* is a part of m clusters and q labels
that can be mapped without regard to the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fspll.candidates import Candidates, Classes
from fspll.errors import InputError, InputTypeError
from fspll.labels import is_integer, is_number

__all__ = ["Diagnosis", "Question", "ceiling", "diagnose"]

_NEGLIGIBLE = 1e-10  # a map this much less likely than the best one is left out of account
_STEPS_TO_COUNT = 5_000_000  # 18 clusters that may have any of 18 labels take 4.7 million
_MAPS_TO_LIST = 20_000
_CHAINS = 256
_DRAWS = 20_000
_DRAWS_TO_ASK = 8_000
_DRAWS_TO_DOUBT = 10  # a cluster's label is chosen as if so many more draws were like all of them
_STEPS_TO_DRAW = 60_000  # of every chain; reached only when returns to a full map are rare
_CLUSTERS_TO_WEIGH = 16
_WORTH_ASKING = 0.05  # samples more to expect right
_SHOWN = 10


@dataclass(frozen=True)
class Question:
    """A sample whose true label is worth asking for.

    Attributes
    ----------
    sample : int
        The row to ask about. Its label is that of its whole cluster, whose other members would do
        as well; among those that contradict nothing this is the first with the fewest candidates,
        the shortest question to a person.
    candidates : list of label
        Its candidates that are possible before any answer, the likeliest first.
    ceiling_after : float
        The ceiling to expect once this question and those before it are answered.
    """

    sample: int
    candidates: list[Any]
    ceiling_after: float


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What candidate sets decide, given the clusters; ``print`` it to read it.

    Attributes
    ----------
    n_samples, n_classes, n_clusters : int
        n, l and K.
    ceiling : float
        The best share of right labels that any method can expect: every cluster gets its most
        frequent label among the maps.
    ceiling_error : float or None
        Its standard error when the maps were sampled, else None.
    exact : bool
        Whether the maps were counted, all of them; if not, they were sampled.
    classes : ndarray of shape (l,)
        The label that each column of ``marginals`` stands for.
    clusters : ndarray of shape (K,)
        The cluster that each row of ``marginals`` stands for, in sorted order.
    marginals : ndarray of shape (K, l)
        Share of the maps that give the cluster the label.
    undecided : list of list of label
        Labels that the best maps exchange among one another, or leave unused in turn: given the
        clusters, the candidate sets cannot tell which is which.
    always_together : list of list of label
        Labels that occur in exactly the same sets: no sample separates them, whatever the clusters.
    never_candidates : list of label
        Labels in no candidate set.
    contradictions : list of int
        Rows whose sets lack the label that a map with the fewest such rows gives them.
    ask : list of Question
        The questions to ask, the most useful first.
    """

    n_samples: int
    n_classes: int
    n_clusters: int
    ceiling: float
    ceiling_error: float | None
    exact: bool
    classes: np.ndarray
    clusters: np.ndarray
    marginals: np.ndarray
    undecided: list[list[Any]]
    always_together: list[list[Any]]
    never_candidates: list[Any]
    contradictions: list[int]
    ask: list[Question]

    def __str__(self) -> str:
        lines = [
            f"{_number(self.n_samples, 'sample')} in {_number(self.n_clusters, 'cluster')}, "
            f"{_number(self.n_classes, 'class', 'classes')}"
        ]
        if self.ceiling > 1 - 1e-9:
            lines.append("given the clusters, the candidate sets decide every label")
        else:
            error = "" if self.ceiling_error is None else f" (± {self.ceiling_error:.1%}, sampled)"
            lines.append(
                f"given the clusters, no method can expect more than {self.ceiling:.1%}{error} of "
                f"the labels to be right"
            )
        if self.contradictions:
            lines.append(
                f"no labelling of the clusters agrees with all sets; the best contradicts "
                f"{len(self.contradictions)}, where the true label is missing or the cluster is "
                f"wrong: row{'s'[: len(self.contradictions) - 1]} {_listed(self.contradictions)}"
            )
        lines += [
            f"cannot be told apart, given the clusters: {_listed(group)}"
            for group in self.undecided
        ]
        lines += [
            f"always together, cannot be told apart by any sample: {_listed(group)}"
            for group in self.always_together
        ]
        if self.never_candidates:
            lines.append(f"never a candidate: {_listed(self.never_candidates)}")
        lines += [
            f"{'then ask' if number else 'ask'} for the label of row {question.sample} "
            f"({_listed(question.candidates, ' or ')}): up to {question.ceiling_after:.1%} right"
            for number, question in enumerate(self.ask)
        ]
        return "\n".join(lines)


def diagnose(
    y: Any,
    clusters: Any,
    *,
    classes: Classes = None,
    n_ask: int = 5,
    eps: float = 0.01,
    seed: int = 0,
) -> Diagnosis:
    """Tell what candidate sets decide once it is known which samples belong together.

    The maps are counted exactly, group by group; in a group too entangled for that they are
    sampled. Questions are chosen greedily, each by the ceiling to expect over its answers and the
    answers to those before it; in a large group only the 16 least certain clusters are weighed. In
    a group of more than 20,000 maps the expectation is estimated from sampled maps, labels chosen
    on one half of them and scored on the other, and what an answer tells of other clusters is left
    out once the sample is too small to show it: there ``ceiling_after`` is an estimate, and after
    the first two or three questions a low one.

    Parameters
    ----------
    y : whatever :meth:`Candidates.read` takes
        Candidate sets of n samples.
    clusters : array of shape (n,)
        The cluster of every sample, by number or name: from a classifier's predictions, from a
        clustering, or the true classes under any names.
    classes : sequence of length l, optional
        The classes in order, as for :meth:`Candidates.read`.
    n_ask : int
        At most so many questions are proposed; fewer when a further one would settle nothing, that
        is, less than a twentieth of a sample.
    eps : float
        How likely it is that a set lacks the label of its cluster; used only when no map agrees
        with all sets.
    seed : int
        For the sampling of maps.

    Examples
    --------
    >>> y = [{"lynx", "cat"}, {"lynx", "cat", "dog"}, {"lynx", "cat"}, {"dog", "cat"}]
    >>> found = diagnose(y, clusters=[0, 0, 1, 2])
    >>> found.ceiling, found.undecided
    (0.625, [['cat', 'lynx']])
    >>> print(found)
    4 samples in 3 clusters, 3 classes
    given the clusters, no method can expect more than 62.5% of the labels to be right
    cannot be told apart, given the clusters: cat, lynx
    ask for the label of row 0 (cat or lynx): up to 100.0% right
    """
    sets = Candidates.read(y, classes)
    if not is_integer(n_ask) or n_ask < 0:
        raise InputError(f"n_ask counts questions: a whole number of 0 or more, not {n_ask!r}")
    names, inverse = _read_clusters(clusters, len(sets), sets.n_classes)
    mask = sets.mask
    maps = _Maps.of(mask, inverse, len(names), eps)
    rng = np.random.default_rng(seed)
    groups = [_solve(maps, *part, rng) for part in maps.parts()]
    marginals = maps.marginals(groups)
    contradicting = ~mask[np.arange(len(mask)), maps.best[inverse]]
    summary = sets.summary()
    reached = maps.ceiling(groups)
    exact = all(group.error is None for group in groups)
    return Diagnosis(
        n_samples=len(sets),
        n_classes=sets.n_classes,
        n_clusters=len(names),
        ceiling=reached,
        ceiling_error=None
        if exact
        else float(np.sqrt(sum((group.error or 0.0) ** 2 for group in groups)) / len(sets)),
        exact=exact,
        classes=sets.classes,
        clusters=names,
        marginals=marginals,
        undecided=[
            sets.classes[labels].tolist()
            for _, labels in _split(maps.excess == 0)
            if len(labels) > 1
        ],
        always_together=summary.always_together,
        never_candidates=summary.never_candidates,
        contradictions=np.flatnonzero(contradicting).tolist(),
        ask=[
            _question(cluster, after, sets, inverse, contradicting, marginals)
            for cluster, after in _ask(maps, groups, reached, n_ask, rng)
        ],
    )


def ceiling(candidates_mask: np.ndarray, clusters: Any, *, eps: float = 0.01) -> float:
    """Return the best share of right labels to expect: ``diagnose(...).ceiling``, but quicker.

    Parameters
    ----------
    candidates_mask : ndarray of bool, shape (n, l)
        True where the class is a candidate.
    clusters : array of shape (n,)
        The cluster of every sample, by number or name.
    eps : float
        As for :func:`diagnose`.

    Examples
    --------
    >>> ceiling(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool), [0, 1, 2])
    0.6666666666666666
    """
    mask = candidates_mask
    plain = isinstance(mask, np.ndarray) and mask.dtype == bool and mask.ndim == 2
    if not plain or not len(mask) or not mask.any(axis=1).all():
        mask = Candidates.from_mask(mask).mask
    names, inverse = _read_clusters(clusters, *mask.shape)
    maps = _Maps.of(mask, inverse, len(names), eps)
    rng = np.random.default_rng(0)
    return maps.ceiling([_solve(maps, *part, rng) for part in maps.parts()])


def _read_clusters(clusters: Any, n: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct clusters and, for every sample, which of them is its own."""
    found = np.asarray(clusters)
    if found.dtype == object and found.ndim == 1:
        found = np.array(found.tolist())
    if found.shape != (n,):
        raise InputError(
            f"clusters names one cluster for each of the {n} candidate sets, an array of shape "
            f"({n},), not one of shape {found.shape}"
        )
    if found.dtype.kind not in "biuUT":
        for row, name in enumerate(found.tolist()):
            if not isinstance(name, str) and not (is_number(name) and name == name // 1):
                raise InputTypeError(
                    f"clusters are whole numbers or names, but row {row} holds {name!r:.60}"
                )
    names, inverse = np.unique(found, return_inverse=True)
    if len(names) > n_classes:
        raise InputError(
            f"{len(names)} clusters cannot each have a class of their own out of {n_classes}; "
            f"merge clusters or name all classes"
        )
    return names, inverse


# -------------------------------------------------------------------- maps and groups of them


@dataclass(frozen=True, eq=False)
class _Maps:
    """All maps of K clusters to l labels, before any is counted.

    ``cost`` of shape (K, l) is the logarithm of what a label costs a cluster, infinite where it is
    impossible; ``best`` of shape (K,) is a map of least cost; ``excess`` of shape (K, l) counts how
    many more samples the best map *through* that entry contradicts, infinite where there is none.
    """

    sizes: np.ndarray
    cost: np.ndarray
    best: np.ndarray
    excess: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, mask: np.ndarray, inverse: np.ndarray, n_clusters: int, eps: float) -> _Maps:
        if not is_number(eps) or not 0 < eps < 1:
            raise InputError(f"eps is a chance, above 0 and below 1, not {eps!r}")
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(n_clusters))
        misses = np.add.reduceat(~mask[order], starts, axis=0, dtype=float)
        best = linear_sum_assignment(misses)[1]
        penalty = -float(np.log(eps))
        if not misses[np.arange(n_clusters), best].any():  # some map agrees with every set
            misses = np.where(misses == 0, 0.0, np.inf)
        excess = _excess(misses, best)
        kept = excess * penalty <= -np.log(_NEGLIGIBLE)
        return cls(np.bincount(inverse), misses * penalty, best, excess, kept)

    def parts(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the clusters and labels of every group in which something is open."""
        open_clusters = np.flatnonzero(self.kept.sum(axis=1) > 1)
        for clusters, labels in _split(self.kept[open_clusters]):
            yield open_clusters[clusters], labels

    def marginals(self, groups: list[_Group]) -> np.ndarray:
        """Return the share of the maps that give each cluster each label, of shape (K, l)."""
        shares = np.zeros(self.cost.shape)
        shares[np.arange(len(shares)), self.best] = 1.0
        for group in groups:
            shares[group.clusters] = 0.0
            shares[np.ix_(group.clusters, group.labels)] = group.marginals
        return shares

    def ceiling(self, groups: list[_Group]) -> float:
        """Return the expected share of right samples."""
        right = np.ones(len(self.sizes))
        for group in groups:
            right[group.clusters] = group.right
        return min(1.0, float(self.sizes @ right / self.sizes.sum()))


def _excess(cost: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Return what the cheapest map through every entry costs above the cheapest of all.

    Two maps differ by chains of moves: a cluster takes another's label, that one a third, until the
    label that came free is taken or, when K < l, an unused label ends the chain. So this is a
    problem of shortest paths among labels (Floyd and Warshall), where an unused label leads to any
    other at no cost. An infinite excess marks the entries that belong to no map at all.
    """
    moves = np.zeros((cost.shape[1], cost.shape[1]))
    moves[best] = cost - cost[np.arange(len(best)), best][:, None]
    paths = moves.copy()
    np.fill_diagonal(paths, 0.0)
    for label in range(len(paths)):
        np.minimum(paths, paths[:, label, None] + paths[label], out=paths)
    return moves[best] + paths[:, best].T


def _split(linked: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows and columns of the connected parts of a bool matrix, by first row."""
    left = np.ones(len(linked), dtype=bool)
    while left.any():
        rows = np.zeros(len(linked), dtype=bool)
        rows[left.argmax()] = True
        reached = 0
        while rows.sum() > reached:
            reached = rows.sum()
            columns = np.any(linked[rows], axis=0)
            np.any(linked[:, columns], axis=1, out=rows)
        left &= ~rows
        yield np.flatnonzero(rows), np.flatnonzero(columns)


@dataclass(frozen=True, eq=False)
class _Group:
    """A solved group: ``clusters`` (m,), ``labels`` (q,), ``log_weights``, ``marginals`` (m, q).

    ``right`` of shape (m,) is how often the likeliest label of a cluster is right.
    After exact counting there are ``counts``; else ``draws`` holds sampled maps and their chains,
    and ``error`` is the standard error of the expected number of right samples.
    """

    clusters: np.ndarray
    labels: np.ndarray
    log_weights: np.ndarray
    marginals: np.ndarray
    right: np.ndarray
    counts: _Counts | None = None
    draws: tuple[np.ndarray, np.ndarray] | None = None
    error: float | None = None


def _solve(
    maps: _Maps, clusters: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> _Group:
    log_weights = np.where(maps.kept, -maps.cost, -np.inf)[np.ix_(clusters, labels)]
    counts = _count(log_weights)
    if counts is not None:
        right = counts.marginals.max(axis=1)
        return _Group(clusters, labels, log_weights, counts.marginals, right, counts)
    drawn, chain = _draw(log_weights, _DRAWS, rng)
    counted = np.array(
        [
            [np.bincount(column, minlength=len(labels)) for column in drawn[chain % 2 == half].T]
            for half in (0, 1)
        ]
    )
    # The likeliest label of one half of the chains is scored on the other: the largest of many
    # shares that vary by chance would be too large.
    right = drawn == counted.argmax(axis=2)[1 - chain % 2]
    # The draws of one chain depend on each other, the chains do not.
    score = right @ maps.sizes[clusters].astype(float)
    deviation = np.bincount(chain, score - score.mean(), _CHAINS)
    error = float(np.sqrt(_CHAINS / (_CHAINS - 1) * (deviation**2).sum()) / len(drawn))
    return _Group(
        clusters=clusters,
        labels=labels,
        log_weights=log_weights,
        marginals=counted.sum(axis=0) / len(drawn),
        right=right.mean(axis=0),
        draws=(drawn, chain),
        error=error,
    )


# -------------------------------------------------------------------- counting maps


@dataclass(frozen=True, eq=False)
class _Counts:
    """The states of counting: a path through ``steps`` is a map, every map is one path.

    Step i places the cluster ``order[i]``: arrays of the state before, the state after and the
    label taken, sorted by the state before. Steps that lead nowhere are left out.
    """

    order: list[int]
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    marginals: np.ndarray

    def listed(self, most: int) -> np.ndarray | None:
        """Return every map, of shape (number, m), or None if there are more than ``most``."""
        maps = np.zeros((1, len(self.order)), dtype=np.int64)
        state = np.zeros(1, dtype=np.int64)
        for cluster, (before, after, label) in zip(self.order, self.steps, strict=True):
            first, end = (np.searchsorted(before, state, side) for side in ("left", "right"))
            number = end - first
            if number.sum() > most:
                return None
            grown = np.repeat(np.arange(len(state)), number)
            step = np.arange(len(grown)) + np.repeat(first - np.cumsum(number) + number, number)
            maps = maps[grown]
            maps[:, cluster] = label[step]
            state = after[step]
        return maps


def _count(log_weights: np.ndarray) -> _Counts | None:
    """Sum over all maps of a group by dynamic programming; None if it takes too many steps.

    Clusters are placed one after another. What matters of those already placed is only which labels
    they took, and of these only the labels that a later cluster could still take: that set, as
    bits, is the state. Sums are kept as logarithms, so no number of maps is too large.
    """
    usable = np.isfinite(log_weights)
    order = _placing_order(usable)
    place = np.argsort(order)
    last = np.where(usable, place[:, None], -1).max(axis=0)
    bit: dict[int, int] = {}
    spare = list(range(62, -1, -1))
    states = np.zeros(1, dtype=np.int64)
    left = _STEPS_TO_COUNT
    steps = []
    for i, cluster in enumerate(order):
        labels = np.flatnonzero(usable[cluster])
        for label in labels.tolist():
            if label not in bit:
                if not spare:
                    return None
                bit[label] = spare.pop()
        left -= len(states) * len(labels)
        if left < 0:
            return None
        bits = np.array([1 << bit[label] for label in labels.tolist()], dtype=np.int64)
        before, which = np.nonzero((states[:, None] & bits) == 0)
        taken = states[before] | bits[which]
        done = last[labels] == i
        taken &= ~bits[done].sum()
        spare += [bit[label] for label in labels[done].tolist()]
        states, after = np.unique(taken, return_inverse=True)
        steps.append((before, after, labels[which]))
    return _sum(log_weights, order, steps)


def _sum(
    log_weights: np.ndarray,
    order: list[int],
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> _Counts:
    """Add up the weights of all maps, forwards and backwards, and through every entry."""
    forward = [np.zeros(1)]
    for cluster, (before, after, label) in zip(order, steps, strict=True):
        weight = forward[-1][before] + log_weights[cluster, label]
        forward.append(_log_sums(weight, after, after.max() + 1))
    marginals = np.zeros(log_weights.shape)
    alive = []
    backward = np.zeros(1)
    for cluster, (before, after, label), start in zip(
        order[::-1], steps[::-1], forward[-2::-1], strict=True
    ):
        onward = log_weights[cluster, label] + backward[after]
        share = np.exp(start[before] + onward - forward[-1])
        marginals[cluster] = np.bincount(label, share, log_weights.shape[1])
        backward = _log_sums(onward, before, len(start))
        possible = np.isfinite(onward)
        alive.append((before[possible], after[possible], label[possible]))
    return _Counts(order, alive[::-1], marginals / marginals.sum(axis=1, keepdims=True))


def _placing_order(usable: np.ndarray) -> list[int]:
    """Place next the cluster that brings the fewest new labels: few labels are open at a time."""
    order: list[int] = []
    unseen = usable.astype(np.int64)
    new = unseen.sum(axis=1) * len(unseen) + unseen.sum(axis=1)  # of two, the one with fewer labels
    never = new.max() + 1
    for _ in range(len(usable)):
        cluster = int(new.argmin())
        order.append(cluster)
        fresh = unseen[cluster] > 0
        new -= unseen[:, fresh].sum(axis=1) * len(unseen)
        unseen[:, fresh] = 0
        new[order] = never
    return order


def _log_sums(values: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the logarithm of the sum of the exponentials in every group; -inf for none."""
    top = np.full(n_groups, -np.inf)
    np.maximum.at(top, groups, values)
    top[np.isneginf(top)] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(groups, np.exp(values - top[groups]), n_groups)) + top


# -------------------------------------------------------------------- drawing maps


def _draw(
    log_weights: np.ndarray, n_draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw maps of a group by many independent Markov chains, in proportion to their weights.

    A cluster chosen at random gives up its label and takes one of its possible labels, in
    proportion to their weights. If another cluster held that label, this one chooses next, and so
    on, until an unused label is taken; then the map is full again, and is drawn. Such a chain of
    evictions can be as long as needed, so every map can be reached from every other. It balances in
    detail: with the cluster a choosing among labels of total weight R_a, the state has R_a / m
    times the weight of the placed clusters, and every step and its reverse are equally frequent.

    Returns
    -------
    maps : ndarray of int, shape (at least n_draws, m)
        Numbers of labels within the group.
    chain : ndarray of int of the same length
        The chain that each map comes from.
    """
    m, q = log_weights.shape
    reach = np.argsort(-log_weights, axis=1, kind="stable")  # possible labels first
    reach = reach[:, : np.isfinite(log_weights).sum(axis=1).max()]
    weights = np.take_along_axis(log_weights, reach, axis=1)
    bounds = np.cumsum(np.exp(weights - weights[:, :1]), axis=1)
    bounds = (bounds / bounds[:, -1:])[:, :-1]

    every = np.arange(_CHAINS)
    held = np.empty((_CHAINS, m), dtype=np.int64)
    for chain in range(_CHAINS):  # starts apart from each other
        noise = rng.exponential(size=log_weights.shape)
        held[chain] = linear_sum_assignment(noise - log_weights)[1]
    starts = held.copy()
    owner = np.full((_CHAINS, q), -1)
    owner[every[:, None], held] = np.arange(m)
    chooser = np.full(_CHAINS, -1)
    warm_up = 40 * m
    maps, chains, n_found = [], [], 0
    for step in range(warm_up + _STEPS_TO_DRAW):
        full = np.flatnonzero(chooser < 0)
        if step >= warm_up and len(full):
            maps.append(held[full])
            chains.append(full)
            n_found += len(full)
            if n_found >= n_draws:
                break
        chooser[full] = rng.integers(m, size=len(full))
        owner[full, held[full, chooser[full]]] = -1
        choice = (rng.random(_CHAINS)[:, None] >= bounds[chooser]).sum(axis=1)
        label = reach[chooser, choice]
        held[every, chooser] = label
        evicted = owner[every, label]
        owner[every, label] = chooser
        chooser = evicted
    if not maps:  # no chain came back to a full map: graphs built for it can do that
        return starts, every
    return np.concatenate(maps), np.concatenate(chains)


# -------------------------------------------------------------------- asking


class _Answers:
    """The maps of a group, in parts: those of one part give the same answers so far."""

    def __init__(self, group: _Group, sizes: np.ndarray, rng: np.random.Generator) -> None:
        self.clusters = group.clusters
        self.sizes = sizes[group.clusters].astype(float)
        maps = None if group.counts is None else group.counts.listed(_MAPS_TO_LIST)
        self.half = None
        if maps is None:
            maps, chain = group.draws or _draw(group.log_weights, _DRAWS_TO_ASK, rng)
            thin = len(maps) // _DRAWS_TO_ASK or 1
            maps, self.half = maps[::thin], chain[::thin] % 2
        else:
            total = group.log_weights[np.arange(maps.shape[1]), maps].sum(axis=1)
            weights = np.exp(total - total.max())
            self.weights = weights / weights.sum()
        usable = np.isfinite(group.log_weights)
        self.width = usable.sum(axis=1)
        code = (np.cumsum(usable, axis=1) - 1)[np.arange(maps.shape[1]), maps]
        self.code = np.ascontiguousarray(code.T)
        self.prior = [
            row[kept] * _DRAWS_TO_DOUBT for row, kept in zip(group.marginals, usable, strict=True)
        ]
        self.part = np.zeros(len(maps), dtype=np.int64)
        self.right = group.right

    def _right(self, part: np.ndarray) -> np.ndarray:
        """Return how often each cluster's label would be right, knowing the part; (m,)."""
        n_parts = int(part.max()) + 1
        right = self.right.copy()
        for cluster, width in enumerate(self.width.tolist()):
            shape = n_parts, width
            cell = part * width + self.code[cluster]
            if self.half is None:
                table = np.bincount(cell, self.weights, n_parts * width).reshape(shape)
                right[cluster] = table.max(axis=1).sum()
            elif 2 * n_parts * width <= len(part):
                halves = np.bincount(cell + n_parts * width * self.half, None, 2 * n_parts * width)
                one, other = halves.reshape(2, *shape)
                found = 0
                for chosen, scored in ((one, other), (other, one)):
                    label = (chosen + self.prior[cluster]).argmax(axis=1)
                    found += scored[np.arange(n_parts), label].sum()
                right[cluster] = found / len(part)
        return right

    def best(self) -> tuple[float, int]:
        """Return the expected gain, in samples, of the best question, and its cluster."""
        doubt = self.sizes * (1 - self.right)
        weighed = np.argsort(-doubt, kind="stable")[:_CLUSTERS_TO_WEIGH]
        gains = [(self._gain(int(k)), -int(k)) for k in weighed if doubt[k] > 1e-9]
        gain, cluster = max(gains, default=(0.0, 0))
        return gain, -cluster

    def _gain(self, cluster: int) -> float:
        # Rounded, so that equal gains are equal and the first cluster is asked.
        return round(float(self.sizes @ (self._right_after(cluster) - self.right)), 9)

    def _right_after(self, cluster: int) -> np.ndarray:
        """Return how often each cluster's label is right once that of one cluster is known."""
        right = self._right(self._parts_after(cluster))
        others = np.arange(len(right)) != cluster
        if self.sizes[others] @ (right - self.right)[others] < 0:
            right = self.right.copy()  # an answer never misleads: this is chance of the draws
        right[cluster] = 1.0
        return right

    def _parts_after(self, cluster: int) -> np.ndarray:
        cell = self.part * self.width[cluster] + self.code[cluster]
        return np.unique(cell, return_inverse=True)[1]

    def ask(self, cluster: int) -> None:
        """Take the answers for a cluster as known."""
        self.right = self._right_after(cluster)
        self.part = self._parts_after(cluster)


def _ask(
    maps: _Maps, groups: list[_Group], reached: float, n_ask: int, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Yield the clusters to ask about, the most useful first, and the ceilings then expected."""
    if not n_ask:
        return
    answers = [_Answers(group, maps.sizes, rng) for group in groups]
    best = [one.best() for one in answers]
    for _ in range(n_ask):
        where = max(range(len(best)), key=lambda i: best[i][0], default=None)
        if where is None or best[where][0] < _WORTH_ASKING:
            return
        gain, cluster = best[where]
        reached = min(1.0, reached + gain / int(maps.sizes.sum()))
        yield int(answers[where].clusters[cluster]), reached
        answers[where].ask(cluster)
        best[where] = answers[where].best()


def _question(
    cluster: int,
    after: float,
    sets: Candidates,
    inverse: np.ndarray,
    contradicting: np.ndarray,
    marginals: np.ndarray,
) -> Question:
    members = np.flatnonzero(inverse == cluster)
    agreeing = members[~contradicting[members]]
    members = agreeing if len(agreeing) else members
    sample = int(members[sets.sizes[members].argmin()])
    shares = np.where(sets.mask[sample], marginals[cluster], 0.0)
    likeliest = np.argsort(-shares.round(9), kind="stable")[: np.count_nonzero(shares)]
    return Question(sample, sets.classes[likeliest].tolist(), after)


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _listed(items: list[Any], between: str = ", ") -> str:
    shown = [str(item) for item in items[:_SHOWN]]
    more = len(items) - len(shown)
    return between.join(shown) + (f" and {more} more" if more else "")
