"""Training plans: what they refuse, their arithmetic, and the way through JSON."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from fspll._common.errors import InputError
from fspll.metalearning import REGIMES, TrainingPlan
from fspll.tasks import TaskSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regime": "protonet"}, r"there is no regime 'protonet'; known are fspll, fspll-nm, pn, "),
        ({"metric": "cosine"}, "metric must be one of euclidean, sqeuclidean, not 'cosine'"),
        ({"r": ()}, r"r must be a tuple of numbers of extra labels, not \(\)"),
        ({"r": 1}, "r must be a tuple of numbers of extra labels, not 1"),
        ({"n_way": 0, "r": (0,)}, "n_way must be a whole number of 1 or more, not 0"),
        ({"n_shot": 2.5}, "n_shot must be a whole number of 1 or more, not 2.5"),
        ({"n_query": 0}, "n_query must be 1 or more in meta-training"),
        ({"n_tasks": 0}, "n_tasks must be a whole number of 1 or more, not 0"),
        ({"epochs": True}, "epochs must be a whole number of 1 or more, not True"),
        ({"tasks_per_step": 0}, "tasks_per_step must be a whole number of 1 or more, not 0"),
        ({"tasks_per_step": 7}, "tasks_per_step = 7 does not divide n_tasks = 100"),
        ({"halve_every": -1}, "halve_every must be a whole number of 0 or more, not -1"),
        ({"held_out": 1.0}, "held_out must be a whole number of 0 or more, not 1.0"),
        ({"seed": -3}, "seed must be a whole number of 0 or more, not -3"),
        ({"inner_steps": 0}, "inner_steps must be a whole number of 1 or more, not 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, not 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0, not nan"),
        ({"architecture": "vgg"}, "there is no architecture 'vgg'; known are conv4, resnet12, "),
        ({"inner_rate": float("inf")}, "inner_rate must be a number above 0, not inf"),
        ({"optimizer": "rmsprop"}, "optimizer must be one of adam, sgd, not 'rmsprop'"),
        ({"patience": 2}, "patience needs held_out classes to compare the epochs on"),
        ({"held_out": 9, "n_shot": 1}, "held_out needs n_shot of 2 or more"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(InputError, match=message):
        TrainingPlan(**settings)


def test_every_r_is_checked_against_the_classes():
    with pytest.raises(InputError) as caught:
        TrainingPlan(n_way=3, r=(1, 2, 3))
    assert "3" in str(caught.value)
    assert "2" in str(caught.value)
    assert TrainingPlan(n_way=3, r=(1, 2)).r == (1, 2)


@pytest.mark.parametrize("name", ["maml", "MAML+", "fspll", "FsPLL-nM", "Leave-One-Out"])
def test_regimes_in_any_case(name):
    plan = TrainingPlan(regime=name)
    assert plan == TrainingPlan(regime=name.lower())
    assert plan.regime == name.lower()
    assert REGIMES.get(name).learner.adapts == name.lower().startswith("maml")


def test_the_defaults_are_the_papers():
    plan = TrainingPlan()
    assert (plan.n_way, plan.n_shot, plan.n_query, plan.n_tasks) == (30, 5, 15, 100)
    assert (plan.learning_rate, plan.halve_every, plan.metric) == (0.001, 20, "euclidean")
    assert not plan.fresh


def test_json_round_trip():
    plan = TrainingPlan(regime="pn", r=(0, 2), p=0.5, held_out=3, patience=1, first_order=True)
    text = json.dumps(plan.to_dict())
    assert TrainingPlan.from_dict(json.loads(text)) == plan
    assert set(json.loads(text)) == {field.name for field in fields(TrainingPlan)}


def test_a_plan_written_by_an_earlier_version():
    """As it stands in the packaged model's file; later settings take their defaults."""
    plan = TrainingPlan.from_dict(
        {
            "regime": "FsPLL-nM", "n_way": 30, "n_shot": 5, "n_query": 15, "r": [1, 2], "p": 1.0,
            "n_tasks": 100, "fresh": True, "epochs": 3, "tasks_per_step": 1, "optimizer": "adam",
            "learning_rate": 0.001, "halve_every": 20, "metric": "euclidean", "seed": 0,
        }
    )  # fmt: skip
    assert (plan.regime, plan.r, plan.held_out) == ("fspll-nm", (1, 2), 0)


def test_a_strange_setting_is_named():
    with pytest.raises(InputError, match="a training plan has no setting 'n_ways'"):
        TrainingPlan.from_dict({"n_ways": 5})
    with pytest.raises(InputError, match="epochs must be a whole number"):
        TrainingPlan.from_dict({"epochs": 0})


def test_the_rate_halves():
    plan = TrainingPlan(learning_rate=0.8, halve_every=3)
    assert [plan.rate(epoch) for epoch in range(8)] == [0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2]
    assert TrainingPlan(learning_rate=0.8, halve_every=0).rate(1000) == 0.8


@pytest.mark.parametrize(
    ("n_tasks", "tasks_per_step", "per_epoch", "total"),
    [(12, 1, 12, 36), (12, 4, 3, 9), (12, 12, 1, 3)],
)
def test_steps(n_tasks, tasks_per_step, per_epoch, total):
    plan = TrainingPlan(n_tasks=n_tasks, tasks_per_step=tasks_per_step, epochs=3)
    assert (plan.steps_per_epoch, plan.total_steps) == (per_epoch, total)


def test_numbers_of_extra_labels_take_turns():
    plan = TrainingPlan(n_way=5, n_shot=2, n_query=3, r=(0, 1, 3), p=0.5)
    assert [plan.task_settings(task).r for task in range(7)] == [0, 1, 3, 0, 1, 3, 0]
    assert plan.task_settings(2) == TaskSettings(5, 2, 3, r=3, p=0.5)
