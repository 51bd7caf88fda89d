"""The tables of benchmarks/real.py, from its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from fspll.experiments.statistics import summarize

Row = dict[str, Any]
Key = tuple[Any, ...]
NAMES = {"lost": "Lost", "Majority-Vote": "majority vote", "Dawid-Skene": "Dawid–Skene"}
DEFAULT = "default"


def tables(rows: list[Row]) -> str:
    """Return all tables that there are rows for, under headings."""
    parts = []
    for name, (heading, make) in SECTIONS.items():
        chosen = [row for row in rows if row["part"] == name]
        if chosen:
            parts.append(f"## {heading}\n\n{make(chosen)}")
    return "# Ambiguity as it is in practice\n\n" + "\n".join(parts)


def fill(document: str, rows: list[Row]) -> str:
    """Put every table between its two marks, ``<!-- name -->`` and ``<!-- end name -->``."""
    for name, (_, make) in SECTIONS.items():
        chosen = [row for row in rows if row["part"] == name]
        marks = re.compile(f"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if chosen and marks.search(document):
            table = make(chosen)
            document = marks.sub(lambda found, t=table: found[1] + t + found[2], document)
    return document


# -------------------------------------------------------------------- pieces


def grid(head: Iterable[str], lines: Iterable[Iterable[str]], n_words: int = 1) -> str:
    """Return a Markdown table whose first columns hold words, and the others numbers."""
    head = list(head)
    rule = "|" + "---|" * n_words + "---:|" * (len(head) - n_words)
    shown = [f"| {' | '.join(line)} |" for line in [head, *map(list, lines)]]
    return "\n".join([shown[0], rule, *shown[1:]]) + "\n"


def share(value: float | None) -> str:
    """Show a share with three digits.

    >>> share(0.5), share(1.0), share(None)
    ('.500', '1.000', '')
    """
    if value is None:
        return ""
    text = f"{value:.3f}"
    return text.removeprefix("0") if value >= 0 else "−" + text.removeprefix("-0")


def signed(value: Any) -> str:
    """Show a difference with its sign."""
    return ("+" if value >= 0 else "") + share(value)


def groups(rows: list[Row], *names: str) -> dict[Key, list[Row]]:
    """Return the rows by the values of some columns, in the order in which these first come."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return found


def methods_of(rows: list[Row]) -> list[str]:
    """Return the methods, the default and its variants first, however late these were measured."""
    found = [name for (name,) in groups(rows, "method")]
    first = ("default", "evidence", "paper's rule")
    return sorted(found, key=lambda name: (*(not name.startswith(one) for one in first),))


def mean(rows: list[Row], figure: str) -> float | None:
    """Return the mean of a figure where it was measured."""
    values = [row[figure] for row in rows if row.get(figure) is not None]
    return float(np.mean(values)) if values else None


def excess(rows: list[Row], claimed: str = "claimed", right: str = "labels") -> str:
    """Show how far the mean claim is above what is right."""
    both = mean(rows, claimed), mean(rows, right)
    return "" if both[0] is None or both[1] is None else signed(both[0] - both[1])


