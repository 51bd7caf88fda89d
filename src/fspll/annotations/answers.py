"""What a person answered when asked for the labels of some samples."""

from __future__ import annotations

from pathlib import Path

from fspll._common.errors import DataError
from fspll.annotations.options import ANSWER_NAMES, SAMPLE_NAMES, find_column, list_columns
from fspll.annotations.tables import read_table


def read_answers(path: Path | str, *, encoding: str | None = None) -> dict[str, str]:
    """Read the label that a person gave to each sample.

    Parameters
    ----------
    path : path
        A CSV or TSV file with the columns ``sample`` (or ``file``, ``id``, ...) and ``answer`` (or
        ``label``). Rows without an answer are not answered yet and are skipped.
    encoding : str, optional
        As in :func:`fspll.annotations.read_annotations`.

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
    grid = read_table(path, encoding=encoding, separator=_separator(path))
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


def _separator(path: Path) -> str | None:
    return "\t" if path.suffix.lower() in (".tsv", ".tab") else None
