"""``fspll label``: a user's own ambiguous labels in; clean labels, a model, a review list out."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from fspll._common.arguments import check_level
from fspll._common.errors import InputError
from fspll._common.words import counted, percent
from fspll.cli.console import call, note, out, with_option_names
from fspll.cli.options import (
    Excluded,
    FeaturesColumns,
    Marks,
    MergeSimilar,
    Rename,
    Scheduler,
    Sheet,
    Unlabeled,
)

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling

_SHOWN = 5


def label(
    context: typer.Context,
    file: Path = typer.Argument(
        ...,
        help="The labels: CSV, TSV, .xlsx, parquet, feather, JSON, a Label Studio export, .mat, "
        ".npz, or a folder.",
    ),
    folder: Path = typer.Option(..., "--out", help="The folder for the results."),
    images: Path | None = typer.Option(None, help="The folder of the pictures."),
    encoder: str | None = typer.Option(
        None, help="A name of: fspll models; features, for vectors; or the path of a checkpoint."
    ),
    features: Path | None = typer.Option(
        None, help="Vectors instead: an .npy or .npz file, or a table of numbers."
    ),
    text: str | None = typer.Option(None, help="The column with the texts."),
    answers: list[Path] = typer.Option(
        [], help="Answers of a person (columns sample, answer), e.g. the review.csv of a run."
    ),
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
    alternatives: Path | None = typer.Option(
        None, help="For a folder per class: the table of what else pictures might be."
    ),
    rectifier: str = typer.Option(
        "adaptive",
        help="adaptive, evidence, fspll (the paper's rule), none, or an installed package's.",
    ),
    method: str | None = typer.Option(
        None,
        help="A baseline in the rectifier's place: PL-AGGD, Majority-Vote, Dawid-Skene, ...",
    ),
    audit: int | None = typer.Option(
        None, help="Draw so many labels at random into audit.csv, for a person to check."
    ),
    audit_answers: Path | None = typer.Option(
        None, help="A filled-in audit.csv; by default that of the folder of the results."
    ),
    sure: float | None = typer.Option(
        None, help="Write the labels that are together this sure, e.g. 0.99, to sure.csv."
    ),
    outside: bool = typer.Option(
        False, "--outside", help="Give labels outside the candidates where they are likelier."
    ),
    balanced: bool = typer.Option(False, help="All classes are about equally frequent."),
    standardize: bool = typer.Option(False, help="Bring features to one scale first."),
    skip_bad: bool = typer.Option(False, "--skip-bad", help="Leave out what cannot be read."),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Write into a folder that holds other things, too."
    ),
    forget_answers: bool = typer.Option(
        False, "--forget-answers", help="Throw away the answers in the folder of the results."
    ),
    excel: bool = typer.Option(
        False, "--excel", help="Write CSV files that Excel opens with all accents."
    ),
    xlsx: Path | None = typer.Option(
        None, help="Write the labels to a spreadsheet as well, e.g. labels.xlsx."
    ),
    to_label_studio: Path | None = typer.Option(
        None, help="Write tasks with predictions for Label Studio as well, e.g. tasks.json."
    ),
    parquet: bool = typer.Option(
        False,
        "--parquet",
        help="Stream labels to labels.parquet: candidates in an .npz, vectors in an .npy file.",
    ),
    open_report: bool = typer.Option(False, "--open", help="Open the report in a browser."),
    cache: bool = typer.Option(True, help="Keep encoded samples for the next run."),
    device: str = typer.Option("auto", help="Where to compute: auto, cpu, cuda, mps."),
    scheduler: Scheduler = None,
) -> None:
    """Turn ambiguous labels into clean ones, with a model, a review list and a report."""
    # Heavy imports wait until the command runs, so that `fspll --help` is quick.
    from fspll._common.files import check_no_input
    from fspll._common.locks import lock_folder
    from fspll.annotations.workbooks import load_openpyxl
    from fspll.cli.streaming import is_beyond_memory, label_streamed
    from fspll.labeling.folder import REPORT, check_folder, check_not_replaced
    from fspll.labeling.label_studio.tasks import check_target
    from fspll.labeling.run import Run, gather_answers, gather_audit

    if sure is not None:
        check_level("sure", sure)
    check_folder(folder, overwrite=overwrite)  # before the work, not after it
    inputs = [one for one in (file, features, alternatives, rename, *answers) if one]
    if xlsx is not None:
        load_openpyxl("--xlsx")
        check_no_input(xlsx, inputs)
    if to_label_studio is not None:
        check_target(to_label_studio, inputs)
    check_not_replaced(folder, (file, features, alternatives))
    if sum(one is not None for one in (images, features, features_columns, text)) > 1:
        raise InputError(
            "give one of --images, --features, --features-columns and --text: samples are one of "
            "these"
        )
    if parquet or is_beyond_memory(file, features):
        label_streamed(
            context,
            file,
            features,
            folder,
            rectifier=rectifier,
            balanced=balanced,
            answers=answers,
            encoding=encoding,
            overwrite=overwrite,
            forget_answers=forget_answers,
        )
        return
    run = Run(
        file,
        reading=_given(
            format=format_,
            candidates=candidates or None,
            sample=sample,
            annotator=annotator,
            text=text,
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
            alternatives=alternatives,
        ),
        labeling=_given(
            encoder=encoder,
            images=images,
            rectifier=rectifier,
            method=method,
            outside=outside,
            skip_bad=skip_bad,
            standardize=standardize,
            class_balance=balanced,
            cache=cache,
            device=device,
        ),
        saving=_given(sure=sure, excel=excel),
        speak=partial(with_option_names, command=context.command),
    )
    read = run.read()
    out.print(run.speak(read.summary), soft_wrap=True, markup=False)
    with lock_folder(folder):  # from the answers that are read to those that are written
        answered = gather_answers(answers, folder, encoding, forget=forget_answers)
        audited = gather_audit(audit_answers, folder, encoding, forget=forget_answers)
        result = run.label(
            read, answers=answered, audited=audited, audit=audit, scheduler=scheduler
        )
        unknown = run.save(result, folder, overwrite=overwrite, forget_answers=forget_answers)
    if xlsx is not None:
        result.to_xlsx(xlsx)
    show_labeling(result, folder, unknown, context, sure)
    if to_label_studio is not None:
        _write_tasks(result, to_label_studio)
    if open_report:
        _open(folder / REPORT, context)


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


# -------------------------------------------------------------------- what a person reads


def show_labeling(
    result: Labeling,
    folder: Path,
    unknown: int,
    context: typer.Context,
    sure: float | None = None,
) -> None:
    """Print what was found, what to ask a person first, and where everything is."""
    from fspll.labeling.wording import (
        audit_sentence,
        check_sentence,
        expectation,
        pictures_read,
        separation_warning,
    )

    n, open_labels = len(result), int((result.confidence < 0.9).sum())
    line = f"{counted(n, 'sample')}, {counted(len(result.classes), 'class', 'classes')}"
    if result.pictures:
        line += f", {pictures_read(result)}"
    if result.answers:
        line += f", {len(result.answers)} answered by a person"
    out.print(line, soft_wrap=True)
    sure_labels = counted(n - open_labels, "is", "are")
    line = f"{sure_labels} at least 90% sure, {counted(open_labels, 'is', 'are')} not"
    out.print(f"{escape(expectation(result))}; {line}", soft_wrap=True)
    if result.outside.any():
        count = counted(int(result.outside.sum()), "label is", "labels are")
        out.print(f"{count} outside the candidate sets", soft_wrap=True)
    if sure is not None:
        rows = result.sure(sure)
        count = f"{counted(len(rows), 'label')} of {n:,}"
        are = "is" if len(rows) == 1 else "are together"
        out.print(f"{count} {are} at least {sure:.4g} sure: sure.csv", soft_wrap=True)
    for sentence in (audit_sentence(result), check_sentence(result)):
        if sentence:
            out.print(escape(sentence), soft_wrap=True)
    if result.annotators:
        out.print(_agreement(result), soft_wrap=True)
    warning = separation_warning(result)
    if warning:
        note(warning, context, "warning")
    notes = list(result.notes)
    if unknown:
        new = counted(unknown, "new answer")
        notes.append(f"{new} came into {folder} meanwhile; run the command again to use them")
    for one in notes:
        note(one, context)
    if result.review:
        out.print(_questions(result))
    people = "annotators.csv, " if result.annotators else ""
    out.print(
        f"labels.csv, review.csv, {people}model.fspll and report.html are in {escape(str(folder))}",
        soft_wrap=True,
    )
    if result.review:
        out.print(
            f"Fill in the column 'answer' of {escape(str(folder / 'review.csv'))}, as far as you "
            "like, and run the command again; or answer in the browser, one key each: "
            f"{escape(call('app', folder))}",
            soft_wrap=True,
        )
    waiting = 0 if result.audit is None else len(result.audit) - result.audit.n_answers
    if waiting:
        out.print(
            f"audit.csv has {counted(waiting, 'label')} to check, drawn at random: write the true "
            "labels into its column 'answer', from the top, and run the command again",
            soft_wrap=True,
        )


def _write_tasks(result: Labeling, path: Path) -> None:
    """Write tasks for Label Studio, and say how it takes them."""
    from fspll.labeling.label_studio.tasks import local_storage, write_tasks

    config = write_tasks(result, path)
    out.print(
        f"{escape(str(path))} has {counted(len(result), 'task')} for Label Studio, the least sure "
        f"first: make a project there, paste {escape(str(config))} into its Labeling Interface "
        "(Settings), then Import the tasks",
        soft_wrap=True,
    )
    storage = local_storage(result)
    if storage is not None:
        root, folder = (escape(shlex.quote(str(one))) for one in storage)
        out.print(
            "So that it shows your pictures, start it with "
            "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true "
            f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root} and add the local storage {folder} to "
            "the project (Settings, Cloud Storage)",
            soft_wrap=True,
        )


def _agreement(result: Labeling) -> str:
    shares = [one.agreement for one in result.annotators]
    people = counted(len(shares), "annotator")
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    level = low if low == high else f"{low} to {high}"
    return f"{people}; agreement with the outcome {level}"


def _open(page: Path, context: typer.Context) -> None:
    """Show a page in the browser, if there is one."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        note(f"no browser could be started; open {page} yourself", context)


def _questions(result: Labeling) -> Table:
    from fspll.labeling.wording import sample_name

    table = Table(title="What to look at first", title_justify="left", box=SIMPLE)
    for heading in ("sample", "guess", "sure", "gain", "right then", "why"):
        table.add_column(heading, justify="right" if heading in ("sure", "gain") else "left")
    for question in result.review[:_SHOWN]:
        row = question.index
        table.add_row(
            escape(sample_name(result, row)),
            escape(str(result.labels[row])),
            f"{result.confidence[row]:.0%}",
            f"{question.gain:.1f}",
            percent(question.right_after),
            escape(question.reason or "not sure"),
        )
    if len(result.review) > _SHOWN:
        table.caption = f"and {len(result.review) - _SHOWN} more in review.csv"
        table.caption_justify = "left"
    return table
