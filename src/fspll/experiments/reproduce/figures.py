"""Figures of a grid, drawn with matplotlib (the extra ``plots``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fspll._common.words import spoken
from fspll.experiments.reproduce.figure_style import (
    BY_R,
    FAINT,
    INK,
    Picture,
    add_legend,
    add_title,
    draw_curve,
    label_ends,
    look,
    new_figure,
    require_matplotlib,
    tidy,
)
from fspll.experiments.reproduce.published import BEST_MANIFOLD_WEIGHT, best_n_neighbors
from fspll.experiments.reproduce.results import (
    CEILING,
    DEFAULT,
    DEFAULT_PLUS,
    MAML_TOTAL,
    MANY_SHOT,
    PARTIAL,
    PHOTO_FEATURES,
    PRECISE,
    Condition,
    Outcome,
    Row,
    in_order,
    label,
)
from fspll.experiments.reproduce.tables import half_width, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS: tuple[tuple[str, tuple[Row, ...]], ...] = (
    ("few-shot methods", tuple((name, "") for name in (*PARTIAL, MAML_TOTAL))),
    ("many-shot methods,\ntrained features", tuple((name, "trained") for name in MANY_SHOT)),
    ("many-shot methods,\nuntrained features", tuple((name, "untrained") for name in MANY_SHOT)),
    ("true labels in\nmeta-training", tuple((name, "") for name in (*PRECISE, DEFAULT_PLUS))),
)


def draw(outcome: Outcome) -> list[Picture]:
    """Draw the figures of an outcome; none where there is nothing to draw.

    For "omniglot" one figure per value of r, and ours against the paper's; for "mini-imagenet" one
    or two per value of r; one for "noise" and one for "parameters".
    """
    require_matplotlib()
    if not outcome.measured:
        return []
    if outcome.experiment == "noise":
        return _noise(outcome)
    if outcome.experiment == "parameters":
        return _parameters(outcome)
    rs = dict.fromkeys(condition.r for condition in outcome.conditions())
    if outcome.experiment == "mini-imagenet":
        return [picture for r in rs for picture in _against_shots(outcome, r)]
    return [_against_ways(outcome, r) for r in rs] + _against_paper(outcome)


# ---------------------------------------------------------------- accuracy against N2


def _against_ways(outcome: Outcome, r: int) -> Picture:
    """Panels: one column per K2, one line per kind of method; ours filled, the paper's hollow."""
    cells = outcome.measured
    rows = in_order({row: None for row, condition in cells if condition.r == r})
    shots = sorted({condition.n_shot for _, condition in cells if condition.r == r})
    ways = sorted({condition.n_way for _, condition in cells if condition.r == r})
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
            conditions = [Condition(r, n_way, n_shot) for n_way in ways]
            shows_paper |= _lines(axes, outcome, here, conditions)
            tidy(
                axes,
                f"{n_shot} samples per class (K2)" if i == 0 else "",
                "classes (N2)" if i == len(kinds) - 1 else "",
                f"{title}\naccuracy" if j == 0 else "",
            )
    paper = "; hollow marks and dotted lines: the paper's means" if shows_paper else ""
    marks = " (filled: ours; hollow: the paper's)" if shows_paper else ""
    add_title(figure, f"{outcome.dataset}, r = {r}{marks}")
    caption = (
        f"Accuracy against the number of classes, r = {r}, on {outcome.dataset}. Filled marks: "
    )
    return Picture(f"r{r}", f"{caption}ours, with 95% intervals{paper}.", figure)


def _lines(
    axes: Axes, outcome: Outcome, rows: Sequence[Row], conditions: Sequence[Condition]
) -> bool:
    """Draw rows over conditions at 0, 1, 2...; return whether the paper's are among them."""
    cells = outcome.measured
    ends, shows_paper = [], False
    for row in rows:
        style = look(row)
        there = [i for i, condition in enumerate(conditions) if (row, condition) in cells]
        theirs = {i: outcome.printed(row, conditions[i]) for i in there}
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
            found = [cells[row, conditions[i]].summary for i in there]
            draw_curve(axes, row, there, found)
            if there[-1] == len(conditions) - 1:
                ends.append((found[-1].mean, row[0], style.color))
    label_ends(axes, ends, len(conditions) - 1)
    return shows_paper


# ---------------------------------------------------------------- ours against the paper's


