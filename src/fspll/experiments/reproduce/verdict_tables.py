"""Tables of signed-rank tests and of distances to the paper, as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields

from fspll.experiments.reproduce.grid_rows import NOTHING, label, p_value, share, signed
from fspll.experiments.reproduce.grid_tables import tex
from fspll.experiments.reproduce.outcomes import Outcome, Place
from fspll.experiments.reproduce.published import P_VALUES_BELOW
from fspll.experiments.reproduce.verdicts import (
    TESTED,
    Count,
    Difference,
    Exceedance,
    Verdict,
    counts,
    verdicts,
)

COUNT_HEAD = (
    "row",
    "against",
    "settings",
    "above",
    "with p < .001",
    "below",
    "with p < .001",
    "largest p where above",
)
DIFFERENCE_HEAD = ("row", "settings", "mean", "smallest", "largest")
EXCEEDANCE_HEAD = ("row", "setting", "paper", "ceiling of our tasks", "more than chance")

TEST_NOTE = (
    "Two-sided signed-rank tests on the same tasks, not corrected for their number. "
    f'The paper says of FsPLL and FsPLL+ that "all p-values are small than {P_VALUES_BELOW:g}".'
)


def all_verdicts(outcome: Outcome) -> list[Verdict]:
    """Return the verdicts of every tested row."""
    return [verdict for row in TESTED for verdict in verdicts(outcome, row)]


def count_lines(found: Iterable[Count]) -> list[list[str]]:
    """Return counts as text, in the columns of ``COUNT_HEAD``."""
    return [
        [
            c.row,
            label(c.other),
            str(c.settings),
            str(c.above),
            str(c.surely_above),
            str(c.below),
            str(c.surely_below),
            NOTHING if c.largest_p is None else p_value(c.largest_p),
        ]
        for c in found
    ]


def difference_lines(found: Iterable[Difference]) -> list[list[str]]:
    """Return distances to the paper as text, in the columns of ``DIFFERENCE_HEAD``."""
    return [
        [label(d.row), str(d.settings), signed(d.mean), signed(d.smallest), signed(d.largest)]
        for d in found
    ]


def exceedance_lines(found: Iterable[Exceedance]) -> list[list[str]]:
    """Return figures above the ceiling as text, in the columns of ``EXCEEDANCE_HEAD``."""
    return [
        [
            e.row,
            f"{e.place.n_way}-way {e.place.n_shot}-shot, r = {e.place.r}",
            share(e.paper.mean),
            f"{share(e.ceiling.mean)} ± {share(e.ceiling.half_width)}",
            "yes" if e.beyond_chance else "no",
        ]
        for e in found
    ]


def verdict_text(verdict: Verdict | None) -> str:
    """Return a verdict as it stands in a table: the difference, and its p-value in brackets."""
    if verdict is None:
        return NOTHING
    return f"{signed(verdict.difference)} ({p_value(verdict.p)})"


def verdict_grid(
    found: Sequence[Verdict], row: str
) -> tuple[list[Place], list[tuple[str, list[Verdict | None]]]]:
    """Return a row's verdicts as settings and lines, one line for each other row."""
    mine = [verdict for verdict in found if verdict.row == row]
    places = sorted({v.place for v in mine}, key=lambda p: (p.r, p.n_way, p.n_shot))
    by_key = {(v.other, v.place): v for v in mine}
    others = list(dict.fromkeys(v.other for v in mine))
    return places, [
        (label(other), [by_key.get((other, place)) for place in places]) for other in others
    ]


def markdown_lines(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a plain Markdown table."""
    rows = ["| " + " | ".join(line) + " |" for line in (head, *lines)]
    rows.insert(1, "|" + "---|" * len(head))
    return "\n".join(rows) + "\n"


def latex_lines(
    head: Sequence[str], lines: Iterable[Sequence[str]], caption: str, name: str
) -> str:
    """Return a plain LaTeX table; the document needs the package booktabs."""
    body = [" & ".join(map(tex, line)) + r" \\" for line in lines]
    return (
        "\n".join(
            [
                r"\begin{table}[tb]",
                r"\centering\scriptsize",
                rf"\begin{{tabular}}{{{'l' * len(head)}}}",
                r"\toprule",
                " & ".join(map(tex, head)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                rf"\caption{{{tex(caption)}}}",
                rf"\label{{tab:{name}}}",
                r"\end{table}",
            ]
        )
        + "\n"
    )


def verdicts_markdown(found: Sequence[Verdict]) -> str:
    """Return counts and all verdicts as Markdown."""
    parts = ["### Signed-rank tests\n\n", markdown_lines(COUNT_HEAD, count_lines(counts(found)))]
    parts += [f"\n- {count}" for count in counts(found)]
    parts.append(f"\n\n{TEST_NOTE}\n")
    for row in dict.fromkeys(verdict.row for verdict in found):
        places, lines = verdict_grid(found, row)
        for r in dict.fromkeys(place.r for place in places):
            here = [number for number, place in enumerate(places) if place.r == r]
            head = [f"{row} against", *(f"{places[i].n_way}-way {places[i].n_shot}" for i in here)]
            body = [[name, *(verdict_text(cells[i]) for i in here)] for name, cells in lines]
            parts.append(f"\n#### {row} against the others, r = {r}: mean difference (p)\n\n")
            parts.append(markdown_lines(head, body))
    return "".join(parts)


def verdicts_latex(found: Sequence[Verdict], name: str) -> str:
    """Return the counts of verdicts as a LaTeX table."""
    return latex_lines(COUNT_HEAD, count_lines(counts(found)), TEST_NOTE, f"{name}-tests")


_PLACE = tuple(field.name for field in fields(Place))


def verdicts_csv(found: Iterable[Verdict]) -> str:
    """Return verdicts as CSV, a line a pair of rows and setting."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ("row", "other", "features", *_PLACE, "difference", "p", "better"),
    )
    for v in found:
        writer.writerow(
            (v.row, *v.other, *astuple(v.place), f"{v.difference:.6g}", f"{v.p:.4g}", v.better)
        )
    return file.getvalue()
