"""The rows of a grid as readers meet them: their order, their groups, the paper's figures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from fspll.experiments.reproduce import published
from fspll.experiments.reproduce.outcomes import Cell, Outcome, Place
from fspll.experiments.reproduce.published import Printed
from fspll.experiments.reproduce.rows import CEILING, DEFAULT, MANY_SHOT
from fspll.experiments.statistics import Summary

Row = tuple[str, str]
"""A row's name and what its method works on, as in ``outcomes.Cell``."""

PARTIAL = ("FsPLL", "FsPLL-nM", "PN", "MAML")
PRECISE = ("FsPLL+", "PN+", "MAML+")
PRECISE_TWICE = ("FsPLL++", "PN++")

_KNOWN = (*PARTIAL, *MANY_SHOT, *PRECISE, *PRECISE_TWICE)
_FEATURES = ("", "trained", "untrained")

# The groups that the paper compares within, by what the methods may know.
_GROUPS = ((*PARTIAL, *MANY_SHOT), PRECISE, PRECISE_TWICE)


def label(row: Row) -> str:
    """Return a row's name with its features.

    >>> label(("PL-AGGD", "untrained")), label(("PN", ""))
    ('PL-AGGD (untrained)', 'PN')
    """
    name, features = row
    return f"{name} ({features})" if features else name


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in the paper's order, then those it has not, our default and the ceiling last."""
    last = [*_KNOWN, None, DEFAULT, CEILING]

    def place(row: Row) -> tuple[int, int]:
        name, features = row
        known = name if name in last else None
        return last.index(known), _FEATURES.index(features) if features in _FEATURES else 9

    return sorted(rows, key=place)


def in_groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Return rows in the groups within which the paper compares, and the rest as a last group."""
    ordered = in_order(rows)
    groups = [[row for row in ordered if row[0] in group] for group in _GROUPS]
    rest = [row for row in ordered if row[0] not in _KNOWN]
    return [group for group in (*groups, rest) if group]


def is_of_the_paper(row: Row) -> bool:
    """Whether the paper has this row."""
    return row[0] in _KNOWN


def is_omniglot(outcome: Outcome) -> bool:
    """Whether the tasks were made of Omniglot itself: "Omniglot", or that with words after it.

    >>> is_omniglot(Outcome("omniglot", "Omniglot (1,692 classes)", "cpu", ()))
    True
    >>> is_omniglot(Outcome("omniglot", "drawn signs in Omniglot's layout", "cpu", ()))
    False
    """
    return re.match(r"Omniglot($|,| \()", outcome.dataset) is not None


def printed(outcome: Outcome, row: Row, place: Place) -> Printed | None:
    """Return the paper's figure for a row in a setting, None where it has none.

    Only Omniglot is in print: a stand-in's figures never get the paper's beside them.
    """
    varied = place.n_neighbors is not None or place.manifold_weight is not None
    if varied or not is_omniglot(outcome):
        return None
    return published.find(row[0], place.n_way, place.n_shot, place.r)


def measured(outcome: Outcome) -> dict[tuple[Row, Place], Cell]:
    """Return the cells that hold tasks, by row and place."""
    return {
        ((cell.row, cell.features), cell.place): cell for cell in outcome.cells if len(cell.query)
    }


def setting(place: Place) -> str:
    """Return a setting in words.

    >>> setting(Place(r=2, n_way=10, n_shot=5))
    '10-way 5-shot, r = 2'
    """
    words = f"{place.n_way}-way {place.n_shot}-shot, r = {place.r}"
    if place.n_neighbors is not None:
        words += f", k = {place.n_neighbors}"
    if place.manifold_weight is not None:
        words += f", λ = {place.manifold_weight:g}"
    return words


NOTHING = "–"


def share(value: float | None, digits: int = 3) -> str:
    """Return an accuracy as the paper writes it, a dash where there is none.

    >>> share(0.8921), share(1.0), share(-0.05), share(None)
    ('.892', '1.000', '-.050', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def signed(value: float | None) -> str:
    """Return a difference of accuracies with its sign.

    >>> signed(0.0312), signed(-0.2), signed(0.0001)
    ('+.031', '−.200', '±.000')
    """
    if value is None or math.isnan(value):
        return NOTHING
    text = share(abs(value))
    if text == ".000":
        return "±.000"
    return ("+" if value > 0 else "−") + text


def p_value(p: float) -> str:
    """Return a p-value: three places, or its size where that would be nothing.

    >>> p_value(0.0314), p_value(3.2e-9), p_value(0.0)
    ('.031', '3e-09', '0')
    """
    return share(p) if p >= 0.001 else f"{p:.0e}" if p > 0 else "0"


def half_width(summary: Summary | None) -> float:
    """Return the half-width of the mean's interval, 0 where one task has none."""
    if summary is None or math.isnan(summary.half_width):
        return 0.0
    return summary.half_width
