"""All matchings of a group, counted exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STEPS_TO_COUNT = 5_000_000  # 18 clusters that may have any of 18 labels take 4.7 million


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
