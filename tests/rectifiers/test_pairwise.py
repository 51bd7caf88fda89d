"""The fast way: its identity, who is near, lost digits, parts of a batch, and the choice of way."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from fspll.rectifiers import FsPLLRule, neighbors, pairwise, rectify
from fspll.rectifiers.equations import METRICS

pytestmark = pytest.mark.usefixtures("one_thread")


def features(seed, shape, dtype=torch.float64):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape), dtype=dtype)


def few_candidates(seed, batch, n, n_classes, extra):
    """One label and ``extra`` more for each sample."""
    keys = np.random.default_rng(seed).random((*batch, n, n_classes))
    return torch.as_tensor(np.argsort(keys, axis=-1) < 1 + extra)


def loop_squares(e):
    e = e.double().numpy()
    return np.array([[((a - b) ** 2).sum() for b in e] for a in e])


# -------------------------------------------------------------------- the identity


@pytest.mark.parametrize("seed", range(5))
def test_distance_to_a_weighted_mean_needs_distances_between_samples_only(seed):
    """|e_i - p|^2 = sum_j w_j D_ij - 1/2 sum_jk w_j w_k D_jk for p = sum_j w_j e_j."""
    rng = np.random.default_rng(seed)
    e, w = rng.normal(size=(9, 4)), rng.random(9)
    w /= w.sum()
    p = w @ e
    D = np.square(e[:, None] - e[None]).sum(-1)
    direct = np.square(e - p).sum(-1)
    np.testing.assert_allclose(D @ w - w @ D @ w / 2, direct, atol=1e-12)
    # and the loop uses it rightly: one class, so that one round's distance shows in the confidence
    y = np.ones((9, 2), dtype=bool)
    y[0, 1] = False
    for metric, power in zip(METRICS, (0.5, 1.0), strict=True):
        q = rectify(
            torch.as_tensor(e), torch.as_tensor(y), FsPLLRule(0, 0, 1, metric), engine="pairwise"
        ).confidence.numpy()
        to_all = np.square(e - e.mean(0)).sum(-1) ** power
        to_rest = np.square(e - e[1:].mean(0)).sum(-1) ** power
        expected = np.exp(-to_all[1:]) / (np.exp(-to_all[1:]) + np.exp(-to_rest[1:]))
        np.testing.assert_allclose(q[1:, 0], expected, atol=1e-12)


# -------------------------------------------------------------------- distances


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shift", [0, 1000])
def test_squared_distances(dtype, shift):
    e = features(0, (3, 12, 5), dtype) + shift
    found = neighbors.squared_distances(e)
    assert found.shape == (3, 12, 12)
    assert found.dtype == dtype
    assert (found.diagonal(dim1=-2, dim2=-1) == torch.inf).all()
    others = ~torch.eye(12, dtype=torch.bool)
    for task, square in zip(e, found, strict=True):
        np.testing.assert_allclose(
            square[others],
            loop_squares(task)[others.numpy()],
            rtol=1e-10 if dtype == torch.float64 else 1e-4,
        )


def test_squared_norms_are_taken_from_the_mean():
    e = torch.tensor([[0.0, 0.0], [4.0, 2.0]])
    assert neighbors.squared_norms(e).tolist() == [5.0, 5.0]
    assert neighbors.squared_norms(e + 64).tolist() == [5.0, 5.0]


def test_squared_distances_are_never_negative():
    e = torch.full((30, 7), 0.1).cumsum(1) + features(1, (30, 7), torch.float32) * 1e-6
    assert (neighbors.squared_distances(e) >= 0).all()


def test_lost_digits_of_near_duplicates_come_back():
    """Two samples a thousandth apart, 100 away from the rest: in single precision

    |a|^2 + |b|^2 - 2ab is a difference of numbers near 10,000 and knows nothing of 1e-6.
    """
    e = features(2, (1, 10, 4), torch.float32) * 100
    e[0, 1] = e[0, 0] + 0.001
    exact = loop_squares(e[0])
    square, norms = neighbors.squared_distances(e), neighbors.squared_norms(e)
    assert abs(square[0, 0, 1].item() / exact[0, 1] - 1) > 0.1  # lost
    restored = neighbors.restore_canceled(square, e, norms)
    np.testing.assert_allclose(restored[0], exact, rtol=1e-4)
    assert not restored.diagonal(dim1=-2, dim2=-1).any()
    assert restored[0, 0, 1] == restored[0, 1, 0]


@pytest.mark.parametrize("at_once", [1, 1000, 1 << 22])
def test_many_near_duplicates_are_restored_in_parts(monkeypatch, at_once):
    monkeypatch.setattr(neighbors, "_FEATURES_AT_ONCE", at_once)
    e = features(3, (1, 40, 2), torch.float32) * 1e-3
    e[0, 0] = 50  # keeps the mean away from the rest
    square, norms = neighbors.squared_distances(e), neighbors.squared_norms(e)
    restored = neighbors.restore_canceled(square, e, norms)[0, 1:, 1:]
    np.testing.assert_allclose(restored, loop_squares(e[0, 1:]), rtol=1e-4, atol=1e-13)


# -------------------------------------------------------------------- who is near


def nearest_by_sorting(square, k):
    limit = np.sort(square, axis=-1)[..., k - 1 : k]
    return square <= limit


def as_square(values):
    """Turn rows of distances to others into a matrix with an infinite diagonal."""
    n = len(values)
    square = torch.full((n, n), torch.inf)
    square[~torch.eye(n, dtype=torch.bool)] = torch.as_tensor(values).float().flatten()
    return square


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distinct", [2, 4, 10_000])
@pytest.mark.parametrize("seed", range(10))
def test_nearest_against_a_sort(seed, distinct, dtype):
    """Few distinct distances make ties the rule."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    square = rng.integers(0, distinct, (3, n, n)) * 0.3
    square[:, np.arange(n), np.arange(n)] = np.inf
    square = torch.as_tensor(square, dtype=dtype)
    for k in range(1, n):
        found = neighbors.nearest(square, k)
        assert found.dtype == torch.bool
        np.testing.assert_array_equal(found, nearest_by_sorting(square.numpy(), k))
        assert (found.sum(-1) >= k).all()
        assert not found.diagonal(dim1=-2, dim2=-1).any()


