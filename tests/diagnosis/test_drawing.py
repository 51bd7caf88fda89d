"""Drawing matchings: against exact counts, and where drawing is hard."""

from __future__ import annotations

import numpy as np
import pytest

from fspll.candidates import corrupt_mask
from fspll.diagnosis import diagnose
from fspll.diagnosis.solving import draw


def entangled(n_way, r, seed):
    labels = np.arange(n_way)
    return corrupt_mask(labels, n_way, 1, r, np.random.default_rng(seed)), labels


def sampled(monkeypatch, mask, clusters, **settings):
    with monkeypatch.context() as patch:
        patch.setattr("fspll.diagnosis.solving.STEPS_TO_COUNT", 0)
        return diagnose(mask, clusters, **settings)


@pytest.mark.parametrize(("n_way", "r", "n_left_out"), [(12, 3, 0), (12, 4, 3), (9, 8, 2)])
def test_sampling_agrees_with_counting(monkeypatch, n_way, r, n_left_out):
    mask, clusters = entangled(n_way, r, seed=1)
    keep = n_way - n_left_out
    mask, clusters = mask[:keep], clusters[:keep]
    exact = diagnose(mask, clusters, n_ask=1)
    found = sampled(monkeypatch, mask, clusters, n_ask=1)
    assert exact.exact
    assert not found.exact
    assert 0 < found.ceiling_error < 0.005
    assert abs(found.ceiling - exact.ceiling) < 4 * found.ceiling_error
    # Of 20,000 independent draws a share would vary by 0.004 at most.
    assert np.abs(found.marginals - exact.marginals).max() < 0.02
    assert not found.marginals[exact.marginals == 0].any()
    assert found.undecided == exact.undecided
    assert found.ask[0].ceiling_after == pytest.approx(exact.ask[0].ceiling_after, abs=0.015)


def test_sampling_agrees_with_counting_when_sets_contradict(monkeypatch):
    mask, clusters = entangled(8, 3, seed=2)
    mask[0] = mask[1] = mask[2] = [True, *[False] * 7]
    exact, found = diagnose(mask, clusters, n_ask=0), sampled(monkeypatch, mask, clusters, n_ask=0)
    assert len(exact.contradictions) == 2
    assert np.abs(found.marginals - exact.marginals).max() < 0.02
    assert abs(found.ceiling - exact.ceiling) < 4 * found.ceiling_error


def test_sampling_reaches_what_only_a_long_exchange_reaches(monkeypatch):
    # Of six clusters in a ring, each may have its own label or the next: two matchings in all.
    ring = np.eye(6, dtype=bool) | np.roll(np.eye(6, dtype=bool), 1, axis=1)
    found = sampled(monkeypatch, ring, np.arange(6))
    assert np.abs(found.marginals - ring / 2).max() < 0.02
    assert found.undecided == [[0, 1, 2, 3, 4, 5]]


def test_sampling_is_repeated_by_its_seed(monkeypatch):
    mask, clusters = entangled(9, 4, seed=0)
    one, same, other = (
        sampled(monkeypatch, mask, clusters, n_ask=0, seed=seed) for seed in (3, 3, 4)
    )
    assert np.array_equal(one.marginals, same.marginals)
    assert not np.array_equal(one.marginals, other.marginals)


def test_all_labels_possible_is_chance_at_any_size():
    # 22 clusters of one sample are too many to count; the largest of noisy shares would mislead.
    found = diagnose(np.ones((22, 22), dtype=bool), np.arange(22), n_ask=2)
    assert not found.exact
    assert abs(found.ceiling - 1 / 22) < 4 * found.ceiling_error
    assert found.ask[0].ceiling_after == pytest.approx(2 / 22, abs=0.005)


def test_a_hundred_classes():
    mask, clusters = entangled(100, 3, seed=0)
    found = diagnose(mask, clusters, n_ask=2)
    assert np.allclose(found.marginals.sum(axis=1), 1)
    assert not found.marginals[~mask].any()
    assert 0.3 < found.ceiling < 0.7
    rises = np.diff([found.ceiling, *(question.ceiling_after for question in found.ask)])
    assert len(rises) == 2
    assert (rises > 0).all()


def hexagons_both_ways(k):
    """Return candidates in a ring of 2 k hexagons that chains seldom leave for a full matching.

    Half of the hexagons can be matched in two ways each when the links between them are unused,
    the other half when they are used. Full matchings use all links or none, about 2^k of them
    each; with one cluster without a label both halves can have their way, in 4^k states.
    """
    candidates = np.zeros((6 * k + 1, 6 * k + 1), dtype=bool)
    clusters, labels = iter(range(len(candidates))), iter(range(len(candidates)))
    before = next(clusters)
    for near, far, sides in ((labels, clusters, candidates.T), (clusters, labels, candidates)):
        for _ in range(k):
            a, c, e = (next(near) for _ in range(3))
            b, d, f = (next(far) for _ in range(3))
            sides[a, before] = True
            sides[[a, c, c, e, e, a], [b, b, d, d, f, f]] = True
            before = d
        if near is labels:
            candidates[before, label := next(labels)] = True
            before = label
    candidates[0, before] = True
    return candidates


def test_chains_that_seldom_return_leave_their_starts(monkeypatch):
    mask = hexagons_both_ways(12)
    clusters = np.arange(len(mask))
    exact = diagnose(mask, clusters, n_ask=0)
    assert exact.exact
    assert sorted(set(exact.marginals.round(3).ravel())) == [0, 0.25, 0.5, 0.75]
    monkeypatch.setattr("fspll.diagnosis.solving.STEPS_TO_DRAW", 500)
    drawn, chain = draw(np.where(mask, 0.0, -np.inf), 20_000, np.random.default_rng(0))
    assert chain.tolist() == list(range(256))
    assert mask[clusters, drawn].all()
    assert (np.sort(drawn, axis=1) == clusters).all()
    found = sampled(monkeypatch, mask, clusters, n_ask=1)
    assert not found.exact
    assert found.ceiling == pytest.approx(exact.ceiling, abs=0.01)
    # Of 256 independent draws a share varies by 0.03.
    assert np.abs(found.marginals - exact.marginals).max() < 0.12
    assert found.ask[0].ceiling_after > found.ceiling
