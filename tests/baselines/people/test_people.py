"""Majority vote, Dawid-Skene and CROWDLAB: by hand, by limits, and against another program."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fspll._common.errors import InputError
from fspll.annotations import read_annotations
from fspll.baselines import BASELINES, CROWDLAB, DawidSkene, MajorityVote
from fspll.baselines.people.base import anonymous, majority_shares
from fspll.baselines.people.crowdlab import agreement_weights, combine
from fspll.baselines.people.dawid_skene import estimate
from fspll.baselines.people.soft_logistic import SoftLogistic, out_of_sample
from fspll.candidates import Judgments

PEOPLE = [name for name in BASELINES if BASELINES.get(name).uses_judgments]


def crowd(seed=0, n=300, n_classes=4, accuracies=(0.95, 0.9, 0.6, 0.5, 0.4), each=3, d=6):
    """Return features, truth and what people said, each right with a probability of their own."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    X = 3 * rng.normal(size=(n_classes, d))[truth] + rng.normal(size=(n, d))
    who = np.argsort(rng.random((n, len(accuracies))), axis=1)[:, :each]
    right = rng.random((n, each)) < np.array(accuracies)[who]
    other = (truth[:, None] + rng.integers(1, n_classes, size=(n, each))) % n_classes
    labels = np.where(right, truth[:, None], other)
    rows = np.repeat(np.arange(n), each)
    names = tuple(f"p{i}" for i in range(len(accuracies)))
    return X, truth, Judgments(rows, who.ravel(), labels.ravel(), names)


# -------------------------------------------------------------------- majority vote


def test_majority_vote_by_hand():
    # Row 0: a, a, b. Row 1: b and c, one vote each. Row 2: Ann says {a, b}, Ben says b.
    said = Judgments(
        [0, 0, 0, 1, 1, 2, 2, 2],
        [0, 1, 2, 0, 1, 0, 0, 1],
        [0, 0, 1, 1, 2, 0, 1, 1],
        ("A", "B", "C"),
    )
    mask = said.counts(3, 3).toarray() > 0
    # Over all samples a has 2.5 votes, b 3.5, c 1: the tie of row 1 goes 3.5 to 1.
    expected = [[2 / 3, 1 / 3, 0], [0, 3.5 / 4.5, 1 / 4.5], [0.25, 0.75, 0]]
    assert majority_shares(said, mask) == pytest.approx(np.array(expected))


def test_votes_for_labels_that_are_no_candidates_do_not_count():
    said = Judgments([0, 0, 1], [0, 1, 0], [0, 0, 1], ("A", "B"))
    mask = np.array([[False, True], [True, True]])  # row 0 was settled by somebody else
    assert majority_shares(said, mask)[0].tolist() == [0.0, 1.0]
    assert majority_shares(said, np.array([[False, True], [True, False]]))[1].tolist() == [1.0, 0.0]


def test_votes_of_people_who_are_not_known():
    votes = sparse.csr_array([[2.0, 0, 1], [0, 3, 0]])
    said = anonymous(votes)
    assert (said.counts(2, 3) != votes).nnz == 0
    assert said.names == ("vote 1", "vote 2", "vote 3")
    with pytest.raises(InputError, match="whole numbers"):
        anonymous(votes / 2)


# -------------------------------------------------------------------- Dawid-Skene


def by_loops(said, n, n_classes, smoothing, turns):
    """Dawid-Skene for judgments of one label each, written as the paper's sums."""
    q = said.counts(n, n_classes).toarray()
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(turns):
        theta = np.full((said.n_annotators, n_classes, n_classes), smoothing / n_classes)
        for row, who, label in zip(said.rows, said.annotators, said.labels, strict=True):
            theta[who, :, label] += q[row]
        theta /= theta.sum(axis=2, keepdims=True)
        p = np.tile(q.mean(axis=0), (n, 1))
        for row, who, label in zip(said.rows, said.annotators, said.labels, strict=True):
            p[row] *= theta[who, :, label]
        q = p / p.sum(axis=1, keepdims=True)
    return q


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 10.0])
def test_dawid_skene_agrees_with_plain_loops(smoothing):
    _, _, said = crowd(n=60)
    found, _ = estimate(said, np.ones((60, 4), dtype=bool), smoothing=smoothing, max_rounds=7)
    assert found == pytest.approx(by_loops(said, 60, 4, smoothing, 7), abs=1e-9)


