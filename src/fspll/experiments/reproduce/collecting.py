"""From what was measured to an outcome: figures of a grid, and what made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fspll.experiments.reproduce.grid import missing_encoder
from fspll.experiments.reproduce.jobs import Source
from fspll.experiments.reproduce.portable import PORTABLE, open_results, write_portable
from fspll.experiments.reproduce.profiles import Profile, images_per_task
from fspll.experiments.reproduce.results import Cell, Outcome
from fspll.experiments.reproduce.store import Store
from fspll.metalearning.head_tasks import HeadPlan
from fspll.metalearning.plan import TrainingPlan


def collect(
    experiment: str, profile: Profile, source: Source, cells: Sequence[Cell], out: Path
) -> Outcome:
    """Return what a folder holds of a grid; all that it holds is written to its text file.

    A cell counts when all its tasks are there; half a cell would be compared on other tasks than
    its neighbors.
    """
    found = []
    with open_results(out) as store:
        write_portable(store, out / PORTABLE)
        for cell in cells:
            if cell.job is None:
                continue
            figures = store.figures(cell.job.key, cell.job.n_tasks)
            if len(figures.tasks) == cell.job.n_tasks:
                seconds = float(figures.seconds.sum())
                found.append(
                    replace(cell, query=figures.query, support=figures.support, seconds=seconds)
                )
        about = _about(experiment, profile, source, cells, store, out)
    left_out = missing_encoder(experiment, profile, source)
    if left_out:
        about["rows on features of a photo encoder"] = f"left out: {left_out}"
    missing = len(cells) - len(found)
    dataset = source.dataset.describe(source.load("test"))
    return Outcome(experiment, dataset, profile.name, tuple(found), about, missing)


def _about(
    experiment: str,
    profile: Profile,
    source: Source,
    cells: Sequence[Cell],
    store: Store,
    out: Path,
) -> dict[str, Any]:
    profile = profile.for_photos() if source.dataset.kind == "photos" else profile
    ready = store.networks()
    jobs = [cell.job for cell in cells if cell.job is not None]
    networks = {}
    for network in dict.fromkeys(job.network for job in jobs):
        if network is None or network.plan is None or not network.is_ready(out):
            continue
        # A network that another run or machine put there has no time in this store.
        seconds = ready[network.key][-1] if network.key in ready else None
        networks[network.label] = {
            **_amount(network.plan, network.training(out)),
            **({} if seconds is None else {"minutes": round(seconds / 60, 2)}),
            "plan": network.plan.to_dict(),
        }
    return {
        "seed": jobs[0].seed if jobs else 0,
        "tasks per setting": profile.n_tasks,
        "tasks per setting for MAML": profile.tasks_for(adapts=True),
        **(
            {f"tasks per setting from K2 = {profile.many_shots} on": profile.many_shot_tasks}
            if profile.many_shot_tasks and max(profile.n_shots) >= profile.many_shots
            else {}
        ),
        **(
            {"MAML": f"left out where a task has more than {profile.maml_samples} samples"}
            if profile.maml_samples
            else {}
        ),
        "images that a network is trained on": profile.images,
        "profile": profile.to_dict(),
        "networks": networks,
        "runs": [
            {"started": run.started, "workers": run.workers, "seconds": round(run.seconds, 1)}
            for run in store.runs()
            if (run.experiment, run.profile) == (experiment, profile.name)
        ],
        "versions": store.versions(job.key for job in jobs),
    }


def _amount(plan: TrainingPlan | HeadPlan, training: dict[str, Any]) -> dict[str, Any]:
    """Return how much a network was trained; one that was stopped early had fewer steps."""
    if isinstance(plan, HeadPlan):
        images = plan.n_tasks * plan.n_way * plan.n_shot
        return {"steps": 0, "tasks": plan.n_tasks, "images": images}
    steps = int(training.get("steps", plan.total_steps))
    tasks = steps * plan.tasks_per_step
    return {"steps": steps, "tasks": tasks, "images": tasks * images_per_task(plan)}
