"""The compared methods on batches of tasks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll.experiments.baselines import BASELINES, score_baseline
from fspll.tasks import TaskSettings, TaskSource

LABELS = np.repeat(np.arange(10), 20)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("r", [0, 1])
def test_methods_learn_from_separated_classes(name, r):
    rng = np.random.default_rng(0)
    features = torch.as_tensor(3 * rng.normal(size=(10, 16))[LABELS] + rng.normal(size=(200, 16)))
    tasks = TaskSource(LABELS, TaskSettings(5, 5, 5, r=r), seed=0).batch(range(4))
    scores = score_baseline(features, tasks, name)
    assert scores.query_accuracy.shape == scores.support_accuracy.shape == (4,)
    assert scores.query_accuracy.mean() > (0.9 if r == 0 else 0.6)
    assert scores.query_calibration is None


@pytest.mark.parametrize("name", BASELINES)
def test_the_same_again(name):
    features = torch.as_tensor(np.random.default_rng(1).normal(size=(200, 4)))
    tasks = TaskSource(LABELS, TaskSettings(5, 3, 5, r=2), seed=1).batch(range(2))
    one, other = (score_baseline(features, tasks, name) for _ in range(2))
    np.testing.assert_array_equal(one.query_accuracy, other.query_accuracy)
