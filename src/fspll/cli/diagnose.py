"""``fspll diagnose``: what candidate sets can decide, before any learning."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fspll._common.errors import InputError
from fspll._common.words import counted, percent
from fspll.cli.console import note, out, with_option_names
from fspll.cli.options import (
    Excluded,
    FeaturesColumns,
    Marks,
    MergeSimilar,
    Rename,
    Sheet,
    Unlabeled,
)

if TYPE_CHECKING:
    from fspll.annotations.samples import Annotations
    from fspll.candidates.sets import Candidates
    from fspll.labeling.result import Labeling

_SHOWN = 10


def diagnose(
    context: typer.Context,
    file: Path = typer.Argument(
        ...,
        help="The labels: CSV, TSV, .xlsx, parquet, feather, JSON, a Label Studio export, .mat, "
        ".npz, or a folder.",
    ),
    groups: str | None = typer.Option(
        None, help="The column that says which samples belong together."
    ),
    images: Path | None = typer.Option(None, help="The folder of the pictures."),
    encoder: str | None = typer.Option(
        None, help="A name of: fspll models; features, for vectors; or the path of a checkpoint."
    ),
    features: Path | None = typer.Option(
        None, help="Vectors instead: an .npy or .npz file, or a table of numbers."
    ),
    text: str | None = typer.Option(None, help="The column with the texts."),
    candidates: list[str] = typer.Option([], help="The column of candidates; several if needed."),
    sample: str | None = typer.Option(None, help="The column with the samples' names."),
    annotator: str | None = typer.Option(None, help="The column that says who labeled."),
    picture: str | None = typer.Option(None, "--file", help="The column with the pictures."),
    delimiter: str | None = typer.Option(None, help="What separates candidates in a cell."),
    combine: str | None = typer.Option(None, help="Labels of several people: union or majority."),
    encoding: str | None = typer.Option(None, help="Of a text file that is not UTF-8."),
    sheet: Sheet = None,
    features_columns: FeaturesColumns = None,
    marks: Marks = None,
    excluded: Excluded = None,
    unlabeled: Unlabeled = "skip",
    merge_similar: MergeSimilar = False,
    rename: Rename = None,
    format_: str | None = typer.Option(None, "--format", help="What the file is."),
    standardize: bool = typer.Option(False, help="Bring features to one scale first."),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Leave out what cannot be read."),
) -> None:
    """Say what these candidate sets can decide, and where they cannot."""
    from fspll.annotations.opening import find_format
    from fspll.annotations.reading import read_annotations
    from fspll.annotations.variants import similar_note
    from fspll.diagnosis.sets import describe_sets

    encoded = images is not None or features is not None or text is not None
    if groups is not None and encoded:
        raise InputError(
            "--groups says what belongs together; --images, --features and --text "
            "find it out: give one of them"
        )
    if groups is not None and find_format(file, format_) in ("folder", "mat", "npz"):
        raise InputError(f"--groups names a column of a table, and {file} is none")
    if features is not None and features_columns is not None:
        raise InputError("give one of --features and --features-columns")
    data = read_annotations(
        file,
        format=format_,
        candidates=candidates or None,
        sample=sample,
        annotator=annotator,
        text=groups or text,  # a column of any text: groups are one, too
        file=picture,
        delimiter=delimiter,
        combine=combine,
        features=features,
        encoding=encoding,
        unlabeled=unlabeled,
        sheet=sheet,
        features_columns=features_columns,
        marks=marks,
        excluded=excluded,
        merge_similar=merge_similar,
        rename=rename,
    )
    if groups is not None:  # which were read as texts
        said = [re.sub("^texts from ", "groups from ", one) for one in data.understood]
        data = replace(data, understood=tuple(said))
    sets = data.candidates
    summary = with_option_names(data.summary, context.command)
    out.print(summary, soft_wrap=True, markup=False)
    alike = similar_note(data)
    if alike:
        note(alike, context)
    for line in describe_sets(data):
        out.print(line, soft_wrap=True, markup=False)
    if groups is not None:
        _with_groups(sets, data, groups)
    elif encoded or data.features is not None:
        from fspll.labeling.pipeline import label

        found = label(
            data, encoder=encoder, images=images, standardize=standardize, skip_bad=skip_bad
        )
        _after_encoding(found)
    else:
        out.print(
            "to compute the largest share of labels that can be right, say which samples belong "
            "together (--groups COLUMN), or give the samples (--images, --text, --features or "
            "--features-columns)",
            soft_wrap=True,
        )


def _with_groups(sets: Candidates, data: Annotations, column: str) -> None:
    from fspll.diagnosis.analysis import diagnose as find

    groups = list(data.texts or ())
    if len(set(groups)) > sets.n_classes:
        raise InputError(
            f"the column {column!r} has {counted(len(set(groups)), 'group')} for "
            f"{counted(sets.n_classes, 'label')}: the samples of a group have one label, and "
            "different groups have different ones"
        )
    found = find(sets, groups)
    for line in found.describe(data.names)[1:]:
        out.print(line, soft_wrap=True, markup=False)


def _after_encoding(found: Labeling) -> None:
    from fspll.diagnosis.analysis import diagnose as find

    diagnosis = find(found.candidates, found.labels)
    out.print("with the samples sorted by the encoder:", soft_wrap=True)
    for line in diagnosis.describe(found.names)[1:]:
        out.print(line, soft_wrap=True, markup=False)
    out.print(
        f"expect {percent(found.expected_accuracy)} of the labels of fspll label to be right",
        soft_wrap=True,
    )
    strange = [one for one in found.undecided if one.kind == "contradiction"]
    for one in strange[:_SHOWN]:
        out.print(
            f"likely contradiction: {found.names[one.index]} {one.reason}",
            soft_wrap=True,
            markup=False,
        )
    if len(strange) > _SHOWN:
        more = counted(len(strange) - _SHOWN, "more contradiction")
        out.print(f"and {more}", soft_wrap=True)