def test_dawid_skene_agrees_with_crowd_kit():
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    _, _, said = crowd()  # everybody met every class
    table = pandas.DataFrame({"task": said.rows, "worker": said.annotators, "label": said.labels})
    theirs = aggregation.DawidSkene(n_iter=5, tol=0).fit(table).probas_.sort_index()
    ours, _ = estimate(said, np.ones((300, 4), dtype=bool), smoothing=0.0, max_rounds=5)
    assert ours == pytest.approx(theirs.sort_index(axis=1).to_numpy(), abs=1e-12)


def test_someone_who_swaps_two_labels_is_understood():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)
    swapped = np.array([1, 0, 2])[truth]
    rows = np.tile(np.arange(200), 4)
    right = [np.where(rng.random(200) < 0.9, truth, rng.integers(3, size=200)) for _ in range(3)]
    said = Judgments(
        rows, np.repeat(range(4), 200), np.concatenate([*right, swapped]), tuple("abcd")
    )
    found, turns = estimate(said, np.ones((200, 3), dtype=bool), smoothing=1.0, max_rounds=200)
    assert turns < 200
    majority = majority_shares(said, np.ones((200, 3), dtype=bool)).argmax(axis=1)
    assert (found.argmax(axis=1) == truth).mean() > max(0.99, (majority == truth).mean() + 0.02)


def test_dawid_skene_is_quick():
    rng = np.random.default_rng(0)
    n, people = 30_000, 500
    rows = np.repeat(np.arange(n), 4)
    who = (rng.integers(people, size=n)[:, None] + np.arange(4) * 7).ravel() % people
    said = Judgments(rows, who, rng.integers(10, size=4 * n), tuple(map(str, range(people))))
    began = time.process_time()
    estimate(said, np.ones((n, 10), dtype=bool), smoothing=1.0, max_rounds=20)
    assert time.process_time() - began < 10  # 0.05 s per turn and less


# -------------------------------------------------------------------- CROWDLAB


def test_crowdlab_by_hand():
    # Three samples of two people, one of Ann alone; the two differ on row 1.
    said = Judgments(
        [0, 0, 1, 1, 2, 2, 3], [0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 1, 1, 1], ("A", "B")
    )
    model = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]])
    majority = np.array([[1, 0], [0.5, 0.5], [0, 1], [0, 1]])
    weights = agreement_weights(said, majority, model)
    # Of the tie on row 1 the classifier's label 1 is the consensus: labels 0, 1, 1 where two spoke.
    assert weights.right == pytest.approx((1 + 1 / 2 + 1) / 3)
    # Both agree with the other on two of three; the classifier is right on two; label 1 on two.
    assert weights.annotators == pytest.approx([1e-6, 1e-6])
    assert weights.model == pytest.approx(1e-6 * np.sqrt(7 / 4))
    better = weights._replace(model=0.5, annotators=np.array([0.6, 0.2]), right=0.9)
    found = combine(said, model, better)
    row = (
        0.5 * np.array([0.3, 0.7]) + 0.6 * np.array([0.1, 0.9]) + 0.2 * np.array([0.9, 0.1])
    ) / 1.3
    assert found[1] == pytest.approx(row)
    assert found.sum(axis=1) == pytest.approx(1)


def test_good_annotators_and_a_good_classifier_weigh_more():
    X, truth, said = crowd()
    model = CROWDLAB().fit(X, said.counts(300, 4).toarray() > 0, said)
    assert (np.diff(model.weights_.annotators) < 0.05).all()  # from the best to the worst
    assert model.weights_.model > model.weights_.annotators.max()
    noise = np.random.default_rng(1).normal(size=X.shape)
    without = CROWDLAB().fit(noise, said.counts(300, 4).toarray() > 0, said)
    assert without.weights_.model < 0.3 * model.weights_.model
    majority = MajorityVote().fit(X, said.counts(300, 4).toarray() > 0, said)
    assert (model.labels_ == truth).mean() > (majority.labels_ == truth).mean() + 0.05


