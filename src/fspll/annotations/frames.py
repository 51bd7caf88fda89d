"""Tables of other libraries as grids: pandas, Arrow (parquet, feather), rows of Hugging Face data.

None of these libraries is imported unless such an object or file is given.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, MissingPackageError
from fspll._common.reading import check_plain_file, check_size
from fspll.annotations.grid import Grid

NAME = "the data frame"
_INDEX = "__index_level_0__"  # how pandas stores an index without a name in a file


def is_frame(value: Any) -> bool:
    """Tell whether something is a data frame, a series, an Arrow table, or a Hugging Face data set.

    They are told by what they can do: a series has an index and a name, a frame has columns.
    """
    return is_series(value) or _is_pandas(value) or hasattr(value, "column_names")


def is_series(value: Any) -> bool:
    """Tell a series of pandas: the candidates of each sample, whose name is in the index."""
    return hasattr(value, "to_frame") and hasattr(value, "index") and hasattr(value, "name")


def _is_pandas(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "iloc") and hasattr(value, "index")


def frame_to_grid(frame: Any) -> Grid:
    """Return the rows of a data frame, a series, an Arrow table or a Hugging Face data set.

    An index that is more than the numbers of the rows becomes the column of the samples' names,
    unless it has a name of its own. Rows are counted from 0, as these libraries do.
    """
    if is_series(frame):
        frame = frame.to_frame("candidates")
    if _is_pandas(frame):
        columns = [*_index_columns(frame), *_columns_of(frame)]
    else:
        columns = [(str(name), _values(frame, name)) for name in frame.column_names]
    return _make_grid(NAME, columns)


def _make_grid(source: str, columns: Sequence[tuple[str, list[Any]]]) -> Grid:
    """Return columns as a grid, its rows counted from 0."""
    if not columns:
        raise DataError(f"{source} has no columns")
    header = [name for name, _ in columns]
    cells = zip(*(values for _, values in columns), strict=True)
    rows = [list(map(plain_value, row)) for row in cells]
    if not rows:
        raise DataError(f"{source} has no rows")
    return Grid(source, header, rows, [f"row {number}" for number in range(len(rows))])


def plain_value(value: Any) -> Any:
    """Return a cell as text, a number, a list, a dictionary, or None for what is missing.

    >>> plain_value(np.float64(3)), plain_value(float("nan")), plain_value({"b", "a"})
    (3, None, ['a', 'b'])
    """
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, dict):
        return value
    if isinstance(value, np.ndarray | list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((plain_value(one) for one in value), key=str)
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value)
        return None if math.isnan(value) else int(value) if whole else value
    if isinstance(value, datetime.datetime) and value == value:
        return str(value).removesuffix(" 00:00:00")
    text = str(value)
    return None if text in ("NaT", "<NA>") else text


def _index_columns(frame: Any) -> list[tuple[str, list[Any]]]:
    index = frame.index
    names = list(index.names)
    if len(names) > 1:
        levels = [index.get_level_values(level).tolist() for level in range(len(names))]
        return [(_header(name, f"level_{i}"), levels[i]) for i, name in enumerate(names)]
    values = index.tolist()
    if names[0] is None and all(isinstance(value, int) for value in values):
        return []  # numbers of rows
    return [(_header(names[0], "sample"), values)]


def _columns_of(frame: Any) -> list[tuple[str, list[Any]]]:
    # By number: two columns may have the same name.
    return [
        (_header(name, str(name)), frame.iloc[:, number].tolist())
        for number, name in enumerate(frame.columns)
    ]


def _header(name: Any, otherwise: str) -> str:
    return otherwise if name is None else str(name).strip()


def _values(frame: Any, name: str) -> list[Any]:
    """Return a column of an Arrow table or a Hugging Face data set; class numbers become names."""
    column = frame[name]
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    feature = getattr(frame, "features", None) or {}
    kind = feature.get(name) if hasattr(feature, "get") else None
    named = getattr(kind, "names", None) or getattr(getattr(kind, "feature", None), "names", None)
    return [_named(value, named) for value in values] if named else values


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_named(one, names) for one in value]
    return names[int(value)] if isinstance(value, int | np.integer) and value >= 0 else None


def read_arrow(path: Path, kind: str) -> Grid:
    """Read a parquet or feather file."""
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise MissingPackageError("pyarrow", "tables", f"reading {path.name}") from None
    check_size(str(path), check_plain_file(path, "a table").st_size)
    try:
        table = (parquet if kind == "parquet" else feather).read_table(str(path))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read as {kind}: {reason}") from error
    columns = [
        ("sample" if name == _INDEX else name, table.column(number).to_pylist())
        for number, name in enumerate(table.column_names)
    ]
    return _make_grid(path.name, columns)
