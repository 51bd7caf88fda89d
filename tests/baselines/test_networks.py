"""PRODEN, CC and POP: their losses by hand, limits, the network they share, and Lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll.baselines import CC, POP, PRODEN
from fspll.baselines.cc import CandidateLikelihood
from fspll.baselines.mlp import _AdamW, _Network, on_candidates
from fspll.baselines.pop import PurifiedObjective
from fspll.baselines.proden import ProgressiveObjective
from fspll.candidates import Candidates, corrupt
from fspll.datasets import load_partial_label_mat

pytestmark = pytest.mark.usefixtures("one_thread")
METHODS = [PRODEN, CC, POP]
MASK = torch.tensor([[True, True, False], [False, True, True], [True, False, False]])
P = torch.tensor([[0.6, 0.2, 0.2], [0.5, 0.1, 0.4], [0.2, 0.3, 0.5]], dtype=torch.float64)
ROWS = torch.arange(3)


def blobs(n=120, r=1, seed=0):
    """Return samples of four Gaussian classes, their candidate sets and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    X = 2 * rng.normal(size=(4, 6))[y] + rng.normal(size=(n, 6))
    return X, corrupt(y, 1, r, rng, classes=range(4)), y


# -------------------------------------------------------------------- losses by hand


def test_candidate_likelihood():
    loss = CandidateLikelihood(MASK).loss(P.log(), ROWS)
    assert float(loss) == pytest.approx(-np.mean(np.log([0.8, 0.5, 0.2])))


def test_progressive_loss_uses_the_weights_of_the_last_pass():
    objective = ProgressiveObjective(MASK)
    even = float(objective.loss(P.log(), ROWS))
    log = np.log
    assert even == pytest.approx(
        -(log(0.6) / 2 + log(0.2) / 2 + log(0.1) / 2 + log(0.4) / 2 + log(0.2)) / 3
    )
    weights = [[0.75, 0.25, 0.0], [0.0, 0.2, 0.8], [1.0, 0.0, 0.0]]
    assert objective.weights.numpy() == pytest.approx(np.array(weights))
    part = float(objective.loss(P[[1]].log(), ROWS[[1]]))
    assert part == pytest.approx(-(0.2 * log(0.1) + 0.8 * log(0.4)))


def test_gradients_of_cc_are_those_of_proden_with_present_weights():
    logits = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits.requires_grad_()
    log_p = logits.log_softmax(dim=1)
    progressive = ProgressiveObjective(MASK)
    progressive.weights = on_candidates(log_p.detach(), MASK)
    (one,) = torch.autograd.grad(progressive.loss(log_p, ROWS), logits, retain_graph=True)
    (other,) = torch.autograd.grad(CandidateLikelihood(MASK).loss(log_p, ROWS), logits)
    torch.testing.assert_close(one, other)


def test_purification():
    objective = PurifiedObjective(MASK, n_warm_up=2, window=2, threshold=0.3, growth=1.0)
    first = torch.tensor([[0.8, 0.2, 0.0], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], dtype=torch.float64)
    last = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9], [1.0, 0.0, 0.0]], dtype=torch.float64)
    for epoch, weights in enumerate([first, last, first]):  # warm-up, and a window half done
        objective.weights = weights
        objective.end_epoch(epoch)
        assert torch.equal(objective.mask, MASK)
    objective.weights = last
    objective.end_epoch(3)
    # Quotients: .15 / .85 is below .3 and .3 / .7 is not.
    assert objective.mask.tolist() == [[True, False, False], *MASK[1:].tolist()]
    assert objective.weights.numpy() == pytest.approx(
        np.array([[1, 0, 0], [0, 0.3, 0.7], [1, 0, 0]])
    )
    assert objective.threshold == 0.3
    for epoch in (4, 5):
        objective.end_epoch(epoch)
    assert objective.threshold == 0.4  # nothing left; twice .3 is above the highest
    for epoch in (6, 7):
        objective.end_epoch(epoch)
    assert objective.mask.tolist() == [[True, False, False], *MASK[1:].tolist()]
    objective.threshold = 0.5
    for epoch in (8, 9):
        objective.end_epoch(epoch)
    assert objective.mask.tolist() == [[True, False, False], [False, False, True], MASK[2].tolist()]
    assert MASK[0].tolist() == [True, True, False]  # the sets that came in are not touched


# -------------------------------------------------------------------- the network


def test_adamw_is_that_of_torch():
    ours = torch.linspace(-1, 1, 7, dtype=torch.float64)
    theirs = ours.clone().requires_grad_()
    reference = torch.optim.AdamW([theirs], weight_decay=0.5)
    optimizer = _AdamW(ours, 0.5)
    generator = torch.Generator().manual_seed(0)
    for rate in (0.1, 0.01, 0.3):
        gradient = torch.randn(7, dtype=torch.float64, generator=generator)
        theirs.grad = gradient
        reference.param_groups[0]["lr"] = rate
        reference.step()
        optimizer.step(gradient, rate)
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)


