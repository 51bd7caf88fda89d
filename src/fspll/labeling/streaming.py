"""Labels of more samples than memory holds: features in a file, results streamed to parquet.

What :mod:`fspll.labeling.pipeline` makes for every sample (a name, a hash of its content, a reason)
is made here for the few that a person is asked about, and there is no report.

Shapes: n samples, l classes, m features.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.errors import DataError, InputError, MissingPackageError
from fspll._common.files import write_beside
from fspll._common.locks import lock_folder
from fspll._common.words import counted, did_you_mean
from fspll.annotations.answers import Answer, Answers, answer_table, content_name
from fspll.annotations.arrays import read_sets
from fspll.annotations.numpyfiles import map_array
from fspll.annotations.writing import join_candidates, write_table
from fspll.candidates.estimators import check_lengths
from fspll.candidates.sets import Candidates
from fspll.classifier import FsPLLClassifier
from fspll.labeling.folder import (
    ANSWERS,
    LABELS,
    MODEL,
    PARQUET,
    REPORT,
    REVIEW,
    REVIEW_COLUMNS,
    RUN,
    check_folder,
    kept_answers,
)
from fspll.labeling.ranking import likeliest_first, on_candidates, two_likeliest
from fspll.labeling.review import choose_questions
from fspll.labeling.samples import vector_key
from fspll.rectifiers.base import Rectifier

_ROWS_AT_ONCE = 1 << 18  # of the table
_ROW = re.compile(r"row (\d+)")


@dataclass(frozen=True, eq=False)
class Streamed:
    """What labeling to parquet found.

    Attributes
    ----------
    classifier : FsPLLClassifier
        Fitted, with a label for every sample.
    confidence : array of shape (n,)
        The probability that each label is right.
    n_asked : int
        Questions in ``review.csv``.
    n_answers : int
        Answers of a person that were used.
    unused : tuple of Answer
        Those whose sample is not in its row any more; kept in ``answers.csv``.
    """

    classifier: FsPLLClassifier
    confidence: np.ndarray
    n_asked: int
    n_answers: int
    unused: tuple[Answer, ...]


def label_to_parquet(
    features: Path | str | np.ndarray,
    candidates: Any,
    folder: Path | str,
    *,
    rectifier: str | Rectifier = "adaptive",
    class_balance: bool = False,
    answers: Sequence[Answers] = (),
    overwrite: bool = False,
    forget_answers: bool = False,
) -> Streamed:
    """Label vectors that lie in a file, and write the labels as they are made into a table.

    ``labels.parquet`` has the columns ``sample``, ``label``, ``confidence``, ``runner_up``,
    ``margin`` and ``candidates``. The folder also gets ``model.fspll`` and ``review.csv``, the 100
    samples that are least sure; answers in it count in the next run. It takes the extra ``tables``.

    Parameters
    ----------
    features : path or array of shape (n, m)
        An ``.npy`` file of float32 or float64, which is memory-mapped; or an array, memory-mapped
        or not.
    candidates : path or candidate sets
        An ``.npz`` file with a mask, as ``scipy.sparse.save_npz`` writes it, perhaps with
        ``names`` and ``classes``; or sets in any shape of
        :meth:`fspll.candidates.Candidates.read`, best a sparse mask.
    folder : path
        For the results.
    rectifier, class_balance
        As of :func:`fspll.label`.
    answers : sequence of Answers
        Further answers, as :func:`fspll.annotations.read_answers` reads them.
    overwrite, forget_answers
        As of :meth:`fspll.labeling.Labeling.save`.

    Examples
    --------
    >>> import tempfile
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     label_to_parquet(X, y, folder).classifier.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    _load_pyarrow()
    folder = Path(folder)
    check_folder(folder, overwrite=overwrite)
    X = map_array(Path(features)) if isinstance(features, str | Path) else features
    names: Sequence[str] | None = None
    if isinstance(candidates, str | Path):
        names, classes, mask = read_sets(Path(candidates))
        sets = Candidates.from_mask(mask, classes)
    else:
        sets = Candidates.read(candidates)
    check_lengths(len(X), sets)
    with lock_folder(folder):
        given = [] if forget_answers else kept_answers(folder)
        records = [one for source in (*given, *answers) for one in source.records]
        used, unused = _find_rows(records, X, names)
        sets, settled = _settle(sets, used)
        rule = FsPLLClassifier(rectifier=rectifier, class_balance=class_balance)
        rule = FsPLLClassifier(rectifier=rule.make_rectifier().checked())
        classifier = rule.fit(X, sets, settled=settled)
        probabilities = on_candidates(classifier.confidence_, sets)
        top, second, confidence, margin = two_likeliest(probabilities)
        asked = choose_questions(np.where(settled, 1.0, confidence), None)
        write_parquet(folder / PARQUET, names, sets, top, second, confidence, margin)
        classifier.save(folder / MODEL)
        kept = [replace(one, content=_content(X, row)) for row, one in used.items()]
        if kept or unused:
            write_table(folder / ANSWERS, *answer_table([*kept, *unused]))
        elif forget_answers:
            (folder / ANSWERS).unlink(missing_ok=True)
        ordered = [likeliest_first(probabilities, sets.classes, row) for row, _, _ in asked]
        cells = join_candidates([list(map(str, one)) for one in ordered])
        rows = [
            (
                _name(names, row),
                None,  # for the person to fill in
                sets.classes[top[row]],
                f"{confidence[row]:.4f}",
                f"{gain:.3f}",
                f"{after:.4f}",
                cell,
                None,
                _content(X, row),
            )
            for (row, gain, after), cell in zip(asked, cells, strict=True)
        ]
        write_table(folder / REVIEW, REVIEW_COLUMNS, rows)
        for name in (LABELS, REPORT, RUN):  # of an earlier result
            (folder / name).unlink(missing_ok=True)
    return Streamed(classifier, confidence, len(asked), len(used), tuple(unused))