def _against_paper(outcome: Outcome) -> list[Picture]:
    points: dict[int, dict[Row, list[tuple[float, float]]]] = {}
    for (row, condition), cell in outcome.measured.items():
        paper = outcome.printed(row, condition)
        if paper is not None:
            of_r = points.setdefault(condition.r, {})
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
    legend = {label(row): shown[row] for row in in_order(shown)}
    add_legend(figure, legend, "outside right center")
    caption = (
        f"Our mean accuracy against the paper's on {outcome.dataset}, one mark per setting. "
        "Crosses: many-shot methods on the features of an untrained network."
    )
    return [Picture("against-paper", caption, figure)]


# ---------------------------------------------------------------- accuracy against K2


def _against_shots(outcome: Outcome, r: int) -> list[Picture]:
    """Four panels as in the paper, and again for the rows that would crowd them."""
    every = in_order({row: None for row, condition in outcome.measured if condition.r == r})
    rows = [row for row in every if row[1] not in PHOTO_FEATURES]
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
    frozen = [row for row in every if row[1] in PHOTO_FEATURES]
    if frozen:
        both = [*frozen, *(row for row in rows if row[0] in (DEFAULT, CEILING))]
        words = (
            "features of a frozen photo encoder, as it is (dashed) and adapted to the "
            "meta-training classes, beside the default from pixels"
        )
        pictures.append(_shot_panels(outcome, r, both, f"r{r}-features", words))
    return pictures


