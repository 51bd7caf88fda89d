"""New samples for a saved model: pictures, texts or vectors, in files or in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.pictures import has_picture_suffix
from fspll._common.words import counted, printable
from fspll.annotations.addresses import without_prefix_note
from fspll.annotations.collecting import Options
from fspll.annotations.grid import describe
from fspll.annotations.opening import TABLES, find_format, open_table
from fspll.annotations.tables import read_text
from fspll.annotations.vectors import choose_columns, load_vectors, read_vectors
from fspll.labeling.samples import find_files


@dataclass(frozen=True, eq=False)
class NewSamples:
    """Samples without labels.

    Attributes
    ----------
    names : list of str, of length n
    samples : list of paths or texts, or array of shape (n, m)
    modality : {"image", "text", "vector"}
    understood : str
        How the table was read; empty where samples come from no table.
    """

    names: list[str]
    samples: Any
    modality: str
    understood: str = ""


def is_table(files: Sequence[Path]) -> bool:
    """Tell whether one file is given, and that is a table by its ending."""
    return (
        len(files) == 1
        and files[0].suffix != ""
        and not has_picture_suffix(files[0].name)
        and not files[0].is_dir()
        and find_format(files[0]) in TABLES
    )


def read_new_table(
    path: Path,
    *,
    text: str | None = None,
    file: str | None = None,
    sample: str | None = None,
    features_columns: str | None = None,
    images: Path | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
) -> NewSamples:
    """Read samples from a table: a column of texts, columns of numbers, or a column of pictures.

    With ``skip_bad``, pictures that cannot be found are left to whoever reads them.
    """
    grid = open_table(path, encoding=encoding, sheet=sheet)
    found = describe(grid, Options(text=text, file=file, sample=sample))
    said = [counted(len(found.names), "sample")]
    samples: Any
    if features_columns is not None:
        columns = choose_columns(grid, [one.strip() for one in features_columns.split(",")])
        X = read_vectors(grid, columns)
        said.append(counted(X.shape[1], "feature"))
        samples, modality = X, "vector"
    elif found.texts is not None:
        samples, modality = found.texts, "text"
    elif found.files is not None:
        paths, missing = find_files(found.files, images)
        if missing and not skip_bad:
            row, reason = next(iter(missing.items()))
            raise DataError(
                f"{counted(len(missing), 'picture')} of {path.name} cannot be found, the first in "
                f"{grid.where[row]}: {found.files[row]} {reason}; leave out what cannot be read "
                "with skip_bad=True"
            )
        renamed = without_prefix_note(found.files, [path.name for path in paths])
        said += [renamed] if renamed else []
        samples, modality = paths, "image"
    else:
        raise InputError(
            f"{path.name} has no column of pictures that its name shows; say which column holds "
            "the samples with file=COLUMN, text=COLUMN or features_columns=COLUMNS"
        )
    understood = ", ".join([*said, *found.understood, *grid.understood])
    return NewSamples(found.names, samples, modality, f"{grid.source}: {understood}")


def read_new_pictures(files: Sequence[Path]) -> NewSamples:
    """Return pictures: the files, and what is below the folders among them."""
    found: list[Path] = []
    for path in files:
        found += _pictures_below(path) if path.is_dir() else [path]
    return NewSamples([printable(str(path)) for path in found], found, "image")


def read_new_texts(path: Path, encoding: str | None = None) -> NewSamples:
    """Return the texts of a file with one per line; blank lines are left out."""
    text = read_text(path, encoding, lambda before: f"line {len(before.splitlines())}")
    lines = enumerate(text.splitlines(), start=1)
    texts = [(number, line) for number, line in lines if line.strip()]
    names = [f"line {number}" for number, _ in texts]
    return NewSamples(names, [line for _, line in texts], "text")


def read_new_vectors(path: Path, encoding: str | None = None) -> NewSamples:
    """Return the vectors of an .npy or .npz file or of a table of numbers."""
    names, X = load_vectors(path, encoding)
    return NewSamples(names or [f"row {row}" for row in range(len(X))], np.asarray(X), "vector")


def _pictures_below(folder: Path) -> list[Path]:
    found = sorted(
        path for path in folder.rglob("*") if has_picture_suffix(path.name) and path.is_file()
    )
    if not found:
        raise DataError(f"{folder} holds no pictures")
    return found
