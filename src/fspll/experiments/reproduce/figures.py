"""Figures of a grid, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fspll.experiments.reproduce.figure_style import (
    FAINT,
    INK,
    Picture,
    draw_curve,
    label_ends,
    look,
    new_figure,
    render,
    require_matplotlib,
    tidy,
)
from fspll.experiments.reproduce.grid_rows import (
    PARTIAL,
    PRECISE,
    Row,
    in_order,
    label,
    measured,
    printed,
)
from fspll.experiments.reproduce.outcomes import Outcome, Place
from fspll.experiments.reproduce.rows import CEILING, DEFAULT, MANY_SHOT
from fspll.experiments.reproduce.study_figures import noise, parameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Picture", "draw", "render", "require_matplotlib"]

_PANELS: tuple[tuple[str, tuple[Row, ...]], ...] = (
    ("few-shot methods", tuple((name, "") for name in PARTIAL)),
    ("many-shot methods,\ntrained features", tuple((name, "trained") for name in MANY_SHOT)),
    ("many-shot methods,\nuntrained features", tuple((name, "untrained") for name in MANY_SHOT)),
    ("true labels in\nmeta-training", tuple((name, "") for name in PRECISE)),
)


def draw(outcome: Outcome) -> list[Picture]:
    """Draw the figures of an outcome; none where there is nothing to draw.

    For "omniglot" a figure a value of r, and ours against the paper's; for "mini-imagenet" one or
    two a value of r; one for "noise" and one for "parameters".
    """
    require_matplotlib()
    if not measured(outcome):
        return []
    if outcome.experiment == "noise":
        return noise(outcome)
    if outcome.experiment == "parameters":
        return parameters(outcome)
    rs = dict.fromkeys(place.r for place in outcome.places())
    if outcome.experiment == "mini-imagenet":
        return [picture for r in rs for picture in _against_shots(outcome, r)]
    return [_against_ways(outcome, r) for r in rs] + _against_paper(outcome)


# ---------------------------------------------------------------- accuracy against N2


def _against_ways(outcome: Outcome, r: int) -> Picture:
    """Panels: a column of them a K2, a line a kind of method; ours filled, the paper's hollow."""
    cells = measured(outcome)
    rows = in_order({row: None for row, place in cells if place.r == r})
    shots = sorted({place.n_shot for _, place in cells if place.r == r})
    ways = sorted({place.n_way for _, place in cells if place.r == r})
    kinds = [(title, known) for title, known in _PANELS if set(known) & set(rows)]
    kinds = kinds or [("", tuple(rows))]
    figure = new_figure(4.6 * len(shots) + 0.4, 2.4 * len(kinds) + 0.7)
    grid = figure.subplots(len(kinds), len(shots), sharex=True, sharey=True, squeeze=False)
    shows_paper = False
    for i, (title, known) in enumerate(kinds):
        here = [row for row in rows if row in known or row[0] in (DEFAULT, CEILING)]
        for j, n_shot in enumerate(shots):
            axes = grid[i, j]
            axes.set_ylim(0, 1.03)
            axes.set_xlim(-0.2, len(ways) - 0.8)
            axes.set_xticks(range(len(ways)), [str(n_way) for n_way in ways])
            places = [Place(r, n_way, n_shot) for n_way in ways]
            shows_paper |= _lines(axes, outcome, here, places)
            tidy(
                axes,
                f"{n_shot} samples a class (K2)" if i == 0 else "",
                "classes (N2)" if i == len(kinds) - 1 else "",
                f"{title}\naccuracy" if j == 0 else "",
            )
    paper = "; hollow marks and dotted lines: the paper's means" if shows_paper else ""
    marks = " (filled: ours; hollow: the paper's)" if shows_paper else ""
    title = f"{outcome.dataset}, r = {r}{marks}"
    figure.suptitle(title, fontsize=11, x=0.01, ha="left", color=INK)
    caption = (
        f"Accuracy against the number of classes, r = {r}, on {outcome.dataset}. Filled marks: "
    )
    return Picture(f"r{r}", f"{caption}ours, with 95% intervals{paper}.", figure)


def _lines(axes: Axes, outcome: Outcome, rows: Sequence[Row], places: Sequence[Place]) -> bool:
    """Draw rows over places that stand at 0, 1, 2...; return whether the paper's are among them."""
    cells = measured(outcome)
    ends, shows_paper = [], False
    for row in rows:
        style = look(row)
        there = [i for i, place in enumerate(places) if (row, place) in cells]
        theirs = {i: printed(outcome, row, places[i]) for i in there}
        known = {i: paper.mean for i, paper in theirs.items() if paper is not None}
        if known:
            shows_paper = True
            axes.plot(
                list(known),
                list(known.values()),
                color=style.color,
                marker=style.marker,
                markersize=5.5,
                markerfacecolor="white",
                linestyle=(0, (1, 2)),
                linewidth=1,
                alpha=0.75,
                zorder=2,
            )
        if there:
            found = [cells[row, places[i]].summary for i in there]
            draw_curve(axes, row, there, found)
            if there[-1] == len(places) - 1:
                ends.append((found[-1].mean, row[0], style.color))
    label_ends(axes, ends, len(places) - 1)
    return shows_paper


