"""A map of the samples, with prototypes that move from round to round: one drawing in the page.

Shapes: n samples, l classes, m features, T rounds, p samples and q classes that are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fspll._common.words import beginning, counted, percent, shorten
from fspll.labeling.report.cards import shown_text
from fspll.labeling.report.gallery import SMALL_SIDE, Gallery
from fspll.labeling.report.map_names import place_names
from fspll.labeling.report.plane import Plane, find_plane, spread_line
from fspll.labeling.result import Labeling

MOST_POINTS = 3000
MOST_PROTOTYPES = 100
MOST_STEPS = 40
_NAMED = 24  # prototypes, up to which their names fit into the map
N_COLORS, N_SHAPES = 7, 8  # without a common factor: 56 looks before one comes again
_WIDTH, _LEAST_HEIGHT, _MOST_HEIGHT, _EDGE = 900.0, 240.0, 620.0, 34.0
_SEED = 0
_NAME_LENGTH = 18
_TEXT_LENGTH = 160
_SHAPES = (
    "M5.2 0A5.2 5.2 0 1 1 -5.2 0A5.2 5.2 0 1 1 5.2 0Z",
    "M-4.7 -4.7H4.7V4.7H-4.7Z",
    "M0 -6.2L5.6 4.2H-5.6Z",
    "M0 -6.6L6 0L0 6.6L-6 0Z",
    "M0 6.2L5.6 -4.2H-5.6Z",
    "M-1.9 -6H1.9V-1.9H6V1.9H1.9V6H-1.9V1.9H-6V-1.9H-1.9Z",
    "M-3 -5.4H3L6 0L3 5.4H-3L-6 0Z",
    "M0 -6.8L1.8 -2L6.6 -2L2.8 1.2L4.2 6L0 3.1L-4.2 6L-2.8 1.2L-6.6 -2L-1.8 -2Z",
)


class Drawn(NamedTuple):
    """What is on the map, in its units."""

    rows: np.ndarray  # (p,) samples
    points: np.ndarray  # (p, 2)
    columns: np.ndarray  # (q,) classes with a prototype on the map
    steps: list[str]  # what each step is called
    prototypes: np.ndarray  # (steps, q, 2)
    labels: np.ndarray  # (steps, p)
    height: float


def draw_map(result: Labeling, gallery: Gallery) -> dict[str, Any]:
    """Return what ``map.html.j2`` draws: points, prototypes, legend, caption and movements.

    The pictures of the samples are added to the gallery.
    """
    top = chosen_columns(result)
    rows = _chosen_rows(result)
    gallery.add(rows.tolist(), SMALL_SIDE)
    features = np.asarray(result.features[rows], dtype=float)
    plane = find_plane(features, top[rows])
    drawn = _drawn(result, rows, features, plane, top)
    return {
        "width": _WIDTH,
        "height": drawn.height,
        "shapes": _SHAPES,
        "steps": drawn.steps,
        "points": _points(result, drawn),
        "prototypes": _prototypes(result, drawn),
        "legend": _legend(result, np.bincount(top, minlength=len(result.classes))),
        "caption": _caption(result, drawn, plane, gallery),
        "behavior": _behavior(drawn),
    }


def chosen_columns(result: Labeling) -> np.ndarray:
    """Return the column of every sample's label, of shape (n,)."""
    column = {label: number for number, label in enumerate(result.classes.tolist())}
    return np.array([column[label] for label in result.labels.tolist()])


def mark_shapes() -> tuple[str, ...]:
    """Return the outlines of marks as paths of SVG; classes have them in turn, as their colors."""
    return _SHAPES