def _shot_panels(outcome: Outcome, r: int, rows: Sequence[Row], name: str, words: str) -> Picture:
    cells = {key: cell for key, cell in outcome.measured.items() if key[1].r == r}
    ways = sorted({condition.n_way for _, condition in cells})
    shots = sorted({condition.n_shot for _, condition in cells})
    figure = new_figure(8.6 if len(ways) > 1 else 5.4, 3.1 * ((len(ways) + 1) // 2) + 1)
    n_columns = min(2, len(ways))
    panels = figure.subplots((len(ways) + 1) // 2, n_columns, sharey=True, squeeze=False)
    shown: dict[Row, Any] = {}
    for spare in panels.flat[len(ways) :]:
        spare.set_visible(False)
    for number, n_way in enumerate(ways):
        axes = panels.flat[number]
        for row in rows:
            x = [k for k in shots if (row, Condition(r, n_way, k)) in cells]
            found = [cells[row, Condition(r, n_way, k)].summary for k in x]
            if x:
                shown[row] = draw_curve(axes, row, x, found)
        axes.axhline(1 / n_way, color=FAINT, linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1.03)
        axes.set_xticks(shots, [str(k) for k in shots])
        below = "samples per class (K2)" if number >= len(ways) - n_columns else ""
        tidy(axes, f"N2 = {n_way}", below, "" if number % n_columns else "accuracy")
    panels[0, 0].text(
        shots[-1], 1 / ways[0] - 0.015, "chance", fontsize=7, color=FAINT, va="top", ha="right"
    )
    legend = {label(row): shown[row] for row in rows if row in shown}
    longest = 0.5 + 0.065 * max(map(len, legend))  # inches, with the mark before it
    most = min(5, max(1, int(figure.get_figwidth() / longest)))
    n_columns = min((len(legend) + 1) // 2, most)
    add_legend(figure, legend, "outside lower center", n_columns)
    add_title(figure, f"{outcome.dataset}, r = {r}")
    caption = (
        f"Accuracy against the samples per class, r = {r}, on {outcome.dataset}: {words}. Bars: "
    )
    return Picture(name, f"{caption}95% intervals; dotted gray: chance.", figure)


# ---------------------------------------------------------------- the two smaller studies

_STAGES = (
    ("", "candidate sets\nthroughout"),
    ("+", "true labels in\nmeta-training (+)"),
    ("++", "true labels\nthroughout (++)"),
)


def _noise(outcome: Outcome) -> list[Picture]:
    """Draw PN and FsPLL with true labels nowhere, in meta-training, and everywhere, as bars."""
    cells = outcome.measured
    pictures: list[Picture] = []
    for condition in outcome.conditions():
        if not any((row, condition) in cells for row in (("PN", ""), ("FsPLL", ""))):
            continue
        figure = new_figure(6.2, 3.9)
        axes = figure.subplots()
        shown: dict[str, Any] = {}
        marks: dict[str, Any] = {}
        for number, base in enumerate(("PN", "FsPLL")):
            for group, (plus, _) in enumerate(_STAGES):
                row = (base + plus, "")
                x = group + (number - 0.5) * 0.38
                cell, paper = cells.get((row, condition)), outcome.printed(row, condition)
                if cell is None:
                    continue
                found = cell.summary
                bar = axes.bar(x, found.mean, 0.34, color=look(row).color, zorder=2)
                shown[base] = bar
                error = half_width(found)
                axes.errorbar(x, found.mean, error, fmt="none", ecolor=INK, elinewidth=1, zorder=4)
                top = max(found.mean + error, paper.mean if paper else 0)
                clear = 0.04 if paper and paper.mean + 0.02 > found.mean + error else 0.02
                axes.text(x, top + clear, share(found.mean), ha="center", fontsize=8, color=INK)
                if paper is not None:
                    mark = axes.plot(x, paper.mean, "D", color=INK, mfc="white", zorder=5)
                    marks["the paper's mean"] = mark[0]
        axes.set_xticks(range(3), [words for _, words in _STAGES])
        axes.set_ylim(0, 1.1)
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        title = f"{outcome.dataset}, {condition}"
        tidy(axes, title, "", "accuracy")
        add_legend(figure, shown | marks, "outside lower center", 3)
        caption = f"What true labels are worth to PN and FsPLL on {title}; bars: 95% intervals."
        name = "bars" if not pictures else f"bars-{len(pictures) + 1}"
        pictures.append(Picture(name, caption, figure))
    return pictures


def _parameters(outcome: Outcome) -> list[Picture]:
    """Draw accuracy against k and against lambda, one line per value of r, methods below."""
    sweeps = [
        (outcome.swept(name), x)
        for name, x in (
            ("n_neighbors", "neighbors (k)"),
            ("manifold_weight", "weight of the neighbors (λ)"),
        )
    ]
    sweeps = [(curves, x) for curves, x in sweeps if curves]
    if not sweeps:
        return []
    rows = in_order({key[0] for curves, _ in sweeps for key in curves})
    shapes = {key[2:] for curves, _ in sweeps for key in curves}
    figure = new_figure(4.4 * len(sweeps) + 0.3, 3.2 * len(rows) + 0.3, right=0.99)
    grid = figure.subplots(len(rows), len(sweeps), sharex="col", sharey="row", squeeze=False)
    for row, panels in zip(rows, grid, strict=True):
        own = [
            ({key: curve for key, curve in curves.items() if key[0] == row}, x)
            for curves, x in sweeps
        ]
        limits = _limits(curves for curves, _ in own)
        for axes, (curves, x) in zip(panels, own, strict=True):
            usual = {best_n_neighbors(key[3]) for key in curves}
            for value in usual if x.endswith("(k)") else {BEST_MANIFOLD_WEIGHT}:
                axes.axvline(value, color=FAINT, linewidth=0.9, linestyle=":", zorder=1)
            below = x if row == rows[-1] else ""
            tidy(axes, "", below, f"accuracy of {label(row)}" if axes is panels[0] else "")
            axes.set_ylim(*limits)
            _draw_sweep(axes, curves, several=len(shapes) > 1)
    n_way, n_shot = min(shapes)
    title = f"{outcome.dataset}, {n_way}-way {n_shot}-shot"
    names = spoken([label(row) for row in rows])
    add_title(figure, f"{names} on {title}")
    caption = (
        f"Accuracy of {names} on {title} against k (λ = {BEST_MANIFOLD_WEIGHT:g}) and against λ "
        "(k = K2 − 1); bands: 95% intervals; dotted: the paper's choice."
    )
    return [Picture("curves", caption, figure)]


def _draw_sweep(axes: Axes, curves: dict[Any, dict[float, Any]], *, several: bool) -> None:
    """Draw the curves of a method, by row, r, N2 and K2; the latter are named where several are."""
    ends = []
    for (_, r, n_way, n_shot), curve in curves.items():
        color = BY_R.get(r, FAINT)
        values = list(curve)
        means = [summary.mean for summary in curve.values()]
        errors = [half_width(summary) for summary in curve.values()]
        axes.plot(values, means, color=color, marker="o", markersize=4, linewidth=1.5)
        bands = zip(means, errors, strict=True)
        low, high = zip(*((mean - e, mean + e) for mean, e in bands), strict=True)
        axes.fill_between(values, low, high, color=color, alpha=0.15, linewidth=0)
        name = f"r = {r}" + (f", {n_way}/{n_shot}" if several else "")
        ends.append((means[-1], values[-1], name, color))
    if ends:
        label_ends(axes, [(end[0], end[2], end[3]) for end in ends], max(end[1] for end in ends))


def _limits(all_curves: Iterable[dict[Any, Any]]) -> tuple[float, float]:
    """Return limits that show small differences, in steps of a tenth."""
    means = [s.mean for curves in all_curves for curve in curves.values() for s in curve.values()]
    return max(0.0, int(10 * min(means) - 0.3) / 10), min(1.03, int(10 * max(means) + 1.3) / 10)
