"""Results in a folder, and the model of such a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.locks import lock_folder
from fspll._common.tensorfiles import format_of
from fspll.annotations.answers import CONTENT, Answer, answer_table
from fspll.annotations.workbooks import write_workbook
from fspll.annotations.writing import join_candidates, write_table
from fspll.classifier import FsPLLClassifier
from fspll.labeling.answering import follow_answers
from fspll.labeling.audit import Audit
from fspll.labeling.baseline_model import FORMAT as BASELINE_FORMAT
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.columns import own_columns, text_column
from fspll.labeling.folder import (
    ANNOTATOR_COLUMNS,
    ANNOTATORS,
    ANSWERS,
    AUDIT,
    AUDIT_COLUMNS,
    LABEL_COLUMNS,
    LABELS,
    MODEL,
    PARQUET,
    REPORT,
    REVIEW,
    REVIEW_COLUMNS,
    RUN,
    SURE,
    SURE_COLUMNS,
    check_folder,
    kept_answers,
    kept_audit,
)
from fspll.labeling.report.page import write_report
from fspll.labeling.result import Labeling
from fspll.labeling.run import Run


def save(
    labeling: Labeling,
    folder: Path,
    *,
    overwrite: bool = False,
    report: bool = True,
    sure: float | None = None,
    forget_answers: bool = False,
    encoding: str | None = None,
    excel: bool = False,
    pictures_below: Path | None = None,
    run: Run | None = None,
) -> int:
    """Write everything a result consists of, each file whole; see :meth:`Labeling.save`.

    Parameters
    ----------
    labeling, folder, overwrite, report, sure, forget_answers, excel
        As of :meth:`Labeling.save`.
    encoding : str, optional
        Of answers in the folder that are not UTF-8.
    pictures_below : Path, optional
        Name the pictures of ``audit.csv`` as seen from this folder, in which they are.
    run : Run, optional
        How the result was made, which the folder then says, so that the review page can go on.

    Returns
    -------
    int
        How many answers in the folder this labeling does not know of. They are kept.
    """
    rows = None if sure is None else labeling.sure(sure)
    write = partial(write_table, excel=excel)
    check_folder(folder, overwrite=overwrite)
    with lock_folder(folder):
        if forget_answers:
            for name in (ANSWERS, AUDIT, REVIEW):
                (folder / name).unlink(missing_ok=True)
        # First: the review list, where new answers stand, is about to be replaced.
        answers, unknown = _answers_of(labeling, folder, encoding)
        audit = _audit_of(labeling, folder, encoding)
        if audit:
            write(folder / AUDIT, *_audit_table(labeling, audit, pictures_below))
        if answers:
            write(folder / ANSWERS, *answer_table(answers))
        labeling.classifier.save(folder / MODEL)
        write(folder / LABELS, *_label_table(labeling))
        (folder / PARQUET).unlink(missing_ok=True)  # of an earlier result
        write(folder / REVIEW, *_review_table(labeling))
        if labeling.annotators:
            write(folder / ANNOTATORS, ANNOTATOR_COLUMNS, _annotator_rows(labeling))
        else:
            (folder / ANNOTATORS).unlink(missing_ok=True)  # of an earlier result
        if rows is None:
            (folder / SURE).unlink(missing_ok=True)  # of an earlier result
        else:
            write(folder / SURE, SURE_COLUMNS, _sure_rows(labeling, rows))
        if run is None:
            (folder / RUN).unlink(missing_ok=True)  # of an earlier result
        else:
            run.write(folder)
        if report:
            write_report(labeling, folder / REPORT)
    return unknown


def _answers_of(labeling: Labeling, folder: Path, encoding: str | None) -> tuple[list[Answer], int]:
    """Return all answers, but not those of an audit, and how many the labeling does not know of.

    A person may have filled in more of the review list while the labels were computed, or a
    labeling may never have read what the folder holds.
    """
    content_of = _contents(labeling)
    followed = follow_answers(
        kept_answers(folder, encoding=encoding), labeling.names, list(content_of.values())
    )
    audited = set() if labeling.audit is None else set(labeling.audit.given)
    record_of = {one.sample: one for one in labeling.records if not one.discarded}
    answers = [
        replace(record_of.get(name, Answer(name, label)), label=label, content=content_of[name])
        for name, label in labeling.answers.items()
        if name not in audited
    ]
    discarded = [one for one in labeling.records if one.discarded]
    known = {(one.sample, one.content) for one in (*labeling.absent, *discarded)}
    unknown = [
        replace(one, sample=name, content=content_of[name] or one.content)
        for name, one in followed.given.items()
        if name not in labeling.answers
    ]
    unknown += [one for key, one in followed.absent.items() if key not in known]
    return [*answers, *discarded, *labeling.absent, *unknown], len(unknown)


def _audit_of(labeling: Labeling, folder: Path, encoding: str | None) -> Audit | None:
    """Return the audit with everything that a person has answered of it, and of earlier ones."""
    parts = [one for one in (labeling.audit, labeling.absent_audit) if one is not None]
    if not parts:
        return None  # and what is in the folder stays as it is
    audit = reduce(Audit.joined, parts)
    earlier = kept_audit(folder, encoding=encoding)
    if earlier is None:
        return audit
    there, others = earlier.follow(labeling.names, list(_contents(labeling).values()))
    return audit.filled_in(there.joined(others))


def _contents(labeling: Labeling) -> dict[str, str]:
    """Return the content of every sample, in order; "" where it is not known."""
    contents = labeling.contents or ("",) * len(labeling)
    return dict(zip(labeling.names, contents, strict=True))


def write_xlsx(labeling: Labeling, path: Path) -> None:
    """Write the table of labels as a spreadsheet, with figures as numbers."""
    header, rows = _label_table(labeling)
    figures = [name in ("confidence", "margin") for name in header]
    cells = (
        [float(cell) if is_figure else cell for cell, is_figure in zip(row, figures, strict=True)]
        for row in rows
    )
    write_workbook(path, header, cells, title="labels")


def _label_table(labeling: Labeling) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
    """Return the header and the rows: what was found, then texts and the user's own columns."""
    texts = text_column(labeling)
    others = texts | own_columns(labeling, {*LABEL_COLUMNS, *texts})
    sets = [list(map(str, labeling.candidates.names(row))) for row in range(len(labeling))]
    rows = zip(
        labeling.names,
        labeling.labels.tolist(),
        (f"{one:.4f}" for one in labeling.confidence),
        labeling.runner_up,
        (f"{one:.4f}" for one in labeling.margin),
        join_candidates(sets),
        ("yes" if one else None for one in labeling.outside),
        *others.values(),
        strict=True,
    )
    return (*LABEL_COLUMNS, *others), rows


