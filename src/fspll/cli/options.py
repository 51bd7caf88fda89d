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


def numbers(text: str, option: str) -> list[int]:
    """Read a comma-separated list of whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes whole numbers such as 5,10,20, not {text!r}") from None
