"""Few samples, of which some are held out in any case, as ``fspll label`` does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fspll import FsPLLClassifier
from fspll.candidates.corruption import corrupt_mask
from fspll.rectifiers.adaptive import AdaptiveRule
from fspll.rectifiers.adaptive_model import read_check
from fspll.rectifiers.held_out import INDEPENDENT, Check, folds, is_proved

CHECKED = AdaptiveRule(held_out=True)


def few_shot_task(n_way, n_shot, r, seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_way), n_shot)
    X = 4 * rng.normal(size=(n_way, 16))[truth] + rng.normal(size=(len(truth), 16))
    return X, truth, corrupt_mask(truth, n_way, 1.0, r, rng)


@pytest.mark.parametrize(("n_way", "n_shot"), [(5, 5), (10, 2), (5, 10)])
def test_good_features_of_few_shot_tasks_are_not_doubted(n_way, n_shot):
    """Without a fold, four candidates each may not tell which class is which."""
    right, by_means = [], []
    for seed in range(8):
        X, truth, mask = few_shot_task(n_way, n_shot, 3, seed)
        found = FsPLLClassifier(rectifier=CHECKED).fit(X, mask)
        assert found.check_.separates
        right.append(np.mean(found.labels_ == truth))
        means = FsPLLClassifier(rectifier="evidence").fit(X, mask)
        by_means.append(np.mean(means.labels_ == truth))
    assert np.mean(right) >= np.mean(by_means) - 0.02


def test_a_set_that_lacks_its_truth_is_found_among_few_samples():
    X, truth, mask = few_shot_task(5, 8, 1, 0)
    mask[3] = np.arange(5) == (truth[3] + 1) % 5
    mask[3, (truth[3] + 2) % 5] = True
    found = FsPLLClassifier(rectifier=CHECKED).fit(X, mask)
    missing = 1 - found.confidence_.sum(axis=1)
    assert missing.argmax() == 3
    assert missing[3] > 0.5
    assert found.model_.posterior[3].argmax() == truth[3]
    assert missing[np.arange(40) != 3].max() < 0.1


def in_folds(values):
    """Return gains of 25 held-out samples from one value per fold, and zeros."""
    sizes = [len(rows) for rows in folds(25)]
    rng = np.random.default_rng(0)
    gains = np.repeat(np.array(values, dtype=float), sizes) + 0.01 * rng.normal(size=25)
    return torch.from_numpy(gains), torch.zeros(25).double()


def test_one_fold_is_no_proof():
    assert is_proved(*in_folds([1, 1.1, 0.9, 1, 1]))
    assert not is_proved(*in_folds([5, 0, 0, 0, 0]))
    assert not is_proved(*in_folds([-1, -1.1, -0.9, -1, -1]))
    assert not is_proved(*in_folds([0, 0, 0, 0, 0]))


def test_many_samples_count_singly():
    gains = torch.zeros(INDEPENDENT).double()
    gains[:8] = 5.0  # all in a few folds or not: one standard error above zero
    assert is_proved(gains, torch.zeros_like(gains))
    assert not is_proved(gains[: INDEPENDENT - 1], torch.zeros(INDEPENDENT - 1).double())


def test_files_keep_whether_the_check_decides(tmp_path):
    X, _, mask = few_shot_task(5, 5, 3, 1)
    found = FsPLLClassifier(rectifier=CHECKED).fit(X, mask)
    found.save(tmp_path / "m.fspll")
    assert FsPLLClassifier.load(tmp_path / "m.fspll").check_ == found.check_
    earlier = {name: value for name, value in vars(found.check_).items() if name != "decides"}
    assert read_check(earlier) == replace(found.check_, decides=True)
    assert not Check(25, 0.8, 0.9, 0.8, 0.9, gain=0.0, gain_error=0.1).separates
    assert Check(25, 0.8, 0.9, 0.8, 0.9, gain=0.0, gain_error=0.1, decides=False).separates
