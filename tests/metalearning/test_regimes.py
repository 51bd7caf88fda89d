"""Regimes: what each may see, what it does with it, and what it must not depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fspll._common.errors import InputError
from fspll._common.registry import Registry
from fspll.candidates import Observed
from fspll.metalearning import REGIMES, Regime, TrainingPlan
from fspll.metalearning import regimes as objectives
from fspll.metalearning.maml import MAMLLearner
from fspll.metalearning.plan import DEFAULT
from fspll.metalearning.prototypes import PrototypeLearner, View, solve
from fspll.rectifiers import EvidenceRule, FsPLLRule, rectify
from fspll.rectifiers.equations import METRICS
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
    "maml": {"candidates", "query_candidates"},
    "maml+": {"support_labels", "query_labels"},
    "maml-total": {"candidates", "query_candidates"},
}
WITH_PROTOTYPES = [name for name in REGIMES if REGIMES.get(name).learner is PrototypeLearner]


@pytest.fixture
def embedded():
    generator = torch.Generator().manual_seed(3)
    means = 2 * torch.randn(N_WAY, 5, generator=generator)
    labels = torch.cat([torch.as_tensor(TASK.support_labels), torch.as_tensor(TASK.query_labels)])
    noise = torch.randn(len(labels), 5, generator=generator)
    return means[labels] + noise


def solved(regime, embedded, task=TASK, metric="euclidean"):
    """Return what a regime's objective is a function of."""
    support, query = regime.visible_labels(task)
    n = N_WAY * N_SHOT
    plan = TrainingPlan(n_way=N_WAY, n_shot=N_SHOT, metric=metric)
    rectifier = regime.rectifier(plan) if regime.rectifier else None
    return solve(View(embedded[:n], support, embedded[n:], query), rectifier, metric)


def loss_and_gradient(name, embedded, task, metric="euclidean"):
    regime = REGIMES.get(name)
    embedded = embedded.clone().requires_grad_()
    loss = regime.objective(solved(regime, embedded, task, metric))
    (gradient,) = torch.autograd.grad(loss, embedded)
    return loss.detach(), gradient


def test_every_regime_is_tested():
    assert set(SHOWN) == set(REGIMES)
    others = set(REGIMES) - set(WITH_PROTOTYPES)
    assert {name for name in others if REGIMES.get(name).learner is MAMLLearner} == others
    assert all(not np.array_equal(getattr(TASK, name), wrong) for name, wrong in GARBAGE.items())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", WITH_PROTOTYPES)
@pytest.mark.parametrize("array", GARBAGE)
def test_a_regime_depends_on_what_it_declares_and_on_nothing_else(embedded, name, array, metric):
    expected = loss_and_gradient(name, embedded, TASK, metric)
    found = loss_and_gradient(name, embedded, replace(TASK, **{array: GARBAGE[array]}), metric)
    if array in SHOWN[name]:
        assert not torch.equal(found[1], expected[1])
    else:
        assert torch.equal(found[0], expected[0])
        assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize("name", sorted(set(WITH_PROTOTYPES) - {"precise"}))
def test_training_and_scoring_never_see_hidden_truth(name):
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
        results.append((outcome.loss, *gradients, learner.held_out_score(images[:12], task)))
    for a, b in zip(*results, strict=True):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))


def test_labels_of_unlabeled_queries_are_not_visible():
    for name in REGIMES:
        regime = REGIMES.get(name)
        support, query = regime.visible_labels(TASK)
        assert (query is None) == (regime.query == "none"), name
        if regime.support == "candidates":
            np.testing.assert_array_equal(support.numpy(), TASK.candidates)
        else:
            np.testing.assert_array_equal(support.numpy(), np.eye(4)[TASK.support_labels])


@pytest.mark.parametrize("name", WITH_PROTOTYPES)
def test_the_confidence_is_a_constant(embedded, name):
    """The gradient is that of the loss with the confidence frozen at its value."""
    regime = REGIMES.get(name)
    frozen = solved(regime, embedded).confidence
    _, gradient = loss_and_gradient(name, embedded, TASK)
    moving = embedded.clone().requires_grad_()
    found = solved(regime, moving)
    assert not found.confidence.requires_grad
    mass = frozen.sum(dim=0)
    prototypes = torch.stack(
        [(frozen[:, c : c + 1] * moving[:12]).sum(0) / mass[c] for c in range(4)]
    )
    loss = regime.objective(found._replace(prototypes=prototypes, confidence=frozen))
    torch.testing.assert_close(torch.autograd.grad(loss, moving)[0], gradient)


