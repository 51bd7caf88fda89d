"""Samples with their candidates, as cards: picture or text, and how likely each label is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.html.elements import Html, tag, text
from fspll.labeling import Labeling, Undecided
from fspll.labeling.report.thumbnails import thumbnail
from fspll.labeling.report.words import beginning, name, percent, shorten, void

MOST_CARDS = 300
_MOST_CANDIDATES = 5
_TEXT_LENGTH = 220
_SMALL = 48  # pixels below which a picture is shown with its pixels as squares


def likeliest(result: Labeling, row: int) -> list[tuple[Any, float]]:
    """Return the candidates of a sample with their probabilities, the chosen one first."""
    start, stop = result.probabilities.indptr[row : row + 2]
    columns = result.probabilities.indices[start:stop]
    values = result.probabilities.data[start:stop]
    order = np.argsort(-values, kind="stable")
    labels = result.classes[columns[order]].tolist()
    found = list(zip(labels, values[order].tolist(), strict=True))
    (chosen,) = result.labels[row : row + 1].tolist()
    return sorted(found, key=lambda one: one[0] != chosen)  # stable: first among equals


def least_sure(result: Labeling, most: int = MOST_CARDS) -> list[int]:
    """Return the rows to look at: contradictions first, then the least sure."""
    against = {one.index for one in result.undecided if one.kind == "contradiction"}
    order = np.argsort(result.confidence, kind="stable").tolist()
    return sorted(order, key=lambda row: row not in against)[:most]


def cards(result: Labeling, rows: Sequence[int], pictures: Sequence[Path] | None) -> Html:
    """Return one card a sample, in this order."""
    reasons = {one.index: one for one in result.undecided}
    kind = "pictures" if pictures is not None else "texts"
    made = (_card(result, row, pictures, reasons.get(row)) for row in rows)
    return tag("ol", *made, class_=f"cards {kind}")


def look(result: Labeling, row: int, pictures: Sequence[Path] | None) -> Html:
    """Return the sample itself: its picture, the beginning of its text, or nothing."""
    if pictures is not None:
        small = thumbnail(pictures[row])
        if small is None:
            return tag("span", "no picture", class_="frame empty")
        pixels = "pixels" if max(small.width, small.height) < _SMALL else None
        shown = void("img", src=small.address, alt="", class_=pixels, loading="lazy")
        return tag("span", shown, class_="frame")
    if result.texts is not None and result.texts[row] != result.names[row]:
        return tag("blockquote", beginning(result.texts[row], _TEXT_LENGTH), dir="auto")
    return text("")


def bars(result: Labeling, row: int) -> Html:
    """Return the candidates, each on a bar as long as it is likely."""
    found = likeliest(result, row)
    shown = [
        tag(
            "li",
            tag("span", shorten(label), title=None if shorten(label) == str(label) else label),
            tag("i", percent(share, 0)),
            style=f"--share:{100 * share:.0f}%",
            class_=None if place else "chosen",
        )
        for place, (label, share) in enumerate(found[:_MOST_CANDIDATES])
    ]
    if len(found) > _MOST_CANDIDATES:
        shown.append(tag("li", f"and {len(found) - _MOST_CANDIDATES} more", class_="more"))
    return tag("ul", *shown, class_="bars")


def _card(
    result: Labeling, row: int, pictures: Sequence[Path] | None, reason: Undecided | None
) -> Html:
    parts = [look(result, row, pictures), name(result.names[row]), bars(result, row)]
    if len(result.answered) and result.answered[row]:
        parts.append(tag("small", "answered by a person"))
    elif reason is not None:
        parts.append(tag("small", beginning(reason.reason, _TEXT_LENGTH)))
    return tag("li", *parts, class_=None if reason is None else "open")