# -------------------------------------------------------------------- what they share


@pytest.mark.parametrize("name", PEOPLE)
def test_new_samples_are_predicted_from_features(name):
    X, truth, said = crowd(n=400)
    first = said.take(np.arange(300))
    model = BASELINES.get(name)().fit(X[:300], first.counts(300, 4).toarray() > 0, first)
    assert model.score(X[300:], truth[300:]) > 0.9
    chances = model.predict_proba(X[300:])
    assert chances.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X[300:]))


@pytest.mark.parametrize("name", PEOPLE)
def test_a_settled_sample_stays_certain(name):
    X, _, said = crowd(n=50)
    mask = said.counts(50, 4).toarray() > 0
    mask[7] = [False, False, True, False]
    model = BASELINES.get(name)().fit(X, mask, said)
    assert model.confidence_[7].tolist() == [0, 0, 1, 0]
    assert (model.confidence_[~mask] == 0).all()
    assert model.confidence_.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("name", PEOPLE)
def test_permuted_classes_and_people_permute_the_result(name):
    X, _, said = crowd(n=80)
    order = np.array([2, 0, 3, 1])
    other = Judgments(
        said.rows, said.n_annotators - 1 - said.annotators, order[said.labels], said.names[::-1]
    )
    one = BASELINES.get(name)().fit(X, said.counts(80, 4).toarray() > 0, said)
    two = BASELINES.get(name)().fit(X, other.counts(80, 4).toarray() > 0, other)
    # The logistic regression stops close to its minimum, by slightly different ways.
    assert two.confidence_[:, order] == pytest.approx(one.confidence_, abs=1e-2)


@pytest.mark.parametrize("name", PEOPLE)
def test_judgments_that_do_not_fit_are_refused(name):
    X, _, said = crowd(n=20)
    mask = np.ones((20, 3), dtype=bool)
    with pytest.raises(InputError, match="a judgment of label 3, but there are 3 classes"):
        BASELINES.get(name)().fit(X, mask, said)
    with pytest.raises(TypeError, match="judgments must be Judgments, not list"):
        BASELINES.get(name)().fit(X, mask, [1])


def test_the_logistic_regression_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    X += y[:, None]
    ours = SoftLogistic(X, np.eye(3)[y], ridge=2.0)
    theirs = LogisticRegression(C=0.5, tol=1e-8, max_iter=1000).fit(X, y)
    difference = ours.logits(X) - theirs.decision_function(X)
    assert difference - difference.mean(axis=1, keepdims=True) == pytest.approx(0, abs=1e-3)


def test_no_sample_is_in_the_model_that_judges_it():
    X, shares = np.eye(6), np.eye(2)[[0, 1, 0, 1, 0, 1]]
    # Each sample has a feature of its own: what others show of it is nothing.
    found = out_of_sample(X, shares, ridge=1e-3, n_folds=6)
    assert (found[np.arange(6), [0, 1, 0, 1, 0, 1]] < 0.5).all()


# -------------------------------------------------------------------- a real crowd

LABELME = Path(os.environ.get("FSPLL_DATA", "missing")) / "labelme"


@pytest.mark.skipif(not LABELME.is_dir(), reason="LabelMe is not in the folder FSPLL_DATA")
def test_labelme():
    read = read_annotations(LABELME / "labels.csv")
    with (LABELME / "truth.csv").open() as file:
        truth = dict(list(csv.reader(file))[1:])
    right = np.array([truth[name] for name in read.names])
    X = np.zeros((len(read), 1))  # these two do not look at features
    majority = MajorityVote().fit(X, read.candidates, read.judgments)
    assert (majority.labels_ == right).mean() == pytest.approx(0.76, abs=0.015)
    model = DawidSkene().fit(X, read.candidates, read.judgments)
    assert (model.labels_ == right).mean() == pytest.approx(0.79, abs=0.01)
