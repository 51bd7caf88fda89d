"""``fspll predict``: labels for new samples, by a model of ``fspll label``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll._common.errors import InputError
from fspll.cli.console import encoding_bar, err, out

if TYPE_CHECKING:
    from fspll.labeling.prediction import Predictions

COLUMNS = ("sample", "label", "probability", "runner_up", "margin")


def predict(
    model: Path = typer.Argument(..., help="A model file, or the folder of fspll label."),
    files: list[Path] = typer.Argument(None, help="Pictures, or folders of pictures."),
    text: Path | None = typer.Option(None, help="A file with one text per line."),
    features: Path | None = typer.Option(None, help="Vectors: an .npy or .npz file."),
    table: Path | None = typer.Option(None, "--out", help="Write a CSV file."),
    encoder: str | None = typer.Option(
        None, help="The path of a checkpoint, for a model that was saved without its encoder."
    ),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Leave out what cannot be read."),
    cache: bool = typer.Option(True, help="Keep encoded samples for the next run."),
) -> None:
    """Label new samples with a saved model."""
    from fspll.annotations.writing import write_table
    from fspll.labeling.prediction import (
        predict_samples,
        read_pictures,
        read_texts,
        read_vectors,
    )
    from fspll.labeling.saving import load_model

    given = [bool(files), text is not None, features is not None]
    if sum(given) != 1:
        raise InputError(
            "give new samples in one way: files of pictures, --text FILE or --features FILE"
        )
    classifier = load_model(model, encoder=encoder)
    samples: tuple[list[str], Any]
    if text is not None:
        samples = read_texts(text)
    elif features is not None:
        samples = read_vectors(features)
    else:
        samples = read_pictures(files)
    with encoding_bar() as progress:
        found = predict_samples(
            classifier, *samples, skip_bad=skip_bad, cache=cache, progress=progress
        )
    for one in found.unreadable:
        err.print(f"[yellow]left out:[/] {escape(str(one))}", soft_wrap=True)
    rows = _rows(found)
    if table is None:
        _print(rows)
        return
    write_table(table, COLUMNS, rows)
    out.print(f"{len(rows)} labels are in {escape(str(table))}", soft_wrap=True)


def _rows(found: Predictions) -> list[Sequence[Any]]:
    runner_up = [None] * len(found.names) if found.runner_up is None else found.runner_up
    return [
        (name, label, f"{probability:.4f}", second, f"{margin:.4f}")
        for name, label, probability, second, margin in zip(
            found.names, found.labels, found.probability, runner_up, found.margin, strict=True
        )
    ]


def _print(rows: list[Sequence[Any]]) -> None:
    if not out.is_terminal:
        # One line per sample, tabs between: what grep and cut can work with.
        for row in rows:
            typer.echo("\t".join("" if cell is None else str(cell) for cell in row))
        return
    table = Table(box=SIMPLE)
    for heading in COLUMNS:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    out.print(table)
