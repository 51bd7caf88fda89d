"""What a grid measured: accuracies of every row under every condition, task by task."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fspll.experiments.reproduce import published
from fspll.experiments.reproduce.jobs import ScoreJob
from fspll.experiments.reproduce.published import (
    BEST_MANIFOLD_WEIGHT,
    Printed,
    best_n_neighbors,
)
from fspll.experiments.statistics import Summary, summarize

Row = tuple[str, str]
"""A row's name and what its method works on, as in :class:`Cell`."""

PARTIAL = ("FsPLL", "FsPLL-nM", "PN", "MAML")
MANY_SHOT = ("PL-AGGD", "PALOC", "PL-ECOC", "PL-LEAF")
PRECISE = ("FsPLL+", "PN+", "MAML+")
PRECISE_TWICE = ("FsPLL++", "PN++")
DEFAULT, DEFAULT_PLUS, CEILING = "fspll default", "fspll default+", "ceiling"
MAML_TOTAL = "MAML-total"
PHOTO_FEATURES = ("photo encoder", "adapted photo encoder")

_KNOWN = (*PARTIAL, *MANY_SHOT, *PRECISE, *PRECISE_TWICE)
_FEATURES = ("", "trained", "untrained", *PHOTO_FEATURES)

# The groups that the paper compares within, by what the methods may know.
_GROUPS = ((*PARTIAL, *MANY_SHOT), PRECISE, PRECISE_TWICE)


@dataclass(frozen=True, order=True)
class Condition:
    """N2-way K2-shot tasks with r extra labels per sample; k and lambda where they are varied.

    >>> print(Condition(r=2, n_way=10, n_shot=5))
    10-way 5-shot, r = 2
    """

    r: int
    n_way: int
    n_shot: int
    n_neighbors: int | None = None
    manifold_weight: float | None = None

    def __str__(self) -> str:
        words = f"{self.n_way}-way {self.n_shot}-shot, r = {self.r}"
        if self.n_neighbors is not None:
            words += f", k = {self.n_neighbors}"
        if self.manifold_weight is not None:
            words += f", λ = {self.manifold_weight:g}"
        return words

    @property
    def is_varied(self) -> bool:
        """Whether k or lambda is another than the method's own."""
        return self.n_neighbors is not None or self.manifold_weight is not None


def _nothing() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Cell:
    """One row of a table under one condition, before and after it was measured.

    Attributes
    ----------
    row : str
        A name as readers know it: "FsPLL", "PN+", "PL-AGGD", "fspll default", "ceiling".
    features : str
        What the row's method works on: "trained" for features of a network meta-trained on the
        same candidate sets as FsPLL's, "untrained" for those of a random network, one of
        :data:`PHOTO_FEATURES` for those of a frozen encoder; "" for rows that have a network of
        their own.
    condition : Condition
    query, support : arrays of shape (n_tasks,)
        Share of right labels among the queries and among the support samples of each task; empty
        before it was measured. Task i is the same for every row; a slow row may have fewer tasks.
    seconds : float
        Processor time that the tasks took.
    job : ScoreJob, optional
        What measures it.
    """

    row: str
    features: str
    condition: Condition
    query: np.ndarray = field(default_factory=_nothing)
    support: np.ndarray = field(default_factory=_nothing)
    seconds: float = 0.0
    job: ScoreJob | None = None

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

    @cached_property
    def measured(self) -> dict[tuple[Row, Condition], Cell]:
        """The cells that hold tasks, by row and condition."""
        return {((c.row, c.features), c.condition): c for c in self.cells if len(c.query)}

    def conditions(self) -> list[Condition]:
        """Return the conditions that occur, sorted by r, N2 and K2."""
        return sorted(
            {cell.condition for cell in self.cells},
            key=lambda c: (c.r, c.n_way, c.n_shot, c.n_neighbors or 0, c.manifold_weight or 0.0),
        )

    def rows(self) -> list[Row]:
        """Return every row, in the order of the cells."""
        return list(dict.fromkeys((cell.row, cell.features) for cell in self.cells))

    @property
    def is_omniglot(self) -> bool:
        """Whether the tasks were made of Omniglot itself: "Omniglot", or that with words after it.

        >>> Outcome("omniglot", "Omniglot (1,692 classes)", "cpu", ()).is_omniglot
        True
        >>> Outcome("omniglot", "drawn signs in Omniglot's layout", "cpu", ()).is_omniglot
        False
        """
        return re.match(r"Omniglot($|,| \()", self.dataset) is not None

    def printed(self, row: Row, condition: Condition) -> Printed | None:
        """Return the paper's figure for a row under a condition, None where it has none.

        Only Omniglot is in print: a stand-in's figures never get the paper's beside them.
        """
        if condition.is_varied or not self.is_omniglot or row[1] in PHOTO_FEATURES:
            return None
        return published.find(row[0], condition.n_way, condition.n_shot, condition.r)

    def swept(self, name: str) -> dict[tuple[Row, int, int, int], dict[float, Summary]]:
        """Return the curves over k ("n_neighbors") or lambda ("manifold_weight").

        The one not varied is at the paper's choice, K2 - 1 or 0.5, whether the condition says so or
        not.

        Returns
        -------
        dict
            By row, r, N2 and K2: the summary at each value, in order.
        """
        curves: dict[tuple[Row, int, int, int], dict[float, Summary]] = {}
        for (row, condition), cell in self.measured.items():
            if name == "n_neighbors":
                value: float | None = condition.n_neighbors
                rest_as_usual = condition.manifold_weight in (None, BEST_MANIFOLD_WEIGHT)
            else:
                value = condition.manifold_weight
                usual = best_n_neighbors(condition.n_shot)
                rest_as_usual = condition.n_neighbors in (None, usual)
            if value is not None and rest_as_usual:
                key = (row, condition.r, condition.n_way, condition.n_shot)
                curves.setdefault(key, {})[value] = cell.summary
        order = sorted(curves, key=lambda key: (key[1:], key[0]))
        return {key: dict(sorted(curves[key].items())) for key in order}


# -------------------------------------------------------------------- rows as readers meet them


def label(row: Row) -> str:
    """Return a row's name with its features.

    >>> label(("PL-AGGD", "untrained")), label(("PN", ""))
    ('PL-AGGD (untrained)', 'PN')
    """
    name, features = row
    return f"{name} ({features})" if features else name


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in the paper's order, then those it has not, our default and the ceiling last.

    Rows on the features of a frozen encoder come after all others.
    """
    last = [*_KNOWN, None, MAML_TOTAL, DEFAULT, DEFAULT_PLUS, CEILING]

    def position(row: Row) -> tuple[int, int, int]:
        name, features = row
        known = name if name in last else None
        kind = _FEATURES.index(features) if features in _FEATURES else 9
        frozen = kind if features in PHOTO_FEATURES else 0
        return frozen, last.index(known), kind

    return sorted(rows, key=position)


def in_groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Return rows in the groups within which the paper compares, the rest as a group after them.

    Rows on the features of a frozen encoder are a group for each kind.
    """
    ordered = in_order(rows)
    own = [row for row in ordered if row[1] not in PHOTO_FEATURES]
    groups = [[row for row in own if row[0] in group] for group in _GROUPS]
    groups.append([row for row in own if row[0] not in _KNOWN])
    groups += [[row for row in ordered if row[1] == kind] for kind in PHOTO_FEATURES]
    return [group for group in groups if group]


def is_of_the_paper(row: Row) -> bool:
    """Whether the paper has this row."""
    return row[0] in _KNOWN and row[1] not in PHOTO_FEATURES
