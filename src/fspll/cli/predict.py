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
from fspll._common.progress import show_progress
from fspll._common.words import counted
from fspll.cli.console import echo, err, note, out
from fspll.cli.options import FeaturesColumns, Scheduler, Sheet

if TYPE_CHECKING:
    from fspll.labeling.prediction import Predictions

COLUMNS = ("sample", "label", "confidence", "runner_up", "margin")


def predict(
    context: typer.Context,
    model: Path = typer.Argument(..., help="A model file, or the folder of fspll label."),
    files: list[Path] = typer.Argument(
        None,
        help="Pictures, folders of pictures, or one table (CSV, TSV, .xlsx, parquet, feather).",
    ),
    text: str | None = typer.Option(
        None, help="The column of a table with the texts; or a file with one text per line."
    ),
    features: Path | None = typer.Option(
        None, help="Vectors: an .npy or .npz file, or a table of numbers."
    ),
    features_columns: FeaturesColumns = None,
    picture: str | None = typer.Option(None, "--file", help="The column with the pictures."),
    images: Path | None = typer.Option(None, help="The folder of the pictures of a table."),
    sample: str | None = typer.Option(None, help="The column with the samples' names."),
    encoding: str | None = typer.Option(None, help="Of a text file that is not UTF-8."),
    sheet: Sheet = None,
    table: Path | None = typer.Option(None, "--out", help="Write a CSV file."),
    encoder: str | None = typer.Option(
        None, help="The path of a checkpoint, for a model that was saved without its encoder."
    ),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Leave out what cannot be read."),
    cache: bool = typer.Option(True, help="Keep encoded samples for the next run."),
    scheduler: Scheduler = None,
) -> None:
    """Label new samples with a saved model."""
    from fspll._common.files import check_no_input
    from fspll.annotations.writing import write_table
    from fspll.labeling.folder import NAMES
    from fspll.labeling.new_samples import (
        is_table,
        read_new_pictures,
        read_new_table,
        read_new_texts,
        read_new_vectors,
    )
    from fspll.labeling.prediction import predict_samples
    from fspll.labeling.saving import load_model

    for path in files or ():
        if path.suffix.lower() in (".npy", ".npz"):
            raise InputError(f"{path} holds vectors; give it with --features")
    from_table = bool(files) and is_table(files)
    given = [bool(files), text is not None and not from_table, features is not None]
    if not any(given):
        load_model(model, encoder=encoder)  # without a model that is the first thing to say
        raise InputError(
            "no new samples were given: after the model, name files of pictures or a table, or "
            "give --text FILE or --features FILE"
        )
    if sum(given) > 1:
        raise InputError(
            "give new samples in one way: files of pictures, a table, --text FILE or "
            "--features FILE"
        )
    columns = [features_columns, picture, images, sample, sheet]
    if not from_table and any(one is not None for one in columns):
        raise InputError(
            "--features-columns, --file, --images, --sample and --sheet belong to a table of new "
            "samples"
        )
    # Nothing is read before it is clear that nothing that is read gets lost.
    pictures = None if from_table or text or features else read_new_pictures(files)
    if table is not None:
        own = [model / name for name in NAMES] if model.is_dir() else [model]
        read = [features, *(Path(one) for one in (text, encoder) if one is not None)]
        read += (files or []) if pictures is None else pictures.samples
        check_no_input(table, [*own, *(path for path in read if path is not None)])
    classifier = load_model(model, encoder=encoder)
    if from_table:
        new = read_new_table(
            files[0],
            text=text,
            file=picture,
            sample=sample,
            features_columns=features_columns,
            images=images,
            encoding=encoding,
            sheet=sheet,
            skip_bad=skip_bad,
        )
        # On standard error: the labels go to standard output.
        err.print(new.understood, soft_wrap=True, markup=False)
    elif text is not None:
        new = read_new_texts(Path(text), encoding)
    elif features is not None:
        new = read_new_vectors(features, encoding)
    else:
        assert pictures is not None
        new = pictures
    with show_progress("encoding") as progress:
        found = predict_samples(
            classifier,
            new.names,
            new.samples,
            modality=new.modality,
            skip_bad=skip_bad,
            cache=cache,
            progress=progress,
            scheduler=scheduler,
        )
    for one in found.unreadable:
        note(str(one), context, "left out")
    rows = _rows(found)
    if table is None:
        _print(rows)
        return
    write_table(table, COLUMNS, rows)
    count = counted(len(rows), "label is", "labels are")
    out.print(f"{count} in {escape(str(table))}", soft_wrap=True)


def _rows(found: Predictions) -> list[Sequence[Any]]:
    runner_up = [None] * len(found.names) if found.runner_up is None else found.runner_up
    return [
        (name, label, f"{confidence:.4f}", second, f"{margin:.4f}")
        for name, label, confidence, second, margin in zip(
            found.names, found.labels, found.confidence, runner_up, found.margin, strict=True
        )
    ]


def _print(rows: list[Sequence[Any]]) -> None:
    if not out.is_terminal:
        # A header, then one line per sample, tabs between: what cut and pandas can work with.
        for row in [COLUMNS, *rows]:
            echo(*row)
        return
    table = Table(box=SIMPLE)
    for heading in COLUMNS:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    out.print(table)
