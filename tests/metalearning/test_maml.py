"""MAML against a plain loop, its meta-gradient against finite differences, and its tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fspll._common.errors import InputTypeError
from fspll.datasets import ImageSet
from fspll.embeddings import Conv4, Conv4Classifier, build_network, image_tensor, load_checkpoint
from fspll.experiments.methods import score_maml
from fspll.metalearning import REGIMES, TrainingPlan, train
from fspll.metalearning.adaptation import adapt, solve_task, weights_for
from fspll.metalearning.maml import MAMLLearner
from fspll.metalearning.objectives import average_over_candidates
from fspll.tasks import TaskSettings, TaskSource


class Smooth(nn.Module):
    """A tiny network without kinks, whose bias ``offset`` stands for a batch norm's."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 4, bias=False)
        self.offset = nn.Parameter(torch.zeros(4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(x) + self.offset))


@pytest.fixture
def small():
    """Return a smooth network in double precision, support, queries and candidate sets."""
    generator = torch.Generator().manual_seed(0)
    network = Smooth().double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    support = torch.randn(6, 3, generator=generator, dtype=torch.double)
    query = torch.randn(4, 3, generator=generator, dtype=torch.double)
    labels = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [0, 0, 1]])
    asked = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 0]])
    return network, support, query, labels.bool(), asked.bool()


def meta_loss(network, weights, support, query, labels, asked, **how):
    adapted = adapt(network, weights, support, labels, **how)
    scores = functional_call(network, adapted, (query,))
    return average_over_candidates(scores.log_softmax(dim=-1), asked)


# -------------------------------------------------------------------- the inner loop


def test_adaptation_against_gradient_steps_by_hand(small):
    network, support, _, labels, _ = small
    start = {name: tensor.detach().clone() for name, tensor in network.named_parameters()}
    adapted = adapt(network, dict(network.named_parameters()), support, labels, steps=3, rate=0.3)
    weights = {name: tensor.clone() for name, tensor in start.items()}
    for _ in range(3):
        moving = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
        hidden = torch.tanh(support @ moving["hidden.weight"].T + moving["offset"])
        log_p = (hidden @ moving["head.weight"].T + moving["head.bias"]).log_softmax(-1)
        loss = 0
        for row, mask in zip(log_p, labels, strict=True):
            loss = loss - row[mask].mean() / len(labels)
        loss.backward()
        for name in ("hidden.weight", "head.weight", "head.bias"):
            weights[name] = weights[name] - 0.3 * moving[name].grad
    for name, tensor in weights.items():
        torch.testing.assert_close(adapted[name], tensor)
    assert torch.equal(adapted["offset"], start["offset"])
    for name, tensor in network.named_parameters():
        assert torch.equal(tensor, start[name])  # the network itself stays


def test_batch_norm_is_learned_but_not_adapted():
    network = build_network("conv4-classifier", seed=0, width=4, size=16, n_way=3)
    images = torch.rand(9, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    labels = torch.eye(3, dtype=torch.bool).repeat(3, 1)
    weights = dict(network.named_parameters())
    adapted = adapt(network, weights, images, labels, steps=1, rate=0.5)
    moved = {name for name in weights if not torch.equal(adapted[name], weights[name])}
    norms = {f"embedding.blocks.{i}.1.{kind}" for i in range(4) for kind in ("weight", "bias")}
    assert moved == set(weights) - norms
    scores = functional_call(network, adapted, (images,))
    average_over_candidates(scores.log_softmax(-1), labels).backward()
    assert all(weights[name].grad.abs().max() > 0 for name in norms)


# -------------------------------------------------------------------- the meta-gradient


def finite_differences(function, weights, step=1e-5):
    """Central differences, one number after the other."""
    gradients = {}
    for name, tensor in weights.items():
        gradients[name] = torch.zeros_like(tensor)
        for index in np.ndindex(*tensor.shape):
            values = []
            for sign in (1, -1):
                moved = {key: value.detach().clone() for key, value in weights.items()}
                moved[name][index] += sign * step
                values.append(function({k: v.requires_grad_() for k, v in moved.items()}).item())
            gradients[name][index] = (values[0] - values[1]) / (2 * step)
    return gradients


@pytest.mark.parametrize("steps", [1, 3])
def test_the_second_order_gradient_is_the_true_one(small, steps):
    network, *task = small
    weights = dict(network.named_parameters())

    def gradients(second_order):
        how = {"steps": steps, "rate": 0.7, "second_order": second_order}
        loss = meta_loss(network, weights, *task, **how)
        return dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))

    expected = finite_differences(
        lambda moved: meta_loss(network, moved, *task, steps=steps, rate=0.7), weights
    )
    second, first = gradients(True), gradients(False)
    for name, gradient in expected.items():
        torch.testing.assert_close(second[name], gradient, rtol=1e-6, atol=1e-8)
    assert max((first[name] - expected[name]).abs().max() for name in weights) > 0.01


