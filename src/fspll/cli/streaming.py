"""``fspll label`` of more samples than memory holds: labels streamed to parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from fspll._common.errors import InputError
from fspll._common.words import counted
from fspll.cli.console import note, out

# What the options of the command decide here; whichever else is given would be ignored.
_KNOWN = {
    *("file", "folder", "features", "rectifier", "balanced", "answers", "encoding"),
    *("overwrite", "forget_answers", "parquet"),
}


def is_beyond_memory(file: Path, features: Path | None) -> bool:
    """Tell whether vectors are in an ``.npy`` file with more rows than are read as a whole."""
    from fspll._common.reading import max_rows
    from fspll.annotations.numpyfiles import map_array

    if features is None or features.suffix.lower() != ".npy" or file.suffix.lower() != ".npz":
        return False
    return (
        features.is_file()
        and features.stat().st_size > max_rows()
        and (map_array(features).shape[:1] > (max_rows(),))
    )


def label_streamed(
    context: typer.Context,
    file: Path,
    features: Path | None,
    folder: Path,
    *,
    rectifier: str,
    balanced: bool,
    answers: Sequence[Path],
    encoding: str | None,
    overwrite: bool,
    forget_answers: bool,
) -> None:
    """Label vectors in a file, write the labels to ``labels.parquet``, and say what was found."""
    from fspll.labeling.run import gather_answers
    from fspll.labeling.streaming import check_streamed, label_to_parquet, summary

    _refuse_others(context)
    check_streamed(file, features)
    assert features is not None
    # The folder's own answers are read by the function itself.
    given = gather_answers(answers, folder, encoding, forget=True)
    found = label_to_parquet(
        features,
        file,
        folder,
        rectifier=rectifier,
        class_balance=balanced,
        answers=given,
        overwrite=overwrite,
        forget_answers=forget_answers,
    )
    for line in summary(found):
        out.print(line, soft_wrap=True, markup=False)
    if found.unused:
        count = counted(len(found.unused), "answer")
        note(f"{count} not used, as the sample is not in its row now; kept in answers.csv", context)
    out.print(
        f"labels.parquet, model.fspll and review.csv, the {counted(found.n_asked, 'sample')} that "
        f"are least sure, are in {escape(str(folder))}; there is no report of so many",
        soft_wrap=True,
    )


def _refuse_others(context: typer.Context) -> None:
    """Refuse options that would have no effect."""
    given: list[Any] = [
        parameter
        for parameter in context.command.params
        if parameter.name not in _KNOWN
        and getattr(context.get_parameter_source(parameter.name or ""), "name", "") == "COMMANDLINE"
    ]
    if given:
        names = ", ".join(parameter.opts[0] for parameter in given)
        raise InputError(
            f"{names} has no effect on labels that are streamed to parquet, as those of very many "
            "samples are; leave it out"
        )
