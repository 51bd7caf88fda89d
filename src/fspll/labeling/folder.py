"""The folder of a result: its files, whether it may be written into, and the answers in it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from fspll._common.errors import DataError, InputError
from fspll._common.files import PART
from fspll._common.locks import LOCK
from fspll._common.tensorfiles import format_of
from fspll.annotations.answers import COLUMNS, CONTENT, Answers, read_answers
from fspll.annotations.tables import read_in_either
from fspll.labeling.audit import Audit, read_audit

PARQUET = "labels.parquet"  # in the place of labels.csv, where samples are very many
LABELS, REVIEW, ANSWERS, ANNOTATORS, AUDIT, SURE, MODEL, REPORT, RUN, LOG = (
    "labels.csv",
    "review.csv",
    "answers.csv",
    "annotators.csv",
    "audit.csv",
    "sure.csv",
    "model.fspll",
    "report.html",
    "run.json",
    "answers.log",
)
NAMES = (LABELS, PARQUET, REVIEW, ANSWERS, ANNOTATORS, AUDIT, SURE, MODEL, REPORT, RUN, LOG)
LABEL_COLUMNS = (
    "sample",
    "label",
    "confidence",
    "runner_up",
    "margin",
    "candidates",
    "outside",
)
AUDIT_COLUMNS = ("sample", "label", "answer")  # then ``file`` or ``text``, and the content
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
    CONTENT,
)
# How the header of each table begins, in results of earlier versions as well.
_BEGINNINGS = {
    LABELS: LABEL_COLUMNS[:-1],
    REVIEW: REVIEW_COLUMNS[:-1],
    ANSWERS: COLUMNS[:-1],
    ANNOTATORS: ANNOTATOR_COLUMNS,
    AUDIT: AUDIT_COLUMNS,
    SURE: SURE_COLUMNS,
}
_HEADER = 4096  # bytes that hold the header of any of the tables

Read = TypeVar("Read")


def check_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Refuse a folder that holds something else than an earlier result, whole or begun."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder for the results")
    if overwrite or not folder.is_dir():
        return
    if not is_result(folder) and not all(_is_own(path) for path in folder.iterdir()):
        raise DataError(
            f"{folder} holds other things than results of fspll label; choose another folder, or "
            f"write into it all the same with overwrite=True"
        )


def check_not_replaced(folder: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse to read what the result would replace."""
    written = [folder / name for name in NAMES if (folder / name).exists()]
    for path in inputs:
        if path is not None and path.exists() and any(map(path.samefile, written)):
            raise InputError(
                f"{path} is one of the files that results in {folder} would replace; choose "
                "another folder for them"
            )


def is_result(folder: Path) -> bool:
    """Tell whether a folder holds an earlier result: a table of labels with our columns."""
    has_labels = any(_is_own(folder / name) for name in (LABELS, PARQUET))
    return has_labels and (folder / MODEL).is_file()


def _is_own(path: Path) -> bool:
    """Tell whether a file is one that labeling writes, or what a killed run left of one."""
    part = PART.fullmatch(path.name)
    if path.name == LOCK or (part and part[1] in NAMES):
        return True
    if path.name == MODEL:
        return path.is_file() and format_of(path) is not None
    if path.name == PARQUET:
        return _begins(path, b"PAR1")
    if path.name in (RUN, LOG):
        return _begins(path, b"{") or path.stat().st_size == 0
    beginning = _BEGINNINGS.get(path.name)
    return beginning is not None and _header(path)[: len(beginning)] == beginning


def _begins(path: Path, first: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(first)) == first
    except OSError:
        return False


def _header(path: Path) -> tuple[str, ...]:
    """Return the columns of a table of ours, which a spreadsheet may have saved in its own way."""
    try:
        with path.open("rb") as file:
            begin = file.read(_HEADER)
    except OSError:
        return ()
    wide = begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = begin.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    line = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return tuple(cell.strip().strip('"') for cell in re.split(r"[,;\t]", line))


# -------------------------------------------------------------------- what a person filled in


def kept_answers(
    folder: Path, *, encoding: str | None = None, given: Sequence[Path] = ()
) -> list[Answers]:
    """Return the answers in a folder of results: those of earlier runs, and new ones.

    New ones are in the review list, which the next result replaces.

    Parameters
    ----------
    folder : Path
        It need not exist.
    encoding : str, optional
        Of files that are not UTF-8, as a spreadsheet may have saved them.
    given : sequence of Path
        Files that are read anyway.
    """
    paths = [path for path in (folder / ANSWERS, folder / REVIEW) if path.exists()]
    found = [
        _read_filled(path, partial(read_answers, path, kept=True), encoding)
        for path in paths
        if not any(one.exists() and one.samefile(path) for one in given)
    ]
    return [one for one in found if one.records]


def kept_audit(folder: Path, *, encoding: str | None = None) -> Audit | None:
    """Return the audit of a folder of results; None where there is none."""
    path = folder / AUDIT
    if not path.exists():
        return None
    return _read_filled(path, partial(read_audit, path), encoding)


def _read_filled(path: Path, read: Callable[..., Read], encoding: str | None) -> Read:
    """Read a file that a person may have filled in, and refuse to go on where that fails."""
    try:
        return read_in_either(read, encoding)
    except DataError as error:
        raise DataError(
            f"{error}. {path} may hold a person's answers, so it is not replaced: repair it, move "
            f"it away, or throw all answers in that folder away with forget_answers=True"
        ) from error