def test_the_first_order_gradient_is_that_of_the_adapted_weights(small):
    network, support, query, labels, asked = small
    weights = dict(network.named_parameters())
    how = {"steps": 2, "rate": 0.7}
    loss = meta_loss(network, weights, support, query, labels, asked, **how)
    found = torch.autograd.grad(loss, list(weights.values()))
    adapted = adapt(network, weights, support, labels, **how)
    there = {name: tensor.detach().requires_grad_() for name, tensor in adapted.items()}
    scores = functional_call(network, there, (query,))
    loss = average_over_candidates(scores.log_softmax(-1), asked)
    expected = torch.autograd.grad(loss, list(there.values()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


# -------------------------------------------------------------------- the learner


def patterns(n_classes=12, n_samples=6):
    rng = np.random.default_rng(1)
    shapes = np.kron(rng.random((n_classes, 4, 4)) > 0.5, np.ones((4, 4)))
    noisy = 200 * shapes[:, None] + 55 * rng.random((n_classes, n_samples, 16, 16))
    return ImageSet(
        "patterns",
        noisy.reshape(-1, 16, 16).astype(np.uint8),
        np.repeat(np.arange(n_classes), n_samples),
        tuple(f"pattern {c}" for c in range(n_classes)),
    )


DATA = patterns()
PLAN = TrainingPlan(regime="maml", n_way=3, n_shot=2, n_query=2, r=(0,), inner_steps=2)


def drawn(setting):
    task = TaskSource(DATA.labels, setting, seed=0).task(0)
    return image_tensor(DATA.images[np.concatenate([task.support, task.query])]), task


def plain_maml(learner, images, task, plan):
    """Second-order MAML with cross-entropy on true labels, by plain autograd.

    Every class starts from the one row that the head has.
    """
    weights = dict(learner.network.named_parameters())
    for name in ("head.weight", "head.bias"):
        weights[name] = torch.cat([weights[name]] * plan.n_way)
    moving = [name for name in weights if not name.endswith((".1.weight", ".1.bias"))]
    n = len(task.support_labels)
    for _ in range(plan.inner_steps):
        scores = functional_call(learner.network, weights, (images[:n],))
        loss = cross_entropy(scores, torch.as_tensor(task.support_labels))
        steps = torch.autograd.grad(loss, [weights[name] for name in moving], create_graph=True)
        weights = weights | {
            name: weights[name] - plan.inner_rate * step
            for name, step in zip(moving, steps, strict=True)
        }
    scores = functional_call(learner.network, weights, (images[n:],))
    return cross_entropy(scores, torch.as_tensor(task.query_labels))


@pytest.mark.parametrize("regime", ["maml", "maml+"])
def test_with_sets_of_one_it_is_plain_maml(regime):
    """And MAML+ is plain MAML whatever the candidate sets are."""
    plan = replace(PLAN, regime=regime, r=(2,) if regime == "maml+" else (0,))
    images, task = drawn(plan.task_settings(0))
    images = images.double()  # gradients of the one row are sums that nearly cancel
    learner = MAMLLearner(plan, in_channels=1, size=16)
    learner.network.double()
    outcome = learner.episode(images, task)
    expected = plain_maml(learner, images, task, plan)
    parameters = list(learner.network.parameters())
    assert outcome.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    found = torch.autograd.grad(outcome.loss, parameters)
    wanted = torch.autograd.grad(expected, parameters)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    assert 0 <= outcome.query_accuracy <= 1


def test_candidate_sets_are_all_that_maml_sees():
    plan = replace(PLAN, r=(1,))
    images, task = drawn(plan.task_settings(0))
    blind = replace(
        task,
        support_labels=np.zeros_like(task.support_labels),
        query_labels=np.zeros_like(task.query_labels),
    )
    results = []
    for seen in (task, blind):
        learner = MAMLLearner(plan, in_channels=1, size=16)
        learner.episode(images, seen).loss.backward()
        figure = torch.tensor(learner.held_out_score(images[:6], seen))
        results.append([p.grad for p in learner.network.parameters()] + [figure])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    shown, asked = REGIMES.get("maml").visible_labels(task)
    np.testing.assert_array_equal(shown, task.candidates)
    np.testing.assert_array_equal(asked, task.query_candidates)
    _, precise = REGIMES.get("maml+").visible_labels(task)
    np.testing.assert_array_equal(precise, np.eye(3)[task.query_labels])


def test_one_network_is_for_any_number_of_classes():
    learner = MAMLLearner(PLAN, in_channels=1, size=16)
    weights = weights_for(learner.network, 7)
    row = learner.network.head.weight
    assert row.shape[0] == 1
    assert torch.equal(weights["head.weight"], row.expand(7, -1))
    assert learner.network.head.bias.expand(7).equal(weights["head.bias"])


def test_total_probability_leaves_the_other_candidates_alone():
    """Its inner steps are those of its own objective: sets of all classes teach nothing."""
    plan = replace(PLAN, regime="maml-total", r=(2,))
    images, task = drawn(plan.task_settings(0))
    assert task.candidates.all()
    learner = MAMLLearner(plan, in_channels=1, size=16)
    outcome = learner.episode(images, task)
    assert outcome.loss.item() == pytest.approx(0, abs=1e-6)
    assert learner.held_out_score(images[:6], task) == 1


def test_the_plan_decides_the_order():
    images, task = drawn(PLAN.task_settings(0))
    gradients = []
    for first_order in (False, True):
        learner = MAMLLearner(replace(PLAN, first_order=first_order), in_channels=1, size=16)
        learner.episode(images, task).loss.backward()
        gradients.append(learner.network.embedding.blocks[0][0].weight.grad)
    assert not torch.allclose(*gradients, rtol=1e-2)


# -------------------------------------------------------------------- meta-test tasks


@pytest.mark.parametrize("n_way", [2, 3, 5])
def test_the_head_fits_any_number_of_classes(n_way):
    network = build_network("conv4-classifier", seed=0, width=4, size=16, n_way=3)
    weights = weights_for(network, n_way)
    assert weights["head.weight"].shape == (n_way, 4)
    assert weights["head.bias"].shape == (n_way,)
    kept = min(3, n_way)
    assert torch.equal(weights["head.weight"][:kept], network.head.weight[:kept])
    assert torch.equal(weights["head.bias"][:kept], network.head.bias[:kept])
    for row in range(3, n_way):
        torch.testing.assert_close(weights["head.weight"][row], network.head.weight.mean(dim=0))
        torch.testing.assert_close(weights["head.bias"][row], network.head.bias.mean())
    assert all(tensor.is_leaf and tensor.requires_grad for tensor in weights.values())
    scores = functional_call(network, weights, (torch.rand(2, 1, 16, 16),))
    assert scores.shape == (2, n_way)


@pytest.mark.parametrize("n_way", [2, 4, 6])
def test_a_task_is_solved_within_the_candidates(n_way):
    network = build_network("conv4-classifier", seed=0, width=8, size=16, n_way=4)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    images, task = drawn(TaskSettings(n_way, 3, 3, r=1))
    candidates = torch.as_tensor(task.candidates)
    known, guessed = solve_task(network, images, candidates, steps=5, rate=0.5)
    assert known.shape == (3 * n_way,)
    assert guessed.shape == (3 * n_way,)
    assert candidates.gather(-1, known[:, None]).all()
    weights = adapt(
        network, weights_for(network, n_way), images[: 3 * n_way], candidates, steps=5, rate=0.5
    )
    with torch.no_grad():
        scores = functional_call(network, weights, (images[: 3 * n_way],))
        asked = functional_call(network, weights, (images[3 * n_way :],))
    for label, row, mask in zip(known.tolist(), scores.tolist(), candidates.tolist(), strict=True):
        assert label == max((c for c in range(n_way) if mask[c]), key=lambda c, row=row: row[c])
    assert guessed.tolist() == asked.argmax(dim=-1).tolist()
    for parameter, old in zip(network.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_only_its_own_network_is_adapted():
    with pytest.raises(InputTypeError, match="MAML adapts a conv4-classifier, not a Conv4"):
        solve_task(Conv4(size=16), torch.rand(2, 1, 16, 16), torch.eye(2).bool(), steps=1, rate=1.0)


def test_maml_learns(tmp_path):
    """A few steps adapt the trained start better than a random one, on patterns of its own."""
    plan = TrainingPlan(
        regime="maml+", n_way=3, n_shot=2, n_query=2, n_tasks=60, epochs=1, fresh=True,
        learning_rate=3e-3, inner_steps=1,
    )  # fmt: skip
    trained = train(DATA, plan, tmp_path)
    network = load_checkpoint(trained.model).network
    assert isinstance(network, Conv4Classifier)
    tasks = TaskSource(DATA.labels, TaskSettings(3, 2, 4, r=0), seed=9).batch(range(30))
    start = MAMLLearner(plan, in_channels=1, size=16).network
    before, after = (
        score_maml(n, DATA, tasks, steps=1, rate=0.5).query_accuracy.mean()
        for n in (start, network)
    )
    assert before < 0.9
    assert after > before + 0.08
