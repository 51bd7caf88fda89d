"""Statistics over tasks: mean, standard deviation, interval of the mean, tests and calibration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from fspll._common.errors import InputError


class Summary(NamedTuple):
    """Mean over tasks, standard deviation, and half-width of the mean's 95% interval."""

    mean: float
    std: float
    half_width: float
    n_tasks: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half_width:.3f}"


def summarize(values: np.ndarray) -> Summary:
    """Summarize one figure per task.

    Parameters
    ----------
    values : array of shape (n_tasks,)

    Examples
    --------
    >>> str(summarize(np.array([0.8, 0.9, 1.0])))
    '0.900 ± 0.248'
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(f"one figure per task is needed, not an array of shape {values.shape}")
    if len(values) == 1:
        return Summary(float(values[0]), float("nan"), float("nan"), 1)
    std = float(values.std(ddof=1))
    # Student's t: with few tasks the normal quantile 1.96 would be too sure.
    half_width = float(stats.t.ppf(0.975, len(values) - 1) * std / np.sqrt(len(values)))
    return Summary(float(values.mean()), std, half_width, len(values))


def signed_rank_p(values: np.ndarray, others: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test on paired tasks.

    Parameters
    ----------
    values, others : arrays of shape (n_tasks,)
        Figures of two methods on the same tasks.

    Returns
    -------
    float
        1.0 when the two never differ.

    Examples
    --------
    >>> signed_rank_p(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    1.0
    """
    difference = np.asarray(values, dtype=float) - np.asarray(others, dtype=float)
    # Equal accuracies must tie, whether they were averaged in single or in double precision.
    difference = difference.round(6)
    if not difference.any():
        return 1.0
    # The normal approximation: exact tables do not exist with ties, and accuracies tie often.
    return float(stats.wilcoxon(difference, method="approx").pvalue)


def calibration_error(confidence: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Return the expected calibration error: how far confidence is from accuracy, on average.

    Predictions are put into bins of equal width by their confidence; each bin counts with its
    share of the predictions.

    Parameters
    ----------
    confidence : array of any shape
        Probability of each predicted label.
    right : bool array of the same shape
        Whether the prediction is right.

    Examples
    --------
    >>> calibration_error(np.array([0.9, 0.9, 0.5, 0.5]), np.array([True, True, True, False]))
    0.05
    """
    confidence, right = np.ravel(confidence).astype(float), np.ravel(right).astype(float)
    if not len(confidence) or len(confidence) != len(right):
        raise InputError(
            "calibration needs the confidence of each prediction, and whether it is right"
        )
    bin_of = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gap = np.bincount(bin_of, confidence - right, minlength=n_bins)
    return float(np.round(np.abs(gap).sum() / len(confidence), 12))
