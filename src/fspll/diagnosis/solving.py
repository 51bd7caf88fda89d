"""How often each cluster has each label: counted where possible, else drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fspll.diagnosis.counting import Counts, count
from fspll.diagnosis.drawing import CHAINS, draw
from fspll.diagnosis.possible import Matchings

DRAWS = 20_000


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
    deviation = np.bincount(chain, score - score.mean(), CHAINS)
    error = float(np.sqrt(CHAINS / (CHAINS - 1) * (deviation**2).sum()) / len(drawn))
    return Group(
        clusters=clusters,
        labels=labels,
        log_weights=log_weights,
        marginals=counted.sum(axis=0) / len(drawn),
        right=right.mean(axis=0),
        draws=(drawn, chain),
        error=error,
    )