def test_pn_weights_candidates_equally_and_fspll_rectifies(embedded):
    candidates = torch.as_tensor(TASK.candidates)
    equal = solved(REGIMES.get("pn"), embedded).confidence
    assert torch.equal(equal, candidates.float())
    for name, weight in (("fspll", 0.5), ("fspll-nm", 0.0)):
        expected = rectify(embedded[:12], candidates, FsPLLRule(2, weight, 10)).confidence
        found = solved(REGIMES.get(name), embedded).confidence
        torch.testing.assert_close(found, expected)
        assert (found - equal).abs().max() > 0.1
    losses = [loss_and_gradient(name, embedded, TASK)[0].item() for name in WITH_PROTOTYPES]
    assert len({round(loss, 5) for loss in losses}) == len(WITH_PROTOTYPES)


def test_any_rectifier_may_weight_the_candidates(embedded):
    """Where it has no weights of its own for prototypes, its confidence is taken."""
    regime = Regime("candidates", "none", objectives.leave_one_out, lambda plan: EvidenceRule())
    moving = embedded.clone().requires_grad_()
    found = solved(regime, moving)
    expected = EvidenceRule().fit(embedded[:12], Observed(torch.as_tensor(TASK.candidates)))
    assert expected.weights is None
    torch.testing.assert_close(found.confidence, expected.confidence, check_dtype=False)
    assert not found.confidence.requires_grad
    (gradient,) = torch.autograd.grad(regime.objective(found), moving)
    assert gradient.abs().max() > 0


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
    for name in WITH_PROTOTYPES:
        prototypes = solved(REGIMES.get(name), embedded, certain).prototypes
        torch.testing.assert_close(prototypes, embedded[:12].reshape(4, 3, 5).mean(dim=1))


def test_all_candidates_is_the_sum_of_both(embedded):
    parts = [
        loss_and_gradient(name, embedded, TASK)
        for name in ("leave-one-out", "query-candidates", "all-candidates")
    ]
    assert torch.allclose(parts[0][0] + parts[1][0], parts[2][0])
    assert torch.allclose(parts[0][1] + parts[1][1], parts[2][1], atol=1e-6)


@pytest.mark.parametrize("name", WITH_PROTOTYPES)
def test_a_regime_that_reads_no_queries_says_so(embedded, name):
    """Other queries give the same loss, if the regime does not read them."""
    moved = embedded.clone()
    moved[N_WAY * N_SHOT :] += torch.linspace(0, 3, N_WAY * N_QUERY)[:, None]
    same = torch.equal(
        loss_and_gradient(name, embedded, TASK)[0], loss_and_gradient(name, moved, TASK)[0]
    )
    assert same != REGIMES.get(name).reads_queries


def test_the_default_sees_candidate_sets_of_the_support_only():
    assert SHOWN[DEFAULT] == {"candidates"}
    assert TrainingPlan().regime == DEFAULT


def test_an_objective_cannot_read_hidden_labels(embedded):
    for name in ("true_class", "average_over_candidates", "query_candidates"):
        regime = Regime("candidates", "none", getattr(objectives, name))
        with pytest.raises(InputError, match="reads query labels, but the regime hides them"):
            regime.objective(solved(regime, embedded))


def test_a_regime_registered_from_outside_is_trained():
    """One object: which labels it sees, its objective, its rectification, its learner."""

    def widest_margin(solved):
        best, second = solved.query_log_p().topk(2).values.unbind(-1)
        return (second - best).mean()

    registry = Registry("regime", "fspll.regimes", {})
    regime = Regime("candidates", "none", widest_margin, about="another objective")
    registry.register("margin", regime)
    assert registry.get("Margin") is regime
    assert (regime.revision, regime.learner) == ("1", PrototypeLearner)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGIMES._things, "margin", regime)
        plan = TrainingPlan(regime="Margin", n_way=N_WAY, n_shot=N_SHOT, n_query=N_QUERY)
        learner = regime.learner(plan, 1, 16)
        images = torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0))
        outcome = learner.episode(images, TASK)
    embedded = learner.network(images)
    assert outcome.loss == widest_margin(solved(regime, embedded))


def test_maml_needs_labels_of_the_queries():
    regime = Regime("candidates", "none", torch.mean, learner=MAMLLearner)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REGIMES._things, "blind", regime)
        with pytest.raises(InputError, match="MAML learns from labels of the queries"):
            MAMLLearner(TrainingPlan(regime="blind"), 1, 16)


def test_unknown_names():
    with pytest.raises(InputError, match=r"there is no regime 'FsPLL\+'; did you mean 'fspll'\?"):
        REGIMES.get("FsPLL+")
    assert REGIMES.get("FsPLL") is REGIMES.get("fspll")
    assert all(REGIMES.get(name).about for name in REGIMES)
    with pytest.raises(InputError, match="support must be one of candidates, precise, not 'none'"):
        Regime("none", "none", objectives.largest_probability)
    with pytest.raises(InputError, match=r"query must be one of none, .*, not 'secret'"):
        Regime("precise", "secret", objectives.largest_probability)
    with pytest.raises(InputError, match="objective must be a function, not 'smallest'"):
        Regime("precise", "none", "smallest")
