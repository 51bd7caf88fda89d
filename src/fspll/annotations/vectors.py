"""Feature vectors of samples: in NumPy files, in a table, or in columns of the table of labels.

Shapes: n samples, m features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError
from fspll._common.reading import check_rows
from fspll._common.words import counted
from fspll.annotations.features import (
    FEATURE_NAMES,
    check_features,
    first_of,
    texts_of,
)
from fspll.annotations.features import SAMPLE_NAMES as ARRAYS_OF_NAMES
from fspll.annotations.frames import frame_to_grid, is_frame
from fspll.annotations.grid import SAMPLE_NAMES, Grid, find_column, find_index
from fspll.annotations.numpyfiles import load_arrays, native
from fspll.annotations.opening import TABLES, find_format, open_table
from fspll.annotations.samples import Annotations
from fspll.annotations.tables import read_in_either


def load_features(
    source: Any, annotations: Annotations, encoding: str | None = None
) -> Annotations:
    """Give samples their vectors.

    Parameters
    ----------
    source : path, array or data frame
        An array of shape (n, m), or what :func:`load_vectors` reads. Where the vectors have names,
        they are found by name; otherwise there is one per sample, in the order of the samples.
    annotations : Annotations
        The samples.
    encoding : str, optional
        Tried where a table is not UTF-8.
    """
    called = Path(source).name if isinstance(source, str | Path) else "features"
    if isinstance(source, str | Path) or is_frame(source):
        names, X = load_vectors(source, encoding)
    else:
        names, X = None, check_features(native(np.asarray(source)), "features")
    width = counted(X.shape[1], "feature")
    return replace(
        annotations,
        features=_in_order(called, X, annotations)
        if names is None
        else X[_rows_by_name(called, names, annotations)],
        understood=(*annotations.understood, f"{width} from {called}"),
    )


def load_vectors(source: Any, encoding: str | None = None) -> tuple[list[str] | None, np.ndarray]:
    """Return names, if there are any, and vectors of an ``.npy`` or ``.npz`` file or of a table.

    ``encoding`` is tried where a table is not UTF-8.
    """
    if is_frame(source):
        return read_vector_table(frame_to_grid(source))
    path = Path(source)
    if path.suffix.lower() != ".npy" and find_format(path) in TABLES:
        return read_vector_table(read_in_either(partial(open_table, path), encoding))
    arrays = load_arrays(path)
    key = first_of(arrays, FEATURE_NAMES) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if key is None:
        raise DataError(
            f"{path} has no array 'X'; it has {', '.join(map(repr, arrays)) or 'none at all'}"
        )
    X = check_features(arrays[key], f"{path.name}, {key!r}")
    check_rows(str(path), len(X))
    names = texts_of(path, arrays, ARRAYS_OF_NAMES)
    if names is not None and len(names) != len(X):
        vectors = counted(len(X), "vector")
        raise DataError(f"{path} has {vectors} but {counted(len(names), 'name')}")
    return names, X


def _rows_by_name(path: str, names: list[str], annotations: Annotations) -> list[int]:
    row = {name: number for number, name in enumerate(names)}
    if len(row) < len(names):
        twice = next(name for n, name in enumerate(names) if row[name] != n)
        raise DataError(f"{path} names {twice!r} more than once")
    for name, origin in zip(annotations.names, annotations.origins, strict=True):
        if name not in row:
            raise DataError(f"{path} has no vector for the sample {name!r} ({origin})")
    return [row[name] for name in annotations.names]


def _in_order(called: str, X: np.ndarray, annotations: Annotations) -> np.ndarray:
    if len(X) != len(annotations):
        raise DataError(
            f"{called} has {counted(len(X), 'row')} but {annotations.source} has "
            f"{counted(len(annotations), 'sample')}; there must be one vector per sample, in the "
            "order in which the samples are first named"
        )
    return X


# -------------------------------------------------------------------- tables


def choose_columns(grid: Grid, given: Sequence[str]) -> list[int]:
    """Return the places of columns that are named one by one, or from one to another ("a:z")."""
    places: list[int] = []
    for name in given:
        first, colon, last = name.partition(":")
        if not colon or name in grid.header:
            places.append(_place(grid, name))
            continue
        begin, end = _place(grid, first.strip()), _place(grid, last.strip())
        if end < begin:
            raise DataError(f"{grid.source}: the column {last!r} comes before {first!r}")
        places += range(begin, end + 1)
    return list(dict.fromkeys(places))


def _place(grid: Grid, name: str) -> int:
    found = find_column(grid.header, name, (), grid.source)
    assert found is not None  # it raises where there is no such column
    return found


def vectors_of(
    grid: Grid, columns: Sequence[int], row_names: Sequence[str], names: Sequence[str]
) -> np.ndarray:
    """Return the vector of every sample, of shape (n, m), from the rows that name it."""
    X = read_vectors(grid, columns)
    first: dict[str, int] = {}
    for row, name in enumerate(row_names):
        if not np.array_equal(X[first.setdefault(name, row)], X[row]):
            both = f"{grid.where[first[name]]} and {grid.where[row]}"
            raise DataError(f"{grid.source}, {both} give the sample {name!r} different vectors")
    return X[[first[name] for name in names]]


def read_vectors(grid: Grid, columns: Sequence[int]) -> np.ndarray:
    """Return the numbers of some columns, of shape (rows, m); a cell may hold a list of numbers."""
    if len(columns) == 1 and isinstance(grid.rows[0][columns[0]], list):
        cells = [row[columns[0]] for row in grid.rows]
        if len({len(cell) if isinstance(cell, list) else -1 for cell in cells}) > 1:
            raise DataError(
                f"{grid.source}, column {grid.header[columns[0]]!r}: the vectors differ in length"
            )
    else:
        cells = [[row[column] for column in columns] for row in grid.rows]
    try:
        X = np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        X = np.array([_numbers(grid, row, columns) for row in range(len(grid.rows))])
    return check_features(X, grid.source)


def _numbers(grid: Grid, row: int, columns: Sequence[int]) -> list[float]:
    """Return the numbers of a row; a comma may stand for the decimal point."""
    found = []
    for column in columns:
        cell = grid.rows[row][column]
        try:
            found.append(float(cell.replace(",", ".") if isinstance(cell, str) else cell))
        except (TypeError, ValueError):
            raise DataError(
                f"{grid.place(row, column)}: {cell!r:.60} is no number; vectors need one in every "
                "cell"
            ) from None
    return found


def read_vector_table(grid: Grid) -> tuple[list[str] | None, np.ndarray]:
    """Return the names in a table of vectors, if it has any, and the vectors.

    A column called ``sample``, ``file``, ``id`` or the like names the samples; all others are
    features. A table without a header, whose first row is numbers, is read as well.
    """
    if all(map(_is_number, grid.header)):
        grid = Grid(grid.source, grid.header, [grid.header, *grid.rows], ["row 1", *grid.where])
        return None, read_vectors(grid, range(len(grid.header)))
    numbering, named = find_index(grid)
    sample = find_column(grid.header, None, SAMPLE_NAMES, grid.source)
    sample = named if sample is None else sample
    columns = [n for n in range(len(grid.header)) if n not in (sample, numbering)]
    names = None if sample is None else grid.texts(sample, "name of a sample")
    return names, read_vectors(grid, columns)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
