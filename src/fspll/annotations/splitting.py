"""Several labels in one cell: which sign stands between them, and what the labels are."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fspll._common.errors import DataError
from fspll._common.words import spoken

# Signs that may stand between labels, the surest first. Names may contain the weaker ones as well;
# what stands in parentheses belongs to a name.
_INSIDE = r"(?![^()]*\))"
_SIGNS = {
    "\n": r"\r\n|\r|\n",
    "|": r"\|",
    ";": ";" + _INSIDE,
    ",": "," + _INSIDE,
    "/": "/" + _INSIDE,
    " or ": r"\s+(?:or|ou|oder)\s+" + _INSIDE,
}
_PATTERNS = {sign: re.compile(pattern, re.IGNORECASE) for sign, pattern in _SIGNS.items()}
_ANY = re.compile("|".join(_SIGNS.values()), re.IGNORECASE)
_ALWAYS = ("\n", "|")  # no name contains them
_CERTAIN = (*_ALWAYS, ";")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_LONGEST_LIST = 1_000_000
_ENOUGH = 10  # cells, from which on it says something that no part of one occurs in another
_SHOWN = 60


def split_text(text: str, sign: str) -> list[str]:
    """Return what stands between the signs, without blanks around it.

    >>> split_text("cat or lynx", " or "), split_text("cat (big, old), lynx", ",")
    (['cat', 'lynx'], ['cat (big, old)', 'lynx'])
    """
    return [part.strip() for part in _PATTERNS[sign].split(text)]


def may_be_several(label: str) -> bool:
    """Tell whether a label contains a sign that elsewhere stands between labels."""
    return _ANY.search(label) is not None


def find_delimiter(
    texts: Mapping[str, int], where: str, *, several: bool = True, labels: Collection[str] = ()
) -> str:
    """Return the sign between the labels of a column, or "" when every cell holds one label.

    It is the first of a line break, ``|``, ``;`` and ``,`` that occurs in any cell, unless a ``,``
    seems to belong to names; see :func:`_in_names`. If none does, it may be ``/`` or the word "or",
    which names may contain as well: they separate if at least half of the different cells with the
    sign have a part that also stands alone in a cell, or comes first in one cell and later in
    another. Blanks never separate.

    Parameters
    ----------
    texts : mapping of str to int
        The cells, and how often each occurs.
    where : str
        File and column, for messages.
    several : bool
        Whether the column is meant for several labels. If not, ``,`` is treated as ``/`` is.
    labels : collection of str
        Labels that are known from elsewhere.

    Raises
    ------
    DataError
        When a sign occurs and the cells do not show what it means.
    """
    for sign in _CERTAIN:
        if any(_PATTERNS[sign].search(text) for text in texts):
            return sign
    commas = _parts_of(texts, ",", labels)
    in_names = _in_names(texts, commas, labels)
    if several and commas and not in_names:
        return ","
    unclear = []
    for sign in ("/", " or ") if in_names else (",", "/", " or "):
        parts = _parts_of(texts, sign, labels)
        first = {one[0] for one in parts.values()}
        later = {part for one in parts.values() for part in one[1:]}
        alone = (set(texts) - set(parts)) | set(labels) | (first & later)
        doubtful = [text for text, one in parts.items() if alone.isdisjoint(one)]
        if parts and 2 * len(doubtful) <= len(parts):
            return sign
        unclear += [(min(doubtful), sign)] if doubtful else []
    if unclear:
        raise DataError(_question(where, *unclear[0]))
    return ""


def _parts_of(texts: Iterable[str], sign: str, labels: Collection[str]) -> dict[str, list[str]]:
    """Return the parts of those texts that contain a sign, and are no known labels as they are."""
    pattern = _PATTERNS[sign]
    return {
        text: split_text(text, sign)
        for text in texts
        if text not in labels and pattern.search(text)
    }


def _recurs(texts: Iterable[str], parts: Mapping[str, list[str]], labels: Collection[str]) -> bool:
    """Tell whether a part stands alone in another text, or in another one with other parts.

    So does nothing, as in "cat,": no name ends like that.
    """
    seen = (set(texts) - set(parts)) | set(labels) | {""}
    for one in map(set, parts.values()):
        if one & seen:
            return True
        seen |= one
    return False


def _in_names(
    texts: Mapping[str, int], parts: Mapping[str, list[str]], labels: Collection[str]
) -> bool:
    """Tell whether commas seem to belong to the names of labels: "Gâteau, crème".

    So it is where some cells have none, and no part of the others occurs anywhere else, in enough
    cells to expect it there. Labels that always come together could not be told apart anyway.
    """
    enough = sum(texts.values()) >= _ENOUGH
    return enough and 0 < len(parts) < len(texts) and not _recurs(texts, parts, labels)


def _hint(texts: Mapping[str, int], sign: str, labels: Collection[str]) -> str:
    """Return how to decide otherwise about commas, where no part of a cell occurs elsewhere."""
    parts = _parts_of(texts, ",", labels)
    if not parts or _recurs(texts, parts, labels):
        return ""
    if sign:
        return " (give delimiter='' if it belongs to the names)"
    return " (give delimiter=',' if ',' separates candidates)"


def _question(where: str, example: str, sign: str) -> str:
    found = _PATTERNS[sign].search(example)
    used = f" {found[0].strip()} " if found and sign == " or " else sign
    return (
        f"{where}: {example[:_SHOWN]!r} may be one label or several; give delimiter={used!r} if "
        f"{used.strip()!r} separates candidates, or delimiter='' if it belongs to the names"
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
        with suppress(ValueError):  # a number of too many digits: whoever makes it a label refuses
            return sorted(value, key=str)
    return list(value) if isinstance(value, list | tuple | set) else None


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
    known : frozenset of str
        Labels that stand alone somewhere. A part of a text that joins nothing but such labels by
        another sign, as in "cat or dog", is split as well.
    also : tuple of str
        Those other signs.
    has_lists : bool
        Whether some cell is a list.
    hint : str
        How to decide otherwise, where the cells show little.
    """

    delimiter: str
    lists: bool
    known: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    has_lists: bool = False
    hint: str = ""

    @classmethod
    def choose(
        cls,
        given: str | None,
        cells: Iterable[Any],
        where: str,
        *,
        several: bool = True,
        labels: Collection[str] = (),
    ) -> Splitter:
        """Take the delimiter that was given, and nothing else; or find out.

        Parameters
        ----------
        given : str or None
            What a user asked for; "" if nothing separates.
        cells : iterable
            The cells; those that are not text, and written lists, are left out.
        where : str
            File and column, for messages.
        several : bool
            Whether the column is meant for several labels; see :func:`find_delimiter`.
        labels : collection of str
            Labels that are known from elsewhere.
        """
        if given is not None:
            return cls(given, lists=False)
        texts, has_lists = _texts(cells)
        labels = frozenset(labels)
        sign = find_delimiter(texts, where, several=several, labels=labels)
        parts = {part for text in texts for part in split_text(text, sign)} if sign else set(texts)
        known = frozenset(part for part in parts if part and not _ANY.search(part))
        found = {_joined_by(part, known) for part in parts} - {""}
        also = tuple(one for one in _SIGNS if one in found)
        hint = _hint(texts, sign, labels) if sign in ("", ",") else ""
        return cls(sign, True, known, also, has_lists, hint)

    @classmethod
    def one_label(cls, given: str | None, cells: Iterable[Any], where: str) -> Splitter:
        """Choose for cells that hold one label each: only ``|``, lists and what was given split.

        Raises
        ------
        DataError
            When a cell joins nothing but labels that stand alone elsewhere: it may be a list.
        """
        if given is not None:
            return cls(given, lists=False)
        texts, has_lists = _texts(cells)
        if any("|" in text for text in texts):
            return cls("|", lists=True, has_lists=has_lists)
        known = frozenset(text for text in texts if not _ANY.search(text))
        for text in sorted(set(texts) - known):
            sign = _joined_by(text, known)
            if sign:
                raise DataError(_question(where, text, sign))
        return cls("", lists=True, has_lists=has_lists)

    def __str__(self) -> str:
        if not self.delimiter:
            return ("lists of labels" if self.has_lists else "one label per cell") + self.hint
        shown = [_shown(sign) for sign in (self.delimiter, *self.also)]
        lists = " and lists" if self.has_lists else ""
        return f"separator{'s' * (len(shown) > 1)} {spoken(shown)}{lists}{self.hint}"

    def _parts(self, text: str) -> Iterator[str]:
        if not self.lists:  # a delimiter that was given is taken literally
            yield from map(str.strip, text.split(self.delimiter) if self.delimiter else [text])
            return
        for part in split_text(text, self.delimiter) if self.delimiter else [text.strip()]:
            sign = _joined_by(part, self.known) if self.also else ""
            yield from split_text(part, sign) if sign else [part]

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
                return _different(self._parts(value))
            value = items
        if not isinstance(value, list):
            value = [] if value is None else [value]
        return _different(label_text(item, where) for item in value)


