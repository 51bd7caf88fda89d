"""Votes of annotators: worth following where they inform, without effect where they do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from fspll import FsPLLClassifier
from fspll._common.errors import InputError
from fspll.rectifiers import EvidenceRule, infer_labels
from fspll.rectifiers.assignment import name_groups


def survey(seed, accuracy, people=4, n_classes=10, n_shot=8, spread=0.6):
    """Overlapping classes; each person is right with a probability, else picks any other label."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_classes), n_shot)
    n = len(truth)
    X = rng.normal(size=(n_classes, 16))[truth] * 0.3 + rng.normal(size=(n, 16)) * spread
    votes = np.zeros((n, n_classes))
    for _ in range(people):
        other = (truth + rng.integers(1, n_classes, n)) % n_classes
        chosen = np.where(rng.random(n) < accuracy, truth, other)
        np.add.at(votes, (np.arange(n), chosen), 1)
    missing = votes[np.arange(n), truth] == 0
    votes[missing, truth[missing]] = 1
    return X, truth, votes


def test_informative_votes_help():
    without, with_votes = [], []
    for seed in range(10):
        X, truth, votes = survey(seed, accuracy=0.6)
        without.append((FsPLLClassifier().fit(X, votes > 0).labels_ == truth).mean())
        clf = FsPLLClassifier().fit(X, votes > 0, votes=sparse.csr_array(votes))
        with_votes.append((clf.labels_ == truth).mean())
    assert np.mean(with_votes) > np.mean(without) + 0.03


def test_even_votes_change_nothing():
    X, _, votes = survey(0, accuracy=0.6)
    sets = votes > 0
    plain = FsPLLClassifier().fit(X, sets)
    for even in (sets * 1.0, sets * np.arange(1, len(X) + 1)[:, None]):
        clf = FsPLLClassifier().fit(X, sets, votes=even)
        assert np.array_equal(clf.confidence_, plain.confidence_)
        assert np.array_equal(clf.prototypes_, plain.prototypes_)
        assert np.array_equal(clf.naming_, plain.naming_)


def test_an_even_prior_gives_the_same_beliefs_by_the_other_road():
    X, _, votes = survey(1, accuracy=0.5)
    e, y = torch.from_numpy(X), torch.from_numpy(votes > 0)
    plain = infer_labels(e, y)
    even = infer_labels(e, y, prior=torch.full(y.shape, 3.0))
    torch.testing.assert_close(even.confidence, plain.confidence)
    torch.testing.assert_close(even.naming, plain.naming)
    batch = infer_labels(torch.stack([e, e]), torch.stack([y, y]), prior=torch.ones(2, *y.shape))
    torch.testing.assert_close(batch.confidence[1], plain.confidence)


def test_votes_name_labels_that_always_come_together():
    X = np.repeat([[0.0] * 8, [9.0] * 8], 6, axis=0) + np.linspace(0, 0.5, 12)[:, None]
    votes = np.array([[2.0, 1.0]] * 6 + [[1.0, 2.0]] * 6)
    undecided = FsPLLClassifier().fit(X, votes > 0)
    assert undecided.confidence_.max() < 0.6
    clf = FsPLLClassifier().fit(X, votes > 0, votes=votes)
    assert clf.labels_.tolist() == [0] * 6 + [1] * 6
    assert clf.confidence_.max(axis=1).min() > 0.99
    assert clf.predict([[0.2] * 8, [9.1] * 8]).tolist() == [0, 1]


def test_unlabeled_samples_have_no_votes():
    X, _, votes = survey(2, accuracy=0.6)
    clf = FsPLLClassifier().fit(X[:60], votes[:60] > 0, X[60:], votes=votes[:60])
    assert clf.confidence_.shape == (60, 10)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_votes_that_cannot_be(value):
    X, _, votes = survey(0, accuracy=0.6)
    wrong = votes.copy()
    wrong[0, votes[0].argmax()] = value
    with pytest.raises(InputError, match="votes must be a positive number"):
        FsPLLClassifier().fit(X, votes > 0, votes=wrong)
    with pytest.raises(InputError, match="prior must be a positive, finite number"):
        infer_labels(
            torch.from_numpy(X), torch.from_numpy(votes > 0), prior=torch.from_numpy(wrong)
        )


def test_votes_of_another_shape():
    X, _, votes = survey(0, accuracy=0.6)
    with pytest.raises(InputError, match=r"votes have shape \(80, 9\), but the candidates"):
        FsPLLClassifier().fit(X, votes > 0, votes=votes[:, 1:])
    with pytest.raises(InputError, match="prior has shape"):
        infer_labels(torch.from_numpy(X), torch.from_numpy(votes > 0), prior=torch.ones(3))


@pytest.mark.parametrize("with_votes", [False, True])
def test_explained_rounds_are_those_of_the_inference(with_votes):
    X, _, votes = survey(3, accuracy=0.5)
    e, y = torch.from_numpy(X), torch.from_numpy(votes > 0)
    settings = EvidenceRule(n_neighbors=5, n_iterations=4)
    prior = torch.from_numpy(np.where(votes > 0, votes, 1)) if with_votes else None
    direct = infer_labels(e, y, settings, prior)
    found = infer_labels(e, y, settings, prior, trace=True)
    assert torch.equal(found.confidence, direct.confidence)
    assert torch.equal(found.trace.prototypes[-1], direct.prototypes)
    assert found.trace.confidence.shape == (5, *y.shape)
    torch.testing.assert_close(found.trace.confidence.sum(dim=-1), torch.ones(5, len(X)).double())
    assert not torch.equal(found.trace.prototypes[0], found.trace.prototypes[-1])
    if not with_votes:
        assert torch.equal(name_groups(found.trace.groups.member[None], y[None])[0], direct.naming)
    with pytest.raises(InputError, match="one task at a time"):
        infer_labels(e[None], y[None], trace=True)
