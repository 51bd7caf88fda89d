"""Several labels in one cell: which sign stands between them, and what the labels are."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fspll._common.errors import DataError

_CERTAIN = ("|", ";", ",")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_LONGEST_LIST = 1_000_000


def find_delimiter(cells: Iterable[Any], where: str) -> str:
    """Return the sign between the labels of a column, or "" when every cell holds one label.

    It is the first of ``|``, ``;`` and ``,`` that occurs in any cell. If none does, it may be
    ``/``, which names may contain as well: it separates if some part of a cell also stands alone in
    a cell, or comes first in one cell and later in another. Blanks never separate.

    Parameters
    ----------
    cells : iterable
        The cells; those that are not text, and written lists, are left out.
    where : str
        File and column, for messages.

    Raises
    ------
    DataError
        When a cell contains ``/`` and the cells do not show what it means.
    """
    texts = {cell for cell in cells if isinstance(cell, str)}
    texts = {text for text in texts if written_list(text) is None}
    for sign in _CERTAIN:
        if any(sign in text for text in texts):
            return sign
    slashed = [[part.strip() for part in text.split("/")] for text in texts if "/" in text]
    if not slashed:
        return ""
    first = {parts[0] for parts in slashed}
    later = {part for parts in slashed for part in parts[1:]}
    if (first | later) & texts or first & later:
        return "/"
    example = min(text for text in texts if "/" in text)
    raise DataError(
        f"{where}: {example!r} may be one label or several; give delimiter='/' if '/' separates "
        "candidates, or delimiter='' if it belongs to the names"
    )


def written_list(text: str) -> list[Any] | None:
    """Return the items of a list that was written as text by JSON or Python, or None.

    >>> written_list('["cat", "dog"]'), written_list("{'cat'}"), written_list("cat, dog")
    (['cat', 'dog'], ['cat'], None)
    """
    if _BRACKETS.get(text[:1]) != text[-1:] or len(text) > _LONGEST_LIST:
        return None
    value: Any
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _literal(text)
    if isinstance(value, dict):  # how Label Studio writes several choices into a CSV file
        value = value.get("choices")
    if isinstance(value, set):
        return sorted(value, key=str)
    return list(value) if isinstance(value, list | tuple) else None


def _literal(text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a backslash in a name
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return None


@dataclass(frozen=True)
class Splitter:
    """How the cells of one column become labels.

    Attributes
    ----------
    delimiter : str
        What separates the labels of a text; "" for nothing.
    lists : bool
        Whether a list written as text is read as a list.
    """

    delimiter: str
    lists: bool

    @classmethod
    def choose(cls, given: str | None, cells: Iterable[Any], where: str) -> Splitter:
        """Take the delimiter that was given, and nothing else; or find out."""
        if given is not None:
            return cls(given, lists=False)
        return cls(find_delimiter(cells, where), lists=True)

    def labels(self, value: Any, where: str) -> list[str]:
        """Return the different labels of a cell or a JSON value, in their order.

        Parameters
        ----------
        value : str, number, list, dict with "choices", or None
            What was found; None and blank text hold no label.
        where : str
            File, row and column, for messages.
        """
        if isinstance(value, dict) and "choices" in value:
            value = value["choices"]
        if isinstance(value, str):
            items = written_list(value) if self.lists else None
            if items is None:
                parts = value.split(self.delimiter) if self.delimiter else [value]
                return _different(part.strip() for part in parts)
            value = items
        if not isinstance(value, list):
            value = [] if value is None else [value]
        return _different(label_text(item, where) for item in value)


def label_text(value: Any, where: str) -> str:
    """Return one label as text; refuse what is neither text nor a number."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return str(value)
    raise DataError(
        f"{where}: {json.dumps(value, default=str)[:60]} is not a label; expected text or a list "
        "of texts"
    )


def _different(labels: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(label for label in labels if label))
