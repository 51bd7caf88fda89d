"""From measured parts to a page: tables in Markdown, plots, and the page of the docs."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import floor, log10
from pathlib import Path
from typing import Any

from bench_parts import PARTS
from bench_parts.rows import SHARE, Row
from fspll._common.files import write_beside
from fspll._common.words import counted

Report = dict[str, Any]
MARKS = "<!-- bench -->", "<!-- end bench -->"
COLORS = {"ours": "#4c72b0", "peer": "#c44e52", "limit": "0.4"}
PANELS = {  # title, and what the work is
    "fit": ("Fit", "samples (a hundredth as many classes)"),
    "tasks": ("Rectification, 30-way 5-shot", "tasks in one call"),
    "step": ("Training step", "Gflop of the convolutions (28x28 and 84x84)"),
}
NOT_MEASURED = "Not measured yet: `make bench` fills this in.\n"


def number(found: float) -> str:
    """Show three digits.

    >>> number(0.012345), number(1234.5), number(12.345), number(0.0), number(999.7)
    ('0.0123', '1,234', '12.3', '0', '1,000')
    """
    if found == 0:
        return "0"
    size = abs(found)
    if size >= 999.5:
        return f"{found:,.0f}"
    return f"{found:.{min(2 - floor(log10(size)), 6)}f}"


def times(row: Row) -> str:
    """Show a ratio with its range over the rounds."""
    if "difference" in row:
        return f"{row['difference']:+.3f}".replace("-", "−")
    if "ratio" not in row:
        return ""
    if "ratio_low" not in row:
        return number(row["ratio"])
    return f"{number(row['ratio'])} ({number(row['ratio_low'])}–{number(row['ratio_high'])})"


def figure(key: str) -> Callable[[Row], str]:
    """Show a figure with its unit."""

    def show(row: Row) -> str:
        if key not in row:
            return ""
        if row["unit"] == SHARE:
            return f"{row[key]:.3f}"
        return f"{number(row[key])} {row['unit']}".strip()

    return show


def percent(key: str) -> Callable[[Row], str]:
    """Show a share of a limit."""
    return lambda row: f"{row[key]:.0%}" if key in row else ""


COLUMNS: dict[str, Callable[[Row], str]] = {
    "what": lambda row: row["what"],
    "work": lambda row: row["work"] or "",
    "measured": figure("value"),
    "ours": figure("ours"),
    "peer": lambda row: row.get("peer", ""),
    "peer's": figure("theirs"),
    "times as fast, or difference": times,
    "limit": lambda row: row.get("limit", ""),
    "at the limit": figure("limit_value"),
    "our share of it": percent("share"),
    "peer's share of it": percent("their_share"),
}
WORDS = {"what", "work", "peer", "limit"}


def table(rows: list[Row]) -> str:
    """Return rows as Markdown, without the columns that none of them fills."""
    rows = [row for row in rows if "what" in row]
    if not rows:
        return ""
    shown = {name: [show(row) for row in rows] for name, show in COLUMNS.items()}
    shown = {name: cells for name, cells in shown.items() if any(cells)}
    lines = [list(shown), *map(list, zip(*shown.values(), strict=True))]
    text = [f"| {' | '.join(cells)} |" for cells in lines]
    text.insert(1, "|" + "".join("---|" if name in WORDS else "---:|" for name in shown))
    return "\n".join(text) + "\n"


def section(name: str, part: Report) -> str:
    """Return one part: what it measures, its table, and what is missing from it."""
    text = f"### {PARTS[name].title}\n\n{PARTS[name].about}\n\n"
    for shown in ("ours", "value"):
        rows = table([row for row in part["rows"] if shown in row])
        text += f"{rows}\n" if rows else ""
    for row in part["rows"]:
        if "missing" in row:
            text += f"Not measured: {row['missing']} ({row['reason']}).\n\n"
    if part["end"] != "done":
        text += f"The part ended early: {part['end']}.\n\n"
    return text


def body(report: Report, pictures: str) -> str:
    """Return all parts, and the plots, whose addresses begin with ``pictures``."""
    about = report["about"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    minutes = sum(part["seconds"] for part in report["parts"].values()) / 60
    text = (
        f"{counted(about['processors'], 'processor')} ({about['instructions']}), "
        f"{counted(about['threads'], 'thread')}; "
        f"{versions}. All parts took {number(minutes)} minutes.\n\n"
    )
    busy = max(part["busy"] or 0 for part in report["parts"].values())
    if busy > 0.3:
        text += (
            "The machine was not quiet: right before one of the parts, other programs used "
            f"{number(busy)} processors.\n\n"
        )
    if report["form"] == "short":
        text += "This is the short form, whose figures show only that everything runs.\n\n"
    text += "".join(section(name, part) for name, part in report["parts"].items())
    text += "### Plots\n\n"
    if any("curve" in row for row in rows_of(report)):
        text += f"![Seconds against work, both axes logarithmic]({pictures}.png)\n\n"
    if ratios_of(report):
        text += f"![How many times as fast as each peer]({pictures}-ratios.png)\n"
    return text


def page(report: Report) -> str:
    """Return the page beside the JSON file."""
    head = "# All benchmarks in a short form\n\nWritten by `make bench` ([what it measures]"
    return f"{head}(../docs/benchmarks.md)).\n\n{body(report, 'bench')}"


def fill(document: str, report: Report | None) -> str:
    """Put the tables between the marks of a page of the docs."""
    start, end = map(re.escape, MARKS)
    inside = NOT_MEASURED if report is None else body(report, "../results/bench")
    changed, count = re.subn(
        f"({start}\n).*?({end})", lambda found: found[1] + inside + found[2], document, flags=re.S
    )
    if count != 1:
        raise ValueError(f"the page needs one pair of marks, {MARKS[0]} and {MARKS[1]}")
    return changed


# -------------------------------------------------------------------- the plots


def draw(report: Report, out: Path) -> None:
    """Draw seconds against work to OUT.png, and ratios to peers to OUT-ratios.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    points = [row for row in rows_of(report) if "curve" in row]
    panels = [panel for panel in PANELS if any(row["panel"] == panel for row in points)]
    if panels:
        size = (5.5 * len(panels), 5)
        figure_, axes = plt.subplots(
            1, len(panels), figsize=size, layout="constrained", squeeze=False
        )
        for axis, panel in zip(axes[0], panels, strict=True):
            _draw_curves(axis, [row for row in points if row["panel"] == panel], *PANELS[panel])
        _save(figure_, out.with_suffix(".png"))
    ratios = ratios_of(report)
    if ratios:
        size = (9, 0.24 * len(ratios) + 1.2)
        figure_, axis = plt.subplots(figsize=size, layout="constrained")
        _draw_ratios(axis, ratios)
        _save(figure_, out.with_name(f"{out.name}-ratios.png"))
    plt.close("all")


