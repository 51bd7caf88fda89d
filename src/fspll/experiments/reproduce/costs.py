"""Rough seconds of work, for the order of pieces and the time left; nothing depends on them.

The constants were taken from one core of an ordinary server; only their ratios matter, because the
time left is scaled by what the work so far has taken.
"""

from __future__ import annotations

from fspll.experiments.baselines import BASELINES
from fspll.experiments.reproduce.jobs import NetworkJob, ScoreJob, Source
from fspll.metalearning import REGIMES

_STEP, _FORWARD = 1.3e-3, 0.45e-3  # an image of 28 x 28 through the network, with its gradient
_BASELINE = {"PALOC": 2.5, "PL-ECOC": 1.5}


def training_cost(job: NetworkJob) -> float:
    """Return the seconds that meta-training takes."""
    plan = job.plan
    if plan is None:
        return 0.0
    images = plan.n_way * (plan.n_shot + plan.n_query)
    steps = plan.total_steps * plan.tasks_per_step
    adapting = 2.5 if REGIMES.get(plan.regime).learner.adapts else 1.0
    return _STEP * images * steps * _pixels(job.source) * adapting


def embedding_cost(job: NetworkJob) -> float:
    """Return the seconds that embedding the meta-test images takes."""
    return _FORWARD * len(job.source.load("test")) * _pixels(job.source)


def solving_cost(job: ScoreJob, tasks: list[int]) -> float:
    """Return the seconds that some tasks take."""
    support = job.setting.n_way * job.setting.n_shot
    queries = job.setting.n_way * job.setting.n_query
    if job.method == "MAML":
        each = (_STEP * support * job.maml_steps + _FORWARD * queries) * _pixels(job.source)
    elif job.method in BASELINES:
        each = (0.01 + 5e-4 * support) * _BASELINE.get(job.method, 1.0)
    else:
        each = 5e-5 * (support + queries)
    return each * len(tasks)


def _pixels(source: Source) -> float:
    shape = source.load("test").images.shape
    return shape[1] * shape[2] / 784
