"""``fspll predict``: labels for new samples, by a model of ``fspll label``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll._common.errors import DataError, InputError
from fspll._common.pictures import has_picture_suffix
from fspll.cli.console import err, out

if TYPE_CHECKING:
    import numpy as np

    from fspll.classifier import FsPLLClassifier

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
    from fspll.labeling import load_model

    given = [bool(files), text is not None, features is not None]
    if sum(given) != 1:
        raise InputError(
            "give new samples in one way: files of pictures, --text FILE or --features FILE"
        )
    classifier = load_model(model, encoder=encoder)
    names, samples = _samples(files or [], text, features)
    rows = _predict(classifier, names, samples, features is not None, skip_bad, cache)
    if table is not None:
        from fspll.annotations import write_table

        write_table(table, COLUMNS, rows)
        out.print(f"{len(rows)} labels are in {escape(str(table))}", soft_wrap=True)
    else:
        _print(rows)


def _samples(files: list[Path], text: Path | None, features: Path | None) -> tuple[list[str], Any]:
    if text is not None:
        return _lines(text)
    if features is not None:
        return _vectors(features)
    found: list[Path] = []
    for path in files:
        found += _pictures(path) if path.is_dir() else [path]
    return [str(path) for path in found], found


def _pictures(folder: Path) -> list[Path]:
    found = sorted(
        path for path in folder.rglob("*") if has_picture_suffix(path.name) and path.is_file()
    )
    if not found:
        raise DataError(f"{folder} holds no pictures")
    return found


def _lines(path: Path) -> tuple[list[str], list[str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text") from error
    texts = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not texts:
        raise DataError(f"{path} holds no text")
    return [f"line {number}" for number, _ in texts], [line for _, line in texts]


def _vectors(path: Path) -> tuple[list[str], np.ndarray]:
    from fspll.annotations.features import (
        FEATURE_NAMES,
        SAMPLE_NAMES,
        check_features,
        first_of,
        load_arrays,
        texts_of,
    )

    arrays = load_arrays(path)
    key = first_of(arrays, FEATURE_NAMES) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if key is None:
        raise DataError(f"{path} has no array 'X'; it has {', '.join(map(repr, arrays))}")
    X = check_features(arrays[key], f"{path.name}, {key!r}")
    names = texts_of(path, arrays, SAMPLE_NAMES)
    if names is not None and len(names) != len(X):
        raise DataError(f"{path} has {len(X)} vectors but {len(names)} names")
    return list(names) if names is not None else [f"row {row}" for row in range(len(X))], X


def _predict(
    classifier: FsPLLClassifier,
    names: list[str],
    samples: Any,
    is_vectors: bool,
    skip_bad: bool,
    cache: bool,
) -> list[Sequence[Any]]:
    import numpy as np

    from fspll.cli.label import encoding_bar
    from fspll.embeddings import encode_cached

    encoder = None if classifier.embedding is None else classifier.load_encoder()
    takes_vectors = encoder is None or encoder.modality == "vector"
    if is_vectors != takes_vectors:
        takes = "vectors (--features FILE)" if takes_vectors else "pictures or texts"
        raise InputError(f"this model was made from {takes}; give it samples of that kind")
    if is_vectors:
        chances = classifier.predict_proba(samples)
    else:
        assert encoder is not None
        with encoding_bar() as progress:
            found = encode_cached(
                encoder, samples, names=names, skip_bad=skip_bad, cache=cache, progress=progress
            )
        for one in found.unreadable:
            err.print(f"[yellow]left out:[/] {escape(str(one))}", soft_wrap=True)
        names = [names[row] for row in found.kept]
        classifier.embedding = None  # these are features already
        chances = classifier.predict_proba(found.features)
    order = np.argsort(-chances, axis=1, kind="stable")
    rows: list[Sequence[Any]] = []
    for name, chance, likely in zip(names, chances, order, strict=True):
        several = len(likely) > 1
        second = float(chance[likely[1]]) if several else 0.0
        rows.append(
            (
                name,
                classifier.classes_[likely[0]],
                f"{chance[likely[0]]:.4f}",
                classifier.classes_[likely[1]] if several else None,
                f"{chance[likely[0]] - second:.4f}",
            )
        )
    return rows


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
