"""PALOC: votes of pairs of classes, refined candidate sets, and machines stacked on top."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.svm import SVC

from fspll.baselines import PALOC
from fspll.baselines.paloc import count_votes
from fspll.candidates import Candidates, corrupt
from fspll.datasets.partial_label import load_partial_label_mat


def blobs(n_way=4, n_shot=8, r=0, seed=0, spread=1.2):
    rng = np.random.default_rng(seed)
    truth = np.tile(np.arange(n_way), n_shot)
    centers = 2 * rng.normal(size=(n_way, 3))
    X = centers[truth] + spread * rng.normal(size=(len(truth), 3))
    new = centers[truth] + spread * rng.normal(size=(len(truth), 3))
    return X, corrupt(truth, 1, r, rng, classes=range(n_way)), new, truth


def test_votes_by_hand():
    # Pairs (0, 1), (0, 2), (1, 2); the second sample's first machine abstains.
    votes, margins = count_votes(np.array([[0.5, -2.0, 1.0], [0.0, 1.0, -1.0]]), 3)
    assert votes.tolist() == [[1, 1, 1], [1, 0, 1]]
    assert margins.tolist() == [[-1.5, 0.5, 1.0], [1.0, -1.0, 0.0]]


def plain_paloc(X, sets, new, mu=10):
    """Return the predictions of the method, written down as it is described."""
    mask, d, n_classes = sets.mask, X.shape[1], sets.n_classes
    pairs = {}
    for j, k in combinations(range(n_classes), 2):
        who = np.flatnonzero(mask[:, j] != mask[:, k])
        y = np.where(mask[who, j], 1, -1)
        if len(set(y)) == 2:
            pairs[j, k] = SVC(C=1, gamma=1 / d, tol=1e-5).fit(X[who], y)

    def outputs(samples):
        zero = np.zeros(len(samples))
        every = combinations(range(n_classes), 2)
        return np.array(
            [pairs[p].decision_function(samples) if p in pairs else zero for p in every]
        ).T

    def votes(g):
        total, margin = np.zeros((len(g), n_classes)), np.zeros((len(g), n_classes))
        for t, (j, k) in enumerate(combinations(range(n_classes), 2)):
            total[:, j] += g[:, t] > 0
            total[:, k] += g[:, t] < 0
            margin[:, j] += g[:, t]
            margin[:, k] -= g[:, t]
        return total, margin

    def winners(total, margin):
        return [
            max(range(n_classes), key=lambda j: (total[i, j], margin[i, j]))
            for i in range(len(total))
        ]

    g = outputs(X)
    refined = mask.copy()
    for i, winner in enumerate(winners(*votes(g))):
        if mask[i, winner]:
            refined[i] = np.arange(n_classes) == winner
    stacked, new_g = np.hstack([X, g]), outputs(new)
    total, margin = votes(new_g)
    for j in range(n_classes):
        if 0 < refined[:, j].sum() < len(X):
            svm = SVC(C=1, gamma=1 / stacked.shape[1], tol=1e-5).fit(stacked, refined[:, j])
            total[:, j] += mu * (svm.decision_function(np.hstack([new, new_g])) > 0)
    return refined, winners(total, margin)


@pytest.mark.parametrize("r", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_method_by_a_plain_loop(r, seed):
    """With r = 0 this is ordinary one-against-one voting, stacked."""
    X, sets, new, _ = blobs(r=r, seed=seed)
    clf = PALOC(scale="none").fit(X, sets)
    refined, predicted = plain_paloc(X, sets, new)
    assert np.array_equal(clf.refined_, refined)
    assert clf.predict(new).tolist() == predicted


def test_ordinary_labels_are_refined_to_themselves():
    X, sets, new, truth = blobs()
    clf = PALOC().fit(X, sets)
    assert np.array_equal(clf.refined_, sets.mask)
    assert clf.labels_.tolist() == truth.tolist()
    assert clf.n_pairs_ == 6
    assert clf.score(new, truth) > 0.7


def test_refined_sets_lie_in_the_candidate_sets():
    X, sets, _, _ = blobs(r=1, spread=3.0)
    clf = PALOC().fit(X, sets)
    assert (clf.refined_ <= sets.mask).all()
    sizes = clf.refined_.sum(axis=1)
    assert set(sizes.tolist()) == {1, 2}  # some winners are candidates, some are not
    certain = sizes == 1
    assert np.array_equal(clf.labels_[certain], clf.refined_[certain].argmax(axis=1))


def test_machines_on_top_outvote_the_pairs():
    X, sets, new, _ = blobs(r=1)
    alone, together = (PALOC(mu=mu).fit(X, sets).decision_function(new) for mu in (0, 10))
    extra = together - alone
    assert set(np.round(extra, 6).ravel().tolist()) == {0.0, 10.0}
    # Ties are ordered by a fraction that never outweighs a vote, whatever mu is.
    votes = np.round(alone)
    assert np.abs(alone - votes).max() < 0.34
    for mu in (0.25, 10.9):
        fraction = PALOC(mu=mu).fit(X, sets).decision_function(new) - mu * (extra > 5) - votes
        assert np.abs(fraction).max() < min(mu % 1, 1 - mu % 1) / 2


def test_without_pairs_the_nearest_mean_decides():
    X = np.array([[0.0], [1.0], [2.0], [9.0]])
    same = PALOC().fit(X, Candidates.from_mask(np.ones((4, 3))))
    assert same.n_pairs_ == 0
    assert same.predict(X).tolist() == [0] * 4
    only = PALOC(classes=["a", "b"]).fit(X, ["b"] * 4)
    assert only.predict(X).tolist() == ["b"] * 4


@pytest.mark.parametrize(("name", "least"), [("lost.mat", 0.41), ("MSRCv2.mat", 0.29)])
def test_real_data(real_data, name, least):
    """Half of the samples to learn from; two splits, whose mean varies by about 0.015."""
    data = load_partial_label_mat(real_data(f"pll/{name}"))
    scores = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(data))
        train, test = order[: len(data) // 2], order[len(data) // 2 :]
        clf = PALOC().fit(data.X[train], data.candidates.take(train))
        scores.append(clf.score(data.X[test], data.true_labels[test]))
    assert np.mean(scores) > least
