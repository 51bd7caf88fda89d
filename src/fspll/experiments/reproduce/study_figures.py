"""Figures of the two smaller studies: noise, and the parameters k and lambda."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fspll.experiments.reproduce.figure_style import (
    BY_R,
    FAINT,
    INK,
    Picture,
    label_ends,
    look,
    new_figure,
    tidy,
)
from fspll.experiments.reproduce.grid_layout import swept
from fspll.experiments.reproduce.grid_rows import half_width, label, measured, printed, share
from fspll.experiments.reproduce.outcomes import Outcome
from fspll.experiments.reproduce.published import BEST_MANIFOLD_WEIGHT, best_n_neighbors

_STAGES = (
    ("", "candidate sets\nthroughout"),
    ("+", "true labels in\nmeta-training (+)"),
    ("++", "true labels\nthroughout (++)"),
)


def noise(outcome: Outcome) -> list[Picture]:
    """Draw PN and FsPLL with true labels nowhere, in meta-training, and everywhere, as bars."""
    cells = measured(outcome)
    pictures: list[Picture] = []
    for place in outcome.places():
        if not any((row, place) in cells for row in (("PN", ""), ("FsPLL", ""))):
            continue
        figure = new_figure(6.2, 3.9)
        axes = figure.subplots()
        shown: dict[str, Any] = {}
        marks: dict[str, Any] = {}
        for number, base in enumerate(("PN", "FsPLL")):
            for group, (plus, _) in enumerate(_STAGES):
                row = (base + plus, "")
                x = group + (number - 0.5) * 0.38
                cell, paper = cells.get((row, place)), printed(outcome, row, place)
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
        title = f"{outcome.dataset}, {place.n_way}-way {place.n_shot}-shot, r = {place.r}"
        tidy(axes, title, "", "accuracy")
        shown |= marks
        figure.legend(
            list(shown.values()),
            list(shown),
            loc="outside lower center",
            ncols=3,
            fontsize=8,
            frameon=False,
        )
        caption = f"What true labels are worth to PN and FsPLL on {title}; bars: 95% intervals."
        name = "bars" if not pictures else f"bars-{len(pictures) + 1}"
        pictures.append(Picture(name, caption, figure))
    return pictures


def parameters(outcome: Outcome) -> list[Picture]:
    """Draw accuracy against k and against lambda, a line a value of r."""
    sweeps = [
        (swept(outcome, name), x)
        for name, x in (
            ("n_neighbors", "neighbors (k)"),
            ("manifold_weight", "weight of the neighbors (λ)"),
        )
    ]
    sweeps = [(curves, x) for curves, x in sweeps if curves]
    if not sweeps:
        return []
    figure = new_figure(4.4 * len(sweeps) + 0.3, 3.5)
    panels = figure.subplots(1, len(sweeps), sharey=True, squeeze=False)[0]
    several = len({(row, n, k) for curves, _ in sweeps for row, _, n, k in curves}) > 1
    for axes, (curves, x) in zip(panels, sweeps, strict=True):
        ends = []
        for (row, r, n_way, n_shot), curve in curves.items():
            color = BY_R.get(r, FAINT)
            values = list(curve)
            means = [summary.mean for summary in curve.values()]
            errors = [half_width(summary) for summary in curve.values()]
            axes.plot(values, means, color=color, marker="o", markersize=4, linewidth=1.5)
            bands = zip(means, errors, strict=True)
            low, high = zip(*((mean - e, mean + e) for mean, e in bands), strict=True)
            axes.fill_between(values, low, high, color=color, alpha=0.15, linewidth=0)
            name = f"r = {r}" + (f", {label(row)} {n_way}/{n_shot}" if several else "")
            ends.append((means[-1], values[-1], name, color))
            usual = best_n_neighbors(n_shot) if x.endswith("(k)") else BEST_MANIFOLD_WEIGHT
            axes.axvline(usual, color=FAINT, linewidth=0.9, linestyle=":", zorder=1)
        tidy(axes, "", x, "accuracy" if axes is panels[0] else "")
        axes.set_ylim(*_limits(curves for curves, _ in sweeps))
        label_ends(axes, [(end[0], end[2], end[3]) for end in ends], max(end[1] for end in ends))
    curves = sweeps[0][0]
    _, _, n_way, n_shot = next(iter(curves))
    title = f"{outcome.dataset}, {n_way}-way {n_shot}-shot"
    figure.suptitle(f"FsPLL on {title}", fontsize=11, x=0.01, ha="left", color=INK)
    caption = (
        f"FsPLL's accuracy on {title} against k (λ = {BEST_MANIFOLD_WEIGHT:g}) and against λ "
        "(k = K2 − 1); bands: 95% intervals; dotted: the paper's choice."
    )
    return [Picture("curves", caption, figure)]


def _limits(all_curves: Iterable[dict[Any, Any]]) -> tuple[float, float]:
    """Return limits that show small differences, in steps of a tenth."""
    means = [s.mean for curves in all_curves for curve in curves.values() for s in curve.values()]
    return max(0.0, int(10 * min(means) - 0.3) / 10), min(1.03, int(10 * max(means) + 1.3) / 10)
