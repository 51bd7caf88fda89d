"""What a grid says, on grids small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fspll.experiments.reproduce.comparisons import (
    above_ceiling,
    best_settings,
    compare,
    counts,
    differences,
    same_order,
)
from fspll.experiments.reproduce.results import Cell, Condition, Outcome
from fspll.experiments.statistics import signed_rank_p

A, B = Condition(3, 5, 5), Condition(3, 5, 10)


def cell(row, condition, mean, features="", n=40, spread=0.02):
    noise = np.random.default_rng(len(row) + condition.n_shot).normal(0, spread, n)
    query = mean + noise - noise.mean()
    return Cell(row, features, condition, query, query)


def outcome(*cells, dataset="Omniglot"):
    return Outcome("omniglot", dataset, "cpu", cells)


def test_a_comparison_is_the_difference_of_means_and_the_test_on_the_same_tasks():
    mine, other = cell("FsPLL", A, 0.6), cell("PL-LEAF", A, 0.7, "trained")
    (found,) = compare(outcome(mine, other, cell("ceiling", A, 1.0)), "FsPLL")
    assert found.other == ("PL-LEAF", "trained")
    assert found.condition == A
    assert found.difference == pytest.approx(-0.1)
    assert found.p == signed_rank_p(mine.query, other.query)
    assert found.better == "PL-LEAF (trained)"


def test_counts_over_settings():
    grid = outcome(
        cell("PN", A, 0.5), cell("FsPLL", A, 0.6), cell("PN", B, 0.6), cell("FsPLL", B, 0.55)
    )
    (count,) = counts(compare(grid, "FsPLL"))
    assert (count.settings, count.above, count.below) == (2, 1, 1)
    assert (count.surely_above, count.surely_below) == (1, 1)
    above = next(v for v in compare(grid, "FsPLL") if v.condition == A)
    assert count.largest_p == above.p
    assert str(count).startswith("FsPLL above PN in 1 of 2 settings, largest p = ")


def test_equal_rows_are_neither_above_nor_below():
    query = np.array([0.5, 0.6, 0.7])
    grid = outcome(Cell("FsPLL", "", A, query, query), Cell("PN", "", A, query, query))
    (count,) = counts(compare(grid, "FsPLL"))
    assert (count.above, count.below, count.largest_p) == (0, 0, None)
    assert str(count) == "FsPLL above PN in 0 of 1 settings"
    assert best_settings(grid, "FsPLL") == (0, 1)


def test_cells_without_tasks_are_not_compared():
    none = Cell("PN", "", A, np.array([]), np.array([]))
    assert compare(outcome(cell("FsPLL", A, 0.6), none), "FsPLL") == ()


def test_rows_with_fewer_tasks_are_compared_on_those_that_both_solved():
    long = Cell("FsPLL", "", A, np.array([0.5, 0.6, 0.7, 0.0, 0.0]), np.zeros(5))
    short = Cell("MAML", "", A, np.array([0.4, 0.5, 0.6]), np.zeros(3))
    (comparison,) = compare(outcome(long, short), "FsPLL")
    assert comparison.better == "FsPLL"
    assert comparison.difference == pytest.approx(0.1)


def test_the_ceiling_is_no_competitor():
    grid = outcome(cell("fspll default", A, 0.8), cell("PN", A, 0.5), cell("ceiling", A, 0.9))
    assert best_settings(grid, "fspll default") == (1, 1)


def test_methods_are_not_compared_where_a_parameter_is_varied():
    figures = np.linspace(0.4, 0.5, 5), np.linspace(0.6, 0.7, 5)
    for condition, n in ((Condition(1, 10, 10), 1), (Condition(1, 10, 10, 3), 0)):
        cells = tuple(
            Cell(row, "", condition, query, query)
            for row, query in zip(("FsPLL", "FsPLL+"), figures, strict=True)
        )
        assert len(compare(Outcome("parameters", "photos", "cpu", cells), "FsPLL")) == n


def test_distance_to_the_paper():
    # In print: .591 and .708.
    grid = outcome(cell("FsPLL", A, 0.691), cell("FsPLL", B, 0.688), cell("fspll default", A, 0.9))
    (found,) = differences(grid)
    assert found.row == ("FsPLL", "")
    assert found.settings == 2
    assert (found.mean, found.smallest, found.largest) == pytest.approx((0.04, -0.02, 0.1))
    assert differences(outcome(*grid.cells, dataset="other signs")) == []


def test_pairs_in_the_papers_order():
    # In print at 5-way 5-shot: FsPLL .591, PN .337, MAML .379.
    grid = outcome(cell("FsPLL", A, 0.7), cell("PN", A, 0.5), cell("MAML", A, 0.4))
    assert same_order(grid) == (2, 3)


def test_printed_figures_above_the_ceiling():
    # In print: FsPLL+ .972±.072 at 5-shot, .996±.011 at 10-shot; all others are below.
    sure, close = cell("ceiling", A, 0.83), cell("ceiling", B, 0.993)
    found = above_ceiling(outcome(sure, close))
    assert [(e.row, e.condition, e.beyond_chance) for e in found] == [
        ("FsPLL+", A, True),
        ("FsPLL+", B, False),
    ]
    assert found[0].paper.mean == 0.972
    assert found[0].ceiling.mean == pytest.approx(0.83)
    assert above_ceiling(outcome(sure, dataset="other signs")) == []