def test_folded_layers_give_what_the_normalized_network_gives():
    generator = torch.Generator().manual_seed(0)
    network = _Network([5, 8, 7, 3], generator)
    noise = torch.randn(network.parameters.shape, dtype=torch.float64, generator=generator)
    network.parameters.data += 0.3 * noise
    X = 3 * torch.randn(40, 5, dtype=torch.float64, generator=generator)
    coefs, intercepts = network.fold(X)
    h = X.numpy()
    for number, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        h = (np.maximum(h, 0) if number else h) @ coef + intercept
    log_p = torch.from_numpy(h).log_softmax(dim=1)
    torch.testing.assert_close(log_p, network.log_probabilities(X).detach())


def test_the_first_weights_are_uniform_within_one_over_the_root_of_the_inputs():
    network = _Network([400, 30, 2], torch.Generator().manual_seed(0))
    first = network.parameters[: 400 * 30].detach()
    assert float(first.abs().max()) <= 1 / 20
    assert float(first.std()) == pytest.approx(1 / 20 / 3**0.5, rel=0.02)


# -------------------------------------------------------------------- the estimators


def test_with_one_candidate_each_all_three_are_the_same():
    X, sets, y = blobs(r=0)
    fitted = [kind(n_epochs=10, random_state=0).fit(X, sets) for kind in METHODS]
    for other in fitted[1:]:
        for one, two in zip(fitted[0].coefs_, other.coefs_, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)
    assert fitted[0].score(X, y) > 0.95


@pytest.mark.parametrize("kind", METHODS)
def test_ambiguous_labels_are_identified(kind):
    X, sets, y = blobs(n=300)
    train, test = np.arange(200), np.arange(200, 300)
    sets = Candidates.from_mask(sets.mask[train])
    clf = kind(random_state=0).fit(X[train], sets)
    assert np.mean(clf.labels_ == y[train]) > 0.95
    assert clf.score(X[test], y[test]) > 0.9
    assert ((clf.confidence_ > 0) <= sets.mask).all()
    assert clf.confidence_.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(clf.classes_[clf.confidence_.argmax(axis=1)], clf.labels_)


@pytest.mark.parametrize("kind", METHODS)
def test_probabilities(kind):
    X, sets, _ = blobs()
    wide = Candidates.from_mask(np.insert(sets.mask, 2, False, axis=1))
    clf = kind(n_epochs=5, random_state=0).fit(X, wide)
    p = clf.predict_proba(X)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert (p[:, 2] == 0).all()
    assert np.array_equal(p.argmax(axis=1), clf.predict(X))
    restricted = np.where(wide.mask, p, 0)
    assert clf.confidence_ == pytest.approx(restricted / restricted.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", METHODS)
def test_random_states(kind):
    X, sets, _ = blobs(n=40)
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    one, same, other = (kind(n_epochs=3, random_state=s).fit(X, sets) for s in (0, 0, 1))
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(one.coefs_[0], same.coefs_[0])
    assert not np.allclose(one.coefs_[0], other.coefs_[0])


def test_a_linear_model_has_one_layer():
    X, sets, _ = blobs()
    clf = CC(hidden=(), n_epochs=5, random_state=0).fit(X, sets)
    assert [coef.shape for coef in clf.coefs_] == [(6, 4)]
    scaled = (X - clf.mean_) / clf.scale_
    outputs = scaled @ clf.coefs_[0] + clf.intercepts_[0]
    assert np.array_equal(clf.predict(X), outputs.argmax(axis=1))


def test_purified_sets_are_smaller_than_those_of_proden():
    X, sets, _ = blobs()
    left = {
        kind: (kind(random_state=0, **more).fit(X, sets).confidence_ > 0).sum()
        for kind, more in ((PRODEN, {}), (POP, {"threshold": 0.2}))
    }
    assert left[POP] < left[PRODEN]


def test_proden_on_lost(real_data):
    """Five such splits have .785 of the test samples and .902 of the training labels right."""
    data = load_partial_label_mat(real_data("pll/lost.mat"))
    truth = np.asarray(data.true_labels)
    order = np.random.default_rng(0).permutation(len(truth))
    train, test = np.split(order, [int(0.8 * len(truth))])
    clf = PRODEN(random_state=0).fit(data.X[train], data.candidates.mask[train])
    assert clf.score(data.X[test], truth[test]) > 0.74
    assert np.mean(clf.labels_ == truth[train]) > 0.86
