"""What people and annotation tools write down: samples with candidate labels, from many formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fspll._common.lazy import lazy_names

if TYPE_CHECKING:
    from fspll.annotations.answers import Answer, Answers, read_answers
    from fspll.annotations.reading import read_annotations
    from fspll.annotations.samples import Annotations
    from fspll.annotations.writing import join_candidates, write_table

# So that a command that only writes a table does not wait for scikit-learn.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "answers": "Answer Answers read_answers",
        "reading": "read_annotations",
        "samples": "Annotations",
        "writing": "join_candidates write_table",
    },
)

__all__ = [
    "Annotations",
    "Answer",
    "Answers",
    "join_candidates",
    "read_annotations",
    "read_answers",
    "write_table",
]
