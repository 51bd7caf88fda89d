"""A map of the samples, with prototypes that move from round to round: one drawing in the page.

Shapes: n samples, l classes, m features, T rounds, p samples and q classes that are drawn.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from fspll._common.html.elements import Html, join, tag
from fspll.labeling import Labeling
from fspll.labeling.report.map_names import sides
from fspll.labeling.report.map_script import SCRIPT
from fspll.labeling.report.plane import Plane, find_plane
from fspll.labeling.report.words import counted, percent, shorten, void

MOST_POINTS = 3000
MOST_PROTOTYPES = 100
MOST_STEPS = 40
_NAMED = 24  # prototypes, up to which their names fit into the map
N_COLORS, N_SHAPES = 7, 8  # without a common factor: 56 looks before one comes again
_WIDTH, _LEAST_HEIGHT, _MOST_HEIGHT, _EDGE = 900.0, 240.0, 620.0, 34.0
_SEED = 0
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


def draw_map(result: Labeling) -> Html:
    """Return the map with its legend, its caption and, where rounds are known, its slider."""
    top = chosen_columns(result)
    rows = _chosen_rows(result)
    features = np.asarray(result.features[rows], dtype=float)
    plane = find_plane(features, top[rows])
    drawn = _drawn(result, rows, features, plane, top)
    several = len(drawn.steps) > 1
    return join(
        [
            _controls(drawn.steps) if several else "",
            tag("div", _drawing(result, drawn), class_="map"),
            _legend(result, np.bincount(top, minlength=len(result.classes))),
            tag("p", _caption(result, drawn, plane), class_="soft"),
            _behavior(drawn) if several or len(result.classes) > 1 else "",
        ]
    )


def chosen_columns(result: Labeling) -> np.ndarray:
    """Return the column of every sample's label, of shape (n,)."""
    column = {label: number for number, label in enumerate(result.classes.tolist())}
    return np.array([column[label] for label in result.labels.tolist()])


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
        # One direction: samples are spread evenly over the height, only to lie side by side.
        spread = np.ptp(flat[:, 0]) * 0.2 or 1.0
        flat = np.column_stack([flat[:, 0], spread * ((0.618034 * np.arange(len(flat))) % 1)])
        moving[..., 1] = spread / 2
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


def _look(column: int) -> tuple[str, str]:
    return f"#m{column % N_SHAPES}", f"k{column % N_COLORS}"


def _drawing(result: Labeling, drawn: Drawn) -> Html:
    shapes = (tag("path", id=f"m{number}", d=d) for number, d in enumerate(_SHAPES))
    parts = [
        tag("defs", *shapes),
        tag("g", *_points(result, drawn), class_="points"),
        tag("g", *_trails(drawn), class_="trails"),
        tag("g", *_prototypes(result, drawn), class_="protos"),
        tag("g", *_names(result, drawn), class_="names"),
    ]
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {_WIDTH:g} {drawn.height:.0f}",
        role="img",
        aria_label=f"Map of {len(drawn.rows)} samples, by label",
    )


def _points(result: Labeling, drawn: Drawn) -> list[Html]:
    undecided = {one.index for one in result.undecided}
    made = []
    for row, (x, y), column in zip(drawn.rows, drawn.points, drawn.labels[-1], strict=True):
        shape, color = _look(int(column))
        words = (
            f"{shorten(result.names[row])}: {shorten(result.labels[row], 30)}, "
            f"{percent(float(result.confidence[row]), 0)} sure"
        )
        kind = f"{color} open" if int(row) in undecided else color
        made.append(
            tag("use", tag("title", words), href=shape, x=f"{x:g}", y=f"{y:g}", class_=kind)
        )
    return made


def _trails(drawn: Drawn) -> list[Html]:
    return [
        tag(
            "polyline",
            points=" ".join(f"{x:g},{y:g}" for x, y in drawn.prototypes[:, place]),
            class_=_look(int(column))[1],
        )
        for place, column in enumerate(drawn.columns)
    ]


