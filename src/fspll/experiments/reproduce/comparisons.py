"""What a grid says: which row is above which, how near the paper is, what is above the ceiling.

First the comparisons themselves, then how they stand in tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fspll.experiments.reproduce.published import METHODS, N_ROUNDS, P_VALUES_BELOW, Printed
from fspll.experiments.reproduce.results import (
    CEILING,
    DEFAULT,
    PHOTO_FEATURES,
    Condition,
    Outcome,
    Row,
    in_order,
    label,
)
from fspll.experiments.reproduce.tables import (
    NOTHING,
    half_width,
    latex_lines,
    markdown_lines,
    p_value,
    share,
    signed,
)
from fspll.experiments.statistics import Summary, signed_rank_p
from fspll.experiments.tables import csv_lines

TESTED = (("FsPLL", ""), ("FsPLL+", ""), (DEFAULT, ""), *((DEFAULT, f) for f in PHOTO_FEATURES))
"""The rows that are tested against every other: the paper's two, and our own.

Rows on the features of a frozen encoder are tested against one another only.
"""


class Comparison(NamedTuple):
    """A row against another under one condition: mean difference and signed-rank p-value.

    ``row`` is the label of the first one.
    """

    row: str
    other: Row
    condition: Condition
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
def compare(outcome: Outcome, row: str, features: str = "") -> tuple[Comparison, ...]:
    """Test a row against every other under every condition that has both, in the order of rows.

    Where one of two rows solved fewer tasks, they are compared on those that both solved. Rows on
    features of a frozen encoder are compared with those on the same features and with the same
    method on the other ones, all other rows with one another. Where k or lambda is varied, methods
    are not what is compared.
    """
    cells, found = outcome.measured, []
    frozen = features in PHOTO_FEATURES
    for other in in_order(outcome.rows()):
        if other in ((row, features), (CEILING, "")):
            continue
        if frozen != (other[1] in PHOTO_FEATURES):
            continue
        if frozen and other[1] != features and other[0] != row:
            continue
        if not frozen and other[0] == row:
            continue
        for condition in outcome.conditions():
            mine, its = cells.get(((row, features), condition)), cells.get((other, condition))
            if mine is None or its is None or condition.is_varied:
                continue
            shared = min(len(mine.query), len(its.query))
            a, b = mine.query[:shared], its.query[:shared]
            difference = float(np.mean(a) - np.mean(b))
            name = label((row, features))
            found.append(Comparison(name, other, condition, difference, signed_rank_p(a, b)))
    return tuple(found)


def counts(found: Iterable[Comparison]) -> list[Count]:
    """Count comparisons over settings, a count for every pair of rows."""
    pairs: dict[tuple[str, Row], list[Comparison]] = {}
    for comparison in found:
        pairs.setdefault((comparison.row, comparison.other), []).append(comparison)
    return [_count(row, other, same) for (row, other), same in pairs.items()]


def _count(row: str, other: Row, same: Sequence[Comparison]) -> Count:
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

    The ceiling is no competitor, nor the same method on a network that saw true labels, nor what
    works on the features of a frozen encoder. Equal to the best is not above it.
    """
    cells = outcome.measured
    won = total = 0
    for condition in outcome.conditions():
        mine = cells.get(((row, ""), condition))
        others = [
            float(np.mean(cell.query))
            for ((name, features), where), cell in cells.items()
            if where == condition
            and name.removesuffix("+") != row
            and name != CEILING
            and features not in PHOTO_FEATURES
        ]
        if mine is not None and others:
            total += 1
            won += float(np.mean(mine.query)) > max(others) + 1e-9
    return won, total


def mean_gain(outcome: Outcome, row: Row, other: Row) -> tuple[float, int] | None:
    """Return by how much a row is above another, averaged over the settings that have both.

    Within a setting they are compared on the tasks that both solved. None where no setting has
    both.
    """
    cells, gains = outcome.measured, []
    for condition in outcome.conditions():
        a, b = cells.get((row, condition)), cells.get((other, condition))
        if a is not None and b is not None:
            shared = min(len(a.query), len(b.query))
            gains.append(float(np.mean(a.query[:shared] - b.query[:shared])))
    return (float(np.mean(gains)), len(gains)) if gains else None


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
    for (row, condition), cell in outcome.measured.items():
        paper = outcome.printed(row, condition)
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
    cells = outcome.measured
    same = total = 0
    for condition in outcome.conditions():
        both = []
        for (row, where), cell in cells.items():
            paper = outcome.printed(row, condition)
            if where == condition and paper is not None and row[1] in ("", features):
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
    condition: Condition
    paper: Printed
    ceiling: Summary
    beyond_chance: bool