def test_too_many_in_one_row_do_not_make_up_for_too_few_in_another():
    """Row 0 has two distinct distances only, rows 1 and 2 have three more than k between them."""
    values = [[1, 2, 2, 2, 2, 2], [1, 2, 3, 4, 4, 4], [1, 2, 3, 4, 4, 5]] + [[1, 2, 3, 4, 5, 6]] * 4
    square = as_square(values)
    found = neighbors.nearest(square, 4)
    assert found.sum(-1).tolist() == [6, 6, 5, 4, 4, 4, 4]
    np.testing.assert_array_equal(found, nearest_by_sorting(square.numpy(), 4))


@pytest.mark.parametrize("k", [1, 3, 12, 13, 19])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbors_with_equal_distances_do_not_hang_on_rounding(k, dtype):
    """Thirds of a grid centered on a mean that is no whole number: ties stay ties."""
    for seed in range(5):
        grid = np.random.default_rng(seed).integers(-2, 3, (4, 20, 3)).astype(float)
        e = torch.as_tensor(grid, dtype=dtype)
        square, norms = neighbors.squared_distances(e), neighbors.squared_norms(e)
        found = neighbors.neighbors(square, e, norms, k)
        for task, near in zip(grid, found, strict=True):
            exact = np.square(task[:, None] - task[None]).sum(-1)
            np.fill_diagonal(exact, np.inf)
            np.testing.assert_array_equal(near, nearest_by_sorting(exact, k))


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_neighbors_inside_tight_clusters(k):
    """Norms of 10,000 hide squared distances of 1e-6 from single precision."""
    for seed in range(5):
        centers = features(seed, (5, 1, 6), torch.float32) * 40
        e = (centers + features(seed + 9, (5, 10, 6), torch.float32) * 1e-3).reshape(1, 50, 6)
        square, norms = neighbors.squared_distances(e), neighbors.squared_norms(e)
        exact = loop_squares(e[0])
        np.fill_diagonal(exact, np.inf)
        found = neighbors.neighbors(square, e, norms, k)[0]
        np.testing.assert_array_equal(found, nearest_by_sorting(exact, k))


