"""``fspll export``: a model of ``fspll label`` as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from fspll._common.errors import InputError
from fspll._common.progress import show_progress
from fspll._common.words import counted
from fspll.cli.console import out


def export(
    model: Path = typer.Argument(..., help="A model file, or the folder of fspll label."),
    target: Path = typer.Argument(..., metavar="OUT.onnx", help="The file to write."),
    samples: list[Path] = typer.Option(
        None,
        help="Samples to compare the two models on, of the kind that MODEL takes: pictures or "
        "folders of them, a file with one text per line, or a file of vectors (.npy, .npz, a "
        "table of numbers). May be given again. By default, drawn ones.",
    ),
    encoder: str | None = typer.Option(
        None, help="The path of a checkpoint, for a model that was saved without its encoder."
    ),
) -> None:
    """Write a saved model as an ONNX file, which other programs run without fspll or PyTorch.

    The file holds what is done to decoded pictures, the encoder, the classifier and, in its
    metadata, the labels. It is compared with the model, and left only if they agree to 0.0001.
    """
    from fspll._common.files import check_no_input
    from fspll.export.writing import export_onnx
    from fspll.labeling.folder import NAMES
    from fspll.labeling.saving import load_model

    if target.suffix.lower() != ".onnx":
        raise InputError(f"the file to write should end in .onnx, not be called {target.name!r}")
    own = [model / name for name in NAMES] if model.is_dir() else [model]
    check_no_input(target, [*own, *(samples or [])])
    classifier = load_model(model, encoder=encoder)
    given = _read(samples, classifier) if samples else None
    with show_progress("comparing") as progress:
        done = export_onnx(classifier, target, given, progress=progress)
    takes = ", ".join(
        f"{one.name} ({' x '.join(map(str, one.shape))}, "
        f"{str(one.dtype).removeprefix('torch.')}, {one.values})"
        for one in done.inputs
    )
    labels = counted(done.n_labels, "label")
    size = f"{done.n_bytes / 1e6:.1f} MB" if done.n_bytes > 1e6 else f"{done.n_bytes / 1e3:.1f} KB"
    out.print(f"{escape(str(target))}: {size}, {labels}", soft_wrap=True)
    out.print(f"takes: {escape(takes)}", soft_wrap=True)
    out.print(f"before: {escape(done.before)}", soft_wrap=True)
    kind = "sample" if samples else "drawn sample"
    out.print(
        f"checked with onnxruntime on {counted(done.n_checked, kind)}: probabilities differ by "
        f"{done.difference:.1e} at most",
        soft_wrap=True,
    )


def _read(paths: list[Path], classifier: Any) -> Any:
    """Return samples of the kind that a classifier takes."""
    from fspll.labeling.new_samples import read_new_pictures, read_new_texts, read_new_vectors

    modality = "vector" if classifier.embedding is None else classifier.load_encoder().modality
    if modality == "image":
        return read_new_pictures(paths).samples
    if len(paths) > 1:
        raise InputError("for a model of texts or vectors, give one file of samples")
    read = read_new_texts if modality == "text" else read_new_vectors
    return read(paths[0]).samples
