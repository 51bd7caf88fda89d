"""One function for every file with candidate labels, whatever the file is, and one for answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fspll._common.errors import DataError, InputError, InputTypeError
from fspll.annotations.arrays import read_mat, read_npz
from fspll.annotations.collecting import Options
from fspll.annotations.features import load_features
from fspll.annotations.folders import read_folder
from fspll.annotations.grid import (
    ANSWER_NAMES,
    SAMPLE_NAMES,
    find_column,
    list_columns,
    read_grid,
)
from fspll.annotations.jsonfiles import read_json
from fspll.annotations.samples import Annotations
from fspll.annotations.tables import read_table

FORMATS = ("csv", "tsv", "json", "jsonl", "label-studio", "folder", "mat", "npz")
COMBINE = ("union", "majority")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".mat": "mat",
    ".npz": "npz",
}
_SPREADSHEETS = (".xls", ".xlsx", ".ods", ".numbers")
# Which of the options mean something to a format that has no columns.
_COLUMNS = ("candidates", "sample", "annotator", "text", "file")


def read_annotations(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - what a person would call it
    candidates: str | Sequence[str] | None = None,
    sample: str | None = None,
    annotator: str | None = None,
    text: str | None = None,
    file: str | None = None,
    delimiter: str | None = None,
    combine: str | None = None,
    features: Any = None,
    classes: Sequence[str] | None = None,
    encoding: str | None = None,
    alternatives: Path | str | None = None,
) -> Annotations:
    r"""Read samples with candidate labels from a file or a folder.

    What is not specified is found: the format by the path's ending or the first character of the
    file, the columns by their names. ``docs/formats.md`` shows every format with an example.

    Parameters
    ----------
    path : path
        A CSV, TSV, JSON, ``.mat`` or ``.npz`` file, or a folder with one sub-folder per class.
    format : {"csv", "tsv", "json", "jsonl", "label-studio", "folder", "mat", "npz"}, optional
        What the file is, whatever it is called.
    candidates : str or sequence of str, optional
        The column of candidates; several columns are one annotator each. In an export of Label
        Studio, the name of the ``<Choices>``.
    sample, annotator, text, file : str, optional
        The columns with the sample's name, with who labeled it, with its text, and with the path
        of its picture. A text is read only when its column is named.
    delimiter : str, optional
        What separates the candidates in a cell; "" if nothing does.
    combine : {"union", "majority"}, optional
        Keep every label that somebody gave, which is the default, or only those that most gave.
        When it is given, samples may be named more than once, each time by another annotator; when
        it is not, only in files that say who labeled what.
    features : path or array of shape (n, m), optional
        Vectors for the samples: an array, an ``.npy`` file, or an ``.npz`` file.
    classes : sequence of str, optional
        The labels that may occur; any other is an error. For a mask without names of classes, what
        its columns stand for.
    encoding : str, optional
        The encoding of a text file that is neither UTF-8 nor has a byte-order mark.
    alternatives : path, optional
        For a folder with one sub-folder per class: the table of what else a picture might be.

    Returns
    -------
    Annotations
        The samples in the order of the file.

    Raises
    ------
    DataError
        When the file cannot be used; the message names file, row and column.
    InputError
        When an argument cannot be used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from fspll.annotations import read_annotations
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("file,candidates\na.png,cat|lynx\nb.png,lynx\n")
    ...     found = read_annotations(path)
    >>> found.names, found.classes
    (('a.png', 'b.png'), ('cat', 'lynx'))
    >>> found.candidates.names(0)
    ['cat', 'lynx']
    """
    path = Path(path)
    options = Options(
        candidates=_several("candidates", candidates),
        sample=_one("sample", sample),
        annotator=_one("annotator", annotator),
        text=_one("text", text),
        file=_one("file", file),
        delimiter=_one("delimiter", delimiter),
        combine=_one("combine", combine),
        classes=_several("classes", classes),
        encoding=_one("encoding", encoding),
    )
    if combine is not None and combine not in COMBINE:
        raise InputError(f"combine must be 'union' or 'majority', not {combine!r}")
    kind = _format(path, format)
    if alternatives is not None and kind != "folder":
        raise InputError(f"alternatives belong to a folder of pictures, and {path} is none")
    found = _read(path, kind, options, None if alternatives is None else Path(alternatives))
    return found if features is None else load_features(features, found, path.name)


def read_answers(path: Path | str, *, encoding: str | None = None) -> dict[str, str]:
    """Read the label that a person gave to each sample.

    Parameters
    ----------
    path : path
        A CSV or TSV file with the columns ``sample`` (or ``file``, ``id``, ...) and ``answer`` (or
        ``label``). Rows without an answer are not answered yet and are skipped.
    encoding : str, optional
        As in :func:`read_annotations`.

    Returns
    -------
    dict
        The answer of each sample, in the order of the file; empty if nothing is answered.

    Raises
    ------
    DataError
        When two rows give the same sample different answers, or the file cannot be used.
    """
    path = Path(path)
    kind = _ENDINGS.get(path.suffix.lower())
    grid = read_table(path, encoding=encoding, separator="\t" if kind == "tsv" else None)
    sample = find_column(grid.header, None, SAMPLE_NAMES, grid.source)
    answer = find_column(grid.header, None, ANSWER_NAMES, grid.source)
    if sample is None or answer is None:
        raise DataError(
            f"{path.name} needs the columns 'sample' and 'answer'; {list_columns(grid.header)}"
        )
    answers: dict[str, str] = {}
    where: dict[str, str] = {}
    for row, cells in enumerate(grid.rows):
        name, given = cells[sample], cells[answer]
        if not given:
            continue
        if not name:
            raise DataError(f"{grid.place(row, sample)}: there is no name of a sample")
        if answers.setdefault(name, given) != given:
            raise DataError(
                f"{path.name}, {where[name]} and {grid.where[row]} answer {answers[name]!r} and "
                f"{given!r} for the same sample {name!r}; keep one of them"
            )
        where.setdefault(name, grid.where[row])
    return answers


def _read(path: Path, kind: str, options: Options, alternatives: Path | None) -> Annotations:
    if kind == "folder":
        return read_folder(path, options, alternatives)
    if kind in ("mat", "npz"):
        for name in _COLUMNS:
            if getattr(options, name) is not None:
                raise InputError(f"{name}=... names a column, but {path.name} has arrays")
        return (read_mat if kind == "mat" else read_npz)(path, options)
    if kind in ("csv", "tsv"):
        separator = "\t" if kind == "tsv" else None
        return read_grid(read_table(path, encoding=options.encoding, separator=separator), options)
    return read_json(path, kind, options)


def _format(path: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"format must be one of {', '.join(FORMATS)}, not {given!r}")
        return given
    if path.is_dir():
        return "folder"
    ending = path.suffix.lower()
    if ending in _SPREADSHEETS:
        raise DataError(f"{path} is a spreadsheet in its own format; save it as CSV (UTF-8)")
    if ending == ".npy":
        raise DataError(
            f"{path} holds features without labels; read the table of candidates and give it "
            f"features='{path.name}'"
        )
    return _ENDINGS.get(ending) or _format_by_content(path)


def _format_by_content(path: Path) -> str:
    """Tell JSON by its first character; everything else is a table."""
    try:
        with path.open("rb") as file:
            begin = file.read(1000)
    except OSError:
        return "csv"  # whose reader says what is wrong
    text = begin.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return "json" if text[:1] in (b"[", b"{") else "csv"


def _one(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputTypeError(f"{name} must be text, not {type(value).__name__}")
    return value


def _several(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) and name == "candidates":
        return (value,)
    items = () if isinstance(value, str) else tuple(value)
    if not items or not all(isinstance(item, str) for item in items):
        raise InputTypeError(f"{name} must be a list of texts with at least one, not {value!r}")
    return items
