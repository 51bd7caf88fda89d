"""Matchings of a group drawn at random, where there are too many to count."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

CHAINS = 256
STEPS_TO_DRAW = 60_000  # of every chain; reached only when returns to a full matching are rare


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
