"""Which cluster's label is worth asking for, and what the answer is worth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fspll.diagnosis.solving import Group, Solution, draw

MATCHINGS_TO_LIST = 20_000
DRAWS_TO_ASK = 8_000
DRAWS_TO_DOUBT = 10  # a cluster's label is chosen as if so many more draws were like all of them
CLUSTERS_TO_EVALUATE = 16
WORTH_ASKING = 0.05  # samples more to expect right


class Answers:
    """The matchings of a group, in parts: those of one part give the same answers so far."""

    def __init__(self, group: Group, sizes: np.ndarray, rng: np.random.Generator) -> None:
        self.clusters = group.clusters
        self.sizes = sizes[group.clusters].astype(float)
        matchings = None if group.counts is None else group.counts.listed(MATCHINGS_TO_LIST)
        self.half = None
        if matchings is None:
            matchings, chain = group.draws or draw(group.log_weights, DRAWS_TO_ASK, rng)
            thin = len(matchings) // DRAWS_TO_ASK or 1
            matchings, self.half = matchings[::thin], chain[::thin] % 2
        else:
            total = group.log_weights[np.arange(matchings.shape[1]), matchings].sum(axis=1)
            weights = np.exp(total - total.max())
            self.weights = weights / weights.sum()
        usable = np.isfinite(group.log_weights)
        self.width = usable.sum(axis=1)
        code = (np.cumsum(usable, axis=1) - 1)[np.arange(matchings.shape[1]), matchings]
        self.code = np.ascontiguousarray(code.T)
        self.prior = [
            row[kept] * DRAWS_TO_DOUBT for row, kept in zip(group.marginals, usable, strict=True)
        ]
        self.part = np.zeros(len(matchings), dtype=np.int64)
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
        evaluated = np.argsort(-doubt, kind="stable")[:CLUSTERS_TO_EVALUATE]
        gains = [(self._gain(int(k)), -int(k)) for k in evaluated if doubt[k] > 1e-9]
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


def ask(solution: Solution, n_ask: int, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Yield the clusters to ask about, the most useful first, and the ceilings then expected."""
    if not n_ask:
        return
    sizes = solution.matchings.sizes
    reached = solution.ceiling()
    answers = [Answers(group, sizes, rng) for group in solution.groups]
    best = [one.best() for one in answers]
    for _ in range(n_ask):
        where = max(range(len(best)), key=lambda i: best[i][0], default=None)
        if where is None or best[where][0] < WORTH_ASKING:
            return
        gain, cluster = best[where]
        reached = min(1.0, reached + gain / int(sizes.sum()))
        yield int(answers[where].clusters[cluster]), reached
        answers[where].ask(cluster)
        best[where] = answers[where].best()