# ---------------------------------------------------------------- ours against the paper's


def _against_paper(outcome: Outcome) -> list[Picture]:
    points: dict[int, dict[Row, list[tuple[float, float]]]] = {}
    for (row, place), cell in measured(outcome).items():
        paper = printed(outcome, row, place)
        if paper is not None:
            of_r = points.setdefault(place.r, {})
            of_r.setdefault(row, []).append((paper.mean, cell.summary.mean))
    if not points:
        return []
    figure = new_figure(3.6 * len(points) + 2.6, 3.9)
    panels = figure.subplots(1, len(points), sharex=True, sharey=True, squeeze=False)[0]
    shown: dict[Row, Any] = {}
    for axes, r in zip(panels, sorted(points), strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, zorder=1)
        for row in in_order(points[r]):
            style = look(row)
            theirs, ours = zip(*points[r][row], strict=True)
            shown[row] = axes.scatter(
                theirs,
                ours,
                s=30,
                marker=style.marker,
                color=style.color,
                edgecolors="white",
                linewidths=0.5,
                zorder=3,
            )
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_aspect("equal")
        axes.text(0.03, 0.95, "ours higher", fontsize=8, color=FAINT, va="top")
        axes.text(0.99, 0.03, "paper's higher", fontsize=8, color=FAINT, ha="right")
        tidy(axes, f"r = {r}", "the paper's mean", "our mean" if axes is panels[0] else "")
    rows = in_order(shown)
    figure.legend(
        [shown[row] for row in rows],
        [label(row) for row in rows],
        loc="outside right center",
        fontsize=8,
        frameon=False,
    )
    caption = (
        f"Our mean accuracy against the paper's on {outcome.dataset}, a mark a setting. Crosses: "
        "many-shot methods on the features of an untrained network."
    )
    return [Picture("against-paper", caption, figure)]


# ---------------------------------------------------------------- accuracy against K2


def _against_shots(outcome: Outcome, r: int) -> list[Picture]:
    """Four panels as in the paper, and again for the rows that would crowd them."""
    rows = in_order({row: None for row, place in measured(outcome) if place.r == r})
    crowd = [row for row in rows if row[1] == "untrained" or row[0].endswith("+")]
    main = [row for row in rows if row not in crowd]
    pictures = []
    if main:
        words = "many-shot methods on trained features"
        pictures.append(_shot_panels(outcome, r, main, f"r{r}", words))
    if crowd:
        both = [row for row in rows if row in crowd or row[0] in ("FsPLL", DEFAULT, CEILING)]
        words = (
            "rows with true labels in meta-training, and many-shot methods on untrained features"
        )
        pictures.append(_shot_panels(outcome, r, both, f"r{r}-more", words))
    return pictures


def _shot_panels(outcome: Outcome, r: int, rows: Sequence[Row], name: str, words: str) -> Picture:
    cells = {key: cell for key, cell in measured(outcome).items() if key[1].r == r}
    ways = sorted({place.n_way for _, place in cells})
    shots = sorted({place.n_shot for _, place in cells})
    figure = new_figure(8.6 if len(ways) > 1 else 5.4, 3.1 * ((len(ways) + 1) // 2) + 1)
    n_columns = min(2, len(ways))
    panels = figure.subplots((len(ways) + 1) // 2, n_columns, sharey=True, squeeze=False)
    shown: dict[Row, Any] = {}
    for spare in panels.flat[len(ways) :]:
        spare.set_visible(False)
    for number, n_way in enumerate(ways):
        axes = panels.flat[number]
        for row in rows:
            x = [k for k in shots if (row, Place(r, n_way, k)) in cells]
            found = [cells[row, Place(r, n_way, k)].summary for k in x]
            if x:
                shown[row] = draw_curve(axes, row, x, found)
        axes.axhline(1 / n_way, color=FAINT, linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1.03)
        axes.set_xticks(shots, [str(k) for k in shots])
        below = "samples a class (K2)" if number >= len(ways) - n_columns else ""
        tidy(axes, f"N2 = {n_way}", below, "" if number % n_columns else "accuracy")
    panels[0, 0].text(
        shots[-1], 1 / ways[0] - 0.015, "chance", fontsize=7, color=FAINT, va="top", ha="right"
    )
    order = [row for row in rows if row in shown]
    figure.legend(
        [shown[row] for row in order],
        [label(row) for row in order],
        loc="outside lower center",
        ncols=min((len(order) + 1) // 2, 5 if len(ways) > 1 else 3),
        fontsize=8,
        frameon=False,
    )
    figure.suptitle(f"{outcome.dataset}, r = {r}", fontsize=11, x=0.01, ha="left", color=INK)
    caption = (
        f"Accuracy against the samples a class, r = {r}, on {outcome.dataset}: {words}. Bars: "
    )
    return Picture(name, f"{caption}95% intervals; dotted gray: chance.", figure)
