"""The default rectifier: where class means fail, what held-out samples say, and files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from fspll import FsPLLClassifier
from fspll._common.errors import InputError
from fspll.candidates.judgments import Judgments
from fspll.candidates.observed import Observed
from fspll.rectifiers import AdaptiveRule, EvidenceRule
from fspll.rectifiers.adaptive import evenness
from fspll.rectifiers.adaptive_model import AdaptiveModel
from fspll.rectifiers.held_out import Check


def drawn_sets(truth, n_classes, r, rng, weight=None):
    """Return sets of the truth and r distractors, drawn evenly or by weight."""
    mask = np.zeros((len(truth), n_classes), dtype=bool)
    for row, label in enumerate(truth):
        chance = np.ones(n_classes) if weight is None else weight.copy()
        chance[label] = 0
        mask[row, rng.choice(n_classes, r, replace=False, p=chance / chance.sum())] = True
        mask[row, label] = True
    return mask


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def fit(X, mask, **settings):
    return AdaptiveRule(**settings).fit(torch.from_numpy(X), Observed(torch.from_numpy(mask)))


def right(model, truth):
    return float((model.confidence.argmax(-1).numpy() == truth).mean())


def claimed(model):
    return float(model.confidence.max(-1).values.mean())


# -------------------------------------------------------------------- where class means fail


def test_very_unequal_classes(digits):
    X, y = digits
    sizes = [150, 60, 30, 15, 10, 8, 6, 5, 4, 3]
    rows = np.concatenate([np.flatnonzero(y == c)[:size] for c, size in enumerate(sizes)])
    mask = drawn_sets(y[rows], 10, 3, np.random.default_rng(0))
    model = fit(X[rows], mask)
    means = EvidenceRule().fit(torch.from_numpy(X[rows]), Observed(torch.from_numpy(mask)))
    assert right(model, y[rows]) > 0.95
    assert right(model, y[rows]) > right(means, y[rows]) + 0.02


def test_labels_that_are_popular_as_distractors(digits):
    X, y = digits[0][:400], digits[1][:400]
    weight = 1 / (1 + np.arange(10.0)) ** 1.5
    mask = drawn_sets(y, 10, 3, np.random.default_rng(0), weight)
    model = fit(X, mask)
    means = EvidenceRule().fit(torch.from_numpy(X), Observed(torch.from_numpy(mask)))
    assert right(model, y) > 0.95
    assert right(model, y) > right(means, y) + 0.05


@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_sets_that_lack_the_truth(digits, share):
    X, y = digits[0][:500], digits[1][:500]
    rng = np.random.default_rng(0)
    mask = drawn_sets(y, 10, 2, rng)
    for row in np.flatnonzero(rng.random(500) < share):
        others = np.flatnonzero(~mask[row])
        mask[row, y[row]] = False
        mask[row, rng.choice(others)] = True
    model = fit(X, mask)
    assert claimed(model) == pytest.approx(right(model, y), abs=0.04)
    assert (model.confidence.sum(-1) < 1 + 1e-9).all()
    if share:
        assert model.doubt > 0
        anywhere = (model.posterior.argmax(-1).numpy() == y).mean()
        assert anywhere > mask[np.arange(500), y].mean()
    else:
        assert model.doubt <= 0.01


# -------------------------------------------------------------------- what held-out samples say


@pytest.mark.parametrize("n", [80, 400])
def test_features_that_tell_nothing_are_noticed(n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, n)
    mask = drawn_sets(y, 6, 1, rng)
    model = fit(rng.normal(size=(n, 16)), mask, held_out=True)
    assert not model.check.separates
    assert claimed(model) < right(model, y) + 0.1


def test_a_label_that_is_always_a_hit_does_not_make_up_for_features():
    # Where no feature counts, the gain is zero but for rounding, which may be either way.
    assert not Check(100, 0.4, 0.4, 0.1, 0.4, gain=1e-17, gain_error=2e-18).separates
    assert Check(100, 0.9, 0.9, 0.1, 0.4, gain=0.5, gain_error=0.1).separates
    assert not Check(100, 0.9, 0.9, 0.1, 0.4, gain=0.5, gain_error=0.3).separates


@pytest.mark.parametrize("n", [60, 400])
def test_features_that_tell_labels_apart_are_not_doubted(digits, n):
    X, y = digits[0][:n], digits[1][:n]
    model = fit(X, drawn_sets(y, 10, 2, np.random.default_rng(1)), held_out=True)
    assert model.check.separates
    assert model.check.n_samples == n
    assert model.check.hits == pytest.approx(model.check.expected, abs=0.12)
    assert model.check.hits > model.check.chance + 0.3


def test_new_samples_are_predicted_as_surely_as_they_are_right(digits):
    X, y = digits
    model = fit(X[:400], drawn_sets(y[:400], 10, 2, np.random.default_rng(0)))
    probability = model.predict_proba(torch.from_numpy(X[400:]))
    sure, best = probability.max(dim=-1)
    assert float(sure.mean()) == pytest.approx((best.numpy() == y[400:]).mean(), abs=0.03)


def test_new_samples_unlike_the_training_samples_are_predicted_less_surely():
    """Of every digit the first twenty: a few writers; the others wrote otherwise."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == c)[:20] for c in range(10)])
    mask = drawn_sets(y[rows], 10, 2, np.random.default_rng(0))
    model = fit(X[rows], mask, held_out=True)
    new = np.setdiff1d(np.arange(len(y)), rows)
    probability, best = model.predict_proba(torch.from_numpy(X[new])).max(dim=-1)
    assert abs(float(probability.mean()) - (best.numpy() == y[new]).mean()) < 0.05