def _texts(cells: Iterable[Any]) -> tuple[dict[str, int], bool]:
    """Return how often each text occurs that is no list, and whether there are lists."""
    texts: Counter[str] = Counter()
    has_lists = False
    for cell in cells:
        if isinstance(cell, str):
            texts[cell.strip()] += 1
        else:
            has_lists |= isinstance(cell, list | dict)
    plain = {text: count for text, count in texts.items() if written_list(text) is None}
    has_lists |= len(plain) < len(texts)
    plain.pop("", None)
    return plain, has_lists


def _joined_by(text: str, known: Collection[str]) -> str:
    """Return the sign that joins nothing but known labels in a text, or ""."""
    if not _ANY.search(text):
        return ""
    for sign, pattern in _PATTERNS.items():
        if pattern.search(text) and all(part in known for part in split_text(text, sign)):
            return sign
    return ""


def _shown(sign: str) -> str:
    return "'or'" if sign == " or " else "a line break" if sign == "\n" else repr(sign)


def label_text(value: Any, where: str) -> str:
    """Return one label as text; refuse what is neither text nor a number."""
    if isinstance(value, str):
        return value.strip()
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            return str(value)
        shown = json.dumps(value, default=str)[:60]
    except (TypeError, ValueError, RecursionError):  # odd keys, numbers that Python does not write
        number = isinstance(value, int)
        shown = "a number of thousands of digits" if number else f"a {type(value).__name__}"
    raise DataError(f"{where}: {shown} is not a label; expected text or a list of texts")


def _different(labels: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(label for label in labels if label))