def rows_of(report: Report) -> list[Row]:
    """Return the rows of all parts."""
    return [row for part in report["parts"].values() for row in part["rows"]]


def ratios_of(report: Report) -> list[Row]:
    """Return the rows with a ratio to a peer, without those that the curves show."""
    parts = [part for name, part in report["parts"].items() if name != "samples"]
    return [row for part in parts for row in part["rows"] if "ratio" in row]


def _save(drawn: Any, path: Path) -> None:
    with write_beside(path) as beside:
        drawn.savefig(beside, dpi=110, format="png")


def _draw_curves(axis: Any, points: list[Row], title: str, label: str) -> None:
    styles, dotted = iter(["o-", "s-", "^-", "o--", "s--", "^--"]), iter([".:", ".-."])
    for name in dict.fromkeys(row["curve"] for row in points):
        mine = sorted((r["work"], r["seconds"]) for r in points if r["curve"] == name)
        kind = next(r["kind"] for r in points if r["curve"] == name)
        style = next(dotted) if kind == "limit" else next(styles)
        axis.plot(*zip(*mine, strict=True), style, color=COLORS[kind], label=name)
    axis.set(xscale="log", yscale="log", title=title, xlabel=label, ylabel="seconds")
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)


def _draw_ratios(axis: Any, rows: list[Row]) -> None:
    names = [f"{row['what']} / {row['peer']}" for row in rows]
    values = [row["ratio"] for row in rows]
    colors = [COLORS["ours" if value >= 1 else "peer"] for value in values]
    axis.set_xscale("log")
    axis.barh(range(len(rows)), [value - 1 for value in values], left=1, color=colors)
    axis.set_yticks(range(len(rows)), names, fontsize=7)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.axvline(1, color="0.2", linewidth=0.8)
    axis.set(xlabel="times as fast as the peer (blue: ours is faster)")
    axis.grid(alpha=0.3, axis="x")
