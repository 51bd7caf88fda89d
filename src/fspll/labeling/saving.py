"""Results in a folder, and the model of such a folder."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll._common.tensorfiles import format_of
from fspll.annotations.writing import join_candidates, write_table
from fspll.classifier import FsPLLClassifier
from fspll.labeling.audit import Audit
from fspll.labeling.baseline_model import FORMAT as BASELINE_FORMAT
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.report.page import write_report
from fspll.labeling.result import Labeling

LABELS, REVIEW, ANSWERS, ANNOTATORS, AUDIT, SURE, MODEL, REPORT = (
    "labels.csv",
    "review.csv",
    "answers.csv",
    "annotators.csv",
    "audit.csv",
    "sure.csv",
    "model.fspll",
    "report.html",
)
LABEL_COLUMNS = (
    "sample",
    "label",
    "confidence",
    "runner_up",
    "margin",
    "candidates",
    "outside",
)
_EARLIER_COLUMNS = LABEL_COLUMNS[:-1]  # of results of versions before the column ``outside``
AUDIT_COLUMNS = ("sample", "label", "answer")  # and ``file`` or ``text``, where there are any
SURE_COLUMNS = ("sample", "label", "confidence")
ANNOTATOR_COLUMNS = ("annotator", "judgments", "agreed", "agreement")
REVIEW_COLUMNS = (
    "sample",
    "answer",
    "guess",
    "confidence",
    "expected_gain",
    "right_after",
    "candidates",
    "reason",
)


def save(
    labeling: Labeling,
    folder: Path,
    *,
    overwrite: bool = False,
    report: bool = True,
    sure: float | None = None,
) -> None:
    """Write everything a result consists of, each file whole; see :meth:`Labeling.save`."""
    rows = None if sure is None else labeling.sure(sure)
    check_folder(folder, overwrite=overwrite)
    audited = {} if labeling.audit is None else labeling.audit.given
    if labeling.audit is not None:
        write_table(folder / AUDIT, *_audit_table(labeling, labeling.audit))
    answers = [one for one in labeling.answers.items() if one[0] not in audited]
    if answers:
        # First: a review list that held them is about to be replaced.
        write_table(folder / ANSWERS, ("sample", "answer"), answers)
    labeling.classifier.save(folder / MODEL)
    write_table(folder / LABELS, LABEL_COLUMNS, _label_rows(labeling))
    write_table(folder / REVIEW, REVIEW_COLUMNS, _review_rows(labeling))
    if labeling.annotators:
        write_table(folder / ANNOTATORS, ANNOTATOR_COLUMNS, _annotator_rows(labeling))
    else:
        (folder / ANNOTATORS).unlink(missing_ok=True)  # of an earlier result
    if rows is None:
        (folder / SURE).unlink(missing_ok=True)  # of an earlier result
    else:
        write_table(folder / SURE, SURE_COLUMNS, _sure_rows(labeling, rows))
    if report:
        write_report(labeling, folder / REPORT)


def check_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Refuse a folder that holds something else than an earlier result."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder for the results")
    if overwrite or not folder.is_dir() or not any(folder.iterdir()):
        return
    if not is_result(folder):
        raise DataError(
            f"{folder} holds other things than results of fspll label; choose another folder, or "
            f"write into it all the same with overwrite=True"
        )


def is_result(folder: Path) -> bool:
    """Tell whether a folder holds an earlier result: a table of labels with our columns."""
    try:
        with (folder / LABELS).open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error):
        return False
    known = tuple(header) in (LABEL_COLUMNS, _EARLIER_COLUMNS)
    return known and (folder / MODEL).is_file()


def _label_rows(labeling: Labeling) -> Iterator[Sequence[Any]]:
    sets = [list(map(str, labeling.candidates.names(row))) for row in range(len(labeling))]
    return zip(
        labeling.names,
        labeling.labels.tolist(),
        (f"{one:.4f}" for one in labeling.confidence),
        labeling.runner_up,
        (f"{one:.4f}" for one in labeling.margin),
        join_candidates(sets),
        ("yes" if one else None for one in labeling.outside),
        strict=True,
    )


def _annotator_rows(labeling: Labeling) -> Iterator[Sequence[Any]]:
    for one in labeling.annotators:
        yield one.name, one.judgments, f"{one.agreed:g}", f"{one.agreement:.4f}"


def _audit_table(labeling: Labeling, audit: Audit) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the header and the rows of the audit, without a word on how sure the labels are."""
    rows = list(zip(audit.samples, audit.labels, audit.answers, strict=True))
    shown = labeling.pictures or labeling.texts
    if shown is None:
        return AUDIT_COLUMNS, rows
    by_name = dict(zip(labeling.names, shown, strict=True))
    header = (*AUDIT_COLUMNS, "file" if labeling.pictures else "text")
    return header, [(*row, by_name.get(row[0])) for row in rows]


def _sure_rows(labeling: Labeling, rows: np.ndarray) -> Iterator[Sequence[Any]]:
    for row in rows.tolist():
        yield labeling.names[row], labeling.labels[row], f"{labeling.confidence[row]:.4f}"


def _review_rows(labeling: Labeling) -> Iterator[Sequence[Any]]:
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
