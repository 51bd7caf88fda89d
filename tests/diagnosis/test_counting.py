"""Counting matchings: each is listed once, and how far counting goes."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from fspll.diagnosis import diagnose
from fspll.diagnosis.solving import count


def test_every_matching_is_listed_once():
    counts = count(np.zeros((3, 5)))
    listed = counts.listed(60)
    assert sorted(map(tuple, listed.tolist())) == list(permutations(range(5), 3))
    assert counts.listed(59) is None


def test_weights_are_those_of_products():
    weights = np.random.default_rng(0).random((3, 4)) + 0.1
    shares = np.zeros((3, 4))
    for labels in permutations(range(4), 3):
        shares[range(3), labels] += weights[range(3), labels].prod()
    found = count(np.log(weights)).marginals
    assert np.allclose(found, shares / shares.sum(axis=1, keepdims=True))


def test_nineteen_clusters_with_any_labels_are_too_many():
    assert count(np.zeros((19, 19))) is None
    assert count(np.zeros((1, 64))) is None  # more labels open than a state has bits


def test_a_long_ring_is_counted_not_sampled():
    # More labels than bits of a state, but few are open at a time.
    size = 120
    ring = np.eye(size, dtype=bool) | np.roll(np.eye(size, dtype=bool), 1, axis=1)
    found = diagnose(ring, np.arange(size))
    assert found.exact
    assert np.allclose(found.marginals, ring / 2)
    assert [question.ceiling_after for question in found.ask] == [1.0]