def test_far_from_all_samples_no_class_is_sure(digits):
    X, y = digits
    mask = drawn_sets(y[:400], 10, 1, np.random.default_rng(0))
    model = fit(X[:400], mask)
    far = torch.from_numpy(1000 * X[400:410])
    assert float(model.predict_proba(far).max()) < 0.11


def test_few_samples_of_even_sets_are_labeled_by_class_means(digits):
    X, y = digits[0][:60], digits[1][:60]
    mask = drawn_sets(y, 10, 2, np.random.default_rng(0))
    model = fit(X, mask)
    means = EvidenceRule().fit(torch.from_numpy(X), Observed(torch.from_numpy(mask)))
    assert model.check is None
    assert torch.equal(model.confidence, means.confidence)


def test_samples_are_held_out_when_asked_only(digits):
    X, y = digits[0][:320], digits[1][:320]
    mask = drawn_sets(y, 10, 2, np.random.default_rng(0))
    assert fit(X, mask).check is not None
    assert fit(X, mask, held_out=False).check is None
    assert AdaptiveRule().checked() == AdaptiveRule(held_out=True)
    assert AdaptiveRule(held_out=False).checked() == AdaptiveRule(held_out=False)
    with pytest.raises(InputError, match="held_out must be True, False or None, not 3"):
        AdaptiveRule(held_out=3)


def test_one_settled_sample_names_a_cluster_where_all_sets_are_full():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 4)) + 8 * y[:, None]
    mask = np.ones((40, 2), dtype=bool)
    mask[0] = [True, False]
    settled = np.arange(40) == 0
    observed = Observed(torch.from_numpy(mask), settled=settled)
    model = AdaptiveRule(held_out=True).fit(torch.from_numpy(X), observed)
    assert right(model, y) == 1
    assert claimed(model) > 0.9
    assert model.posterior.shape == model.confidence.shape


def test_the_test_of_evenness():
    rng = np.random.default_rng(0)
    even = [
        evenness(torch.from_numpy(drawn_sets(np.arange(60) % 6, 6, 2, rng))) for _ in range(200)
    ]
    assert np.mean(np.array(even) < 0.05) < 0.06
    uneven = drawn_sets(np.r_[np.zeros(40, int), np.arange(20) % 6], 6, 2, rng)
    assert evenness(torch.from_numpy(uneven)) < 1e-3
    assert evenness(torch.ones(5, 3, dtype=torch.bool)) == 1
    assert evenness(torch.ones(5, 1, dtype=torch.bool)) == 1


# -------------------------------------------------------------------- settled samples and people


def test_settled_samples_stay_certain(digits):
    X, y = digits[0][:300], digits[1][:300]
    rng = np.random.default_rng(0)
    mask = drawn_sets(y, 10, 2, rng)
    mask[:80] = np.eye(10, dtype=bool)[y[:80]]
    for row in range(20, 80):  # so that doubt is in order
        mask[row] = np.eye(10, dtype=bool)[(y[row] + rng.integers(1, 10)) % 10]
    settled = np.zeros(300, dtype=bool)
    settled[:20] = True
    observed = Observed(torch.from_numpy(mask), settled=settled)
    model = AdaptiveRule().fit(torch.from_numpy(X), observed)
    assert model.confidence[:20].max(-1).values.min() > 0.999
    assert model.confidence[20:80].sum(-1).mean() < 0.5