def write_parquet(
    path: Path,
    names: Sequence[str] | None,
    sets: Candidates,
    top: np.ndarray,
    second: np.ndarray,
    confidence: np.ndarray,
    margin: np.ndarray,
) -> None:
    """Write one row per sample, some hundred thousand at a time.

    Parameters
    ----------
    path : Path
    names : sequence of str, optional
        Of the samples; without them they are called after their rows.
    sets : Candidates
    top, second : int arrays of shape (n,)
        Columns of the two likeliest candidates; -1 where there is no second.
    confidence, margin : arrays of shape (n,)
    """
    pa, parquet = _load_pyarrow()
    classes, n, start = (
        pa.array(list(map(str, sets.classes.tolist()))),
        len(sets),
        sets.matrix.indptr,
    )
    schema = pa.schema(
        [
            *(("sample", pa.string()), ("label", pa.string()), ("confidence", pa.float32())),
            *(("runner_up", pa.string()), ("margin", pa.float32())),
            ("candidates", pa.list_(pa.string())),
        ]
    )
    with write_beside(path) as beside, parquet.ParquetWriter(beside, schema) as writer:
        for a in range(0, n, _ROWS_AT_ONCE):
            b = min(a + _ROWS_AT_ONCE, n)
            others = sets.matrix.indices[start[a] : start[b]]
            columns = [
                pa.array([_name(names, row) for row in range(a, b)]),
                classes.take(pa.array(top[a:b])),
                pa.array(confidence[a:b].astype(np.float32)),
                classes.take(pa.array(second[a:b], mask=second[a:b] < 0)),
                pa.array(margin[a:b].astype(np.float32)),
                pa.ListArray.from_arrays(
                    pa.array((start[a : b + 1] - start[a]).astype(np.int32)),
                    classes.take(pa.array(others)),
                ),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _load_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingPackageError("pyarrow", "tables", "writing parquet") from None
    return pyarrow, parquet


# -------------------------------------------------------------------- a person's answers


def _name(names: Sequence[str] | None, row: int) -> str:
    return f"row {row}" if names is None else names[row]


def _content(X: np.ndarray, row: int) -> str:
    return content_name(vector_key(np.asarray(X[row])))


def _find_rows(
    records: Sequence[Answer], X: np.ndarray, names: Sequence[str] | None
) -> tuple[dict[int, Answer], list[Answer]]:
    """Return answers by their rows, a later one instead of an earlier, and those without one.

    An answer for a row counts as long as the row holds the vector that was asked about.
    """
    row_of = {} if names is None or not records else {name: i for i, name in enumerate(names)}
    used: dict[int, Answer] = {}
    unused = []
    for one in records:
        match = _ROW.fullmatch(one.sample)
        row = row_of.get(one.sample, -1) if names is not None else int(match[1]) if match else -1
        there = 0 <= row < len(X) and one.content in ("", _content(X, row))
        if one.discarded or not there:
            unused.append(one)
        else:
            used[row] = one
    return used, unused


def _settle(sets: Candidates, answers: dict[int, Answer]) -> tuple[Candidates, np.ndarray]:
    """Make the sets of answered samples sets of one, and tell which these are, (n,)."""
    settled = np.zeros(len(sets), dtype=bool)
    if not answers:
        return sets, settled
    column = {str(label): place for place, label in enumerate(sets.classes.tolist())}
    for row, one in answers.items():
        if str(one.label) not in column:
            raise InputError(
                f"the answer {one.label!r} for row {row} is no label of these samples"
                f"{did_you_mean(str(one.label), list(column))}"
            )
    settled[list(answers)] = True
    rows = np.array(list(answers))
    matrix = sets.matrix.copy()
    matrix.data[np.repeat(settled, sets.sizes)] = False
    matrix.eliminate_zeros()
    columns = [column[str(one.label)] for one in answers.values()]
    given = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=matrix.shape)
    return Candidates.from_mask(matrix + given, sets.classes), settled


def check_streamed(file: Path, features: Path | None) -> None:
    """Raise unless candidates and features are in files that can be labeled this way."""
    if file.suffix.lower() != ".npz" or features is None or features.suffix.lower() != ".npy":
        raise DataError(
            "labels go to parquet from candidates in an .npz file (scipy.sparse.save_npz) and "
            f"vectors in an .npy file (features=FILE), not from {file.name} and "
            f"{'no vectors' if features is None else features.name}"
        )
    rows, wide = map_array(features).shape[0], map_array(features).ndim
    if wide != 2 or not rows:
        raise DataError(f"{features} must be of shape (samples, features)")


def summary(found: Streamed) -> list[str]:
    """Say in two sentences what was found."""
    n, sure = len(found.confidence), int((found.confidence >= 0.9).sum())
    classes = counted(len(found.classifier.classes_), "class", "classes")
    mean = f"{found.confidence.mean():.1%}"
    calibrated = found.classifier.rectifier_.calibrated
    expect = f"expect {mean} of the labels to be right" if calibrated else f"mean score {mean}"
    return [
        f"{counted(n, 'sample')}, {classes}, {counted(found.n_answers, 'answer')} of a person",
        f"{expect}; {counted(sure, 'is', 'are')} at least 90% sure, {n - sure:,} not",
    ]
