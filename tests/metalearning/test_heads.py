"""Heads on frozen encoders: the closed form, and what it is chosen by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll._common.errors import InputError, TaskError
from fspll.candidates import Candidates
from fspll.embeddings import Whitening
from fspll.metalearning import heads
from fspll.metalearning.head_tasks import (
    Episode,
    HeadPlan,
    suited_to,
    tasks_of_classes,
    tasks_of_sets,
)
from fspll.metalearning.heads import _decompose, _factors, _scatter, fit_head

CLASSES, PER_CLASS, WIDTH = 16, 12, 5
LABELS = np.repeat(np.arange(CLASSES), PER_CLASS)
SPREAD = torch.tensor([8.0, 1, 1, 1, 1])  # within classes: the first feature is mostly noise


def samples(spread=SPREAD, seed=0):
    drawn = torch.Generator().manual_seed(seed)
    means = 3 * torch.randn(CLASSES, WIDTH, generator=drawn)
    return means[LABELS] + spread * torch.randn(len(LABELS), WIDTH, generator=drawn)


def candidate_sets(r, seed=0):
    rng = np.random.default_rng(seed)
    sets = []
    for label in LABELS:
        others = rng.choice(np.delete(np.arange(CLASSES), label), r, replace=False)
        sets.append({int(label), *map(int, others)})
    return Candidates.read(sets)


def nearest_mean_accuracy(x, labels=LABELS):
    """Share of samples nearest to the mean of their own class, computed without them."""
    right = 0
    for row in range(len(x)):
        rest = np.arange(len(x)) != row
        means = torch.stack([x[(labels == c) & rest].mean(0) for c in np.unique(labels)])
        right += int((means - x[row]).norm(dim=1).argmin()) == labels[row]
    return right / len(x)


# -------------------------------------------------------------------- the closed form


def test_scatter_is_the_sum_over_samples_and_classes():
    x = samples()[:6]
    confidence = torch.rand(6, 3, generator=torch.Generator().manual_seed(1))
    episode = Episode(torch.arange(6), torch.ones(6, 3, dtype=torch.bool), confidence)
    expected = torch.zeros(WIDTH, WIDTH)
    for c in range(3):
        weight = confidence[:, c]
        mean = (weight[:, None] * x).sum(0) / weight.sum()
        for i in range(6):
            expected += weight[i] * torch.outer(x[i] - mean, x[i] - mean)
    found = _scatter(x, [episode])
    assert torch.allclose(found.within, expected, rtol=1e-3, atol=1e-2)
    assert torch.allclose(found.total, x.sum(0))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_scatter_does_not_depend_on_the_origin(offset):
    x = samples()
    confidence = torch.eye(CLASSES)[LABELS]
    episode = Episode(torch.arange(len(x)), confidence.bool(), confidence)
    near, far = (_scatter(rows, [episode]) for rows in (x, x + offset))
    assert torch.allclose(near.within, far.within, rtol=1e-2, atol=1e-3 * float(near.within.max()))
    assert torch.allclose(far.total / len(x), x.mean(0) + offset, rtol=1e-6)


def test_features_far_from_the_origin_give_as_good_a_head():
    plan = HeadPlan(n_way=6, n_shot=6, n_tasks=24)
    found = [fit_head(x, tasks_of_classes(x, LABELS, plan)) for x in (samples(), samples() + 1e5)]
    assert found[1].held_out.loss < found[0].held_out.loss + 0.05 < found[0].unadapted.loss


def test_features_whose_squares_overflow_are_refused():
    x = samples() * 1e17
    plan = HeadPlan(n_way=6, n_shot=6, n_tasks=24)
    with pytest.raises(InputError, match=r"the largest feature is .*e\+18, too large to take"):
        fit_head(x, tasks_of_classes(x, LABELS, plan))
    x = samples() * 1e12
    assert fit_head(x, tasks_of_classes(x, LABELS, plan)).network(x).isfinite().all()


def test_features_that_are_all_equal_are_refused():
    x = torch.ones(len(LABELS), WIDTH)
    with pytest.raises(InputError, match="all samples have the same features; they tell no class"):
        fit_head(x, tasks_of_classes(x, LABELS, HeadPlan(n_way=4, n_shot=4, n_tasks=8)))


def test_without_shrinkage_the_scatter_becomes_even():
    x = samples()
    confidence = torch.eye(CLASSES)[LABELS]
    episode = Episode(torch.arange(len(x)), confidence.bool(), confidence)
    _, values, vectors = _decompose([_scatter(x, [episode])])
    z = x @ (vectors * _factors(values, 0.0))
    within = _scatter(z, [episode]).within
    assert torch.allclose(within / within[0, 0], torch.eye(WIDTH), atol=1e-3)
    assert torch.equal(_factors(values, 1.0), torch.ones(WIDTH))


@pytest.mark.parametrize("r", [(0,), (1,), (1, 2)])
def test_noisy_directions_count_less_on_classes_it_has_not_seen(r):
    x = samples()
    old, new = slice(0, 12 * PER_CLASS), slice(12 * PER_CLASS, None)
    plan = HeadPlan(n_way=6, n_shot=6, r=r, n_tasks=24)
    fitted = fit_head(x[old], tasks_of_classes(x[old], LABELS[old], plan))
    assert not fitted.changes_nothing
    assert fitted.held_out.loss < fitted.unadapted.loss
    before = nearest_mean_accuracy(x[new], LABELS[new] - 12)
    after = nearest_mean_accuracy(fitted.network(x[new]), LABELS[new] - 12)
    assert after > before + 0.05


def test_candidate_sets_of_a_table_do_as_well():
    x = samples()
    fitted = fit_head(x, tasks_of_sets(x, candidate_sets(2), HeadPlan()))
    assert fitted.shrinkage < 1
    fresh = samples(seed=1)
    assert nearest_mean_accuracy(fitted.network(fresh)) > nearest_mean_accuracy(fresh) + 0.05


def test_nothing_changes_where_nothing_can_be_gained():
    x = samples(torch.full((WIDTH,), 0.05))  # classes that lie far apart
    fitted = fit_head(x, tasks_of_classes(x, LABELS, HeadPlan(n_way=4, n_shot=6, n_tasks=8)))
    z = fitted.network(x)
    assert nearest_mean_accuracy(z) == nearest_mean_accuracy(x) == 1.0


def test_directions_of_little_scatter_are_left_out(monkeypatch):
    monkeypatch.setattr(heads, "MOST_FEATURES", WIDTH)
    x = torch.cat([samples(), 1e-4 * samples(seed=1)], dim=1)
    plan = HeadPlan(n_way=6, n_shot=6, n_tasks=24)
    fitted = fit_head(x, tasks_of_classes(x, LABELS, plan))
    assert fitted.shrinkage < 1
    assert fitted.network(x).shape == (len(x), fitted.network.n_features) == (len(x), WIDTH)


def test_equal_seeds_give_equal_heads_and_progress_ends():
    x, calls = samples(), []
    plan = HeadPlan(n_way=4, n_shot=4, n_tasks=12, r=(2,))
    one, two = (
        fit_head(x, tasks_of_classes(x, LABELS, plan), lambda *done: calls.append(done))
        for _ in range(2)
    )
    assert torch.equal(one.network.matrix, two.network.matrix)
    assert one.held_out == two.held_out
    done, total = calls[-1]
    assert done == total


# -------------------------------------------------------------------- tasks


def test_no_class_is_in_two_groups_and_families_stay_together():
    x = samples()
    families = np.arange(CLASSES) // 2
    plan = HeadPlan(n_way=4, n_shot=4, n_tasks=20)
    groups = tasks_of_classes(x, LABELS, plan, families=families)
    seen = [{int(f) for e in group for f in families[LABELS[e.rows]]} for group in groups]
    assert len(groups) == 2  # of 8 families, at least 3 in each: 8 // 3
    assert not seen[0] & seen[1]
    assert sum(len(group) for group in groups) == 20


def test_every_r_takes_its_turn():
    x = samples()
    groups = tasks_of_classes(x, LABELS, HeadPlan(n_way=4, n_shot=4, n_tasks=16, r=(0, 1)))
    sizes = {int(e.candidates.sum(1)[0]) for group in groups for e in group}
    assert sizes == {1, 2}


def test_true_labels_are_read_only_if_the_regime_says_so():
    x = samples()
    shape = {"n_way": 4, "n_shot": 4, "n_tasks": 8, "r": (2,)}
    for regime, size in (("precise", 1), ("leave-one-out", 3)):
        groups = tasks_of_classes(x, LABELS, HeadPlan(**shape, regime=regime))
        assert {int(s) for g in groups for e in g for s in e.candidates.sum(1)} == {size}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            np.repeat(np.arange(5), 8),
            "there are 5 classes to adapt an encoder to, but at least 6 are needed: two groups "
            "that are held out in turn",
        ),
        (np.repeat(np.arange(8), 3), "n_shot = 4 but class 0 has 3 samples"),
    ],
)
def test_too_little_data(labels, message):
    x = torch.zeros(len(labels), 2)
    with pytest.raises(TaskError) as error:
        tasks_of_classes(x, labels, HeadPlan(n_way=3, n_shot=4))
    assert str(error.value).replace("class 7", "class 0") == message or message in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "n_shot", "left_out"),
    [
        ([12] * 8, 10, 0),  # nothing to do
        ([5] * 8, 5, 0),
        ([3, 4, 12, 12, 12, 12, 12, 12, 12, 12], 10, 2),
        ([3, 3, 3, 12, 12, 12, 12, 12], 3, 0),  # six classes are needed
        ([1, 1, 2, 2, 2, 2, 2, 2], 2, 2),
    ],
)
def test_classes_may_be_small_and_unequal(sizes, n_shot, left_out):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows, plan = suited_to(labels, HeadPlan(r=(1,)))
    assert plan == HeadPlan(r=(1,), n_shot=n_shot)
    assert len(sizes) - len(np.unique(labels[rows])) == left_out
    x = torch.randn(len(labels), 3, generator=torch.Generator().manual_seed(0))
    groups = tasks_of_classes(x[rows], labels[rows], plan)
    assert {len(e.rows) // e.candidates.shape[1] for g in groups for e in g} == {n_shot}


def test_a_table_of_two_classes_is_too_little():
    x = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    with pytest.raises(TaskError, match="there are 2 classes to adapt an encoder to"):
        tasks_of_sets(x, Candidates.read([{"a"}, {"a"}, {"b"}, {"b"}]), HeadPlan())


def test_plans_are_checked():
    with pytest.raises(InputError) as error:
        HeadPlan(regime="fspll")
    assert str(error.value) == (
        "regime of a head must be one of leave-one-out, precise, not 'fspll'"
    )
    with pytest.raises(InputError, match="r must be a tuple of numbers of extra labels, not 1"):
        HeadPlan(r=1)


# -------------------------------------------------------------------- the network


def test_the_network_by_hand():
    head = Whitening(2, power=0.5, scale=3.0)
    found = head(torch.tensor([[9.0, -16.0]]))
    assert torch.allclose(found, torch.tensor([[1.8, -2.4]]))  # 3 (3, -4) / 5


def test_settings_of_the_network_are_checked():
    with pytest.raises(InputError, match="power of whitening must be"):
        Whitening(2, power=0)
    with pytest.raises(InputError, match="unit_length of whitening must be True or False, not 3"):
        Whitening(2, unit_length=3)
