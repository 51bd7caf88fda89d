"""Tables of a grid: which lines, which columns, what is best; as Markdown, LaTeX and CSV.

A table has one line per row of the grid, in the paper's order and groups, and one column per
condition. A cell is our mean with the half-width of its 95% interval, beside the paper's mean where
it prints one. The best of the paper's rows within a group is bold, and so is the best on the same
features of a frozen encoder; our own rows and the ceiling stand apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from fspll.experiments.reproduce.published import Printed
from fspll.experiments.reproduce.results import (
    PHOTO_FEATURES,
    Condition,
    Outcome,
    in_groups,
    in_order,
    is_of_the_paper,
    label,
)
from fspll.experiments.statistics import Summary
from fspll.experiments.tables import csv_lines

# -------------------------------------------------------------------- numbers as the paper has them

NOTHING = "–"


def share(value: float | None, digits: int = 3) -> str:
    """Return an accuracy as the paper writes it, a dash where there is none.

    >>> share(0.8921), share(1.0), share(-0.05), share(None)
    ('.892', '1.000', '-.050', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def signed(value: float | None) -> str:
    """Return a difference of accuracies with its sign.

    >>> signed(0.0312), signed(-0.2), signed(0.0001)
    ('+.031', '−.200', '±.000')
    """
    if value is None or math.isnan(value):
        return NOTHING
    text = share(abs(value))
    if text == ".000":
        return "±.000"
    return ("+" if value > 0 else "−") + text


def p_value(p: float) -> str:
    """Return a p-value: three places, or its size where that would be nothing.

    >>> p_value(0.0314), p_value(3.2e-9), p_value(0.0)
    ('.031', '3e-09', '0')
    """
    return share(p) if p >= 0.001 else f"{p:.0e}" if p > 0 else "0"


def half_width(summary: Summary | None) -> float:
    """Return the half-width of the mean's interval, 0 where one task has none."""
    if summary is None or math.isnan(summary.half_width):
        return 0.0
    return summary.half_width


# -------------------------------------------------------------------- layout


class Entry(NamedTuple):
    """A cell: what we measured and what the paper prints, None where there is nothing."""

    ours: Summary | None
    paper: Printed | None
    best: bool = False


Line = tuple[str, tuple[Entry, ...]]
"""A row's name and its cells."""


@dataclass(frozen=True)
class Table:
    """A table before it is written.

    Attributes
    ----------
    name : str
        Short, for labels and file names: "omniglot-r1".
    title : str
    corner : str
        What the lines are.
    columns : tuple of (str, str)
        Heading of each column: what it shares with its neighbors (may be empty), and its own.
    groups : tuple of tuple of Line
    """

    name: str
    title: str
    corner: str
    columns: tuple[tuple[str, str], ...]
    groups: tuple[tuple[Line, ...], ...]

    @property
    def has_paper(self) -> bool:
        """Whether any cell has a figure of the paper."""
        return any(e.paper for group in self.groups for _, entries in group for e in entries)

    @property
    def n_tasks(self) -> list[int]:
        """The numbers of tasks behind the cells, each once."""
        found = [e.ours for group in self.groups for _, entries in group for e in entries]
        return sorted({summary.n_tasks for summary in found if summary is not None})

    @property
    def spans(self) -> list[tuple[str, int]]:
        """What neighboring columns share, and how many of them."""
        shared = groupby(shared for shared, _ in self.columns)
        return [(heading, len(list(same))) for heading, same in shared]


def note(table: Table, outcome: Outcome, where: str = "in brackets") -> str:
    """Return a sentence on what the cells are and what they were measured on."""
    tasks = " or ".join(f"{n:,}" for n in table.n_tasks) or "no"
    words = f"Tasks of {outcome.dataset}, {tasks} per cell, profile {outcome.profile}: "
    words += "mean accuracy ± half-width of its 95% interval"
    words += f", and {where} the paper's mean." if table.has_paper else "."
    if any(entry.best for group in table.groups for _, line in group for entry in line):
        # Tables of parameters compare along a line, all others down a column.
        words += " Bold: the best of "
        words += "the rows that can be compared." if table.corner else "its line."
    return words


def lay_out(outcome: Outcome) -> list[Table]:
    """Return the tables of an outcome: those the paper has, or would have for its figures.

    One per value of r for "omniglot"; one per value of r and N2 for "mini-imagenet"; one for
    "noise"; one for k and one for lambda for "parameters".
    """
    if outcome.experiment == "parameters":
        return _parameter_tables(outcome)
    by_n_way = outcome.experiment == "mini-imagenet"
    tables: dict[tuple[int, ...], list[Condition]] = {}
    for condition in outcome.conditions():
        if not condition.is_varied:
            key = (condition.r, condition.n_way) if by_n_way else (condition.r,)
            tables.setdefault(key, []).append(condition)
    return [
        Table(
            name="-".join([outcome.experiment, *map("{}{}".format, "rn", key)]),
            title=", ".join(map("{} = {}".format, ("r", "N2"), key)),
            corner="method",
            columns=tuple((f"N2 = {c.n_way}", f"K2 = {c.n_shot}") for c in conditions),
            groups=_groups(outcome, conditions),
        )
        for key, conditions in tables.items()
    ]


def _groups(outcome: Outcome, conditions: Sequence[Condition]) -> tuple[tuple[Line, ...], ...]:
    cells = outcome.measured
    groups = []
    for rows in in_groups({row: None for row, _ in cells}):
        found = [
            [cells[row, c].summary if (row, c) in cells else None for c in conditions]
            for row in rows
        ]
        compared = is_of_the_paper(rows[0]) or rows[0][1] in PHOTO_FEATURES
        best = [_best(column) if compared else None for column in zip(*found, strict=True)]
        groups.append(
            tuple(
                (
                    label(row),
                    tuple(
                        Entry(
                            ours,
                            outcome.printed(row, condition),
                            ours is not None and round(ours.mean, 3) == top,
                        )
                        for condition, ours, top in zip(conditions, line, best, strict=True)
                    ),
                )
                for row, line in zip(rows, found, strict=True)
            )
        )
    return tuple(groups)


def _best(column: Iterable[Summary | None]) -> float | None:
    """Return the best mean as it is shown; one cell alone is not the best of anything."""
    means = [round(summary.mean, 3) for summary in column if summary is not None]
    return max(means) if len(means) > 1 else None


def _parameter_tables(outcome: Outcome) -> list[Table]:
    tables = []
    for name, letter, slug in (("n_neighbors", "k", "k"), ("manifold_weight", "λ", "lambda")):
        curves = outcome.swept(name)
        values = sorted({value for curve in curves.values() for value in curve})
        lines = []
        for (row, r, n_way, n_shot), curve in curves.items():
            top = _best(curve.values())
            entries = [
                Entry(curve[v], None, round(curve[v].mean, 3) == top)
                if v in curve
                else Entry(None, None)
                for v in values
            ]
            lines.append((f"{label(row)}, {Condition(r, n_way, n_shot)}", tuple(entries)))
        if lines:
            columns = tuple(("", f"{letter} = {value:g}") for value in values)
            title = f"Accuracy against {letter}"
            tables.append(Table(f"parameters-{slug}", title, "", columns, (tuple(lines),)))
    return tables


# -------------------------------------------------------------------- Markdown


def markdown(table: Table, outcome: Outcome) -> str:
    """Return a table as Markdown, with a heading and a note."""
    head = [table.corner, *(", ".join(filter(None, column)) for column in table.columns)]
    lines = [
        [name, *(_entry(entry, "**{}**", " ± {}", " ({})") for entry in entries)]
        for group in table.groups
        for name, entries in group
    ]
    return f"### {table.title}\n\n{markdown_lines(head, lines, '---:|')}\n{note(table, outcome)}\n"


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


def latex(table: Table, outcome: Outcome) -> str:
    """Return a table as LaTeX; the document needs the package booktabs."""
    spans = table.spans
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
        for name, entries in group:
            cells = (_entry(entry, r"\textbf{{{}}}", r"$\pm${}", r" ({})") for entry in entries)
            lines.append(" & ".join([tex(name), *cells]).replace("–", "--") + r" \\")
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{tex(table.title)}. {tex(note(table, outcome))}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- CSV

COLUMNS = (
    *("experiment", "dataset", "profile", "row", "features"),
    *("r", "n_way", "n_shot", "n_neighbors", "manifold_weight", "n_tasks"),
    *("mean", "std", "half_width", "support_mean", "seconds", "paper_mean", "paper_std"),
)


def csv_text(outcome: Outcome) -> str:
    """Return all figures of an outcome as CSV, one line per cell, by condition and row."""
    lines = []
    rows = in_order({row: None for row, _ in outcome.measured})
    for condition in outcome.conditions():
        for row in rows:
            cell = outcome.measured.get((row, condition))
            if cell is None:
                continue
            ours, paper = cell.summary, outcome.printed(row, condition)
            support = float(np.mean(cell.support)) if len(cell.support) else float("nan")
            figures = (ours.mean, ours.std, ours.half_width, support, cell.seconds)
            lines.append(
                [outcome.experiment, outcome.dataset, outcome.profile, *row, *astuple(condition)]
                + [ours.n_tasks, *("" if np.isnan(value) else f"{value:.6g}" for value in figures)]
                + ([paper.mean, paper.std] if paper else ["", ""])
            )
    return csv_lines(COLUMNS, lines)


# ---------------------------------------------------------------- plain tables of text


def markdown_lines(head: Sequence[str], lines: Iterable[Sequence[str]], rule: str = "---|") -> str:
    """Return a plain Markdown table; ``rule`` aligns the columns after the first."""
    rows = ["| " + " | ".join(line) + " |" for line in (head, *lines)]
    rows.insert(1, "|---|" + rule * (len(head) - 1))
    return "\n".join(rows) + "\n"


def latex_lines(
    head: Sequence[str], lines: Iterable[Sequence[str]], caption: str, name: str
) -> str:
    """Return a plain LaTeX table; the document needs the package booktabs."""
    return "\n".join(
        [
            r"\begin{table}[tb]",
            r"\centering\scriptsize",
            rf"\begin{{tabular}}{{{'l' * len(head)}}}",
            r"\toprule",
            " & ".join(map(tex, head)) + r" \\",
            r"\midrule",
            *(" & ".join(map(tex, line)) + r" \\" for line in lines),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{tex(caption)}}}",
            rf"\label{{tab:{name}}}",
            "\\end{table}\n",
        ]
    )
