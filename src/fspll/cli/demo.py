"""``fspll demo``: the main job end to end on characters drawn by code, for a first look."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll._common.errors import InputError
from fspll.cli.console import out, progress_bar
from fspll.cli.demo_labeling import label_example

if TYPE_CHECKING:
    from fspll.datasets.base import ImageSet
    from fspll.experiments.evaluation import Row

# What each column of the table of methods is, in one sentence.
_COLUMNS = {
    "classes": "how many different characters a task has, with 5 example drawings of each",
    "labels per sample": "how many candidate labels each example has; no method is told which one "
    "is right",
    "PN": "prototypical network, a standard few-shot method: a class is the mean of all examples "
    "that might be it, and a new drawing belongs to the nearest mean",
    "FsPLL-nM": "the paper's method without its manifold term (nM): an example counts more for "
    "those of its labels whose mean is nearer",
    "FsPLL": "the paper's method with that term: the labels of similar examples count as well",
    "adaptive": "this package's own, as in fspll label: similar examples share a label, and no "
    "label goes to two groups of them",
}


def demo(
    context: typer.Context,
    folder: Path = typer.Option(
        Path("demo"), "--out", help="The folder for everything; an earlier demo there is replaced."
    ),
    steps: int = typer.Option(200, min=1, help="Steps of meta-training."),
    tasks: int = typer.Option(100, min=2, help="New tasks per line of the table."),
    seed: int = typer.Option(0, min=0, help="Seed of the network, the tasks and the candidates."),
) -> None:
    """Train a network on drawn characters, test it on new ones, and label a folder of pictures."""
    # Heavy imports wait until the command runs, so that `fspll --help` is quick.
    from fspll._common.devices import keep_freed_memory
    from fspll._common.locks import lock_folder
    from fspll.datasets.glyphs.drawing import load_glyphs
    from fspll.labeling.example import NETWORK, check_example_folder, is_example
    from fspll.metalearning.trainer import check_folder

    check_folder(folder)
    if (folder / NETWORK).exists() and not is_example(folder):
        raise InputError(f"{folder} holds a trained model already; choose another folder")
    check_example_folder(folder)
    keep_freed_memory()
    with lock_folder(folder):
        out.print(
            f"This takes about a minute. Everything goes into {escape(str(folder))}.",
            soft_wrap=True,
        )
        _heading("1. Learn from ambiguous labels")
        out.print(
            "The code draws 600 invented characters in the handwriting of 20 people. A network "
            "learns from 400 of them, in many small tasks ('meta-training'). It is never told what "
            "a drawing shows: each comes with two candidate labels, one of which is right."
        )
        known, new = load_glyphs(400, split="train"), load_glyphs(200, split="test")
        _train(known, folder, steps, seed)
        _heading("2. Test it on characters that it has never seen")
        _compare(new, folder, tasks, seed)
        _heading("3. Label a folder of pictures, as you would with yours")
        label_example(context, folder, seed)


def _heading(words: str) -> None:
    out.print(f"\n[bold]{words}[/]")


# -------------------------------------------------------------------- 1: the network


def _train(known: ImageSet, folder: Path, steps: int, seed: int) -> None:
    from fspll._common.files import write_beside
    from fspll.cli.progress import TrainingBar
    from fspll.labeling.example import NETWORK, begin_example
    from fspll.metalearning.plan import TrainingPlan
    from fspll.metalearning.trainer import train

    # This regime reads only candidate sets of the support samples; one query keeps it quick.
    plan = TrainingPlan(
        regime="leave-one-out", n_query=1, n_tasks=steps, epochs=1, fresh=True, seed=seed
    )
    with tempfile.TemporaryDirectory() as scratch:
        with TrainingBar(plan.total_steps, "meta-training") as bar:
            trained = train(known, plan, scratch, observers=(bar.observe,))
        if trained.model is None:
            raise KeyboardInterrupt
        begin_example(folder)
        with write_beside(folder / NETWORK) as beside:
            shutil.copyfile(trained.model, beside)
    out.print(f"Trained on {steps} tasks. The model is in {escape(str(folder))}.", soft_wrap=True)


# -------------------------------------------------------------------- 2: the table of methods


def _compare(new: ImageSet, folder: Path, tasks: int, seed: int) -> None:
    from fspll.experiments.evaluation import evaluate
    from fspll.experiments.methods import DEFAULT_METHODS
    from fspll.labeling.example import NETWORK
    from fspll.tasks import TaskSettings

    settings = [TaskSettings(n_way, 5, 15, r=r) for n_way in (5, 20) for r in (1, 2, 3)]
    with progress_bar() as progress:
        line = progress.add_task("solving new tasks", total=len(settings))
        rows = evaluate(
            [folder / NETWORK],
            new,
            settings,
            list(DEFAULT_METHODS),
            n_tasks=tasks,
            seed=seed,
            progress=lambda done, total: progress.update(line, completed=done),
        )
    out.print(
        f"Each figure is the share of new drawings that a method recognized, over {tasks} tasks, "
        "± its 95% interval:"
    )
    out.print(_meanings())
    out.print(_table(rows, list(DEFAULT_METHODS)))
    out.print(
        "With 5 classes and 4 labels per sample a label set rules out one class only, so that "
        "some tasks cannot be decided by any method."
    )


def _meanings() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, what in _COLUMNS.items():
        table.add_row(name, what)
    return table


def _table(rows: list[Row], methods: list[str]) -> Table:
    table = Table(box=SIMPLE)
    for heading in ("classes", "labels per sample", *methods):
        table.add_column(heading, justify="right", no_wrap=heading in methods)
    for start in range(0, len(rows), len(methods)):
        line_rows = rows[start : start + len(methods)]
        figures = [f"{row.mean:.3f}±{row.half_width:.3f}" for row in line_rows]
        table.add_row(str(line_rows[0].n_way), str(line_rows[0].r + 1), *figures)
    return table
