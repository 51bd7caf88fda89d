"""Samples as the page shows them: picture or text, and how likely each label is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fspll.labeling.ranking import likeliest_first
from fspll.labeling.reasons import Undecided
from fspll.labeling.report.gallery import Gallery
from fspll.labeling.result import Labeling

MOST_CARDS = 300
_OUTSIDE = 2  # labels outside the set that are offered


class Choice(NamedTuple):
    """A label that a sample may have.

    Attributes
    ----------
    column : int
        Among the classes of the result.
    label : label
    share : float or None
        Its probability; None where that is not known.
    """

    column: int
    label: Any
    share: float | None


class Sample(NamedTuple):
    """What a page shows of a sample.

    Attributes
    ----------
    row : int
    name : str
    candidates : list of Choice
        The chosen one first, then the likeliest.
    outside : list of Choice
        Labels in question that are not among them.
    is_picture : bool
    has_copy : bool
        Whether the page holds a copy of the picture; not where the file cannot be read.
    text : str or None
    remark : str
        Why it needs a look, or that it had one.
    is_open : bool
        Whether it needs a look.
    """

    row: int
    name: str
    candidates: list[Choice]
    outside: list[Choice]
    is_picture: bool
    has_copy: bool
    text: str | None
    remark: str
    is_open: bool


def least_sure(result: Labeling, most: int = MOST_CARDS) -> list[int]:
    """Return the rows to look at: contradictions first, then the least sure."""
    against = {one.index for one in result.undecided if one.kind == "contradiction"}
    order = np.argsort(result.confidence, kind="stable").tolist()
    return sorted(order, key=lambda row: row not in against)[:most]


def show_samples(result: Labeling, rows: Iterable[int], gallery: Gallery) -> list[Sample]:
    """Return what a page shows of some samples, whose pictures are in the gallery."""
    doubts = {one.index: one for one in result.undecided}
    columns = {label: column for column, label in enumerate(result.classes.tolist())}
    return [_sample(result, row, gallery, doubts.get(row), columns) for row in rows]


def shown_text(result: Labeling, row: int) -> str | None:
    """Return the text of a sample, where that says more than its name."""
    if result.texts is None or result.texts[row] == result.names[row]:
        return None
    return result.texts[row]


def _sample(
    result: Labeling, row: int, gallery: Gallery, doubt: Undecided | None, columns: dict[Any, int]
) -> Sample:
    answered = len(result.answered) and result.answered[row]
    candidates = [Choice(columns[label], label, share) for label, share in _likeliest(result, row)]
    known = {one.label for one in candidates}
    strange = [label for label in (doubt.labels if doubt else ()) if label not in known]
    return Sample(
        row=row,
        name=result.names[row],
        candidates=candidates,
        outside=[Choice(columns[label], label, None) for label in strange[:_OUTSIDE]],
        is_picture=gallery.has_pictures,
        has_copy=row in gallery.held,
        text=None if gallery.has_pictures else shown_text(result, row),
        remark="answered by a person" if answered else doubt.reason if doubt else "",
        is_open=doubt is not None,
    )


def _likeliest(result: Labeling, row: int) -> list[tuple[Any, float]]:
    """Return the candidates of a sample with their probabilities, the chosen one first."""
    start, stop = result.probabilities.indptr[row : row + 2]
    values = -np.sort(-result.probabilities.data[start:stop])
    labels = likeliest_first(result.probabilities, result.classes, row)
    found = list(zip(labels, values.tolist(), strict=True))
    (chosen,) = result.labels[row : row + 1].tolist()
    return sorted(found, key=lambda one: one[0] != chosen)  # stable: first among equals
