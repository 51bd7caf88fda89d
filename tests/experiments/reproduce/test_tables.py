"""Tables of a grid: which cells where, and the three forms they are written in."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from fspll.experiments.reproduce.comparisons import (
    all_comparisons,
    comparisons_csv,
    comparisons_latex,
    comparisons_markdown,
)
from fspll.experiments.reproduce.results import Cell, Condition, Outcome, in_groups, in_order
from fspll.experiments.reproduce.tables import COLUMNS, csv_text, latex, lay_out, markdown

ROWS = [
    *(("ceiling", ""), ("PN+", ""), ("PL-AGGD", "untrained"), ("PL-AGGD", "trained")),
    *(("fspll default", ""), ("PN", ""), ("FsPLL", "")),
]


def cell(row, condition, mean, features="", n=5):
    query = mean + np.linspace(-0.02, 0.02, n)
    return Cell(row, features, condition, query, query + 0.01, seconds=1.5)


@pytest.fixture
def small():
    """Two settings of r = 1 and one of r = 3; PN lacks one."""
    conditions = [Condition(1, 5, 5), Condition(1, 5, 10), Condition(3, 30, 5)]
    cells = [
        cell(name, condition, 0.9 - 0.1 * number, features)
        for condition in conditions
        for number, (name, features) in enumerate(ROWS)
        if (name, condition) != ("PN", conditions[1])
    ]
    return Outcome("omniglot", "Omniglot", "quick", tuple(cells), missing=1)


# ---------------------------------------------------------------- rows


def test_rows_stand_in_the_papers_order_and_groups():
    strange = [*ROWS, ("something new", "")]
    assert in_order(strange) == [
        *(("FsPLL", ""), ("PN", ""), ("PL-AGGD", "trained"), ("PL-AGGD", "untrained")),
        *(("PN+", ""), ("something new", ""), ("fspll default", ""), ("ceiling", "")),
    ]
    assert [len(group) for group in in_groups(strange)] == [4, 1, 3]


@pytest.mark.parametrize(
    ("dataset", "real"),
    [
        ("Omniglot", True),
        ("Omniglot, 28 pixels", True),
        ("Omniglot-like signs", False),
        ("photos in miniImageNet's layout", False),
        ("", False),
    ],
)
def test_only_omniglot_is_omniglot(dataset, real):
    assert Outcome("omniglot", dataset, "cpu", ()).is_omniglot is real


# ---------------------------------------------------------------- layout


def test_a_table_for_every_r(small):
    one, three = lay_out(small)
    assert (one.name, one.title) == ("omniglot-r1", "r = 1")
    assert one.columns == (("N2 = 5", "K2 = 5"), ("N2 = 5", "K2 = 10"))
    assert three.columns == (("N2 = 30", "K2 = 5"),)
    assert [[name for name, _ in group] for group in one.groups] == [
        ["FsPLL", "PN", "PL-AGGD (trained)", "PL-AGGD (untrained)"],
        ["PN+"],
        ["fspll default", "ceiling"],
    ]
    assert one.n_tasks == [5]


def test_ours_and_the_papers_in_a_cell(small):
    first = lay_out(small)[0].groups[0]
    (_, fspll), (_, pn) = first[:2]
    assert fspll[0].ours.mean == pytest.approx(0.3)
    assert fspll[0].paper == (0.892, 0.083)
    assert pn[1].ours is None
    assert pn[1].paper == (0.636, 0.105)


def test_the_best_is_of_a_group_and_never_alone_nor_our_own(small):
    table = lay_out(small)[0]
    best = [name for group in table.groups for name, entries in group if entries[0].best]
    assert best == ["PL-AGGD (untrained)"]  # .7; PN+ has no rival, .8; the ceiling has .9


def test_ties_are_all_best():
    condition = Condition(1, 5, 5)
    grid = Outcome(
        "omniglot", "x", "cpu", (cell("PN", condition, 0.5001), cell("MAML", condition, 0.5))
    )
    assert [entries[0].best for _, entries in lay_out(grid)[0].groups[0]] == [True, True]


def test_photos_have_a_table_for_every_r_and_n_way_and_no_paper():
    cells = [cell("PN", Condition(r, n, k), 0.5) for r in (1, 2) for n in (5, 15) for k in (5, 50)]
    tables = lay_out(Outcome("mini-imagenet", "photos", "cpu", tuple(cells)))
    assert [table.name for table in tables] == [
        f"mini-imagenet-{name}" for name in ("r1-n5", "r1-n15", "r2-n5", "r2-n15")
    ]
    assert tables[0].columns == (("N2 = 5", "K2 = 5"), ("N2 = 5", "K2 = 50"))
    assert not any(table.has_paper for table in tables)


def test_parameters_are_split_into_two_sweeps():
    cells = [
        cell("FsPLL", Condition(1, 10, 10, k, weight), 0.5 + 0.001 * k)
        for k, weight in [(5, None), (9, 0.5), (20, 0.5), (9, 0.7), (3, 0.7)]
    ] + [cell("FsPLL", Condition(1, 10, 10, None, 0.1), 0.4)]
    grid = Outcome("parameters", "photos", "cpu", tuple(cells))
    key = (("FsPLL", ""), 1, 10, 10)
    assert list(grid.swept("n_neighbors")[key]) == [5, 9, 20]
    assert list(grid.swept("manifold_weight")[key]) == [0.1, 0.5, 0.7]
    by_k, by_weight = lay_out(grid)
    assert by_k.columns == (("", "k = 5"), ("", "k = 9"), ("", "k = 20"))
    assert [entry.best for entry in by_k.groups[0][0][1]] == [False, False, True]
    assert by_weight.title == "Accuracy against λ"


def test_nothing_measured_is_no_table():
    for experiment in ("omniglot", "mini-imagenet", "noise", "parameters"):
        assert lay_out(Outcome(experiment, "Omniglot", "cpu", (), missing=3)) == []


# ---------------------------------------------------------------- forms


def test_markdown(small):
    written = markdown(lay_out(small)[0], small)
    lines = written.splitlines()
    assert lines[2] == "| method | N2 = 5, K2 = 5 | N2 = 5, K2 = 10 |"
    assert "| PN | .400 ± .020 (.579) | – (.636) |" in lines
    assert any(
        line.startswith("| PL-AGGD (untrained) | **.700** ± .020 (.664) |") for line in lines
    )
    assert "Tasks of Omniglot, 5 per cell, profile quick" in written
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_no_paper_where_the_data_are_others(small):
    other = Outcome("omniglot", "drawn signs", "quick", small.cells)
    written = markdown(lay_out(other)[0], other)
    assert "| PN | .400 ± .020 | – |" in written
    assert "(.579)" not in written
    assert "paper" not in written


def test_latex_is_well_formed(small):
    odd = Outcome("omniglot", "50% of A_B & C", "quick", small.cells)
    for grid in (small, odd):
        for table in lay_out(grid):
            written = latex(table, grid)
            assert written.count(r"\begin{") == written.count(r"\end{") == 2
            assert written.count("{") - written.count(r"\{") == written.count("}")
            rows = [line for line in written.splitlines() if line.endswith(r"\\")]
            body = [row for row in rows if "multicolumn" not in row]
            assert {len(re.findall(r"(?<!\\)&", row)) for row in body} == {len(table.columns)}
            for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
                assert rule in written
            assert written.isascii()
    assert r"50\% of A\_B \& C" in latex(lay_out(odd)[0], odd)
    assert r"\textbf{.700}$\pm$.020 (.664)" in latex(lay_out(small)[0], small)


def test_csv_has_one_line_per_cell_with_everything(small):
    lines = list(csv.DictReader(io.StringIO(csv_text(small))))
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == len(small.cells)
    found = next(line for line in lines if (line["row"], line["n_shot"]) == ("FsPLL", "10"))
    assert float(found["mean"]) == pytest.approx(0.3)
    assert float(found["std"]) == pytest.approx(np.linspace(-0.02, 0.02, 5).std(ddof=1), rel=1e-4)
    assert float(found["support_mean"]) == pytest.approx(0.31)
    assert found["seconds"] == "1.5"
    assert found["n_tasks"] == "5"
    assert (found["paper_mean"], found["paper_std"]) == ("0.895", "0.051")
    ceiling = next(line for line in lines if line["row"] == "ceiling")
    assert ceiling["paper_mean"] == ceiling["manifold_weight"] == ""


def test_one_task_has_no_interval():
    grid = Outcome("omniglot", "Omniglot", "quick", (cell("PN", Condition(1, 5, 5), 0.5, n=1),))
    assert "| PN | .480 ± – (.579) |" in markdown(lay_out(grid)[0], grid)
    (line,) = csv.DictReader(io.StringIO(csv_text(grid)))
    assert line["std"] == line["half_width"] == ""


# ---------------------------------------------------------------- tests of rows


def test_tables_of_tests(small):
    found = all_comparisons(small)
    assert {comparison.row for comparison in found} == {"FsPLL", "fspll default"}
    written = comparisons_markdown(found)
    assert "- FsPLL above PN in 0 of 2 settings\n" in written
    assert (
        "- fspll default above PN in 2 of 2 settings, largest p = .025" in written
    )  # by hand: z = 7.5 / sqrt(45 / 4)
    assert "#### FsPLL against the others, r = 3" in written
    lines = list(csv.DictReader(io.StringIO(comparisons_csv(found))))
    assert len(lines) == len(found)
    first = lines[0]
    assert (first["row"], first["other"], first["better"]) == ("FsPLL", "PN", "PN")
    assert float(first["difference"]) == pytest.approx(-0.1)
    assert comparisons_latex(found, "omniglot").isascii()
