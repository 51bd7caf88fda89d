"""Rows of the benchmark: ours beside a peer and a limit of the machine, all from the same run.

A part yields dictionaries: rows made by :func:`compare` or :func:`value`, points of a curve made by
:func:`point`, and :func:`missing` for what could not be measured, with the reason.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]
SECONDS, SHARE = "s", "share right"


class Limit(NamedTuple):
    """What the machine allows at best, in the unit of the row it stands in."""

    name: str
    value: float


def take_turns(
    work: Mapping[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds of each repeat, where all take turns; a first turn is not counted."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(repeats + 1):
        for name, run in work.items():
            start = clock()
            run()
            if turn:
                times[name].append(clock() - start)
    return times


def compare(
    what: str,
    unit: str,
    ours: float | Sequence[float],
    peer: tuple[str, float | Sequence[float]] | None = None,
    *,
    limit: Limit | None = None,
    work: str | None = None,
) -> Row:
    """Return a row: our figure, a peer's, their ratio, and the share of a limit that is reached.

    Several figures are those of rounds in which ours and the peer's took turns; the best of each is
    shown, and the range of the ratio over the rounds. A ratio above one is in our favor. Shares of
    right labels get a difference instead.
    """
    lower_is_better = unit.endswith("s") and "/" not in unit
    best = min if lower_is_better else max
    mine = np.atleast_1d(np.asarray(ours, dtype=float))
    row: Row = {"what": what, "work": work, "unit": unit, "ours": float(best(mine))}
    if peer is not None:
        name, found = peer
        theirs = np.atleast_1d(np.asarray(found, dtype=float))
        row |= {"peer": name, "theirs": float(best(theirs))}
        if unit == SHARE:
            row["difference"] = row["ours"] - row["theirs"]
        else:
            row["ratio"] = _ratio(row["ours"], row["theirs"], lower_is_better)
            if len(mine) == len(theirs) > 1:
                pairs = zip(mine.tolist(), theirs.tolist(), strict=True)
                by_round = [_ratio(*pair, lower_is_better) for pair in pairs]
                row |= {"ratio_low": min(by_round), "ratio_high": max(by_round)}
    if limit is not None:
        row |= {"limit": limit.name, "limit_value": limit.value}
        row["share"] = _ratio(row["ours"], limit.value, lower_is_better)
        if peer is not None:
            row["their_share"] = _ratio(row["theirs"], limit.value, lower_is_better)
    return row


def value(what: str, unit: str, measured: float, work: str | None = None) -> Row:
    """Return a row that stands alone."""
    return {"what": what, "work": work, "unit": unit, "value": float(measured)}


def point(panel: str, kind: str, curve: str, work: float, seconds: float) -> Row:
    """Return a point of a curve of cost against work.

    ``panel`` is the part of the plot, whose horizontal axis is the work; ``kind`` is "ours", "peer"
    or "limit".
    """
    where = {"panel": panel, "kind": kind, "curve": curve}
    return {**where, "work": float(work), "seconds": float(seconds)}


def missing(what: str, reason: str) -> Row:
    """Return a row that says what was not measured, and why."""
    return {"missing": what, "reason": reason}


def load(module: str, reasons: list[Row], *, what: str | None = None) -> Any:
    """Import a module of a peer; where that fails, add the reason and return None."""
    try:
        return importlib.import_module(module)
    except Exception as error:  # an installed package may fail in any way, too
        reasons.append(missing(what or module.partition(".")[0], str(error)))
        return None


def growth(points: Sequence[Row]) -> float:
    """Return the exponent of the work with which the seconds of a curve grow.

    >>> round(growth([point("fit", "ours", "a", n, 3 * n**2) for n in (10, 100, 1000)]), 6)
    2.0
    """
    work, seconds = np.array([(p["work"], p["seconds"]) for p in points]).T
    return float(np.polyfit(np.log(work), np.log(seconds), 1)[0])


def _ratio(ours: float, theirs: float, lower_is_better: bool) -> float:
    return theirs / ours if lower_is_better else ours / theirs
