"""What a grid says: who is above whom, how near the paper is, what is above the ceiling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fspll.experiments.reproduce.grid_rows import (
    Row,
    half_width,
    in_order,
    label,
    measured,
    p_value,
    printed,
)
from fspll.experiments.reproduce.outcomes import Outcome, Place, compared
from fspll.experiments.reproduce.published import METHODS, N_ROUNDS, P_VALUES_BELOW, Printed
from fspll.experiments.reproduce.rows import CEILING, DEFAULT
from fspll.experiments.statistics import Summary

TESTED = ("FsPLL", "FsPLL+", DEFAULT)
"""The rows that are tested against every other: the paper's two, and our own."""


class Verdict(NamedTuple):
    """A row against another in one setting: mean difference and signed-rank p-value."""

    row: str
    other: Row
    place: Place
    difference: float
    p: float

    @property
    def better(self) -> str:
        """The name of the better row, "" when their means are equal."""
        if abs(self.difference) < 1e-9:
            return ""
        return self.row if self.difference > 0 else label(self.other)


class Count(NamedTuple):
    """A row against another over all settings.

    ``surely_above`` and ``surely_below`` count settings with p below the paper's 0.001;
    ``largest_p`` is over the settings where the row is above, None when there are none.
    """

    row: str
    other: Row
    settings: int
    above: int
    below: int
    surely_above: int
    surely_below: int
    largest_p: float | None

    def __str__(self) -> str:
        words = f"{self.row} above {label(self.other)} in {self.above} of {self.settings} settings"
        return (
            words if self.largest_p is None else f"{words}, largest p = {p_value(self.largest_p)}"
        )


@lru_cache(maxsize=32)
def verdicts(outcome: Outcome, row: str) -> tuple[Verdict, ...]:
    """Test a row against every other in every setting that has both, in the order of rows."""
    others = [other for other in in_order(outcome.rows()) if other[0] not in (row, CEILING)]
    cells = measured(outcome)
    whole = Outcome(
        outcome.experiment, outcome.dataset, outcome.profile, tuple(cells.values()), outcome.about
    )
    values = compared(whole, row, others)
    found = []
    for other in others:
        for place in whole.places():
            p = values.get((*other, place))
            if p is not None:
                mine, its = cells[(row, ""), place].query, cells[other, place].query
                shared = min(len(mine), len(its))
                difference = float(np.mean(mine[:shared]) - np.mean(its[:shared]))
                found.append(Verdict(row, other, place, difference, p))
    return tuple(found)


def counts(found: Iterable[Verdict]) -> list[Count]:
    """Count verdicts over settings, a count for every pair of rows."""
    pairs: dict[tuple[str, Row], list[Verdict]] = {}
    for verdict in found:
        pairs.setdefault((verdict.row, verdict.other), []).append(verdict)
    return [_count(row, other, same) for (row, other), same in pairs.items()]


def _count(row: str, other: Row, same: Sequence[Verdict]) -> Count:
    above = [v for v in same if v.better == row]
    below = [v for v in same if v.better not in (row, "")]
    return Count(
        row,
        other,
        len(same),
        len(above),
        len(below),
        sum(v.p < P_VALUES_BELOW for v in above),
        sum(v.p < P_VALUES_BELOW for v in below),
        max((v.p for v in above), default=None),
    )


def best_settings(outcome: Outcome, row: str) -> tuple[int, int]:
    """Return in how many settings a row is above all others, and how many settings have it.

    The ceiling is no competitor. Equal to the best is not above it.
    """
    cells = measured(outcome)
    won = total = 0
    for place in outcome.places():
        mine = cells.get(((row, ""), place))
        others = [
            float(np.mean(cell.query))
            for ((name, _), where), cell in cells.items()
            if where == place and name not in (row, CEILING)
        ]
        if mine is not None and others:
            total += 1
            won += float(np.mean(mine.query)) > max(others) + 1e-9
    return won, total


class Difference(NamedTuple):
    """Ours minus the paper's over the settings that have both: mean, smallest, largest."""

    row: Row
    settings: int
    mean: float
    smallest: float
    largest: float


def differences(outcome: Outcome) -> list[Difference]:
    """Return how far each row is from the paper's, in the order of rows."""
    gaps: dict[Row, list[float]] = {}
    for (row, place), cell in measured(outcome).items():
        paper = printed(outcome, row, place)
        if paper is not None:
            gaps.setdefault(row, []).append(float(np.mean(cell.query)) - paper.mean)
    return [
        Difference(row, len(gaps[row]), float(np.mean(gaps[row])), min(gaps[row]), max(gaps[row]))
        for row in in_order(gaps)
    ]


def same_order(outcome: Outcome, features: str = "trained") -> tuple[int, int]:
    """Return how many pairs of rows are in the paper's order, and how many pairs there are.

    Pairs are of one setting; pairs that tie in print or in ours are left out. Methods that work on
    given features count with those of one kind.
    """
    cells = measured(outcome)
    same = total = 0
    for place in outcome.places():
        both = []
        for (row, where), cell in cells.items():
            paper = printed(outcome, row, place)
            if where == place and paper is not None and row[1] in ("", features):
                both.append((float(np.mean(cell.query)), paper.mean))
        for number, (ours, theirs) in enumerate(both):
            for others_ours, others_theirs in both[:number]:
                agreement = (ours - others_ours) * (theirs - others_theirs)
                same += agreement > 0
                total += agreement != 0
    return same, total


class Exceedance(NamedTuple):
    """A printed figure above the ceiling, and whether by more than the two means' errors."""

    row: str
    place: Place
    paper: Printed
    ceiling: Summary
    beyond_chance: bool


def above_ceiling(outcome: Outcome) -> list[Exceedance]:
    """Return the paper's figures that stand above the ceiling of our tasks of the same setting.

    Beyond chance is a distance larger than the 95% interval of the difference of the two means,
    the paper's being over 100 tasks with the standard deviation that it prints. All of the paper's
    rows are looked at, measured by us or not.
    """
    found = []
    cells = measured(outcome)
    names = in_order((name, "") for name in METHODS)
    for place in outcome.places():
        cell = cells.get(((CEILING, ""), place))
        for row in names if cell is not None else []:
            paper = printed(outcome, row, place)
            assert cell is not None
            top = cell.summary
            # Half a unit of the last printed place is no excess.
            if paper is not None and paper.mean - 0.0005 > top.mean:
                error = math.hypot(half_width(top), 1.96 * paper.std / math.sqrt(N_ROUNDS))
                beyond = paper.mean - top.mean > error
                found.append(Exceedance(row[0], place, paper, top, beyond))
    return found
