"""``fspll demo``: the main job end to end on characters drawn by code."""

from __future__ import annotations

import typer
from rich.table import Table

from fspll.cli.console import out, progress_bar


def demo(
    tasks: int = typer.Option(100, min=2, help="Tasks a setting."),
    seed: int = typer.Option(0, min=0, help="Seed of the network and of the tasks."),
) -> None:
    """Solve few-shot tasks with ambiguous labels on drawn characters and print a table."""
    # Heavy imports wait until the command runs, so that `fspll --help` is quick.
    import torch

    from fspll.datasets.glyphs import load_glyphs
    from fspll.embeddings import InputSpec, untrained_encoder
    from fspll.episodes import Setting, TaskSource
    from fspll.experiments.evaluation import METHODS, score_tasks
    from fspll.experiments.statistics import summarize

    settings = [Setting(n_way, 5, 15, r=r) for n_way in (5, 20) for r in (1, 2, 3)]
    table = Table(title=f"New characters, 5 samples of each, {tasks} tasks a line")
    for heading in ("classes", "labels a sample", *METHODS):
        table.add_column(heading, justify="right")
    with progress_bar() as progress:
        step = progress.add_task("drawing characters", total=len(settings) + 2)
        known, new = load_glyphs(100, split="train"), load_glyphs(200, split="test")
        progress.update(step, description="embedding them", advance=1)
        spec = InputSpec(size=28, channels=1, polarity="bright-ink")
        encoder = untrained_encoder("conv4", known.images, spec, seed=seed)
        features = torch.from_numpy(encoder.encode(new.images))
        progress.update(step, description="solving tasks", advance=1)
        for setting in settings:
            batch = TaskSource(new.labels, setting, seed=seed).batch(range(tasks))
            scores = [score_tasks(features, batch, method) for method in METHODS.values()]
            table.add_row(
                str(setting.n_way),
                str(setting.r + 1),
                *(str(summarize(score.query_accuracy)) for score in scores),
            )
            progress.advance(step)
    out.print(table)
    out.print(
        "Share of new drawings recognised, with the 95% interval of the mean; each of the five\n"
        "samples of a character carries that many candidate labels, one of them right.\n"
        "PN averages all candidates, FsPLL-nM weighs them by distance, FsPLL asks neighbours too."
    )
