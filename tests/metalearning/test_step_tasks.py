"""The tasks of a step against a plain loop, above all batch norm's running statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fspll.datasets import load_glyphs
from fspll.metalearning import TrainingPlan
from fspll.metalearning.episodes import Episodes
from fspll.metalearning.prototypes import PrototypeLearner
from fspll.metalearning.step_tasks import OneProcess, StepTasks

pytestmark = pytest.mark.usefixtures("one_thread")
PLAN = TrainingPlan(n_way=4, n_shot=2, n_query=1, n_tasks=12, tasks_per_step=4)
DATA = load_glyphs(12, 8, size=16)


def learner_and_episodes(plan):
    return PrototypeLearner(plan, 1, 16), Episodes(DATA, plan, torch.device("cpu"))


def take_steps(plan, n_steps, prepare=lambda network: None):
    """Run the tasks of some steps; return the network, whose gradients are those of all."""
    learner, episodes = learner_and_episodes(plan)
    prepare(learner.network)
    tasks = StepTasks(learner, episodes, plan)
    for step in range(n_steps):
        tasks.begin()
        tasks.end(OneProcess().run(tasks, step))
    return learner.network


def plain_loop(plan, n_tasks):
    learner, episodes = learner_and_episodes(plan)
    learner.network.train()
    for number in range(n_tasks):
        (learner.episode(*episodes.get(number)).loss / plan.tasks_per_step).backward()
    return learner.network


def test_one_task_per_step_is_the_plain_loop_to_the_bit():
    plan = replace(PLAN, tasks_per_step=1)
    found, expected = take_steps(plan, 3), plain_loop(plan, 3)
    for (name, one), other in zip(found.named_buffers(), expected.buffers(), strict=True):
        assert torch.equal(one, other), name
    for (name, one), other in zip(found.named_parameters(), expected.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad), name


@pytest.mark.parametrize("architecture", ["conv4", "resnet12"])
def test_several_tasks_move_the_statistics_in_their_order(architecture):
    plan = replace(PLAN, architecture=architecture, n_way=3)
    found, expected = take_steps(plan, 2), plain_loop(plan, 8)
    for (name, one), other in zip(found.named_buffers(), expected.buffers(), strict=True):
        # The last bits may differ, since the layers round once and this twice.
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7, msg=name)
        assert other.dtype != torch.int64 or one == other == 8
    for (name, one), other in zip(found.named_parameters(), expected.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad), name


def test_statistics_without_momentum_are_left_to_the_layers():
    def without_momentum(network):
        for module in network.modules():
            module.momentum = None

    network = take_steps(PLAN, 1, without_momentum)
    assert network.blocks[0][1].num_batches_tracked == 4
    learner, episodes = learner_and_episodes(PLAN)
    assert StepTasks(learner, episodes, PLAN).other_buffers() == {}
    without_momentum(learner.network)
    assert len(StepTasks(learner, episodes, PLAN).other_buffers()) == 12  # three per layer