def test_annotators_who_are_often_wrong_count_less(digits):
    rng = np.random.default_rng(0)
    X, y = digits[0][:300] + 2 * rng.normal(size=(300, 64)), digits[1][:300]
    rows, people, labels = [], [], []
    for person, share in enumerate([0.9, 0.9, 0.25, 0.25, 0.25]):
        wrong = rng.random(300) > share
        said = np.where(wrong, (y + rng.integers(1, 10, 300)) % 10, y)
        rows.append(np.arange(300))
        people.append(np.full(300, person))
        labels.append(said)
    said = Judgments(*map(np.concatenate, (rows, people, labels)), tuple("abcde"))
    votes = said.counts(300, 10)
    mask = votes.toarray() > 0
    clf = FsPLLClassifier().fit(X, mask, votes=votes, judgments=said)
    without = FsPLLClassifier().fit(X, mask, votes=votes)
    majority = (votes.toarray().argmax(1) == y).mean()
    assert (clf.labels_ == y).mean() > (without.labels_ == y).mean() + 0.03
    assert (clf.labels_ == y).mean() > majority + 0.05


# -------------------------------------------------------------------- batches, classes and files


def test_people_who_make_the_same_mistakes_are_not_believed_too_surely(digits):
    """A quarter of the samples is hard: who errs there gives the same wrong label."""
    X, y = digits[0][:500], digits[1][:500]
    rng = np.random.default_rng(0)
    hard, wrong = rng.random(500) < 0.25, (y + rng.integers(1, 10, 500)) % 10
    skill = rng.uniform(0.4, 0.9, 30)
    said = [
        (row, person, y[row] if rng.random() < skill[person] / (1 + hard[row]) else other)
        for row in range(500)
        for person in rng.choice(30, 3, replace=False)
        for other in [wrong[row] if hard[row] else rng.integers(10)]
    ]
    rows, people, labels = np.array(said).T
    mask = np.zeros((500, 10), dtype=bool)
    mask[rows, labels] = True
    judgments = Judgments(rows, people, labels, tuple(f"p{i}" for i in range(30)))
    clf = FsPLLClassifier().fit(X, mask, judgments=judgments)
    assert clf.model_.doubt < 0.7
    assert abs(clf.confidence_.max(axis=1).mean() - (clf.labels_ == y).mean()) < 0.03


# -------------------------------------------------------------------- many samples


@pytest.fixture
def few_are_many(monkeypatch):
    """Set low what is large, so that few samples take the road of many."""
    monkeypatch.setattr("fspll.rectifiers.base.DENSE_ENTRIES", 10)
    monkeypatch.setattr("fspll.rectifiers.adaptive.MOST_SAMPLES", 300)


@pytest.mark.parametrize("most", [1 << 26, 10])
def test_errors_are_promised_alike_on_both_sides_of_the_handover(monkeypatch, most):
    """Round classes near each other: 20 classes, 16 features, three even distractors."""
    monkeypatch.setattr("fspll.rectifiers.base.DENSE_ENTRIES", most)
    rng = np.random.default_rng(0)
    y, new_y = rng.integers(0, 20, 1000), rng.integers(0, 20, 1000)
    centers = 1.2 * rng.normal(size=(20, 16))
    X = centers[y] + rng.normal(size=(1000, 16))
    clf = FsPLLClassifier().fit(X, drawn_sets(y, 20, 3, rng))
    best = clf.confidence_.max(axis=1)
    best = best.toarray() if most == 10 else best
    made = (clf.labels_ != y).mean()
    assert 0.001 < made < 0.02
    assert abs(1 - best.mean() - made) < 0.004
    new = centers[new_y] + rng.normal(size=(1000, 16))
    promised = 1 - clf.predict_proba(new).max(axis=1).mean()
    assert abs(promised - (clf.predict(new) != new_y).mean()) < 0.015


def test_what_is_held_out_judges_class_means_made_the_same_way(digits, monkeypatch):
    """All 600 samples are too many for dense arrays; the 480 that a fold learns from are not."""
    X, y = digits[0][:600], digits[1][:600]
    mask = drawn_sets(y, 10, 2, np.random.default_rng(0))
    found = []
    for most in (10, 300_000):
        monkeypatch.setattr("fspll.rectifiers.base.DENSE_ENTRIES", most)
        found.append(FsPLLClassifier().fit(X, mask))
    assert found[0].check_ == found[1].check_
    assert np.array_equal(found[0].confidence_.data, found[1].confidence_.data)