class Gap(NamedTuple):
    """Mean of differences, and its standard error (None with one difference)."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        return signed(self.mean) + ("" if self.error is None else f" ± {share(self.error)}")


def paired(rows: list[Row], others: list[Row], figure: str) -> Gap:
    """Return how far rows are above the others of the same seeds."""
    by_seed = {row["seed"]: row[figure] for row in others if row.get(figure) is not None}
    found = np.array([row[figure] - by_seed[row["seed"]] for row in rows if row["seed"] in by_seed])
    summary = summarize(found)
    return Gap(summary.mean, summary.std / len(found) ** 0.5 if len(found) > 1 else None)


def name_of(method: str) -> str:
    """Return what a method or a data set is called in tables."""
    return NAMES.get(method, method)


# -------------------------------------------------------------------- Lost and MSRCv2


def partial_label(rows: list[Row]) -> str:
    """Every method; how far the default is above it; and what the default claims."""
    settings = list(groups(sorted(rows, key=lambda r: (r["data"] != "lost", r["split"])), *_WHERE))
    cells = groups(rows, *_WHERE, "method")
    methods = methods_of(rows)
    heads = [f"{name_of(data)}, {split}" for data, split in settings]
    values = []
    for method in methods:
        found = [cells.get((*one, method), []) for one in settings]
        shown = [f"{share(mean(c, 'test'))} / {share(mean(c, 'labels'))}" for c in found]
        values.append([_bold(method), *shown])
    others = [method for method in methods if method != DEFAULT]
    gaps = {
        (method, *one, figure): paired(cells[*one, DEFAULT], cells[*one, method], figure)
        for method in others
        for one in settings
        for figure in _FIGURES
        if (*one, method) in cells and (*one, DEFAULT) in cells
    }
    differences = [
        [
            name_of(method),
            *(
                " / ".join(
                    str(gaps[method, *one, f]) for f in _FIGURES if (method, *one, f) in gaps
                )
                for one in settings
            ),
        ]
        for method in others
    ]
    of_aggd = [gap.mean for (method, *_), gap in gaps.items() if method == "PL-AGGD"]
    below = [
        f"{gap} against {name_of(method)} ({name_of(data)} {split}, {_FIGURES[figure]})"
        for (method, data, split, figure), gap in gaps.items()
        if gap.mean < 0
    ]
    claims = [
        [head, *(share(mean(cells.get((*one, DEFAULT), []), name)) for name in _CLAIMS)]
        for head, one in zip(heads, settings, strict=True)
    ]
    return "\n".join(
        [
            f"Right: new samples / training labels, means of {_seeds(rows)}.\n",
            grid(["method", *heads], values),
            "The default less each method on the same splits, ± the standard error of the mean:\n",
            grid(["default less", *heads], differences),
            *(
                [f"Mean over the {len(of_aggd)} figures of PL-AGGD: {signed(np.mean(of_aggd))}."]
                if of_aggd
                else []
            ),
            f"Where the default's mean is the lower one: {'; '.join(below) or 'nowhere'}.",
            "",
            "What the default claims:\n",
            grid(["", "labels claimed", "right", "new samples claimed", "right"], claims),
        ]
    )


_WHERE = ("data", "split")
_FIGURES = {"test": "new samples", "labels": "training labels"}
_CLAIMS = ("claimed", "labels", "claimed_test", "test")


def _bold(method: str) -> str:
    return f"**{method}**" if method == DEFAULT else name_of(method)


# -------------------------------------------------------------------- the other parts


def unequal(rows: list[Row]) -> str:
    """Every setting, and the differences from PL-AGGD."""
    where = ("data", "n", "classes", "r")
    cells = groups(rows, *where, "method")
    methods = methods_of(rows)
    lines, differences = [], []
    for one in sorted(groups(rows, *where), key=lambda k: (k[0] == "digits", *map(str, k[:1]), k)):
        line = [str(part) for part in one]
        for method in methods:
            cell = cells.get((*one, method), [])
            line.append(f"{share(mean(cell, 'labels'))} / {share(mean(cell, 'test'))}")
            if method.startswith("PL-AGGD") and cell:
                ours = cells[*one, DEFAULT]
                gaps = [paired(ours, cell, figure).mean for figure in ("labels", "test")]
                differences.append((one, method, *gaps))
        lines.append(["" if part == " / " else part for part in line])
    notes = []
    for method in (name for name in methods if name.startswith("PL-AGGD")):
        chosen = [d for d in differences if d[1] == method]
        for place, what in ((2, "labels"), (3, "new samples")):
            least = min(chosen, key=lambda d: d[place])
            average = signed(float(np.mean([d[place] for d in chosen])))
            below = sum(d[place] < -0.01 for d in chosen)
            notes.append(
                f"- Default less {method}, {what}: {average} on average over {len(chosen)} "
                f"settings, {signed(least[place])} at least ({least[0][0]}, {least[0][1]} samples, "
                f"{least[0][2]} classes, r = {least[0][3]}); below by more than .010 in {below}."
            )
    return (
        f"Right: labels / new samples, {_seeds(rows)}.\n\n"
        + grid(["data", "samples", "classes", "r", *map(name_of, methods)], lines)
        + "\n"
        + "\n".join(notes)
        + "\n"
    )


def missing(rows: list[Row]) -> str:
    """Right and claimed by the share of sets without the truth."""
    lines = [
        [
            *(str(part) for part in one[:3]),
            f"{one[3]:g}",
            *(share(mean(cell, name)) for name in ("inside", "labels", "claimed")),
            excess(cell),
            *(share(mean(cell, name)) for name in ("outside", "claimed_outside", "doubt")),
        ]
        for one, cell in sorted(groups(rows, "data", "r", "how", "q").items())
    ]
    head = ["data", "r", "truth", "q", "sets with truth", "right", "claimed", "claimed − right"]
    return f"800 samples, {_seeds(rows)}.\n\n" + grid(
        [*head, "right, any label", "claimed, any label", "q found"], lines, 3
    )


def small(rows: list[Row]) -> str:
    """Labels and new samples, right and claimed."""
    cells, methods = groups(rows, "data", "r", "method"), methods_of(rows)

    def place(item: tuple[Key, list[Row]]) -> tuple[int, int, int]:
        data, r, method = item[0]
        return ("digits", "iris", "wine", "photos").index(data), r, methods.index(method)

    lines = [
        [
            name_of(one[0]),
            str(one[1]),
            name_of(one[2]),
            share(mean(cell, "labels")),
            share(mean(cell, "claimed")),
            excess(cell),
            share(mean(cell, "test")),
            share(mean(cell, "claimed_test")),
            excess(cell, "claimed_test", "test"),
        ]
        for one, cell in sorted(cells.items(), key=place)
    ]
    labels = ["labels right", "claimed", "claimed − right"]
    new = ["new samples right", "claimed", "claimed − right"]
    return f"{_seeds(rows)}.\n\n" + grid(["data", "r", "method", *labels, *new], lines, 3)


def people(rows: list[Row]) -> str:
    """Right and claimed by method, for the crowd."""
    figures = ("labels", "claimed", "error", "sure", "sure_right", "outside")
    lines = []
    places = methods_of(rows)
    for row in sorted(rows, key=lambda row: places.index(row["method"])):
        numbers = [share(row.get(name)) for name in figures]
        numbers.insert(2, excess([row]))
        lines.append([_bold(row["method"]), *numbers])
    head = ["method", "right", "claimed", "claimed − right", "calibration error"]
    return (
        f"The labels of {share(mean(rows, 'inside'))} of the pictures include the true one.\n\n"
        + grid([*head, "claimed .99 or more", "of these right", "right, any label"], lines)
    )


def audit(rows: list[Row]) -> str:
    """How well a person's answers for a few labels tell the share that is right."""
    off = np.array([row["audited"] - row["labels"] for row in rows])
    held = sum(row["low"] <= row["labels"] <= row["high"] for row in rows)
    again = [row for row in rows if "labels_after" in row]
    return (
        f"{_seeds(rows)} of 30 labels. Right: {share(mean(rows, 'labels'))}; audited less right: "
        f"{signed(off.mean())} on average, standard deviation {share(off.std(ddof=1))}; the 95% "
        f"interval holds the truth {held} times. Labeled again after the first {len(again)} "
        f"audits: claimed {share(mean(again, 'claimed_after'))}, right "
        f"{share(mean(again, 'labels_after'))}.\n"
    )


