"""Methods on batches of tasks against one task at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fspll._common.errors import InputError
from fspll.baselines import BASELINES
from fspll.candidates.observed import Observed
from fspll.classifier import FsPLLClassifier
from fspll.experiments import methods
from fspll.experiments.methods import (
    DEFAULT_METHODS,
    Baseline,
    Maml,
    Prototypes,
    Samples,
    find_method,
    method_names,
)
from fspll.rectifiers import EqualWeights, EvidenceRule, FsPLLRule, rectify
from fspll.rectifiers.base import resolve_neighbors
from fspll.rectifiers.equations import METRICS
from fspll.tasks import Tasks, TaskSettings, TaskSource

LABELS = np.repeat(np.arange(15), 12)


@pytest.fixture(scope="module")
def features():
    """Classes that overlap, so that no method gets everything right."""
    rng = np.random.default_rng(0)
    return torch.as_tensor(rng.normal(size=(15, 6))[LABELS] * 1.2 + rng.normal(size=(180, 6)))


def tasks(n=12, n_way=5, n_shot=4, r=2, seed=0):
    return TaskSource(LABELS, TaskSettings(n_way, n_shot, 8, r=r), seed=seed).batch(range(n))


def score(features, batch, method):
    method = find_method(method) if isinstance(method, str) else method
    return method.score(Samples(features=features), batch)


def one_by_one(features, batch, settings):
    """Score each task with plain NumPy: the least and the most that the accuracies may be.

    Labels that are candidates of the same samples have the same prototype and the same confidence;
    which of them is taken is left open.
    """
    query, support = [], []
    for rows, asked, mask in zip(batch.support, batch.query, batch.candidates, strict=True):
        result = rectify(features[rows], torch.as_tensor(mask), settings, engine="equations")
        away = [
            [np.linalg.norm(features[row].numpy() - p) for p in result.prototypes.numpy()]
            for row in asked
        ]
        query.append(accuracy(-np.array(away), batch.query_labels))
        support.append(accuracy(result.confidence.numpy(), batch.support_labels))
    return np.array(query).T, np.array(support).T


def rule_of(method, n_neighbors):
    """Return the paper's rule with the number of neighbors spelled out."""
    if isinstance(method.rectifier, EqualWeights):
        return FsPLLRule(n_iterations=0, metric=method.rectifier.metric)
    return replace(method.rectifier, n_neighbors=n_neighbors)


def accuracy(score, truth):
    """Share of rows whose true label alone has the best score, and share where it is among them."""
    best = score >= score.max(axis=1, keepdims=True) - 1e-9
    among = best[np.arange(len(truth)), truth]
    return (among & (best.sum(axis=1) == 1)).mean(), among.mean()


def assert_between(values, limits):
    assert (values >= limits[0] - 1e-6).all()
    assert (values <= limits[1] + 1e-6).all()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ["PN", "FsPLL-nM", "FsPLL"])
@pytest.mark.parametrize("n_shot", [1, 4])
def test_a_batch_against_task_by_task(features, name, metric, n_shot):
    method = find_method(name).with_settings(metric=metric)
    batch = tasks(n_shot=n_shot)
    scores = score(features, batch, method)
    query, support = one_by_one(features, batch, rule_of(method, n_shot - 1))
    assert scores.query_accuracy.shape == scores.support_accuracy.shape == (12,)
    assert_between(scores.query_accuracy, query)
    assert_between(scores.support_accuracy, support)
    assert 0 < query.mean() < 1  # a comparison that could fail
    if n_shot > 1:
        np.testing.assert_array_equal(*query)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("adaptive", {}),
        ("Evidence", {"rectifier": "evidence"}),
        ("FsPLL", {"rectifier": "fspll"}),
        ("FsPLL-nM", {"rectifier": "fspll", "manifold_weight": 0.0}),
        ("PN", {"rectifier": "none"}),
    ],
)
def test_a_batch_against_the_classifier(features, name, parameters):
    """The classifier's own k is one less than the samples per class: the paper's choice as well."""
    batch = tasks()
    scores = score(features, batch, name)
    for i in range(len(batch.support)):
        clf = FsPLLClassifier(**parameters)
        clf.fit(features[batch.support[i]].numpy(), batch.candidates[i])
        assert clf.n_neighbors_ == (0 if name == "PN" else 3)  # which has no use for neighbors
        accuracy = clf.score(features[batch.query[i]].numpy(), batch.query_labels)
        assert scores.query_accuracy[i] == pytest.approx(accuracy, abs=1e-6)
        right = np.mean(clf.labels_ == batch.support_labels)
        assert scores.support_accuracy[i] == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("features_at_once", [1, 700, 1000])
