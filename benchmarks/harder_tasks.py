"""Tasks harder than the paper's: classes of unequal sizes, distractors that follow habits.

Shapes: n support samples, l classes, as in :mod:`fspll.tasks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fspll._common.errors import InputError
from fspll.candidates.corruption import corrupt_mask
from fspll.tasks import Tasks, TaskSettings, TaskSource

_STREAM = 0x5EED  # apart from the streams of TaskSource


@dataclass(frozen=True)
class Corruption:
    """How tasks differ from classes of one size and distractors drawn uniformly.

    Attributes
    ----------
    sizes : (int, int), optional
        Fewest and most support samples of a class, drawn uniformly; ``n_shot`` by default.
    habit : float
        Probability with which one of a sample's distractors is the *habitual* one of its class,
        the next label, instead of a uniform draw.
    habitual_classes : int, optional
        How many classes have a habit; None for all of them.
    """

    sizes: tuple[int, int] | None = None
    habit: float = 0.0
    habitual_classes: int | None = None

    def tasks(self, source: TaskSource, n_tasks: int) -> Iterator[Tasks]:
        """Yield tasks one by one: classes of different sizes do not fit into one batch."""
        shape = source.settings
        if self.sizes is not None and shape.n_shot < self.sizes[1]:
            raise InputError(
                f"n_shot = {shape.n_shot} is less than the largest class, {self.sizes[1]}"
            )
        for index in range(n_tasks):
            rng = np.random.default_rng([source.seed, index, _STREAM])
            yield self._change(source.task(index), shape, rng)

    def _change(self, task: Tasks, shape: TaskSettings, rng: np.random.Generator) -> Tasks:
        labels, mask = task.support_labels, task.candidates
        if self.habit and shape.r:
            mask = self._habitual_mask(labels, shape, rng)
        rows = np.arange(len(labels))
        if self.sizes is not None:
            low, high = self.sizes
            kept = rng.integers(low, high + 1, size=shape.n_way)
            rows = rows[rows % shape.n_shot < kept[labels]]
        return replace(
            task, support=task.support[rows], support_labels=labels[rows], candidates=mask[rows]
        )

    def _habitual_mask(
        self, labels: np.ndarray, shape: TaskSettings, rng: np.random.Generator
    ) -> np.ndarray:
        mask = corrupt_mask(labels, shape.n_way, shape.p, shape.r - 1, rng)
        limit = shape.n_way if self.habitual_classes is None else self.habitual_classes
        for sample, label in enumerate(labels):
            habitual = (label + 1) % shape.n_way
            free = np.flatnonzero(~mask[sample])
            follows = label < limit and rng.random() < self.habit and not mask[sample, habitual]
            mask[sample, habitual if follows else rng.choice(free)] = True
        return mask
