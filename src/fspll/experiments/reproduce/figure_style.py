"""How rows look in every figure: colors that color-blind readers can tell apart, and labels.

Figures are made without pyplot, which keeps them in global state and may ask for a display.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fspll._common.errors import MissingPackageError
from fspll._common.pictures import open_picture
from fspll.experiments.reproduce.results import CEILING, DEFAULT, MAML_TOTAL, PHOTO_FEATURES, Row
from fspll.experiments.reproduce.tables import half_width
from fspll.experiments.statistics import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#222222", "#8a8a8a"

# The palette of Okabe and Ito, with a brown and an olive in place of its yellow, which is hard to
# see on white. A row with precise labels has the color of the row without.
_COLORS = {
    "FsPLL": "#0072B2",
    "FsPLL-nM": "#56B4E9",
    "PN": "#D55E00",
    "MAML": "#009E73",
    MAML_TOTAL: "#5B3A8C",
    "PL-AGGD": "#E69F00",
    "PALOC": "#CC79A7",
    "PL-ECOC": "#7A4B2A",
    "PL-LEAF": "#7F7F2A",
    DEFAULT: INK,
    CEILING: FAINT,
}
_CHARACTERS = 10.5  # of a title, per inch
BY_R = {1: "#0072B2", 2: "#E69F00", 3: "#009E73"}


class Picture(NamedTuple):
    """A figure with its name, for files, and a sentence that says what it shows."""

    name: str
    caption: str
    figure: Figure


class Look(NamedTuple):
    """How a row is drawn."""

    color: str
    marker: str
    line: Any
    width: float


def look(row: Row) -> Look:
    """Return the fixed look of a row."""
    name, features = row
    color = _COLORS.get(name.rstrip("+"), "#555555")
    if name == CEILING:
        return Look(color, "", (0, (5, 3)), 1.3)
    dashed = (0, (4, 1.5))
    if name == DEFAULT and features:  # apart from the same method on pixels
        return Look("#B2182B", "*", dashed if features == PHOTO_FEATURES[0] else "-", 1.8)
    if name == DEFAULT:
        return Look(color, "*", "-", 1.8)
    if features in ("untrained", PHOTO_FEATURES[0]):
        return Look(color, "X", dashed, 1.2)
    if features:
        return Look(color, "s", "-", 1.4)
    if name.endswith("+"):
        return Look(color, "^", "-", 1.6)
    return Look(color, "o", "-", 1.8 if name == "FsPLL" else 1.4)


def require_matplotlib() -> None:
    """Raise unless figures can be drawn; call it before hours of work, not after."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingPackageError("matplotlib", "plots", "drawing figures") from None


def new_figure(width: float, height: float, right: float = 1.0) -> Figure:
    """Return an empty figure, its size in inches, drawn up to a share of its width."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    figure.set_layout_engine("constrained", rect=(0, 0, right, 1))
    FigureCanvasAgg(figure)
    return figure


def file_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a png or pdf file; the same figure, the same bytes."""
    import matplotlib

    undated: dict[str, Any] = {"pdf": {"CreationDate": None, "ModDate": None}}
    engine = figure.get_layout_engine()
    if engine is not None:  # laid out once, not again for every kind of file
        engine.execute(figure)
        figure.set_layout_engine("none")
    file = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(file, format=kind, dpi=180, metadata=undated.get(kind, {}))
    return _smaller(file) if kind == "png" else file.getvalue()


def _smaller(png: io.BytesIO) -> bytes:
    """Return a PNG with a palette: a third of the bytes, and a few flat colors lose nothing."""
    from PIL import Image

    file = io.BytesIO()
    with open_picture(png, "the figure") as opened:
        image = opened.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    image.save(file, format="png", optimize=True)
    return file.getvalue()


def draw_curve(axes: Axes, row: Row, x: Sequence[float], found: Sequence[Summary]) -> Any:
    """Draw a row's means as a line with their 95% intervals; return the line for a legend."""
    style = look(row)
    means = [summary.mean for summary in found]
    order = {DEFAULT: 4, CEILING: 1}.get(row[0], 3)
    (line,) = axes.plot(
        x,
        means,
        color=style.color,
        linestyle=style.line,
        linewidth=style.width,
        marker=style.marker or None,
        markersize=8 if style.marker == "*" else 4.5,
        zorder=order,
    )
    if row[0] != CEILING:
        errors = [half_width(summary) for summary in found]
        axes.errorbar(
            x, means, errors, fmt="none", ecolor=style.color, elinewidth=1, alpha=0.6, zorder=order
        )
    return line


def tidy(axes: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Give axes their titles and leave out what says nothing."""
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8, length=3)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def add_title(figure: Figure, words: str) -> None:
    """Write what a figure shows above it, at its left edge, in as many lines as it takes."""
    lines = textwrap.fill(words, int(_CHARACTERS * figure.get_figwidth()))
    figure.suptitle(lines, fontsize=11, x=0.01, ha="left", color=INK)


def add_legend(figure: Figure, shown: dict[str, Any], where: Any, n_columns: int = 1) -> None:
    """Write what is drawn, by name, beside the axes of a figure."""
    handles, names = list(shown.values()), list(shown)
    figure.legend(handles, names, loc=where, ncols=n_columns, fontsize=8, frameon=False)


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]], x: float) -> None:
    """Write names beside the ends of lines, moved apart where they would overlap.

    Parameters
    ----------
    axes : Axes
        With its vertical limits set.
    ends : sequence of (height, name, color)
    x : float
        Where the lines end.
    """
    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    axes.set_xlim(left, right)  # what is drawn beside the axes must not widen them
    heights = spread([height for height, _, _ in ends], (high - low) * 0.09, low, high)
    step = (right - left) * 0.02
    for (height, name, color), where in zip(ends, heights, strict=True):
        leader = [x + 1.2 * step, x + 3 * step], [height, where]
        axes.plot(*leader, color=color, linewidth=0.6, clip_on=False)
        axes.text(x + 3.3 * step, where, name, fontsize=7.5, color=color, va="center")


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return heights at least ``gap`` apart, in the same order, near where they were.

    >>> spread([0.5, 0.52, 0.9], 0.1, 0, 1)
    [0.46, 0.56, 0.9]
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    # Neighbors that are too near form a cluster that sits around its own mean.
    clusters: list[list[int]] = []
    for i in order:
        clusters.append([i])
        while len(clusters) > 1 and (
            _bottom(clusters[-1], heights, gap, low, high)
            < _bottom(clusters[-2], heights, gap, low, high) + gap * len(clusters[-2]) - 1e-12
        ):
            last = clusters.pop()
            clusters[-1] += last
    moved = list(heights)
    for cluster in clusters:
        bottom = _bottom(cluster, heights, gap, low, high)
        for number, i in enumerate(cluster):
            moved[i] = round(bottom + number * gap, 9)
    return moved


def _bottom(
    cluster: Sequence[int], heights: Sequence[float], gap: float, low: float, high: float
) -> float:
    center = sum(heights[i] for i in cluster) / len(cluster)
    length = gap * (len(cluster) - 1)
    return max(low, min(high - length, center - length / 2))