def test_the_size_of_the_parts_does_not_matter(monkeypatch, features, features_at_once):
    """A task gathers (20 + 40) * 6 = 360 features."""
    batch = tasks(n=7)
    whole = score(features, batch, "FsPLL")
    sizes = []
    work = Prototypes.solve

    def count(method, support, *rest):
        sizes.append(len(support))
        return work(method, support, *rest)

    monkeypatch.setattr(Prototypes, "solve", count)
    monkeypatch.setattr(methods, "_FEATURES_AT_ONCE", features_at_once)
    parts = score(features, batch, "FsPLL")
    np.testing.assert_array_equal(parts.query_accuracy, whole.query_accuracy)
    np.testing.assert_array_equal(parts.support_accuracy, whole.support_accuracy)
    assert sizes == {1: [1] * 7, 700: [1] * 7, 1000: [2, 2, 2, 1]}[features_at_once]


def test_the_methods_are_the_papers():
    names = ["PN", "FsPLL-nM", "FsPLL", "Evidence", "MAML", "ceiling"]
    assert method_names()[:6] == names
    assert set(DEFAULT_METHODS) <= set(method_names())
    assert find_method(DEFAULT_METHODS[-1]).rectifier == FsPLLClassifier().make_rectifier()
    assert [find_method(name).name for name in method_names()] == method_names()
    assert find_method("PN").rectifier == EqualWeights("euclidean")
    assert find_method("FsPLL").rectifier == FsPLLRule("auto", 0.5, 10, "euclidean")
    assert find_method("FsPLL-nM").rectifier == FsPLLRule("auto", 0.0, 10, "euclidean")
    assert find_method("Evidence").rectifier == EvidenceRule("auto", 10, class_balance=False)
    for n_shot in (1, 2, 4):  # the paper's choice: one less than the shots
        batch = torch.as_tensor(tasks(n_shot=n_shot).candidates)
        assert resolve_neighbors("auto", Observed(batch)) == n_shot - 1
    assert find_method("MAML") == Maml()
    assert find_method("pl_knn") == Baseline("PL-KNN")


def test_a_number_of_neighbors_of_ones_own(features):
    method = find_method("FsPLL").with_settings(n_neighbors=2)
    batch = tasks()
    expected, _ = one_by_one(features, batch, FsPLLRule(n_neighbors=2))
    other, _ = one_by_one(features, batch, FsPLLRule(n_neighbors=3))
    assert_between(score(features, batch, method).query_accuracy, expected)
    assert_between(score(features, batch, "FsPLL").query_accuracy, other)
    assert (expected != other).any()  # or k would not matter here


def test_rectification_helps_and_certainty_is_certain(features):
    ambiguous, precise = tasks(n=60, r=1), tasks(n=60, r=0)
    by_method = {name: score(features, ambiguous, name) for name in DEFAULT_METHODS}
    support = {name: scores.support_accuracy.mean() for name, scores in by_method.items()}
    assert support["FsPLL"] > support["PN"] + 0.1
    for name in DEFAULT_METHODS:
        assert (score(features, precise, name).support_accuracy == 1).all()


