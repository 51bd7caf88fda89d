"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fspll._common.errors import InputError

DataSetName = Annotated[
    str,
    typer.Option(
        help="A name of: fspll data list; or a folder with one folder of images per class, split "
        "by class: train/ and test/ where it has both, else a fixed fifth of the classes for test."
    ),
]
Root = Annotated[
    Path | None, typer.Option(help="Where the files of a named data set are, if not in its place.")
]
# Of the commands that read a table of labels.
Sheet = Annotated[str | None, typer.Option(help="The sheet of a spreadsheet.")]
FeaturesColumns = Annotated[
    str | None,
    typer.Option(help="Columns that are the vectors: a:z for all from a to z, or a,b,c."),
]
Marks = Annotated[
    bool | None,
    typer.Option(help="One column per label, marked (x, 1) or not; found out by default."),
]
Excluded = Annotated[
    str | None, typer.Option(help="The column of labels that a sample does not have.")
]
Unlabeled = Annotated[str, typer.Option(help="Samples without candidates: skip, use or error.")]
MergeSimilar = Annotated[
    bool,
    typer.Option("--merge-similar", help="Make labels one that differ by case or one typo."),
]
Rename = Annotated[
    Path | None, typer.Option(help="Other names for labels: a table with the columns from, to.")
]
# Of the commands that encode samples.
Scheduler = Annotated[
    str | None,
    typer.Option(help="Encode on the workers of a Dask scheduler, tcp://HOST:PORT."),
]


def numbers(text: str, option: str) -> list[int]:
    """Read a comma-separated list of whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes whole numbers such as 5,10,20, not {text!r}") from None
