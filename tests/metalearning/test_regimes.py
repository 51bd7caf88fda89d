"""Regimes: what each may see, what it does with it, and what it must not depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fspll._common.errors import InputError
from fspll.metalearning.learners import PrototypeLearner
from fspll.metalearning.plan import TrainingPlan
from fspll.metalearning.regimes import DEFAULT, OBJECTIVES, REGIMES, Regime, find_regime
from fspll.rectifiers.paper import METRICS, Settings, rectify
from fspll.tasks import TaskSettings, TaskSource

N_WAY, N_SHOT, N_QUERY = 4, 3, 2
SOURCE = TaskSource(np.repeat(np.arange(8), 6), TaskSettings(N_WAY, N_SHOT, N_QUERY, r=1), seed=5)
TASK = SOURCE.task(0)
GARBAGE = {
    "support_labels": np.full(N_WAY * N_SHOT, 1),
    "query_labels": np.full(N_WAY * N_QUERY, 2),
    "candidates": SOURCE.task(1).candidates,
    "query_candidates": SOURCE.task(1).query_candidates,
}
SHOWN = {  # what each regime may see, written down again
    "fspll": {"candidates"},
    "fspll-nm": {"candidates"},
    "pn": {"candidates"},
    "pn-average": {"candidates", "query_candidates"},
    "precise": {"support_labels", "query_labels"},
    "leave-one-out": {"candidates"},
    "query-candidates": {"candidates", "query_candidates"},
    "all-candidates": {"candidates", "query_candidates"},
}


@pytest.fixture
def embedded():
    generator = torch.Generator().manual_seed(3)
    means = 2 * torch.randn(N_WAY, 5, generator=generator)
    labels = torch.cat([torch.as_tensor(TASK.support_labels), torch.as_tensor(TASK.query_labels)])
    noise = torch.randn(len(labels), 5, generator=generator)
    return means[labels] + noise


def loss_and_gradient(name, embedded, task, metric="euclidean"):
    regime, n = REGIMES[name], N_WAY * N_SHOT
    embedded = embedded.clone().requires_grad_()
    view = regime.view(embedded[:n], embedded[n:], task)
    loss = regime.loss(regime.solve(view, N_SHOT - 1, metric))
    (gradient,) = torch.autograd.grad(loss, embedded)
    return loss.detach(), gradient


def test_every_regime_is_tested():
    assert set(SHOWN) == set(REGIMES)
    assert all(not np.array_equal(getattr(TASK, name), wrong) for name, wrong in GARBAGE.items())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", REGIMES)
@pytest.mark.parametrize("array", GARBAGE)
def test_a_regime_depends_on_what_it_declares_and_on_nothing_else(embedded, name, array, metric):
    expected = loss_and_gradient(name, embedded, TASK, metric)
    found = loss_and_gradient(name, embedded, replace(TASK, **{array: GARBAGE[array]}), metric)
    if array in SHOWN[name]:
        assert not torch.equal(found[1], expected[1])
    else:
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize("name", sorted(set(REGIMES) - {"precise"}))
def test_training_and_judging_never_see_hidden_truth(name):
    """Through the whole learner, down to the gradients of the network, bit for bit."""
    plan = TrainingPlan(regime=name, n_way=N_WAY, n_shot=N_SHOT, n_query=N_QUERY)
    images = torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    wrong = {name: GARBAGE[name] for name in ("support_labels", "query_labels")}
    results = []
    for task in (TASK, replace(TASK, **wrong)):
        learner = PrototypeLearner(plan, in_channels=1, size=16)
        outcome = learner.episode(images, task)
        outcome.loss.backward()
        gradients = [parameter.grad for parameter in learner.network.parameters()]
        results.append((outcome.loss, *gradients, learner.judge(images[:12], task)))
    for a, b in zip(*results, strict=True):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))


def test_a_view_of_unlabeled_queries_holds_no_labels(embedded):
    for name, regime in REGIMES.items():
        view = regime.view(embedded[:12], embedded[12:], TASK)
        assert (view.query_labels is None) == (regime.query == "none"), name
        if regime.support == "candidates":
            np.testing.assert_array_equal(view.support_labels.numpy(), TASK.candidates)
        else:
            np.testing.assert_array_equal(
                view.support_labels.numpy(), np.eye(4)[TASK.support_labels]
            )


@pytest.mark.parametrize("name", REGIMES)
def test_the_confidence_is_a_constant(embedded, name):
    """The gradient is that of the loss with the confidence frozen at its value."""
    regime = REGIMES[name]
    view = regime.view(embedded[:12], embedded[12:], TASK)
    frozen = regime.solve(view, N_SHOT - 1, "euclidean").confidence
    _, gradient = loss_and_gradient(name, embedded, TASK)
    moving = embedded.clone().requires_grad_()
    view = regime.view(moving[:12], moving[12:], TASK)
    solved = regime.solve(view, N_SHOT - 1, "euclidean")
    assert not solved.confidence.requires_grad
    mass = frozen.sum(dim=0)
    prototypes = torch.stack(
        [(frozen[:, c : c + 1] * moving[:12]).sum(0) / mass[c] for c in range(4)]
    )
    loss = regime.loss(solved._replace(prototypes=prototypes, confidence=frozen))
    torch.testing.assert_close(torch.autograd.grad(loss, moving)[0], gradient)


def test_pn_weighs_candidates_equally_and_fspll_rectifies(embedded):
    view = REGIMES["pn"].view(embedded[:12], embedded[12:], TASK)
    candidates = torch.as_tensor(TASK.candidates)
    equal = REGIMES["pn"].solve(view, 2, "euclidean").confidence
    assert torch.equal(equal, candidates.float())
    for name, weight in (("fspll", 0.5), ("fspll-nm", 0.0)):
        expected = rectify(embedded[:12], candidates, Settings(2, weight, 10)).confidence
        found = REGIMES[name].solve(view, 2, "euclidean").confidence
        torch.testing.assert_close(found, expected)
        assert (found - equal).abs().max() > 0.1
    losses = {name: loss_and_gradient(name, embedded, TASK)[0].item() for name in REGIMES}
    assert len({round(loss, 5) for loss in losses.values()}) == len(REGIMES)


@pytest.mark.parametrize("metric", METRICS)
def test_precise_is_an_ordinary_prototypical_network(embedded, metric):
    loss, _ = loss_and_gradient("precise", embedded, TASK, metric)
    points = embedded.double().numpy()
    support, query = points[:12], points[12:]
    prototypes = [support[TASK.support_labels == c].mean(axis=0) for c in range(4)]
    expected = 0.0
    for x, label in zip(query, TASK.query_labels, strict=True):
        away = np.array([np.sum((x - p) ** 2) for p in prototypes])
        away = np.sqrt(away) if metric == "euclidean" else away
        expected += (away[label] + np.log(np.exp(-away).sum())) / len(query)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_certain_labels_are_not_blurred_by_rectification(embedded):
    """With sets of one, the prototypes of every regime are the class means."""
    certain = replace(TASK, candidates=np.eye(4, dtype=bool)[TASK.support_labels])
    for regime in REGIMES.values():
        view = regime.view(embedded[:12], embedded[12:], certain)
        prototypes = regime.solve(view, 2, "euclidean").prototypes
        torch.testing.assert_close(prototypes, embedded[:12].reshape(4, 3, 5).mean(dim=1))


def test_all_candidates_is_the_sum_of_both(embedded):
    parts = [
        loss_and_gradient(name, embedded, TASK)
        for name in ("leave-one-out", "query-candidates", "all-candidates")
    ]
    assert torch.allclose(parts[0][0] + parts[1][0], parts[2][0])
    assert torch.allclose(parts[0][1] + parts[1][1], parts[2][1], atol=1e-6)


@pytest.mark.parametrize("name", REGIMES)
def test_a_regime_that_reads_no_queries_says_so(embedded, name):
    """Other queries give the same loss, if the regime does not read them."""
    moved = embedded.clone()
    moved[N_WAY * N_SHOT :] += torch.linspace(0, 3, N_WAY * N_QUERY)[:, None]
    same = torch.equal(
        loss_and_gradient(name, embedded, TASK)[0], loss_and_gradient(name, moved, TASK)[0]
    )
    assert same != REGIMES[name].reads_queries


def test_the_default_sees_candidate_sets_of_the_support_only():
    assert SHOWN[DEFAULT] == {"candidates"}
    assert TrainingPlan().regime == DEFAULT


def test_an_objective_cannot_read_hidden_labels(embedded):
    for objective in ("true-class", "average-over-candidates", "query-candidates"):
        regime = Regime("candidates", "none", objective, 0, 0.0, "")
        view = regime.view(embedded[:12], embedded[12:], TASK)
        with pytest.raises(InputError, match="reads query labels, but the regime hides them"):
            regime.loss(regime.solve(view, 2, "euclidean"))


def test_unknown_names():
    with pytest.raises(InputError, match=r"regime must be one of fspll, .*, not 'FsPLL\+'"):
        find_regime("FsPLL+")
    assert find_regime("FsPLL") is REGIMES["fspll"]
    with pytest.raises(InputError, match="support='none', query='none'"):
        Regime("none", "none", "largest-probability", 0, 0.0, "")
    with pytest.raises(InputError, match="support='precise', query='secret'"):
        Regime("precise", "secret", "largest-probability", 0, 0.0, "")
    with pytest.raises(InputError, match=f"one of {', '.join(OBJECTIVES)}, not 'smallest'"):
        Regime("precise", "none", "smallest", 0, 0.0, "")
