"""A result as a pandas data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fspll._common.errors import MissingPackageError
from fspll.labeling.columns import own_columns, text_column

if TYPE_CHECKING:
    from fspll.labeling.result import Labeling


def to_frame(result: Labeling) -> Any:
    """Return one row per sample, with the columns of ``labels.csv``; candidates are lists."""
    try:
        import pandas
    except ImportError:
        raise MissingPackageError("pandas", "tables", "to_frame()") from None
    columns: dict[str, Any] = {
        "sample": list(result.names),
        "label": result.labels.tolist(),
        "confidence": result.confidence,
        "runner_up": list(result.runner_up),
        "margin": result.margin,
        "candidates": [result.candidates.names(row) for row in range(len(result))],
        "outside": result.outside,
    }
    if result.pictures is not None:
        columns["file"] = list(map(str, result.pictures))
    columns |= text_column(result)
    columns |= own_columns(result, columns)
    return pandas.DataFrame(columns)
