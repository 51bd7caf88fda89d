"""The reliability of neighbors, and decoys, against counting and against what made the data."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from fspll.candidates import corrupt_mask
from fspll.rectifiers.sparse import decoys
from fspll.rectifiers.sparse import neighbor_likelihood as trust
from fspll.rectifiers.sparse.decoys import DecoyTest, add_decoys
from fspll.rectifiers.sparse.entries import Entries
from fspll.rectifiers.sparse.grouped_neighbors import nearest_in_groups
from fspll.rectifiers.sparse.neighbor_likelihood import neighbor_log_likelihood


@pytest.mark.parametrize(("mine", "other"), [(1, 1), (1, 3), (2, 2), (3, 2), (4, 4), (5, 1)])
def test_overlap_by_chance_as_counted(mine, other):
    n_classes = 6
    first = set(range(mine))  # its class is 0
    met = total = 0
    for label in range(1, n_classes):
        for more in combinations([c for c in range(n_classes) if c != label], other - 1):
            total += 1
            met += bool(first & {label, *more})
    overlap = trust._OverlapByChance(np.array([mine, other]), n_classes - 1)
    found = overlap(np.array([0]), np.array([1]))
    assert found[0] == pytest.approx(met / total, abs=1e-8)


def made(n, n_classes, noise, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % n_classes)
    features = rng.normal(size=(n_classes, 12))[truth] + noise * rng.normal(size=(n, 12))
    return (
        features,
        Entries.of(sparse.csr_array(corrupt_mask(truth, n_classes, 1.0, 3, rng))),
        truth,
    )


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_reliability_is_found_without_labels(noise):
    features, entries, truth = made(2000, 50, noise)
    neighbors = nearest_in_groups(features, entries, 8)
    links = trust._Links(entries, neighbors)
    found = np.full(trust._LEVELS, 0.5)
    for _ in range(30):
        found = links.expected_share(found, entries.softmax(links.score(found)))
    source = np.repeat(np.arange(len(entries)), np.diff(neighbors.links.indptr))
    pairs = np.unique(np.stack([entries.row[source], entries.row[neighbors.links.indices]]), axis=1)
    real = (truth[pairs[0]] == truth[pairs[1]]).mean()
    estimate = (found * links.pairs).sum() / links.pairs.sum()
    assert estimate == pytest.approx(real, abs=0.06)


def test_neighbors_say_what_they_share():
    entries = Entries.of(sparse.csr_array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]))
    features = np.array([[0.0], [0.1], [0.2], [9.0]])
    said = neighbor_log_likelihood(entries, nearest_in_groups(features, entries, 2))
    first, second = said[:2]  # both near samples share the first label, nobody near the second
    assert first > second + 1


# -------------------------------------------------------------------- decoys


def test_decoys_are_labels_that_a_sample_does_not_have():
    _, entries, _ = made(3000, 30, 1.0)
    more, real = add_decoys(entries, np.random.default_rng(0))
    assert np.array_equal(more.label[real], entries.label)
    assert np.array_equal(more.row[real], entries.row)
    assert 0 < (~real).sum() <= decoys.DECOYS * decoys.FEWEST
    assert len(np.unique(more.row[~real])) <= decoys.FEWEST
    counts = np.bincount(more.label[~real], minlength=30)
    assert counts.min() > 10  # drawn evenly


def test_no_decoy_of_a_class_that_nobody_has():
    entries = Entries.of(sparse.csr_array(np.eye(6, 9, dtype=bool)))
    more, real = add_decoys(entries, np.random.default_rng(0))
    assert (more.label[~real] < 6).all()
    assert (~real).any()


def test_decoys_tell_a_source_that_knows_from_one_that_does_not():
    _, entries, truth = made(3000, 30, 1.0)
    rng = np.random.default_rng(1)
    more, real = add_decoys(entries, rng)
    true = more.label == truth[more.row]
    knows = 2.0 * true + rng.normal(size=len(more))
    noise = rng.normal(size=len(more))
    weights = DecoyTest(more, real).weights([knows, noise], [1.0, 1.0], [9.0, 9.0])
    # Log-likelihood ratio of two normal distributions that are two apart: twice the value.
    assert weights[0] == pytest.approx(2, rel=0.25)
    assert weights[1] < 0.2


def test_the_slope_of_the_loss():
    _, entries, _ = made(300, 10, 1.0)
    rng = np.random.default_rng(2)
    more, real = add_decoys(entries, rng)
    test = DecoyTest(more, real)
    values, at, base = rng.normal(size=(2, len(test.entry))), np.array([0.3, -0.7]), np.zeros(2)
    _, slope = test._loss(at, values, base)
    for i in range(2):
        step = 1e-6 * np.eye(2)[i]
        up, down = (test._loss(at + sign * step, values, base)[0] for sign in (1, -1))
        assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_without_decoys_the_usual_weights():
    entries = Entries.of(sparse.csr_array(np.ones((3, 2), dtype=bool)))
    more, real = add_decoys(entries, np.random.default_rng(0))
    assert real.all()
    weights = DecoyTest(more, real).weights([np.zeros(6), np.ones(6)], [16.0, 0.3], [99.0, 1.0])
    assert weights.tolist() == pytest.approx([16, 0.3])


def test_weights_keep_their_limit():
    _, entries, truth = made(1000, 30, 1.0)
    more, real = add_decoys(entries, np.random.default_rng(0))
    knows = 5.0 * (more.label == truth[more.row])
    weights = DecoyTest(more, real).weights([knows], [0.5], [1.0])
    assert weights[0] == pytest.approx(1.0)
