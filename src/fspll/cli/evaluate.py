"""``fspll evaluate``: methods x settings on meta-test tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE
from rich.table import Table

from fspll.cli.console import note, out, progress_bar
from fspll.cli.options import DataSetName, Root, numbers

if TYPE_CHECKING:
    from fspll.embeddings.encoders.base import Encoder
    from fspll.experiments.evaluation import Row


def evaluate(
    context: typer.Context,
    checkpoints: list[Path] = typer.Argument(
        ..., help="Model files, folders of fspll train, or names of fspll models."
    ),
    dataset: DataSetName = "glyphs",
    all_classes: bool = typer.Option(
        False, "--all-classes", help="Test on every class of a folder, not only on a fifth."
    ),
    root: Root = None,
    methods: str = typer.Option(
        "PN,FsPLL-nM,FsPLL,adaptive",
        help="Methods, separated by commas; also ceiling, and any rectifier or baseline by name: "
        "Evidence (class means only), PL-AGGD, PALOC, PL-ECOC, PL-LEAF, PL-KNN, PRODEN, CC, POP, "
        "or one that an installed package adds. adaptive is the default of fspll label.",
    ),
    n_way: str = typer.Option("5,10,20,30", help="Classes per task (N2)."),
    n_shot: str = typer.Option("5,10", help="Support samples per class (K2)."),
    r: str = typer.Option("1,2,3", help="Extra labels per sample; 0 means precise labels."),
    p: float = typer.Option(1.0, help="Share of ambiguous samples."),
    tasks: int = typer.Option(100, min=2, help="Tasks per setting."),
    seed: int = typer.Option(0, min=0, help="Of the tasks and their candidate sets."),
    against: str | None = typer.Option(None, help="METHOD or MODEL:METHOD to test against."),
    maml_steps: int = typer.Option(10, min=1, help="MAML: steps of adaptation."),
    save: list[Path] = typer.Option([], help="Write the rows to a .csv, .json or .md file."),
) -> None:
    """Evaluate checkpoints on meta-test tasks: mean ± 95% interval, and a signed-rank test."""
    from fspll._common.files import check_no_input
    from fspll.datasets.registry import load_images, may_share_classes
    from fspll.experiments.evaluation import evaluate as evaluate_methods
    from fspll.experiments.evaluation import settings_grid
    from fspll.experiments.methods import find_method
    from fspll.experiments.tables import check_ending, write_rows

    # Everything that can be checked is checked before anything is loaded.
    for path in save:
        check_ending(path)
        check_no_input(path, [*checkpoints, *_files_of(dataset, root)])
    chosen = methods.split(",")
    for name in chosen:
        find_method(name)
    grid = numbers(n_way, "--n-way"), numbers(n_shot, "--n-shot"), numbers(r, "--r")
    encoders = [_load(path) for path in checkpoints]
    data = load_images(dataset, "all" if all_classes else "test", root=root)
    if data.note:
        note(f"testing on {data.note}", context)
    training = {encoder.name: encoder.metadata.get("training") for encoder in encoders}
    for name, about in training.items():
        trained_on = (about or {}).get("data", "")
        if may_share_classes(trained_on, data.name):
            shared = f"{name} was trained on {trained_on}, which shares classes with {data.name}"
            note(shared, context)
    settings = settings_grid(data, *grid, p)
    with progress_bar() as progress:
        bar = progress.add_task(f"evaluating on {data.name}", total=len(settings))
        rows = evaluate_methods(
            encoders,
            data,
            settings,
            chosen,
            n_tasks=tasks,
            seed=seed,
            against=against,
            maml_steps=maml_steps,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    out.print(_table(rows, data.name, against))
    for path in save:
        write_rows(rows, path, {"data": data.name, "training": training})
        out.print(f"written to {path}", soft_wrap=True, markup=False)


def _files_of(dataset: str, root: Path | None) -> list[Path]:
    """Return the files of a named data set; a folder of images has none that rows go to."""
    from fspll.datasets.registry import DATASETS

    if dataset not in DATASETS:
        return []
    known = DATASETS.get(dataset)
    return list(known.find_files(known.path(root))[0].values())


def _load(path: Path) -> Encoder:
    from fspll.embeddings.registry import load_embedding
    from fspll.metalearning.trainer import MODEL

    # What is not there may be a name, or else a mistyped one.
    where = (path / MODEL if path.is_dir() else path) if path.exists() else str(path)
    encoder = load_embedding(where)
    if path.name == MODEL or path.is_dir():
        encoder.name = (path if path.is_dir() else path.parent).resolve().name
    return encoder


def _table(rows: list[Row], data: str, against: str | None) -> Table:
    first = rows[0]
    table = Table(
        title=f"{data}, {first.n_tasks} tasks per setting, seed {first.seed}",
        caption="accuracy: mean over tasks ± 95% interval; support: share of support samples whose "
        "label was found; ECE: calibration error of the queries' probabilities"
        + (f"; p: signed-rank test against {against}" if against else ""),
        caption_justify="left",
        box=SIMPLE,
    )
    several = len({row.checkpoint for row in rows}) > 1
    for heading in ["N2", "K2", "r", "method", "accuracy", "std", "support", "ECE"] + ["p"] * bool(
        against
    ):
        fixed = heading != "method"
        table.add_column(heading, justify="right" if fixed else "left", no_wrap=fixed)
    before = None
    for row in rows:
        here = (row.n_way, row.n_shot, row.r)
        if before not in (None, here):
            table.add_section()
        cells = [str(figure) if here != before else "" for figure in here]
        before = here
        cells.append(f"{row.checkpoint}: {row.method}" if several else row.method)
        cells.append(f"{row.mean:.3f} ± {row.half_width:.3f}")
        cells += [f"{row.std:.3f}", f"{row.support_mean:.3f}"]
        cells.append("" if row.query_calibration is None else f"{row.query_calibration:.3f}")
        if against:
            cells.append("" if row.p_value is None else f"{row.p_value:.1g}")
        table.add_row(*cells)
    return table