def above_ceiling(outcome: Outcome) -> list[Exceedance]:
    """Return the paper's figures that stand above the ceiling of our tasks of the same setting.

    Beyond chance is a distance larger than the 95% interval of the difference of the two means,
    the paper's being over 100 tasks with the standard deviation that it prints. All of the paper's
    rows are considered, measured by us or not.
    """
    found = []
    cells = outcome.measured
    names = in_order((name, "") for name in METHODS)
    for condition in outcome.conditions():
        cell = cells.get(((CEILING, ""), condition))
        for row in names if cell is not None else []:
            paper = outcome.printed(row, condition)
            assert cell is not None
            top = cell.summary
            # Half a unit of the last printed digit is no excess.
            if paper is not None and paper.mean - 0.0005 > top.mean:
                error = math.hypot(half_width(top), 1.96 * paper.std / math.sqrt(N_ROUNDS))
                beyond = paper.mean - top.mean > error
                found.append(Exceedance(row[0], condition, paper, top, beyond))
    return found


# -------------------------------------------------------------------- as tables


COUNT_HEAD = (
    *("row", "against", "settings", "above", "with p < .001", "below", "with p < .001"),
    "largest p where above",
)
DIFFERENCE_HEAD = ("row", "settings", "mean", "smallest", "largest")
EXCEEDANCE_HEAD = ("row", "setting", "paper", "ceiling of our tasks", "more than chance")

TEST_NOTE = (
    "Two-sided signed-rank tests on the same tasks, not corrected for their number. "
    f'The paper says of FsPLL and FsPLL+ that "all p-values are small than {P_VALUES_BELOW:g}".'
)


def all_comparisons(outcome: Outcome) -> list[Comparison]:
    """Return the comparisons of every tested row."""
    return [comparison for row in TESTED for comparison in compare(outcome, *row)]


def count_lines(found: Iterable[Count]) -> list[list[str]]:
    """Return counts as text, in the columns of ``COUNT_HEAD``."""
    return [
        [c.row, label(c.other)]
        + [str(n) for n in (c.settings, c.above, c.surely_above, c.below, c.surely_below)]
        + [NOTHING if c.largest_p is None else p_value(c.largest_p)]
        for c in found
    ]


def difference_lines(found: Iterable[Difference]) -> list[list[str]]:
    """Return distances to the paper as text, in the columns of ``DIFFERENCE_HEAD``."""
    return [
        [label(d.row), str(d.settings), signed(d.mean), signed(d.smallest), signed(d.largest)]
        for d in found
    ]


def exceedance_lines(found: Iterable[Exceedance]) -> list[list[str]]:
    """Return figures above the ceiling as text, in the columns of ``EXCEEDANCE_HEAD``."""
    return [
        [
            e.row,
            str(e.condition),
            share(e.paper.mean),
            f"{share(e.ceiling.mean)} ± {share(e.ceiling.half_width)}",
            "yes" if e.beyond_chance else "no",
        ]
        for e in found
    ]


def comparison_text(comparison: Comparison | None) -> str:
    """Return a comparison as it stands in a table: the difference, and its p-value in brackets."""
    if comparison is None:
        return NOTHING
    return f"{signed(comparison.difference)} ({p_value(comparison.p)})"


def comparison_grid(
    found: Sequence[Comparison], row: str
) -> tuple[list[Condition], list[tuple[str, list[Comparison | None]]]]:
    """Return a row's comparisons as settings and lines, one line for each other row."""
    mine = [comparison for comparison in found if comparison.row == row]
    conditions = sorted({v.condition for v in mine}, key=lambda p: (p.r, p.n_way, p.n_shot))
    by_key = {(v.other, v.condition): v for v in mine}
    others = list(dict.fromkeys(v.other for v in mine))
    return conditions, [
        (label(other), [by_key.get((other, condition)) for condition in conditions])
        for other in others
    ]


def comparisons_markdown(found: Sequence[Comparison]) -> str:
    """Return counts and all comparisons as Markdown."""
    parts = ["### Signed-rank tests\n\n", markdown_lines(COUNT_HEAD, count_lines(counts(found)))]
    parts += [f"\n- {count}" for count in counts(found)]
    parts.append(f"\n\n{TEST_NOTE}\n")
    for row in dict.fromkeys(comparison.row for comparison in found):
        conditions, lines = comparison_grid(found, row)
        for r in dict.fromkeys(condition.r for condition in conditions):
            here = [number for number, condition in enumerate(conditions) if condition.r == r]
            head = [
                f"{row} against",
                *(f"{conditions[i].n_way}-way {conditions[i].n_shot}" for i in here),
            ]
            body = [[name, *(comparison_text(cells[i]) for i in here)] for name, cells in lines]
            parts.append(f"\n#### {row} against the others, r = {r}: mean difference (p)\n\n")
            parts.append(markdown_lines(head, body))
    return "".join(parts)


def comparisons_latex(found: Sequence[Comparison], name: str) -> str:
    """Return the counts of comparisons as a LaTeX table."""
    return latex_lines(COUNT_HEAD, count_lines(counts(found)), TEST_NOTE, f"{name}-tests")


_CONDITION = tuple(field.name for field in fields(Condition))


def comparisons_csv(found: Iterable[Comparison]) -> str:
    """Return comparisons as CSV, one line per pair of rows and condition."""
    head = ("row", "other", "features", *_CONDITION, "difference", "p", "better")
    lines = (
        (v.row, *v.other, *astuple(v.condition), f"{v.difference:.6g}", f"{v.p:.4g}", v.better)
        for v in found
    )
    return csv_lines(head, lines)
