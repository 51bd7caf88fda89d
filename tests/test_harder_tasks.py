"""Unequal classes and habitual distractors."""

from __future__ import annotations

import numpy as np
import pytest

from fspll._common.errors import InputError
from fspll.tasks import TaskSettings, TaskSource
from harder_tasks import Corruption

LABELS = np.repeat(np.arange(12), 20)


def source(n_shot=10, r=2, n_way=6):
    return TaskSource(LABELS, TaskSettings(n_way, n_shot, 5, r=r), seed=3)


def test_sizes_of_classes():
    sizes = []
    for task in Corruption(sizes=(1, 10)).tasks(source(), 100):
        assert len(task.support) == len(task.support_labels) == len(task.candidates)
        assert (LABELS[task.support] == task.classes[task.support_labels]).all()
        assert task.candidates[np.arange(len(task.support)), task.support_labels].all()
        sizes += np.bincount(task.support_labels, minlength=6).tolist()
    assert min(sizes) == 1
    assert max(sizes) == 10
    assert np.mean(sizes) == pytest.approx(5.5, abs=0.5)


@pytest.mark.parametrize(("classes", "habitual"), [(None, range(6)), (1, [0])])
def test_habits(classes, habitual):
    """An even draw hits the habitual label in one of five cases: .7 + .3 / 5 = .76."""
    counts, total = np.zeros((6, 6)), np.zeros(6)
    for task in Corruption(habit=0.7, habitual_classes=classes).tasks(source(r=1), 200):
        assert (task.candidates.sum(axis=1) == 2).all()
        for label in range(6):
            counts[label] += task.candidates[task.support_labels == label].sum(axis=0)
            total[label] += (task.support_labels == label).sum()
    share = counts / total[:, None]
    for label in range(6):
        expected = 0.76 if label in habitual else 0.2
        assert share[label, (label + 1) % 6] == pytest.approx(expected, abs=0.05)


def test_the_same_tasks_again():
    one, other = (list(Corruption((1, 10), 0.7).tasks(source(), 3)) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.support, b.support)
        assert np.array_equal(a.candidates, b.candidates)


def test_too_few_samples():
    with pytest.raises(InputError, match="n_shot = 4 is less than the largest class, 10"):
        next(Corruption(sizes=(1, 10)).tasks(source(n_shot=4), 1))
