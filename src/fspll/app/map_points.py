"""Where samples lie on the map of the page *Look*.

Shapes: n samples, m features, p samples on the map.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from fspll._common.words import counted
from fspll.app.session import Session
from fspll.app.table import NO_LABEL, Table, table_of
from fspll.app.view import View
from fspll.labeling.report.map2d import MOST_POINTS
from fspll.labeling.report.plane import find_plane, spread_line

_SEED = 0


class Points(NamedTuple):
    """Samples on the map.

    Attributes
    ----------
    rows : int array of shape (p,)
    places : array of shape (p, 2)
        From the left and from the top; the longer side of the map is 1.
    caption : str
        What one sees.
    """

    rows: np.ndarray
    places: np.ndarray
    caption: str


_POINTS: WeakKeyDictionary[Session, tuple[View, Points]] = WeakKeyDictionary()


def points_of(session: Session) -> Points | None:
    """Return the map, which is computed once per fit; None before the first."""
    with session.ready():
        view, table = session.view, table_of(session)
    if view.features is None:
        return None
    known = _POINTS.get(session)
    if known is not None and known[0] is view:
        return known[1]
    # Not while holding the session: other requests need not wait for it.
    found = find_points(view.features, table)
    _POINTS[session] = (view, found)
    return found


def find_points(features: np.ndarray, table: Table, most: int = MOST_POINTS) -> Points:
    """Return all samples that have a label, or the doubtful ones and others chosen at random.

    Parameters
    ----------
    features : array of shape (n, m)
        With NaN rows for samples that could not be read.
    table : Table
    most : int
        Of the points. If more samples are doubtful, the less sure ones are on the map.
    """
    shown = (table.columns != NO_LABEL) & ~np.isnan(features).any(axis=1)
    rows = np.flatnonzero(shown)
    if len(rows) > most:
        order = table.by_doubt[shown[table.by_doubt]]
        doubtful = order[: np.count_nonzero(table.doubtful & shown)]
        # Every sample has its chance once and for all, so that a fit changes few of the points.
        chance = np.random.default_rng(_SEED).random(len(table))
        others = np.setdiff1d(rows, doubtful)
        others = others[np.argsort(chance[others])]
        rows = np.sort(np.concatenate([doubtful, others])[:most])
    if not len(rows):
        return Points(rows, np.zeros((0, 2)), "There is no sample with a label.")
    chosen = np.asarray(features[rows], dtype=float)
    plane = find_plane(chosen, table.columns[rows])
    flat = plane.place(chosen)
    flat = spread_line(flat) if plane.is_line else flat
    flat = flat * [1, -1]
    flat -= flat.min(axis=0)
    said = [
        "Each mark is a sample; the closer two lie, the more alike the encoder finds them.",
        plane.words,
        "Hollow marks are not settled.",
    ]
    if len(rows) < shown.sum():
        said.append(
            f"Only {len(rows):,} of {counted(int(shown.sum()), 'sample')} are on the map: the "
            "doubtful ones first, and others chosen at random."
        )
    return Points(rows, flat / (flat.max() or 1.0), " ".join(said))