def writers(rows: list[Row]) -> str:
    """Labels and new samples, right and claimed."""
    names = ("labels", "claimed", "test", "claimed_test")
    numbers = [share(mean(rows, name)) for name in names]
    numbers.insert(2, excess(rows))
    numbers.append(excess(rows, "claimed_test", "test"))
    head = ["labels right", "claimed", "claimed − right"]
    head += ["new samples right", "claimed", "claimed − right"]
    return f"{_seeds(rows)}.\n\n" + grid(head, [numbers], 0)


def wrong(rows: list[Row]) -> str:
    """Features that tell nothing, and good ones."""
    lines = []
    for one, cell in groups(rows, "features", "data", "n", "r").items():
        features, data, n, r = one
        line = [features, name_of(data), str(n), "" if r is None else str(r)]
        line += [share(mean(cell, "labels")), share(mean(cell, "claimed")), excess(cell)]
        line += [share(mean(cell, "hits")), share(mean(cell, "chance"))]
        line.append(f"{sum(not row['separates'] for row in cell)} of {len(cell)}")
        lines.append(line)
    kinds = ("good", "shuffled", "noise", "omniglot-conv4")
    lines.sort(key=lambda line: kinds.index(line[0]))
    head = ["features", "data", "samples", "r", "right", "claimed", "claimed − right"]
    return grid([*head, "hits", "chance", "warned"], lines, 2)


def cost(rows: list[Row]) -> str:
    """Seconds by the number of samples."""
    cells = groups(rows, "method", "n")
    sizes = sorted({row["n"] for row in rows})
    lines = [
        [name_of(method), *(_seconds(cells.get((method, n), [])) for n in sizes)]
        for method in methods_of(rows)
    ]
    busy = [row["busy"] for row in rows if row.get("busy") is not None]
    load = f"; others used the machine, load {min(busy):.0f} to {max(busy):.0f}" if busy else ""
    return f"Seconds of a fit on one core, the quickest of {_seeds(rows)}{load}.\n\n" + grid(
        ["", *(f"{n:,} samples" for n in sizes)], lines
    )


def _seconds(rows: list[Row]) -> str:
    return f"{min(row['seconds'] for row in rows):.2f}" if rows else ""


def _seeds(rows: list[Row]) -> str:
    return f"{len({row['seed'] for row in rows})} draws"


SECTIONS: dict[str, tuple[str, Callable[[list[Row]], str]]] = {
    "partial-label": ("Lost and MSRCv2", partial_label),
    "folds": ("Lost and MSRCv2, ten folds", partial_label),
    "unequal": ("Unequal classes", unequal),
    "missing": ("Sets that lack the truth", missing),
    "small": ("Small tables, and photos", small),
    "people": ("People", people),
    "audit": ("Audits of LabelMe", audit),
    "writers": ("Other writers", writers),
    "wrong": ("Features that tell nothing", wrong),
    "cost": ("Cost", cost),
}
