"""Figures of a sample of tasks against scipy and against arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fspll._common.errors import InputError
from fspll.experiments.statistics import Summary, calibration_error, summarize


def test_three_tasks_by_hand():
    """0.8, 0.9, 1.0: deviations 0.1, 0, 0.1, so std = sqrt(0.02 / 2) = 0.1.

    The 97.5% quantile of Student's t with 2 degrees of freedom is 4.3026527, so the half-width is
    4.3026527 * 0.1 / sqrt(3) = 0.2484138.
    """
    summary = summarize(np.array([0.8, 0.9, 1.0]))
    assert summary == pytest.approx((0.9, 0.1, 0.2484138, 3), abs=1e-7)
    assert str(summary) == "0.900 ± 0.248"


@pytest.mark.parametrize("n", [2, 5, 100, 1000])
def test_against_scipy(n):
    values = np.random.default_rng(n).random(n)
    summary = summarize(values)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    assert summary.mean - summary.half_width == pytest.approx(low, abs=1e-12)
    assert summary.mean + summary.half_width == pytest.approx(high, abs=1e-12)
    assert summary.std == pytest.approx(stats.tstd(values), abs=1e-12)
    assert summary.n_tasks == n


def test_the_interval_holds_the_truth_nineteen_times_in_twenty():
    rng = np.random.default_rng(0)
    samples = rng.normal(0.7, 0.1, size=(2000, 6))
    inside = [abs(s.mean - 0.7) <= s.half_width for s in map(summarize, samples)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)  # standard error 0.005


def test_equal_values_have_no_spread():
    assert summarize([0.5, 0.5, 0.5, 0.5]) == Summary(0.5, 0.0, 0.0, 4)


def test_one_task_has_no_interval():
    summary = summarize([0.25])
    assert (summary.mean, summary.n_tasks) == (0.25, 1)
    assert math.isnan(summary.std)
    assert math.isnan(summary.half_width)


def test_single_precision_is_averaged_in_double():
    values = np.full(100_000, 0.1, dtype=np.float32)
    assert summarize(values).mean == pytest.approx(float(np.float32(0.1)), abs=1e-12)


@pytest.mark.parametrize(
    ("values", "shape"), [([], r"\(0,\)"), ([[1.0, 2.0]], r"\(1, 2\)"), (0.5, r"\(\)")]
)
def test_bad_shapes(values, shape):
    with pytest.raises(
        InputError, match=f"one figure per task is needed, not an array of shape {shape}"
    ):
        summarize(values)


def test_calibration_error():
    rng = np.random.default_rng(0)
    confidence = rng.random((200, 500))
    right = rng.random((200, 500)) < confidence
    assert calibration_error(confidence, right) < 0.01
    assert calibration_error(np.full(10, 0.8), np.arange(10) < 5) == pytest.approx(0.3)
    assert calibration_error(np.ones(4), np.ones(4, dtype=bool)) == 0
    # Errors of opposite sign in different bins do not cancel.
    assert calibration_error(np.array([0.2, 0.8]), np.array([True, False])) == pytest.approx(0.8)


@pytest.mark.parametrize(("confidence", "right"), [([], []), ([0.5], [True, False])])
def test_calibration_needs_pairs(confidence, right):
    with pytest.raises(InputError, match="the confidence of each prediction"):
        calibration_error(np.array(confidence), np.array(right))
