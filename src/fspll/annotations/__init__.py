"""What people and annotation tools write down: samples with candidate labels, from many formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fspll.annotations.reading import read_annotations, read_answers
    from fspll.annotations.samples import Annotations
    from fspll.annotations.writing import join_candidates, write_table

# Where each public name lives. They are imported when first used, so that a command that only
# writes a table does not wait for scikit-learn.
_HOME = {
    "Annotations": "fspll.annotations.samples",
    "join_candidates": "fspll.annotations.writing",
    "read_annotations": "fspll.annotations.reading",
    "read_answers": "fspll.annotations.reading",
    "write_table": "fspll.annotations.writing",
}

__all__ = [
    "Annotations",
    "join_candidates",
    "read_annotations",
    "read_answers",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll.annotations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