def test_a_class_without_candidates_is_never_predicted():
    """Label 1 is nobody's candidate; its prototype would be the origin, where the queries lie."""
    features = torch.tensor([[3.0], [4.0], [0.0], [0.1]])
    batch = Tasks(
        classes=np.array([[0, 1]]),
        support=np.array([[0, 1]]),
        query=np.array([[2, 3]]),
        support_labels=np.array([0, 1]),
        query_labels=np.array([0, 0]),
        candidates=np.array([[[True, False], [True, False]]]),
        query_candidates=np.ones((1, 2, 2), dtype=bool),
    )
    scores = score(features, batch, "FsPLL")
    assert scores.query_accuracy.tolist() == [1.0]  # both called 0
    assert scores.support_accuracy.tolist() == [0.5]


def test_equally_credible_candidates_give_the_first():
    """PN believes all candidates alike."""
    features = torch.tensor([[0.0], [1.0], [0.0], [1.0]])
    batch = Tasks(
        classes=np.array([[0, 1]]),
        support=np.array([[0, 1]]),
        query=np.array([[2, 3]]),
        support_labels=np.array([0, 1]),
        query_labels=np.array([0, 1]),
        candidates=np.ones((1, 2, 2), dtype=bool),
        query_candidates=np.ones((1, 2, 2), dtype=bool),
    )
    assert score(features, batch, "PN").support_accuracy.tolist() == [0.5]


def test_half_precision_features(features):
    half = features.half()
    batch = tasks()
    a = score(half, batch, "FsPLL")
    b = score(half.float(), batch, "FsPLL")
    np.testing.assert_array_equal(a.query_accuracy, b.query_accuracy)


def test_bad_batches(features):
    chosen = TaskSource(LABELS, TaskSettings(5, 4, 8, r=1))
    without_queries = TaskSource(LABELS, TaskSettings(5, 4, 0, r=1)).batch([0])
    for wrong in (chosen.task(0), without_queries):
        with pytest.raises(InputError, match="scores need a batch of tasks with queries"):
            score(features, wrong, "PN")


def test_what_a_method_needs_and_does_not_get(features):
    with pytest.raises(InputError, match="MAML needs images and a network to adapt"):
        score(features, tasks(), "MAML")
    with pytest.raises(InputError, match="features need a data set and a network that embeds it"):
        find_method("PN").score(Samples(), tasks())
    with pytest.raises(InputError, match=r"there is no method 'KNN'.*; known are PN, .*, PL-KNN, "):
        find_method("KNN")


# -------------------------------------------------------------------- partial-label learners

MANY = np.repeat(np.arange(10), 20)


@pytest.mark.parametrize("name", list(BASELINES))
@pytest.mark.parametrize("r", [0, 1])
def test_methods_learn_from_separated_classes(name, r):
    rng = np.random.default_rng(0)
    features = torch.as_tensor(3 * rng.normal(size=(10, 16))[MANY] + rng.normal(size=(200, 16)))
    batch = TaskSource(MANY, TaskSettings(5, 5, 5, r=r), seed=0).batch(range(4))
    scores = score(features, batch, name)
    assert scores.query_accuracy.shape == scores.support_accuracy.shape == (4,)
    assert scores.query_accuracy.mean() > (0.9 if r == 0 else 0.6)
    assert scores.query_calibration is None


@pytest.mark.parametrize("name", list(BASELINES))
def test_the_same_again(name):
    features = torch.as_tensor(np.random.default_rng(1).normal(size=(200, 4)))
    batch = TaskSource(MANY, TaskSettings(5, 3, 5, r=2), seed=1).batch(range(2))
    one, other = (score(features, batch, name) for _ in range(2))
    np.testing.assert_array_equal(one.query_accuracy, other.query_accuracy)


def test_tasks_with_held_out_samples_are_expected_to_take_longer():
    """On photos: .02 s at 20-way 10-shot, 3.6 s at 50-shot, where they are asked."""
    default = find_method("adaptive")
    few, many = (default.seconds(TaskSettings(20, n_shot, 15, 1), 1.0) for n_shot in (10, 50))
    assert 0.01 < few < 0.05
    assert 2 < many < 6
    never = default.with_settings(held_out=False)
    assert never.seconds(TaskSettings(20, 50, 15, 1), 1.0) < 0.5