def _prototypes(result: Labeling, drawn: Drawn) -> list[Html]:
    made = []
    for place, column in enumerate(drawn.columns):
        shape, color = _look(int(column))
        x, y = drawn.prototypes[-1, place]
        label = result.classes[column]
        made.append(
            tag(
                "g",
                tag("title", f"prototype of {shorten(label)}"),
                tag("use", href=shape, transform="scale(2)"),
                class_=color,
                style=_at(x, y),
            )
        )
    return made


def _at(x: float, y: float) -> str:
    return f"transform:translate({x:g}px,{y:g}px)"


def _names(result: Labeling, drawn: Drawn) -> list[Html]:
    if len(drawn.columns) > _NAMED:
        return []
    words = [shorten(label, 18) for label in result.classes[drawn.columns].tolist()]
    where = drawn.prototypes[-1]
    return [
        tag("g", tag("text", word, x=f"{dx:g}", y=f"{dy:g}"), style=_at(x, y))
        for word, (x, y), (dx, dy) in zip(words, where, sides(words, where), strict=True)
    ]


def _legend(result: Labeling, size: np.ndarray) -> Html:
    order = (
        np.argsort(-size, kind="stable") if len(size) > MOST_PROTOTYPES else np.arange(len(size))
    )
    shown = order[:MOST_PROTOTYPES]
    items = []
    for column in shown:
        shape, color = _look(int(column))
        mark = tag("svg", tag("use", href=shape), viewBox="-8 -8 16 16", class_=color)
        count = tag("i", f"{size[column]:,}")
        words = tag("span", shorten(result.classes[column], 30))
        items.append(tag("li", mark, words, count, data_column=int(column)))
    if len(order) > len(shown):
        items.append(tag("li", f"and {len(order) - len(shown):,} more labels"))
    return tag("ul", *items, class_="legend")


def _caption(result: Labeling, drawn: Drawn, plane: Plane) -> str:
    said = [
        "Each small mark is a sample; the closer two lie, the more alike the encoder finds them."
    ]
    if plane.is_line:
        said.append("The features vary in one direction only: height means nothing here.")
    elif plane.by_classes:
        said.append(
            "The view is along the two directions in which the class means differ most, so classes "
            "look somewhat more apart than they are."
        )
    else:
        said.append("The view is along the two directions in which the samples vary most.")
    said.append("Hollow marks are not settled.")
    said.append("Large marks are prototypes, the means of the classes")
    said[-1] += ", with the way they came." if len(drawn.steps) > 1 else "."
    if len(drawn.rows) < len(result):
        said.append(
            f"Only {len(drawn.rows):,} of {counted(len(result), 'sample')} are drawn: those of the "
            f"review list, and others chosen at random."
        )
    if len(drawn.columns) == MOST_PROTOTYPES < len(result.classes):
        said.append(f"Prototypes of the {MOST_PROTOTYPES} most frequent labels are drawn.")
    if len(result.classes) > N_COLORS * N_SHAPES:
        said.append("Some labels share a mark; point at a sample to read its label.")
    if result.rounds is None:
        said.append("There are too many samples to keep how prototypes moved.")
    return " ".join(said)


# -------------------------------------------------------------------- what moves


def _controls(steps: list[str]) -> Html:
    """Return a button and a slider, which a reader without scripts never sees."""
    last = len(steps) - 1
    slider = void("input", type="range", min=0, max=last, value=last, aria_label="round")
    play = tag("button", "Play", type="button")
    return Html(tag("div", play, slider, tag("output", "result"), class_="steps", hidden=""))


def _behavior(drawn: Drawn) -> Html:
    """Return the positions of all steps, which hold no text of a user, and the script."""
    changes = [
        [[int(at), int(now[at])] for at in np.flatnonzero(before != now)]
        for before, now in zip(drawn.labels[:-1], drawn.labels[1:], strict=True)
    ]
    data = {
        "steps": drawn.steps,
        "prototypes": drawn.prototypes.tolist(),
        "columns": drawn.columns.tolist(),
        "first": drawn.labels[0].tolist(),
        "changes": changes,
        "colors": N_COLORS,
        "shapes": N_SHAPES,
    }
    numbers = json.dumps(data, separators=(",", ":"))
    return Html(
        f'<script type="application/json" id="map-data">{numbers}</script><script>{SCRIPT}</script>'
    )
