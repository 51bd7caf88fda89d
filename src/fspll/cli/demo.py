"""``fspll demo``: the main job end to end on characters drawn by code."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer
from rich.box import SIMPLE
from rich.table import Table

from fspll._common.errors import CheckpointError, InputError
from fspll.cli.console import out, progress_bar


def demo(
    folder: Path | None = typer.Option(None, "--out", help="Keep the trained model here."),
    steps: int = typer.Option(300, min=1, help="Steps of meta-training."),
    tasks: int = typer.Option(100, min=2, help="New tasks per line of the table."),
    seed: int = typer.Option(0, min=0, help="Seed of the network and of the tasks."),
) -> None:
    """Meta-train on drawn characters for about a minute, then solve tasks with new ones."""
    # Heavy imports wait until the command runs, so that `fspll --help` is quick.
    from fspll._common.devices import keep_freed_memory
    from fspll.cli.progress import TrainingBar
    from fspll.datasets.glyphs.drawing import load_glyphs
    from fspll.embeddings.registry import load_embedding
    from fspll.experiments.evaluation import evaluate
    from fspll.experiments.methods import DEFAULT_METHODS as METHODS
    from fspll.metalearning.plan import TrainingPlan
    from fspll.metalearning.trainer import MODEL, check_folder, train
    from fspll.tasks import TaskSettings

    if folder is not None:
        check_folder(folder)
        if (folder / MODEL).exists():
            raise InputError(f"{folder} holds a trained model already; choose another folder")
    keep_freed_memory()
    out.print("Drawing characters: 20 people, 400 characters to learn from and 200 new ones ...")
    known, new = load_glyphs(400, split="train"), load_glyphs(200, split="test")
    # This regime reads only candidate sets of the support samples; few queries keep it quick.
    plan = TrainingPlan(
        regime="leave-one-out", n_query=3, n_tasks=steps, epochs=1, fresh=True, seed=seed
    )
    with tempfile.TemporaryDirectory() as scratch:
        with TrainingBar(plan.total_steps, "meta-training") as bar:
            try:
                trained = train(known, plan, folder or scratch, observers=(bar.observe,))
            except CheckpointError as error:  # whose advice is for another command
                reason = f"{folder} holds the state of another training, or a damaged one"
                raise InputError(f"{reason}; choose another folder") from error
        if trained.model is None:
            raise KeyboardInterrupt
        encoder = load_embedding(trained.model)
    settings = [TaskSettings(n_way, 5, 15, r=r) for n_way in (5, 20) for r in (1, 2, 3)]
    with progress_bar() as progress:
        line = progress.add_task("solving new tasks", total=len(settings))
        rows = evaluate(
            [encoder],
            new,
            settings,
            list(METHODS),
            n_tasks=tasks,
            seed=seed,
            progress=lambda done, total: progress.update(line, completed=done),
        )
    table = Table(title=f"New characters, 5 samples of each, {tasks} tasks per line", box=SIMPLE)
    for heading in ("classes", "labels per sample", *METHODS):
        table.add_column(heading, justify="right", no_wrap=heading in METHODS)
    for start in range(0, len(rows), len(METHODS)):
        line_rows = rows[start : start + len(METHODS)]
        figures = [f"{row.mean:.3f}±{row.half_width:.3f}" for row in line_rows]
        table.add_row(str(line_rows[0].n_way), str(line_rows[0].r + 1), *figures)
    out.print(table)
    out.print(
        "Share of new drawings recognized, ± the 95% interval of the mean. Each sample carries\n"
        "that many candidate labels, one of them right. PN averages over all of them, FsPLL-nM\n"
        "weights them by distance, FsPLL by the neighbors too (the paper's rule); Evidence, the\n"
        "class means of the default, intersects the candidate sets of neighbors and gives each\n"
        "label to one group only. The network never saw a true label: it was trained on candidate\n"
        "sets as well.",
        soft_wrap=True,
    )
    if folder is not None:
        out.print(f"The model is in {folder}.", soft_wrap=True, markup=False)
