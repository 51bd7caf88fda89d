"""The columns of a result that stand beside what was found: texts, and the user's own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fspll.annotations.writing import to_plain_text
from fspll.labeling.result import Labeling


def text_column(result: Labeling) -> dict[str, Sequence[str]]:
    """Return the texts as a column, where samples are texts, otherwise nothing."""
    if result.texts is None:
        return {}
    return {"text": [to_plain_text(text) for text in result.texts]}


def own_columns(result: Labeling, taken: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the user's other columns; one whose name is taken gets "(input)" after it."""
    found: dict[str, Sequence[str]] = {}
    for title, cells in result.columns:
        name, number = title, 1
        while name in taken or name in found:
            name = f"{title} (input{f' {number}' if number > 1 else ''})"
            number += 1
        found[name] = cells
    return found
