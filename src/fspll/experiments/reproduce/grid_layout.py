"""Tables of a grid before they are written: which lines, which columns, what is best.

A table has a line a row of the grid, in the paper's order and groups, and a column a setting. A
cell is our mean with the half-width of its 95% interval, beside the paper's mean where it prints
one. The best of the paper's rows within a group is bold; our own rows and the ceiling stand apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fspll.experiments.reproduce.grid_rows import (
    Row,
    in_groups,
    is_of_the_paper,
    label,
    measured,
    printed,
)
from fspll.experiments.reproduce.outcomes import Outcome, Place
from fspll.experiments.reproduce.published import BEST_MANIFOLD_WEIGHT, Printed, best_n_neighbors
from fspll.experiments.statistics import Summary


class Entry(NamedTuple):
    """A cell: what we measured and what the paper prints, None where there is nothing."""

    ours: Summary | None
    paper: Printed | None
    best: bool = False


class Line(NamedTuple):
    """A row's name and its cells."""

    label: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class GridTable:
    """A table before it is written.

    Attributes
    ----------
    name : str
        Short, for labels and file names: "omniglot-r1".
    title : str
    corner : str
        What the lines are.
    columns : tuple of (str, str)
        Heading of each column: what it shares with its neighbors (may be empty), and its own.
    groups : tuple of tuple of Line
    """

    name: str
    title: str
    corner: str
    columns: tuple[tuple[str, str], ...]
    groups: tuple[tuple[Line, ...], ...]

    @property
    def has_paper(self) -> bool:
        """Whether any cell has a figure of the paper."""
        return any(e.paper for group in self.groups for line in group for e in line.entries)

    @property
    def n_tasks(self) -> list[int]:
        """The numbers of tasks behind the cells, each once."""
        entries = [e for group in self.groups for line in group for e in line.entries]
        return sorted({e.ours.n_tasks for e in entries if e.ours is not None})


def note(table: GridTable, outcome: Outcome, where: str = "in brackets") -> str:
    """Return a sentence on what the cells are and what they were measured on."""
    tasks = " or ".join(f"{n:,}" for n in table.n_tasks) or "no"
    words = f"Tasks of {outcome.dataset}, {tasks} a cell, profile {outcome.profile}: "
    words += "mean accuracy ± half-width of its 95% interval"
    return words + (f", and {where} the paper's mean." if table.has_paper else ".")


def grid_tables(outcome: Outcome) -> list[GridTable]:
    """Lay out the tables of an outcome: those the paper has, or would have for its figures.

    One a value of r for "omniglot"; one a value of r and N2 for "mini-imagenet"; one for "noise";
    one for k and one for lambda for "parameters".
    """
    if outcome.experiment == "parameters":
        return _parameter_tables(outcome)
    places = [p for p in outcome.places() if p.n_neighbors is None and p.manifold_weight is None]
    key: Callable[[Place], tuple[int, ...]]
    key = _r_and_n_way if outcome.experiment == "mini-imagenet" else _r_only
    tables = []
    for value in dict.fromkeys(map(key, places)):
        here = [place for place in places if key(place) == value]
        names = ("r", "n")[: len(value)]
        slug = "-".join(f"{name}{v}" for name, v in zip(names, value, strict=True))
        title = ", ".join(f"{name} = {v}" for name, v in zip(("r", "N2"), value, strict=False))
        columns = tuple((f"N2 = {p.n_way}", f"K2 = {p.n_shot}") for p in here)
        groups = _groups(outcome, here)
        tables.append(GridTable(f"{outcome.experiment}-{slug}", title, "method", columns, groups))
    return tables


def _r_only(place: Place) -> tuple[int, ...]:
    return (place.r,)


def _r_and_n_way(place: Place) -> tuple[int, ...]:
    return place.r, place.n_way


def _groups(outcome: Outcome, places: Sequence[Place]) -> tuple[tuple[Line, ...], ...]:
    cells = measured(outcome)
    groups = []
    for rows in in_groups({row: None for row, _ in cells}):
        found = [
            [cells[row, place].summary if (row, place) in cells else None for place in places]
            for row in rows
        ]
        best = [
            _best(column) if is_of_the_paper(rows[0]) else None
            for column in zip(*found, strict=True)
        ]
        groups.append(
            tuple(
                Line(
                    label(row),
                    tuple(
                        Entry(
                            ours,
                            printed(outcome, row, place),
                            ours is not None and round(ours.mean, 3) == top,
                        )
                        for place, ours, top in zip(places, line, best, strict=True)
                    ),
                )
                for row, line in zip(rows, found, strict=True)
            )
        )
    return tuple(groups)


def _best(column: Iterable[Summary | None]) -> float | None:
    """Return the best mean as it is shown; one cell alone is not the best of anything."""
    means = [round(summary.mean, 3) for summary in column if summary is not None]
    return max(means) if len(means) > 1 else None


def swept(outcome: Outcome, name: str) -> dict[tuple[Row, int, int, int], dict[float, Summary]]:
    """Return the curves over k ("n_neighbors") or lambda ("manifold_weight").

    The one not varied is at the paper's choice, K2 - 1 or 0.5, whether the place says so or not.

    Returns
    -------
    dict
        By row, r, N2 and K2: the summary at each value, in order.
    """
    curves: dict[tuple[Row, int, int, int], dict[float, Summary]] = {}
    for (row, place), cell in measured(outcome).items():
        if name == "n_neighbors":
            value: float | None = place.n_neighbors
            rest_as_usual = place.manifold_weight in (None, BEST_MANIFOLD_WEIGHT)
        else:
            value = place.manifold_weight
            rest_as_usual = place.n_neighbors in (None, best_n_neighbors(place.n_shot))
        if value is not None and rest_as_usual:
            curve = curves.setdefault((row, place.r, place.n_way, place.n_shot), {})
            curve[value] = cell.summary
    order = sorted(curves, key=lambda key: (key[1:], key[0]))
    return {key: dict(sorted(curves[key].items())) for key in order}


def _parameter_tables(outcome: Outcome) -> list[GridTable]:
    tables = []
    for name, letter, slug in (("n_neighbors", "k", "k"), ("manifold_weight", "λ", "lambda")):
        curves = swept(outcome, name)
        values = sorted({value for curve in curves.values() for value in curve})
        lines = []
        for (row, r, n_way, n_shot), curve in curves.items():
            means = [round(summary.mean, 3) for summary in curve.values()]
            top = max(means) if len(means) > 1 else None
            entries = [
                Entry(curve[v], None, round(curve[v].mean, 3) == top)
                if v in curve
                else Entry(None, None)
                for v in values
            ]
            title = f"{label(row)}, {n_way}-way {n_shot}-shot, r = {r}"
            lines.append(Line(title, tuple(entries)))
        if lines:
            columns = tuple(("", f"{letter} = {value:g}") for value in values)
            tables.append(
                GridTable(
                    f"parameters-{slug}", f"Accuracy against {letter}", "", columns, (tuple(lines),)
                )
            )
    return tables
