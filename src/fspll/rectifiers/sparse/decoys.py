"""Decoys: labels known to be wrong, which tell how well wrong labels are recognized.

Some samples get a few more candidates, drawn evenly from the classes that they do not have. By the
model of candidate sets a decoy is what any distractor is: drawn evenly from the other classes. So
whatever confidence goes to decoys goes to distractors at the same rate, and the weights of several
sources of evidence can be chosen without a single true label: those that leave the least to decoys.

Shapes: n samples, l classes, z entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from fspll.rectifiers.sparse.entries import Entries

DECOYS = 2  # of a sample that has any
SHARE, FEWEST, MOST = 0.1, 500, 20_000  # of the samples, and how many at least and at most
_PULL = 0.1  # towards the usual weights, where decoys tell little
_LEAST = 1e-3  # of a weight, in relation to the usual one


def add_decoys(entries: Entries, rng: np.random.Generator) -> tuple[Entries, np.ndarray]:
    """Return entries with decoys among them, and which of them are real, a bool array (z,)."""
    n = entries.n_samples
    count = min(n, MOST, max(FEWEST, int(SHARE * n)))
    samples = np.repeat(rng.choice(n, count, replace=False), DECOYS)
    # Who has a label already gets no decoy of it: the others' decoys are even all the same.
    labels = rng.choice(np.flatnonzero(entries.class_sizes), len(samples))
    drawn = sparse.csr_array(
        (np.ones(len(samples), dtype=np.int8), (samples, labels)), shape=(n, entries.n_classes)
    )
    drawn.data[:] = 1
    both = sparse.csr_array(entries.matrix(np.full(len(entries), 2, dtype=np.int8)) + drawn)
    both.sort_indices()
    return Entries.of(both.astype(bool)), both.data >= 2


class DecoyTest:
    """Chooses the weights of sources of evidence by what they leave to decoys."""

    def __init__(self, entries: Entries, real: np.ndarray) -> None:
        tested = np.zeros(entries.n_samples, dtype=bool)
        tested[entries.row[~real]] = True
        self.entry = np.flatnonzero(tested[entries.row])
        self.real = real[self.entry]
        row = entries.row[self.entry]
        first = np.ones(len(row), dtype=bool)
        first[1:] = row[1:] != row[:-1]
        self.start, self.sample = np.flatnonzero(first), np.cumsum(first) - 1

    def weights(
        self, sources: Sequence[np.ndarray], usual: Sequence[float], most: Sequence[float]
    ) -> np.ndarray:
        """Return the weights that leave the least to decoys, one per source.

        They minimize -sum_i log(1 - confidence of i in its decoys), the confidence being the
        softmax of the weighted sum of the sources over the candidates, decoys included.

        Parameters
        ----------
        sources : arrays of shape (z,)
        usual : positive numbers
            What to take where there are no decoys, or decoys that no weights tempt.
        most : positive numbers
            Largest weights allowed: 1 for what is a log-likelihood or log-probability already.
        """
        base = np.log(np.asarray(usual, dtype=float))
        if len(self.entry) == 0:
            return np.exp(base)
        values = np.stack([source[self.entry] for source in sources]).astype(float)
        limits = list(zip(base + np.log(_LEAST), np.log(most), strict=True))
        found = minimize(
            self._loss, base, args=(values, base), jac=True, method="L-BFGS-B", bounds=limits
        )
        return np.exp(found.x)

    def _loss(
        self, log_weight: np.ndarray, values: np.ndarray, base: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        weight = np.exp(log_weight)
        score = weight @ values
        score -= np.maximum.reduceat(score, self.start)[self.sample]
        share = np.exp(score)
        among_real = np.where(self.real, share, 0)
        total = np.add.reduceat(share, self.start)
        kept = np.maximum(np.add.reduceat(among_real, self.start), np.finfo(float).tiny)
        slope = share / total[self.sample] - among_real / kept[self.sample]
        pull = log_weight - base
        loss = np.sum(np.log(total) - np.log(kept)) + _PULL * pull @ pull
        return float(loss), (values @ slope) * weight + 2 * _PULL * pull