# -------------------------------------------------------------------- parts and choices


def outcomes(e, y, settings=None):
    result = rectify(e, y, settings or FsPLLRule(3), engine="pairwise", history=True)
    return result.prototypes, result.confidence, *result.history


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("pairs_at_once", [1, 500])
def test_the_size_of_the_parts_does_not_matter(monkeypatch, metric, pairs_at_once):
    e, y = features(4, (7, 15, 6)), few_candidates(4, (7,), 15, 5, 1)
    parts = []
    work = pairwise._rounds_of_part

    def count(*args):
        parts.append(len(args[0]))
        return work(*args)

    monkeypatch.setattr(pairwise, "_rounds_of_part", count)
    whole = outcomes(e, y, FsPLLRule(3, metric=metric))
    assert parts == [7]
    parts.clear()
    monkeypatch.setattr(pairwise, "_PAIRS_AT_ONCE", pairs_at_once)
    for a, b in zip(whole, outcomes(e, y, FsPLLRule(3, metric=metric)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)
    assert len(parts) > 1
    assert sum(parts) == 7


def test_pairs_of_one_class_are_counted():
    y = torch.tensor([[[1, 1, 0], [1, 0, 0], [1, 0, 0]], [[1, 1, 1]] * 3]).bool()
    assert pairwise.count_pairs(y).tolist() == [9 + 1, 27]


def test_pairs_are_cheaper_for_small_candidate_sets_and_many_features():
    assert pairwise.is_cheaper(few_candidates(0, (2,), 100, 20, 1), 64)
    assert not pairwise.is_cheaper(torch.ones(2, 100, 20, dtype=torch.bool), 64)
    # one task that is too heavy decides for the batch
    mixed = few_candidates(0, (2,), 100, 20, 1)
    mixed[1] = True
    assert not pairwise.is_cheaper(mixed, 64)


def test_memory_forbids_pairs(monkeypatch):
    y = few_candidates(0, (1,), 100, 20, 1)
    assert pairwise.is_cheaper(y, 64)
    monkeypatch.setattr(pairwise, "_MOST_PAIRS", int(pairwise.count_pairs(y)) - 1)
    assert not pairwise.is_cheaper(y, 64)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("extra", [0, 1, 5])
def test_the_choice_of_the_way_does_not_show(monkeypatch, metric, extra):
    e, y = features(5, (4, 24, 9)), few_candidates(5, (4,), 24, 6, extra)
    taken = []
    work = pairwise.rounds
    monkeypatch.setattr(pairwise, "rounds", lambda *a, **k: (taken.append(1), work(*a, **k))[1])
    results = []
    for cheaper in (True, False):
        monkeypatch.setattr(pairwise, "is_cheaper", lambda y, m, answer=cheaper: answer)
        results.append(rectify(e, y, FsPLLRule(3, metric=metric)))
        assert len(taken) == 1  # pairs the first time only
    torch.testing.assert_close(results[0].prototypes, results[1].prototypes, rtol=0, atol=1e-10)
    torch.testing.assert_close(results[0].confidence, results[1].confidence, rtol=0, atol=1e-10)


def test_a_new_process_warns_of_nothing():
    """Torch notes once a process that sparse matrices are young; users should not see that."""
    code = (
        "import torch\n"
        "from fspll.rectifiers.paper import rectify\n"
        "y = torch.eye(3, dtype=torch.bool)\n"
        "print(rectify(torch.eye(3), y, engine='pairwise').confidence.shape)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "torch.Size([3, 3])\n"