def test_samples_that_were_not_learned_from_are_labeled_as_well(digits, few_are_many):
    X, y = digits[0][:900], digits[1][:900]
    mask = drawn_sets(y, 10, 2, np.random.default_rng(0))
    clf = FsPLLClassifier().fit(X, mask)
    assert len(clf.model_.basis) == 300
    confidence = clf.confidence_
    assert confidence.has_canonical_format
    assert np.array_equal(confidence.indices, clf.candidates_.matrix.indices)
    assert (clf.labels_ == y).mean() > 0.97
    assert abs(confidence.max(axis=1).toarray().mean() - (clf.labels_ == y).mean()) < 0.02
    assert clf.model_.posterior.shape == (900, 10)
    assert clf.check_.separates


def test_annotators_and_settled_samples_of_many(digits, few_are_many):
    X, y = digits[0][:900], digits[1][:900]
    rng = np.random.default_rng(0)
    people = np.tile(np.arange(3), 900)
    rows = np.repeat(np.arange(900), 3)
    true = rng.random(2700) < np.array([0.95, 0.6, 0.6])[people]
    labels = np.where(true, y[rows], rng.integers(0, 10, 2700))
    mask = np.zeros((900, 10), dtype=bool)
    mask[rows, labels] = True
    settled = np.zeros(900, dtype=bool)
    settled[::90] = True
    mask[settled] = np.eye(10, dtype=bool)[(y[settled] + 1) % 10]  # a person may say otherwise
    judgments = Judgments(rows, people, labels, ("good", "bad", "worse"))
    clf = FsPLLClassifier().fit(X, mask, judgments=judgments, settled=settled)
    confidence = clf.confidence_.toarray()
    assert (confidence[settled].max(axis=1) > 0.999).all()
    assert (clf.labels_[settled] == (y[settled] + 1) % 10).all()
    assert (clf.labels_[~settled] == y[~settled]).mean() > 0.97


def test_too_many_classes_for_a_kernel_leave_class_means(digits, few_are_many, monkeypatch):
    monkeypatch.setattr("fspll.rectifiers.adaptive.MOST_ENTRIES", 400)
    X, y = digits
    clf = FsPLLClassifier().fit(X, drawn_sets(y, 10, 1, np.random.default_rng(0)))
    assert not isinstance(clf.model_, AdaptiveModel)


def test_a_batch_is_its_tasks(digits):
    X, y = digits
    rng = np.random.default_rng(0)
    even = np.concatenate([np.flatnonzero(y == c)[:9] for c in range(4)])
    uneven = np.concatenate([np.flatnonzero(y == c)[:k] for c, k in enumerate([33, 1, 1, 1])])
    masks = np.stack([drawn_sets(y[rows], 4, 1, rng) for rows in (even, uneven)])
    e = torch.from_numpy(np.stack([X[even], X[uneven]]))
    assert evenness(torch.from_numpy(masks[0])) > 1e-3 > evenness(torch.from_numpy(masks[1]))
    batch = AdaptiveRule().fit(e, Observed(torch.from_numpy(masks)))
    new = torch.from_numpy(X[500:520])
    for i in range(2):
        alone = fit(e[i].numpy(), masks[i])
        assert torch.allclose(batch.confidence[i], alone.confidence)
        assert torch.allclose(
            batch.predict_proba(new.expand(2, -1, -1))[i], alone.predict_proba(new)
        )


def test_the_order_of_classes_does_not_matter(digits):
    X, y = digits[0][:300], digits[1][:300]
    mask = drawn_sets(y, 10, 2, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(10)
    one, other = fit(X, mask), fit(X, mask[:, order])
    assert torch.allclose(one.confidence[:, order], other.confidence, atol=1e-6)


def test_a_model_file_predicts_the_same(digits, tmp_path):
    X, y = digits[0].astype(np.float32), digits[1]
    mask = drawn_sets(y[:300], 10, 2, np.random.default_rng(0))
    clf = FsPLLClassifier().fit(X[:300], mask)
    clf.save(tmp_path / "model.fspll")
    loaded = FsPLLClassifier.load(tmp_path / "model.fspll")
    assert isinstance(loaded.model_, AdaptiveModel)
    assert np.array_equal(loaded.predict_proba(X[300:350]), clf.predict_proba(X[300:350]))
    assert np.array_equal(loaded.confidence_, clf.confidence_)
    assert loaded.check_ == clf.check_
    assert clf.check_ is not None
