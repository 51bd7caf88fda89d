"""The benchmark of real ambiguity: what it draws, how it goes on, and what its tables say."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

import real
import real_parts
import real_tables

NONE = argparse.Namespace(seeds=2, photos=None, again=None)


def rows_of(method, figures, split="50/50"):
    where = {"part": "partial-label", "data": "lost", "split": split, "method": method}
    return [
        {**where, "seed": seed, "test": test, "labels": labels}
        for seed, (test, labels) in enumerate(figures)
    ]


@pytest.fixture
def part(monkeypatch):
    """A part of two methods and two seeds that counts what is measured."""
    measured = []

    def jobs(options):
        for seed in range(options.seeds):
            for method in ("default", "other"):
                where = {"seed": seed, "method": method}

                def fit(where=where):
                    measured.append(where)
                    if len(measured) == 3:
                        raise KeyboardInterrupt
                    return {"test": 0.5}

                yield where, fit

    monkeypatch.setitem(real.PARTS, "counted", jobs)
    return measured


def test_an_interrupted_run_goes_on(part, tmp_path):
    path = tmp_path / "rows.json"
    with pytest.raises(KeyboardInterrupt):
        real.measure("counted", NONE, path)
    assert len(real.read(path)) == 2
    real.measure("counted", NONE, path)
    rows = real.read(path)
    assert len(rows) == 4
    assert len(part) == 5  # the third was begun twice, no other
    assert rows[0] == {"part": "counted", "seed": 0, "method": "default", "test": 0.5}


def test_one_method_is_measured_again(part, tmp_path):
    path = tmp_path / "rows.json"
    part.extend([{}] * 3)
    other = {"part": "else", "seed": 0, "method": "default", "test": 0.25}
    real.write([other], path)
    real.measure("counted", NONE, path)
    del part[3:]
    real.measure("counted", argparse.Namespace(seeds=2, photos=None, again="default"), path)
    assert [where["method"] for where in part[3:]] == ["default", "default"]
    assert len(real.read(path)) == 5
    assert other in real.read(path)


def test_differences_are_paired_by_seed():
    ours = rows_of("default", [(0.8, 0.9), (0.6, 0.7)])
    theirs = rows_of("PL-AGGD", [(0.6, 0.9), (0.6, 0.8)])
    gap = real_tables.paired(ours, theirs[::-1], "test")
    assert gap == pytest.approx((0.1, 0.1))  # of .2 and 0
    page = real_tables.partial_label(ours + theirs)
    assert "| **default** | .700 / .800 |" in page
    assert "| PL-AGGD | +.100 ± .100 / −.050 ± .050 |" in page
    assert "over the 2 figures of PL-AGGD: +.025." in page
    assert "−.050 ± .050 against PL-AGGD (Lost 50/50, training labels)." in page


def test_a_single_split_has_no_standard_error():
    page = real_tables.partial_label(rows_of("default", [(1, 1)]) + rows_of("CC", [(0.5, 0.5)]))
    assert "| CC | +.500 / +.500 |" in page


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_the_truth_is_missing_from_as_many_sets_as_said(how, monkeypatch):
    seen = []
    monkeypatch.setattr(real_parts, "measured", lambda method, problem: seen.append(problem) or {})
    found = real_parts._without_truth(NONE, "digits", 2, how, 0.1, 0)
    mask, truth = seen[0].mask, seen[0].truth
    has = mask[np.arange(800), truth]
    assert found["inside"] == has.mean() == 0.9
    assert set(mask[has].sum(axis=1)) == {3}
    assert set(mask[~has].sum(axis=1)) == ({3} if how == "replaced" else {2})


@pytest.mark.parametrize("data", ["round", "digits"])
def test_unequal_classes(data):
    problem = real_parts.unequal_problem(data, 300, 10, 2, np.random.default_rng(0))
    counts = np.bincount(problem.truth, minlength=10)
    assert counts.max() > 4 * np.median(counts)
    assert (problem.mask.sum(axis=1) == 3).all()
    assert problem.mask[np.arange(300), problem.truth].all()
    assert problem.X.shape == (300, 64)
    assert len(problem.new) == len(problem.new_truth) > 1000


def test_every_figure_of_a_fit_is_known():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    X = 4 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    mask = (
        np.eye(3, dtype=bool)[truth] | np.eye(3, dtype=bool)[(truth + rng.integers(1, 3, 60)) % 3]
    )
    problem = real_parts.Problem(X, mask, truth, X, truth)
    found = real_parts.measured(real_parts.CHECKED, problem)
    assert set(found) <= real.FIGURES
    assert found["labels"] > 0.9
    assert found["separates"]
    assert "separates" not in real_parts.measured("PL-KNN", problem)


def test_the_pages_show_the_rows():
    rows = real.read()
    assert real.PATH.with_suffix(".md").read_text(encoding="utf-8") == real_tables.tables(rows)
    page = real.PAGE.read_text(encoding="utf-8")
    assert real_tables.fill(page, rows) == page
    assert page.count("<!-- end ") == len(real_tables.SECTIONS)