def _chosen_rows(result: Labeling) -> np.ndarray:
    """Return the samples to draw: all, or those to look at and others at random."""
    n = len(result)
    if n <= MOST_POINTS:
        return np.arange(n)
    asked = np.array([one.index for one in result.review][: MOST_POINTS // 2], dtype=np.int64)
    others = np.setdiff1d(np.arange(n), asked)
    rng = np.random.default_rng(_SEED)
    more = rng.choice(others, MOST_POINTS - len(asked), replace=False)
    return np.sort(np.concatenate([asked, more]))


# -------------------------------------------------------------------- places


def _drawn(
    result: Labeling, rows: np.ndarray, features: np.ndarray, plane: Plane, top: np.ndarray
) -> Drawn:
    size = np.bincount(top, minlength=len(result.classes))
    columns = np.sort(np.argsort(-size, kind="stable")[:MOST_PROTOTYPES])
    columns = columns[size[columns] > 0]
    steps, prototypes, labels = ["result"], [_final_prototypes(result, columns)], [top[rows]]
    if result.rounds is not None:
        count = len(result.rounds.labels)
        kept = np.unique(np.linspace(0, count - 1, min(count, MOST_STEPS)).round().astype(int))
        steps = ["start" if step == 0 else f"round {step}" for step in kept] + steps
        prototypes = [result.rounds.prototypes[step, columns] for step in kept] + prototypes
        labels = [result.rounds.labels[step, rows] for step in kept] + labels
    flat, moving = plane.place(features), plane.place(np.stack(prototypes))
    if plane.is_line:
        flat = spread_line(flat)
        moving[..., 1] = flat[:, 1].max() / 2
    low, high = flat.min(axis=0), flat.max(axis=0)
    extent = np.maximum(high - low, 1e-12)
    inside = np.array([_WIDTH, _MOST_HEIGHT]) - 2 * _EDGE
    scale = float((inside / extent).min()) if np.ptp(flat) > 0 else 0.0
    height = max(_LEAST_HEIGHT, extent[1] * scale + 2 * _EDGE)
    middle = np.array([_WIDTH, height]) / 2

    def on_map(where: np.ndarray) -> np.ndarray:
        return ((where - (low + high) / 2) * scale * [1, -1] + middle).round(1)

    return Drawn(rows, on_map(flat), columns, steps, on_map(moving), np.stack(labels), height)


def _final_prototypes(result: Labeling, columns: np.ndarray) -> np.ndarray:
    """Return class means (q, m), every sample counting by how likely it is of the class."""
    share = result.probabilities[:, columns]
    mass = np.asarray(share.sum(axis=0)).ravel()
    return np.asarray(share.T @ np.asarray(result.features, dtype=float)) / mass[:, None]


# -------------------------------------------------------------------- the drawing


def _look(column: int) -> dict[str, int]:
    return {"shape": column % N_SHAPES, "color": column % N_COLORS}


def _points(result: Labeling, drawn: Drawn) -> list[dict[str, Any]]:
    undecided = {one.index for one in result.undecided}
    made = []
    for row, (x, y), column in zip(drawn.rows, drawn.points, drawn.labels[-1], strict=True):
        made.append(
            {
                "row": row,
                "x": x,
                "y": y,
                "name": shorten(result.names[row]),
                "label": shorten(result.labels[row], 30),
                "sure": percent(float(result.confidence[row]), 0),
                "text": beginning(shown_text(result, row) or "", _TEXT_LENGTH),
                "is_open": int(row) in undecided,
                **_look(int(column)),
            }
        )
    return made


def _prototypes(result: Labeling, drawn: Drawn) -> list[dict[str, Any]]:
    labels = result.classes[drawn.columns].tolist()
    places: Sequence[Any] = [None] * len(labels)
    if len(labels) <= _NAMED:
        places = place_names(
            [shorten(label, _NAME_LENGTH) for label in labels], drawn.prototypes[-1]
        )
    return [
        {
            "label": label,
            "trail": drawn.prototypes[:, at].tolist(),
            "name": shorten(label, _NAME_LENGTH),
            "name_at": places[at],
            **_look(int(drawn.columns[at])),
        }
        for at, label in enumerate(labels)
    ]


def _legend(result: Labeling, size: np.ndarray) -> list[dict[str, Any]]:
    order = (
        np.argsort(-size, kind="stable") if len(size) > MOST_PROTOTYPES else np.arange(len(size))
    )
    return [
        {"column": column, "label": result.classes[column], "count": size[column], **_look(column)}
        for column in order[:MOST_PROTOTYPES].tolist()
    ]


def _caption(result: Labeling, drawn: Drawn, plane: Plane, gallery: Gallery) -> str:
    said = [
        "Each small mark is a sample; the closer two lie, the more alike the encoder finds them.",
        "Point at a mark, tap it or use the arrow keys to see the sample.",
    ]
    said.append(plane.words)
    said.append("Hollow marks are not settled.")
    said.append("Large marks are prototypes, the means of the classes")
    said[-1] += ", with the way they came." if len(drawn.steps) > 1 else "."
    if len(drawn.rows) < len(result):
        said.append(
            f"Only {len(drawn.rows):,} of {counted(len(result), 'sample')} are drawn: those of the "
            f"review list, and others chosen at random."
        )
    held = sum(row in gallery.held for row in drawn.rows.tolist())
    if gallery.is_full:
        said.append(f"There was room for the pictures of {held:,} of them.")
    if len(drawn.columns) == MOST_PROTOTYPES < len(result.classes):
        said.append(f"Prototypes of the {MOST_PROTOTYPES} most frequent labels are drawn.")
    if len(result.classes) > N_COLORS * N_SHAPES:
        said.append("Some labels share a mark; point at one to read its label.")
    if result.rounds is None:
        said.append("How prototypes moved was not kept.")
    return " ".join(said)


# -------------------------------------------------------------------- what moves


def _behavior(drawn: Drawn) -> dict[str, Any]:
    """Return the positions of all steps for ``map.js``; they hold no text of a user."""
    changes = [
        [[int(at), int(now[at])] for at in np.flatnonzero(before != now)]
        for before, now in zip(drawn.labels[:-1], drawn.labels[1:], strict=True)
    ]
    return {
        "steps": drawn.steps,
        "prototypes": drawn.prototypes.tolist(),
        "columns": drawn.columns.tolist(),
        "first": drawn.labels[0].tolist(),
        "changes": changes,
        "colors": N_COLORS,
        "shapes": N_SHAPES,
    }