def _annotator_rows(labeling: Labeling) -> Iterator[Sequence[Any]]:
    for one in labeling.annotators:
        yield one.name, one.judgments, f"{one.agreed:g}", f"{one.agreement:.4f}"


def _audit_table(
    labeling: Labeling, audit: Audit, below: Path | None
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the header and the rows of the audit, without a word on how sure the labels are."""
    rows = list(zip(audit.samples, audit.labels, audit.answers, strict=True))
    pictures = labeling.pictures
    if pictures and below is not None:
        pictures = tuple(path.relative_to(below) for path in pictures)
    shown = pictures or text_column(labeling).get("text")
    if shown is None:
        cells = zip(rows, audit.contents, strict=True)
        return (*AUDIT_COLUMNS, CONTENT), [(*row, content) for row, content in cells]
    show = dict(zip(_contents(labeling).items(), shown, strict=True))
    header = (*AUDIT_COLUMNS, "file" if labeling.pictures else "text", CONTENT)
    return header, [
        (*row, show.get(key), key[1]) for row, key in zip(rows, audit.keys, strict=True)
    ]


def _sure_rows(labeling: Labeling, rows: np.ndarray) -> Iterator[Sequence[Any]]:
    for row in rows.tolist():
        yield labeling.names[row], labeling.labels[row], f"{labeling.confidence[row]:.4f}"


def _review_table(labeling: Labeling) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
    """Return the header and the rows of the questions, with the text that a person reads."""
    texts = text_column(labeling)
    header = (*REVIEW_COLUMNS[:-1], *texts, REVIEW_COLUMNS[-1])
    return header, _review_rows(labeling, list(texts.values()))


def _review_rows(labeling: Labeling, others: list[Sequence[str]]) -> Iterator[Sequence[Any]]:
    content_of = _contents(labeling)
    sets = join_candidates([list(map(str, one.candidates)) for one in labeling.review])
    for question, candidates in zip(labeling.review, sets, strict=True):
        row = question.index
        yield (
            labeling.names[row],
            None,  # for the person to fill in
            labeling.labels[row],
            f"{labeling.confidence[row]:.4f}",
            f"{question.gain:.3f}",
            f"{question.right_after:.4f}",
            candidates,
            question.reason,
            *(column[row] for column in others),
            content_of[labeling.names[row]],
        )


def load_model(path: Path | str, *, encoder: Any = None) -> FsPLLClassifier | BaselineModel:
    """Read the model of a result, or any saved classifier, ready to take new samples.

    The model of a baseline (``method=...``) is fitted again to what its file holds.

    Parameters
    ----------
    path : path
        The file, or the folder of a result.
    encoder : optional
        Replaces the stored encoder; needed when it was a function of yours.
    """
    path = Path(path)
    if path.is_dir():
        path = path / MODEL
    if format_of(path) == BASELINE_FORMAT.name:
        return BaselineModel.load(path, embedding=encoder)
    return FsPLLClassifier.load(path, embedding=encoder)
