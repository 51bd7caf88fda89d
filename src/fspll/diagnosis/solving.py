"""How often each cluster has each label: every matching counted where possible, else drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from fspll.diagnosis.matchings import Matchings

STEPS_TO_COUNT = 5_000_000  # 18 clusters that may have any of 18 labels take 4.7 million
DRAWS = 20_000
CHAINS = 256
STEPS_TO_DRAW = 60_000  # of every chain; reached only when returns to a full matching are rare


@dataclass(frozen=True, eq=False)
class Counts:
    """The states of counting: a path through ``steps`` is a matching, every matching is one path.

    Step i places the cluster ``order[i]``: arrays of the state before, the state after and the
    label taken, sorted by the state before. Steps that lead nowhere are left out.
    """

    order: list[int]
    steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    marginals: np.ndarray

    def listed(self, most: int) -> np.ndarray | None:
        """Return every matching, of shape (number, m), or None if there are more than ``most``."""
        matchings = np.zeros((1, len(self.order)), dtype=np.int64)
        state = np.zeros(1, dtype=np.int64)
        for cluster, (before, after, label) in zip(self.order, self.steps, strict=True):
            first, end = (np.searchsorted(before, state, side) for side in ("left", "right"))
            number = end - first
            if number.sum() > most:
                return None
            grown = np.repeat(np.arange(len(state)), number)
            step = np.arange(len(grown)) + np.repeat(first - np.cumsum(number) + number, number)
            matchings = matchings[grown]
            matchings[:, cluster] = label[step]
            state = after[step]
        return matchings


@dataclass(frozen=True, eq=False)
class Group:
    """A solved group: ``clusters`` (m,), ``labels`` (q,), ``log_weights``, ``marginals`` (m, q).

    ``right`` of shape (m,) is how often the likeliest label of a cluster is right.
    After exact counting there are ``counts``; else ``draws`` holds sampled matchings and their
    chains, and ``error`` is the standard error of the expected number of right samples.
    """

    clusters: np.ndarray
    labels: np.ndarray
    log_weights: np.ndarray
    marginals: np.ndarray
    right: np.ndarray
    counts: Counts | None = None
    draws: tuple[np.ndarray, np.ndarray] | None = None
    error: float | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """The solved groups; every cluster outside of them has the label of the best matching."""

    matchings: Matchings
    groups: list[Group]

    def marginals(self) -> np.ndarray:
        """Return the share of the matchings that give each cluster each label, of shape (K, l)."""
        best = self.matchings.best
        shares = np.zeros(self.matchings.cost.shape)
        shares[np.arange(len(best)), best] = 1.0
        for group in self.groups:
            shares[group.clusters] = 0.0
            shares[np.ix_(group.clusters, group.labels)] = group.marginals
        return shares

    def ceiling(self) -> float:
        """Return the expected share of right samples."""
        sizes = self.matchings.sizes
        right = np.ones(len(sizes))
        for group in self.groups:
            right[group.clusters] = group.right
        return min(1.0, float(sizes @ right / sizes.sum()))

    def error(self) -> float | None:
        """Return the standard error of the ceiling, None if all groups were counted exactly."""
        errors = [group.error for group in self.groups if group.error is not None]
        if not errors:
            return None
        return float(np.sqrt(sum(error**2 for error in errors)) / self.matchings.sizes.sum())


def solve(matchings: Matchings, rng: np.random.Generator) -> Solution:
    """Count or draw the matchings of every group."""
    return Solution(matchings, [_solve_group(matchings, *part, rng) for part in matchings.parts()])


def _solve_group(
    matchings: Matchings, clusters: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> Group:
    log_weights = np.where(matchings.kept, -matchings.cost, -np.inf)[np.ix_(clusters, labels)]
    counts = count(log_weights)
    if counts is not None:
        right = counts.marginals.max(axis=1)
        return Group(clusters, labels, log_weights, counts.marginals, right, counts)
    drawn, chain = draw(log_weights, DRAWS, rng)
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
    score = right @ matchings.sizes[clusters].astype(float)
    by_chain = np.bincount(chain, score - score.mean(), CHAINS)
    error = float(np.sqrt(CHAINS / (CHAINS - 1) * (by_chain**2).sum()) / len(drawn))
    return Group(
        clusters=clusters,
        labels=labels,
        log_weights=log_weights,
        marginals=counted.sum(axis=0) / len(drawn),
        right=right.mean(axis=0),
        draws=(drawn, chain),
        error=error,
    )


# -------------------------------------------------------------------- counting


def count(log_weights: np.ndarray) -> Counts | None:
    """Sum over all matchings of a group by dynamic programming; None if it takes too many steps.

    Clusters are placed one after another. What matters of those already placed is only which labels
    they took, and of these only the labels that a later cluster could still take: that set, as
    bits, is the state. Sums are kept as logarithms, so no number of matchings is too large.
    """
    usable = np.isfinite(log_weights)
    order = _placing_order(usable)
    place = np.argsort(order)
    last = np.where(usable, place[:, None], -1).max(axis=0)
    bit: dict[int, int] = {}
    spare = list(range(62, -1, -1))
    states = np.zeros(1, dtype=np.int64)
    left = STEPS_TO_COUNT
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
) -> Counts:
    """Add up the weights of all matchings, forwards and backwards, and through every entry."""
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
    return Counts(order, alive[::-1], marginals / marginals.sum(axis=1, keepdims=True))


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


# -------------------------------------------------------------------- drawing


def draw(
    log_weights: np.ndarray, n_draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw matchings of a group by many independent Markov chains, in proportion to their weights.

    A cluster chosen at random gives up its label and takes one of its possible labels, in
    proportion to their weights. If another cluster held that label, this one chooses next, and so
    on, until an unused label is taken; then the matching is full again, and is drawn. Such a chain
    of evictions can be as long as needed, so every matching can be reached from every other. It
    balances in detail: with the cluster a choosing among labels of total weight R_a, the state has
    R_a / m times the weight of the placed clusters, and every step and its reverse are equally
    frequent.

    In sets built for it, full matchings are so rare among the states that most chains never come
    back to one. Then the matchings that the chains started from are returned, one of each: those of
    least cost plus noise, whose shares are near the right ones, but not the same.

    Returns
    -------
    matchings : ndarray of int, shape (number, m)
        Numbers of labels within the group; n_draws or more, fewer when returns are rare.
    chain : ndarray of int of the same length
        The chain that each matching comes from.
    """
    m, q = log_weights.shape
    reach = np.argsort(-log_weights, axis=1, kind="stable")  # possible labels first
    reach = reach[:, : np.isfinite(log_weights).sum(axis=1).max()]
    weights = np.take_along_axis(log_weights, reach, axis=1)
    bounds = np.cumsum(np.exp(weights - weights[:, :1]), axis=1)
    bounds = (bounds / bounds[:, -1:])[:, :-1]

    every = np.arange(CHAINS)
    held = np.empty((CHAINS, m), dtype=np.int64)
    for chain in range(CHAINS):  # starts apart from each other
        noise = rng.exponential(size=log_weights.shape)
        held[chain] = linear_sum_assignment(noise - log_weights)[1]
    starts = held.copy()
    owner = np.full((CHAINS, q), -1)
    owner[every[:, None], held] = np.arange(m)
    chooser = np.full(CHAINS, -1)
    warm_up = 40 * m
    matchings, chains, n_found = [], [], 0
    returned = np.zeros(CHAINS, dtype=bool)
    for step in range(warm_up + STEPS_TO_DRAW):
        full = np.flatnonzero(chooser < 0)
        if step >= warm_up and len(full):
            matchings.append(held[full])
            chains.append(full)
            returned[full] = True
            n_found += len(full)
            if n_found >= n_draws:
                break
        chooser[full] = rng.integers(m, size=len(full))
        owner[full, held[full, chooser[full]]] = -1
        choice = (rng.random(CHAINS)[:, None] >= bounds[chooser]).sum(axis=1)
        label = reach[chooser, choice]
        held[every, chooser] = label
        evicted = owner[every, label]
        owner[every, label] = chooser
        chooser = evicted
    if returned.mean() < 0.5:
        return starts, every
    return np.concatenate(matchings), np.concatenate(chains)
