"""Labels that may be the same: by case, blanks and hyphens, or one typing mistake; and renaming."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, InputTypeError
from fspll._common.words import listed, spoken
from fspll.annotations.grid import find_column, list_columns
from fspll.annotations.opening import TABLES, find_format, open_table
from fspll.annotations.samples import Annotations
from fspll.annotations.tables import read_in_either

_FROM, _TO = ("from", "old", "label", "labels"), ("to", "new", "rename", "name")
_LONG, _SWAPPED = 5, 4  # letters of a word in which a mistake, or two swapped letters, is likely
_RARER = 2  # a mistyped label is at least this many times rarer
_MOST = 2000  # labels up to which every two are compared for typing mistakes
_GROUPS_SHOWN = 5


def find_similar(annotations: Annotations) -> list[list[tuple[str, int]]]:
    """Return groups of labels that may be the same, each with its number of samples.

    The most frequent one of a group comes first. Labels are alike that differ only by case, blanks,
    hyphens or accents' encoding; and a rare label and a frequent one that differ by one letter of a
    longer word: left out, put in, another one, or two letters swapped. Digits have to agree.
    """
    sizes = np.bincount(annotations.votes.indices, minlength=len(annotations.classes)).tolist()
    count = dict(zip(annotations.classes, sizes, strict=True))
    by_key: dict[str, list[str]] = {}
    for label in sorted(count, key=lambda one: (-count[one], one)):
        by_key.setdefault(_key(label), []).append(label)
    home: dict[str, str] = {}
    total = {key: sum(count[label] for label in labels) for key, labels in by_key.items()}
    frequent = sorted(by_key, key=lambda one: -total[one])
    for place, key in enumerate(frequent if len(frequent) <= _MOST else ()):
        for better in frequent[:place]:
            if better not in home and total[better] >= _RARER * total[key] and _typo(better, key):
                home[key] = better
                break
    for key, better in home.items():
        by_key[better] += by_key[key]
    return [
        [(label, count[label]) for label in labels]
        for key, labels in by_key.items()
        if key not in home and len(labels) > 1
    ]


def similar_note(annotations: Annotations) -> str | None:
    """Return a sentence on labels that may be the same, or None where there are none."""
    groups = find_similar(annotations)
    if not groups:
        return None
    shown = [spoken([f"{label!r} ({count})" for label, count in group]) for group in groups]
    return (
        f"labels that may be the same: {listed(shown, _GROUPS_SHOWN, '; ')}; merge_similar=True "
        "makes them one, and rename=FILE says what to call them"
    )


def merging(annotations: Annotations) -> dict[str, str]:
    """Return the renaming that makes similar labels one: each gets the most frequent spelling."""
    return {label: group[0][0] for group in find_similar(annotations) for label, _ in group[1:]}


def read_renames(source: Any, encoding: str | None = None) -> dict[str, str]:
    """Return new names by old ones, from a mapping, a JSON object, or a table of two columns.

    ``encoding`` is tried where a table is not UTF-8.
    """
    called = "rename"
    if isinstance(source, Mapping):
        renames = dict(source)
    elif isinstance(source, str | Path):
        called = Path(source).name
        renames = read_in_either(partial(_load, Path(source)), encoding)
    else:
        raise InputTypeError(
            f"rename must be a file or a mapping of old names to new ones, not "
            f"{type(source).__name__}"
        )
    for old, new in renames.items():
        if not isinstance(old, str) or not isinstance(new, str) or not new.strip():
            raise DataError(f"{called}: {old!r:.60} cannot be called {new!r:.60}; give texts")
        if renames.get(new, new) != new:
            raise DataError(
                f"{called}: {old!r} becomes {new!r}, which becomes {renames[new]!r}; give the last "
                "name at once"
            )
    return {old.strip(): new.strip() for old, new in renames.items()}


def _load(path: Path, *, encoding: str | None = None) -> dict[str, Any]:
    if find_format(path) not in TABLES:
        try:
            found = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"{path} cannot be read as JSON: {error}") from error
        if not isinstance(found, dict):
            raise DataError(f"{path} must hold one object of old names and new ones")
        return found
    grid = open_table(path, encoding=encoding)
    old = find_column(grid.header, None, _FROM, grid.source)
    new = find_column(grid.header, None, _TO, grid.source)
    if (old is None or new is None) and len(grid.header) == 2:
        old, new = 0, 1
    if old is None or new is None:
        raise DataError(
            f"{path.name} needs the columns 'from' and 'to'; {list_columns(grid.header)}"
        )
    renames: dict[str, str] = {}
    for before, after in zip(grid.texts(old, "label"), grid.texts(new, "new name"), strict=True):
        if renames.setdefault(before, after) != after:
            raise DataError(f"{path.name} renames {before!r} to {renames[before]!r} and {after!r}")
    return renames


# -------------------------------------------------------------------- what is similar


def _key(label: str) -> str:
    plain = unicodedata.normalize("NFKC", label).casefold()
    return re.sub(r"[\s\-_]+", " ", plain).strip(" .")


def _typo(one: str, other: str) -> bool:
    """Tell whether one word of two labels differs by one mistake."""
    words, others = one.split(), other.split()
    if len(words) != len(others):
        return False
    unlike = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(unlike) == 1 and _one_mistake(*unlike[0])


def _one_mistake(one: str, other: str) -> bool:
    if not (one.isalpha() and other.isalpha()):
        return False
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1 or len(long) < _SWAPPED:
        return False
    first = next((n for n, letter in enumerate(short) if letter != long[n]), len(short))
    if len(short) < len(long):
        return len(long) >= _LONG and short[first:] == long[first + 1 :]
    if one[first + 1 :] == other[first + 1 :]:
        return len(one) >= _LONG
    return sorted(one[first : first + 2]) == sorted(other[first : first + 2]) and (
        one[first + 2 :] == other[first + 2 :]
    )


def merge_columns(
    columns: Sequence[str], votes: Any, renames: Mapping[str, str]
) -> tuple[list[str], Any]:
    """Return renamed columns, each name once, and the votes with those of one name added up.

    A mask stays a mask: where the votes are 0 and 1, they are so afterwards.
    """
    names = [renames.get(name, name) for name in columns]
    different = list(dict.fromkeys(names))
    if len(different) == len(names):
        return names, votes
    place = {name: number for number, name in enumerate(different)}
    merged = votes.tocoo()
    is_mask = not len(votes.data) or votes.data.max() <= 1
    moved = np.array([place[name] for name in names])[merged.coords[1]]
    shape = (votes.shape[0], len(different))
    merged = type(votes)((merged.data, (merged.coords[0], moved)), shape=shape)
    merged.sum_duplicates()
    if is_mask:
        merged.data[:] = merged.data.clip(max=1)
    return different, merged
