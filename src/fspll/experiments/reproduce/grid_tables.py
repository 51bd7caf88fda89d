"""Tables of a grid, written as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io

import numpy as np

from fspll.experiments.reproduce.grid_layout import Entry, GridTable, note
from fspll.experiments.reproduce.grid_rows import in_order, measured, printed, share
from fspll.experiments.reproduce.outcomes import Outcome


def markdown(table: GridTable, outcome: Outcome) -> str:
    """Return a table as Markdown, with a heading and a note."""
    head = [table.corner, *(", ".join(filter(None, column)) for column in table.columns)]
    lines = [f"### {table.title}", "", "| " + " | ".join(head) + " |"]
    lines.append("|---|" + "---:|" * len(table.columns))
    lines += [
        "| " + " | ".join([line.label, *map(_markdown_entry, line.entries)]) + " |"
        for group in table.groups
        for line in group
    ]
    return "\n".join([*lines, "", note(table, outcome)]) + "\n"


def _markdown_entry(entry: Entry) -> str:
    return _entry(entry, "**{}**", " ± {}", " ({})")


def _entry(entry: Entry, bold: str, interval: str, paper: str) -> str:
    text = share(None if entry.ours is None else entry.ours.mean)
    if entry.ours is not None:
        text = bold.format(text) if entry.best else text
        text += interval.format(share(entry.ours.half_width))
    return text if entry.paper is None else text + paper.format(share(entry.paper.mean))


# ---------------------------------------------------------------- LaTeX

_TEX = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "λ": r"$\lambda$",
    "−": "$-$",
    "<": "$<$",
    ">": "$>$",
}


def tex(text: str) -> str:
    r"""Return text with what LaTeX would take for a command made harmless.

    >>> tex("50% of a_b ± 1")
    '50\\% of a\\_b $\\pm$ 1'
    """
    escaped = "".join(_TEX.get(character, character) for character in text)
    return escaped.replace("N2", "$N_2$").replace("K2", "$K_2$")


def latex(table: GridTable, outcome: Outcome) -> str:
    """Return a table as LaTeX; the document needs the package booktabs."""
    spans: list[tuple[str, int]] = []
    for top, _ in table.columns:
        if spans and spans[-1][0] == top:
            spans[-1] = top, spans[-1][1] + 1
        else:
            spans.append((top, 1))
    lines = [
        r"\begin{table*}[tb]",
        r"\centering\scriptsize\setlength{\tabcolsep}{2.5pt}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
    ]
    if any(top for top, _ in spans):
        lines.append(
            "".join(rf" & \multicolumn{{{width}}}{{c}}{{{tex(top)}}}" for top, width in spans)
            + r" \\"
        )
        first = 2
        rules = ""
        for _, width in spans:
            rules += rf"\cmidrule(lr){{{first}-{first + width - 1}}}"
            first += width
        lines.append(rules)
    lines.append(" & ".join([tex(table.corner), *(tex(own) for _, own in table.columns)]) + r" \\")
    for group in table.groups:
        lines.append(r"\midrule")
        lines += [
            " & ".join([tex(line.label), *map(_latex_entry, line.entries)]) + r" \\"
            for line in group
        ]
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{tex(table.title)}. {tex(note(table, outcome))}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _latex_entry(entry: Entry) -> str:
    return _entry(entry, r"\textbf{{{}}}", r"$\pm${}", r" ({})").replace("–", "--")


# ---------------------------------------------------------------- CSV

COLUMNS = (
    *("experiment", "dataset", "profile", "row", "features"),
    *("r", "n_way", "n_shot", "n_neighbors", "manifold_weight", "n_tasks"),
    *("mean", "std", "half_width", "support_mean", "seconds", "paper_mean", "paper_std"),
)


def csv_text(outcome: Outcome) -> str:
    """Return all figures of an outcome as CSV, a line a cell, in the order of settings and rows."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    cells = measured(outcome)
    rows = in_order({row: None for row, _ in cells})
    for place in outcome.places():
        for row in rows:
            if (row, place) not in cells:
                continue
            cell = cells[row, place]
            ours, paper = cell.summary, printed(outcome, row, place)
            support = float(np.mean(cell.support)) if len(cell.support) else float("nan")
            figures = (ours.mean, ours.std, ours.half_width, support, cell.seconds)
            writer.writerow(
                [outcome.experiment, outcome.dataset, outcome.profile, *row]
                + [place.r, place.n_way, place.n_shot, place.n_neighbors, place.manifold_weight]
                + [ours.n_tasks, *(_number(value) for value in figures)]
                + ([paper.mean, paper.std] if paper else ["", ""])
            )
    return file.getvalue()


def _number(value: float) -> str:
    """Return a figure with six digits, nothing for not-a-number."""
    return "" if np.isnan(value) else f"{value:.6g}"
