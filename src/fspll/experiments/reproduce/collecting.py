"""From the store to an outcome: the cells that a grid asked for, as far as they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fspll.experiments.reproduce.grids import Asked
from fspll.experiments.reproduce.jobs import Source
from fspll.experiments.reproduce.outcomes import Cell, Outcome
from fspll.experiments.reproduce.profiles import Profile
from fspll.experiments.reproduce.store import Store
from fspll.metalearning.trainer import MODEL


def collect(
    experiment: str, profile: Profile, source: Source, asked: Sequence[Asked], out: Path
) -> Outcome:
    """Return what ``out/results.sqlite`` holds of a grid.

    A cell counts when all its tasks are there; half a cell would be compared on other tasks than
    its neighbors.
    """
    cells, missing = [], 0
    with Store(out / "results.sqlite") as store:
        for cell in asked:
            figures = store.figures(cell.job.key, cell.n_tasks)
            if len(figures.tasks) < cell.n_tasks:
                missing += 1
                continue
            cells.append(
                Cell(
                    row=cell.row.name,
                    features=cell.row.features,
                    place=cell.place,
                    query=figures.query,
                    support=figures.support,
                    seconds=float(figures.seconds.sum()),
                )
            )
        about = _about(experiment, profile, source, asked, store, out)
    dataset = source.dataset.describe(source.load("test"))
    return Outcome(experiment, dataset, profile.name, tuple(cells), about, missing)


def _about(
    experiment: str,
    profile: Profile,
    source: Source,
    asked: Sequence[Asked],
    store: Store,
    out: Path,
) -> dict[str, Any]:
    profile = profile.for_photos() if source.dataset.kind == "photos" else profile
    ready = store.networks()
    networks = {}
    for cell in asked:
        job = cell.job.network
        if job is None or job.plan is None or not (job.folder(out) / MODEL).exists():
            continue
        networks[job.label] = {
            "steps": job.plan.total_steps,
            "tasks": job.plan.total_steps * job.plan.tasks_per_step,
            # A network that another run or machine put there has no time in this store.
            **({"seconds": round(ready[job.key][1], 1)} if job.key in ready else {}),
            "plan": job.plan.to_dict(),
        }
    return {
        "seed": asked[0].job.seed if asked else 0,
        "tasks a setting": profile.n_tasks,
        "tasks a setting for MAML": profile.tasks_for("MAML"),
        "images a network is trained on": profile.images,
        "profile": profile.to_dict(),
        "networks": networks,
        "runs": store.runs(experiment, profile.name),
        "versions": store.versions(cell.job.key for cell in asked),
    }
