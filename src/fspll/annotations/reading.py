"""One function for every file with candidate labels, whatever the file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fspll._common.errors import InputError, InputTypeError
from fspll._common.words import listed
from fspll.annotations.arrays import read_mat, read_npz
from fspll.annotations.collecting import Options
from fspll.annotations.folders import read_folder
from fspll.annotations.frames import frame_to_grid, is_frame
from fspll.annotations.jsonfiles import read_json
from fspll.annotations.layouts import read_grid
from fspll.annotations.opening import TABLES, find_format, open_table
from fspll.annotations.samples import Annotations
from fspll.annotations.unlabeled import UNLABELED, settle_unlabeled
from fspll.annotations.variants import merging, read_renames
from fspll.annotations.vectors import load_features

COMBINE = ("union", "majority")
_RENAMES_SHOWN = 5
# Which of the options mean something to a format that has no columns.
_COLUMNS = ("candidates", "sample", "annotator", "text", "file", "features_columns", "excluded")


def read_annotations(
    path: Any,
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
    unlabeled: str = "skip",
    sheet: str | None = None,
    features_columns: str | Sequence[str] | None = None,
    marks: bool | None = None,
    excluded: str | None = None,
    merge_similar: bool = False,
    rename: Path | str | Mapping[str, str] | None = None,
) -> Annotations:
    r"""Read samples with candidate labels from a file or a folder.

    What is not specified is found: the format by the path's ending or the first character of the
    file, the columns by their names. ``docs/formats.md`` shows every format with an example.

    Parameters
    ----------
    path : path, data frame or series
        A CSV, TSV, ``.xlsx``, parquet, feather, JSON, ``.mat`` or ``.npz`` file, or a folder with
        one sub-folder per class. Also a pandas data frame, a series of candidates whose index names
        the samples, an Arrow table, or a Hugging Face data set.
    format : str, optional
        What the file is, whatever it is called: "csv", "tsv", "xlsx", "parquet", "feather", "json",
        "jsonl", "label-studio", "folder", "mat" or "npz".
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
        Vectors for the samples: an array, an ``.npy`` or ``.npz`` file, or a table of numbers, with
        the samples' names in a column ``sample`` if the order differs.
    classes : sequence of str, optional
        The labels that may occur; any other is an error. For a mask without names of classes, what
        its columns stand for.
    encoding : str, optional
        The encoding of a text file that is neither UTF-8 nor has a byte-order mark.
    alternatives : path, optional
        For a folder with one sub-folder per class: the table of what else a picture might be.
    unlabeled : {"skip", "use", "error"}, default="skip"
        What becomes of samples without candidates, such as empty cells: leave them out, which the
        summary says; let them have any label that occurs; or raise an error.
    sheet : str, optional
        The sheet of a spreadsheet, by default the first one that can be seen and is not empty.
    features_columns : str or sequence of str, optional
        Columns of the table that are the samples' vectors: names, or ``"a:z"`` for all columns from
        ``a`` to ``z``, or one column of lists.
    marks : bool, optional
        Whether there is one column per label, marked where a sample may have it; found out by
        default.
    excluded : str, optional
        The column of labels that a sample does not have.
    merge_similar : bool, default=False
        Make labels one that differ by case, blanks, hyphens or one typing mistake; see
        :func:`fspll.annotations.variants.find_similar`. The most frequent spelling stays.
    rename : path or mapping of str to str, optional
        Other names for labels, in a table with the columns ``from`` and ``to``, a JSON object, or a
        mapping.

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
        unlabeled=unlabeled,
        sheet=_one("sheet", sheet),
        features_columns=_several("features_columns", features_columns),
        marks=marks,
        excluded=_one("excluded", excluded),
        renames={} if rename is None else read_renames(rename, encoding),
    )
    if features is not None and features_columns is not None:
        raise InputError("give one of features and features_columns")
    if unlabeled not in UNLABELED:
        raise InputError(f"unlabeled must be 'skip', 'use' or 'error', not {unlabeled!r}")
    if combine is not None and combine not in COMBINE:
        raise InputError(f"combine must be 'union' or 'majority', not {combine!r}")
    if not isinstance(path, str | Path) and not is_frame(path):
        raise InputTypeError(
            "read_annotations takes the path of a file or folder, or a data frame, not "
            f"{type(path).__name__}"
        )
    kind = "frame" if is_frame(path) else find_format(Path(path), format)
    if alternatives is not None and kind != "folder":
        raise InputError(f"alternatives belong to a folder of pictures, and {path} is none")
    extra = None if alternatives is None else Path(alternatives)
    if merge_similar:
        # Read twice, as a majority is counted once labels are one.
        everything = replace(options, combine=options.combine and "union")
        alike = merging(_read_any(path, kind, everything, extra))
        options = replace(options, renames=_merged(options.renames, alike))
    found = _read_any(path, kind, options, extra)
    if options.renames:
        found = _with_renames(found, options.renames)
    if features is not None:
        found = load_features(features, found, options.encoding)
    return settle_unlabeled(found, unlabeled)


def _read_any(path: Any, kind: str, options: Options, alternatives: Path | None) -> Annotations:
    if kind == "frame":
        return read_grid(frame_to_grid(path), options)
    return _read(Path(path), kind, options, alternatives)


def _merged(renames: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Return both renamings as one; the second is of names that the first gave."""
    first = {old: more.get(new, new) for old, new in renames.items()}
    return {**more, **first}


def _with_renames(found: Annotations, renames: Mapping[str, str]) -> Annotations:
    pairs = [f"{old!r} is {new!r}" for old, new in renames.items() if new in found.classes]
    said = [listed(pairs, _RENAMES_SHOWN)] if pairs else []
    return replace(found, renamed=renames, understood=(*found.understood, *said))


def _read(path: Path, kind: str, options: Options, alternatives: Path | None) -> Annotations:
    if kind == "folder":
        return read_folder(path, options, alternatives)
    if kind in ("mat", "npz"):
        for name in _COLUMNS:
            if getattr(options, name) is not None:
                raise InputError(f"{name}=... names a column, but {path.name} has arrays")
        return (read_mat if kind == "mat" else read_npz)(path, options)
    if kind in TABLES:
        grid = open_table(path, kind, encoding=options.encoding, sheet=options.sheet)
        return read_grid(grid, options)
    return read_json(path, kind, options)


def _one(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InputTypeError(f"{name} must be text, not {type(value).__name__}")
    return value


def _several(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) and name == "candidates":
        return (value,)
    if isinstance(value, str) and name == "features_columns":
        return tuple(part.strip() for part in value.split(","))
    items = () if isinstance(value, str) else tuple(value)
    if not items or not all(isinstance(item, str) for item in items):
        raise InputTypeError(f"{name} must be a list of texts with at least one, not {value!r}")
    return items
