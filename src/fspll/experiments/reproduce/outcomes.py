"""What a grid measured: accuracies of every row in every setting, task by task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fspll.experiments.statistics import Summary, signed_rank_p, summarize


@dataclass(frozen=True, order=True)
class Place:
    """Where in a grid: N2-way K2-shot with r extra labels; k and lambda where they are varied."""

    r: int
    n_way: int
    n_shot: int
    n_neighbors: int | None = None
    manifold_weight: float | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """One row of a table in one setting.

    Attributes
    ----------
    row : str
        A name as readers know it: "FsPLL", "PN+", "PL-AGGD", "fspll default", "ceiling".
    features : str
        What the row's method works on: "trained" for features of a network meta-trained on the
        same candidate sets as FsPLL's, "untrained" for those of a random network; "" for rows that
        have a network of their own.
    place : Place
    query, support : arrays of shape (n_tasks,)
        Share of right labels among the queries and among the support samples of each task. Task i
        is the same for every row of a place; a slow row may have fewer.
    seconds : float
        Processor time that the tasks took.
    """

    row: str
    features: str
    place: Place
    query: np.ndarray
    support: np.ndarray
    seconds: float = 0.0

    @property
    def summary(self) -> Summary:
        """Mean over tasks, standard deviation and 95% interval of the query accuracy."""
        return summarize(self.query)


@dataclass(frozen=True, eq=False)
class Outcome:
    """All cells of one experiment, with what made them.

    Attributes
    ----------
    experiment : str
        "omniglot", "mini-imagenet", "noise" or "parameters".
    dataset : str
        What the tasks were made of, in words: "Omniglot", "photos in miniImageNet's layout (...)".
    profile : str
    cells : tuple of Cell
    about : dict
        Settings, versions, training plans and seconds; anything JSON can hold.
    missing : int
        Cells that were asked for and are not there yet.
    """

    experiment: str
    dataset: str
    profile: str
    cells: tuple[Cell, ...]
    about: dict[str, Any] = field(default_factory=dict)
    missing: int = 0

    def find(self, row: str, place: Place, features: str = "") -> Cell | None:
        """Return one cell, or None where it was not measured."""
        return self._cell_by_key.get((row, features, place))

    @cached_property
    def _cell_by_key(self) -> dict[tuple[str, str, Place], Cell]:
        # Backwards, so that of two cells of one key the first counts.
        return {(c.row, c.features, c.place): c for c in reversed(self.cells)}

    def places(self) -> list[Place]:
        """Return the settings that occur, sorted by r, N2 and K2."""
        return sorted(
            {cell.place for cell in self.cells},
            key=lambda p: (p.r, p.n_way, p.n_shot, p.n_neighbors or 0, p.manifold_weight or 0.0),
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return (row, features) of everything measured, in the order of the cells."""
        return list(dict.fromkeys((cell.row, cell.features) for cell in self.cells))


def compared(outcome: Outcome, row: str, others: Iterable[tuple[str, str]]) -> dict[Any, float]:
    """Return signed-rank p-values of a row against others, by (other row, its features, place).

    Where one of two rows solved fewer tasks, the test is made on those that both solved.
    """
    values = {}
    for place in outcome.places():
        mine = outcome.find(row, place)
        for name, features in others:
            other = outcome.find(name, place, features)
            if mine is None or other is None or (name, features) == (row, ""):
                continue
            shared = min(len(mine.query), len(other.query))
            values[name, features, place] = signed_rank_p(mine.query[:shared], other.query[:shared])
    return values
