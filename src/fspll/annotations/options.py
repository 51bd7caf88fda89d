"""What a person may say about a file, and what is looked for when nothing is said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fspll._common.errors import DataError

# In this order: the first that a file has is taken.
CANDIDATE_NAMES = (
    "candidates",
    "candidate_labels",
    "candidate",
    "labels",
    "label",
    "choices",
    "choice",
    "classes",
    "class",
    "categories",
    "category",
)
FILE_NAMES = (
    "file",
    "filename",
    "file_name",
    "image",
    "image_path",
    "picture",
    "photo",
    "path",
    "filepath",
    "file_path",
)
# A file's name before a number: in a file with a row an annotator, "id" may count the rows.
SAMPLE_NAMES = (
    "sample",
    "sample_id",
    "sample_name",
    *FILE_NAMES,
    "item",
    "item_id",
    "task_id",
    "id",
    "name",
)
ANNOTATOR_NAMES = (
    "annotator",
    "annotator_id",
    "annotator_name",
    "annotated_by",
    "completed_by",
    "labeled_by",
    "labelled_by",
    "labeler",
    "labeller",
    "rater",
    "coder",
    "worker",
    "worker_id",
)
ANSWER_NAMES = ("answer", "label")
ALTERNATIVE_NAMES = ("alternatives", "alternative", *CANDIDATE_NAMES)
_STEMS = "annotator|rater|coder|candidate|label|choice|class|category|vote"
_NUMBERED = re.compile(rf"({_STEMS})(_?[0-9]+|_[a-z])")


@dataclass(frozen=True)
class Options:
    """What was said about a file; None where it was left to be found.

    Attributes
    ----------
    candidates : tuple of str, optional
        The columns that hold labels.
    sample, annotator, text, file : str, optional
        The columns that hold a sample's name, who labeled it, its text, its picture.
    delimiter : str, optional
        What separates the labels of a cell.
    combine : {"union", "majority"}, optional
        How the labels of several annotators become one set.
    classes : tuple of str, optional
        The labels that may occur.
    encoding : str, optional
        The encoding of a text file.
    """

    candidates: tuple[str, ...] | None = None
    sample: str | None = None
    annotator: str | None = None
    text: str | None = None
    file: str | None = None
    delimiter: str | None = None
    combine: str | None = None
    classes: tuple[str, ...] | None = None
    encoding: str | None = None


def find_column(
    header: Sequence[str], given: str | None, known: Sequence[str], source: str
) -> int | None:
    """Return the place of a column: that which was given, or the first known one, or None.

    Names are compared as they are and then without regard to case, blanks and hyphens. A name that
    was given must be there; one that is there twice is refused.
    """
    for name in [given] if given is not None else known:
        exact = [i for i, column in enumerate(header) if column == name]
        places = exact or [i for i, column in enumerate(header) if _plain(column) == _plain(name)]
        if len(places) > 1:
            raise DataError(
                f"{source} has {len(places)} columns called {name!r}; rename all but one"
            )
        if places:
            return places[0]
    if given is not None:
        raise DataError(f"{source} has no column {given!r}; {list_columns(header)}")
    return None


def find_numbered(header: Sequence[str]) -> list[int]:
    """Return the places of columns such as ``label_1, label_2``, if there are two or more."""
    families: dict[str, list[int]] = {}
    for place, name in enumerate(header):
        found = _NUMBERED.fullmatch(_plain(name))
        if found:
            families.setdefault(found[1], []).append(place)
    return next((places for places in families.values() if len(places) > 1), [])


def list_columns(header: Sequence[str]) -> str:
    """Say which columns there are, but not all of very many."""
    shown = ", ".join(repr(name) for name in header[:20])
    return f"its columns are {shown}" + (f" and {len(header) - 20} more" if header[20:] else "")


def _plain(name: str) -> str:
    return re.sub(r"[\s\-_]+", "_", name.strip().casefold())
