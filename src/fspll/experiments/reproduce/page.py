"""The page of a reproduction: tables, figures, and what made them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from fspll._common.errors import InputError
from fspll._common.files import write_beside
from fspll._common.html.rendering import render
from fspll._common.version import __version__
from fspll.experiments.reproduce import comparisons, tables
from fspll.experiments.reproduce.comparisons import Comparison
from fspll.experiments.reproduce.figure_style import Picture, file_bytes, require_matplotlib
from fspll.experiments.reproduce.figures import draw
from fspll.experiments.reproduce.findings import features_note, findings, headline
from fspll.experiments.reproduce.results import Outcome
from fspll.experiments.reproduce.tables import Entry, Table, p_value, share, signed

_TITLES = {
    "omniglot": "The Omniglot tables",
    "mini-imagenet": "Accuracy against the samples per class",
    "noise": "What wrong labels cost",
    "parameters": "Accuracy against k and λ",
}
_WIDE = 9.0  # inches
PAGE = "index.html"
_TITLE = "Few-Shot Partial-Label Learning, reproduced"
_OPENING = 1 << 14  # characters in which the title stands


def check_folder(folder: Path) -> None:
    """Refuse a folder whose page is not that of a reproduction: it would be overwritten."""
    page = folder / PAGE
    if page.exists():
        with page.open(encoding="utf-8", errors="replace") as file:
            ours = f"<title>{_TITLE}</title>" in file.read(_OPENING)
        if not ours:
            raise InputError(
                f"{page} is not the page of a reproduction, and would be overwritten; choose "
                "another folder"
            )


def write_reproduction(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Write tables (md, tex, csv), settings (json), figures (png, pdf) and a page, ``index.html``.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of one or several experiments, whole or in part.
    folder : path
        Made if need be; files of the same names are replaced.

    Returns
    -------
    list of path
        What was written, the page last.
    """
    require_matplotlib()
    stems = _stems(outcomes)
    written: list[Path] = []
    sections = []
    for outcome, stem in zip(outcomes, stems, strict=True):
        pictures = draw(outcome)
        files = _write_tables(outcome, folder, stem)
        files += _write_figures(pictures, folder, stem)
        sections.append(_section(outcome, stem, pictures, files))
        written += files
    page = render(
        __package__,
        "page.html.j2",
        title=_TITLE,
        contents=[(section["anchor"], section["title"]) for section in sections],
        version=__version__,
        sections=sections,
    )
    target = folder / PAGE
    _write(target, page.encode())
    return [*written, target]


def _write(path: Path, data: bytes) -> None:
    with write_beside(path) as beside:
        beside.write_bytes(data)


def _stems(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a name for each outcome's files: its experiment, numbered when it comes again."""
    stems: list[str] = []
    for outcome in outcomes:
        stem = re.sub(r"[^\w-]+", "-", outcome.experiment).strip("-") or "experiment"
        again = sum(re.sub(r"-\d+$", "", other) == stem for other in stems)
        stems.append(f"{stem}-{again + 1}" if again else stem)
    return stems


def _title(outcome: Outcome) -> str:
    return _TITLES.get(outcome.experiment, outcome.experiment)


# ---------------------------------------------------------------- files


def _write_tables(outcome: Outcome, folder: Path, stem: str) -> list[Path]:
    laid_out = tables.lay_out(outcome)
    found = comparisons.all_comparisons(outcome)
    heading = f"# {_title(outcome)}: {outcome.dataset}, profile {outcome.profile}\n\n"
    summary = "".join(f"- {sentence}\n" for sentence in findings(outcome))
    extra = features_note(outcome.rows())
    parts = [heading + summary + (f"\n{extra}\n" if extra else "")]
    parts += [tables.markdown(table, outcome) for table in laid_out]
    latex = ["% The document needs \\usepackage{booktabs}.\n"]
    latex += [tables.latex(table, outcome) for table in laid_out]
    for title, name, head, lines in _plain_tables(outcome):
        parts.append(f"### {title}\n\n{tables.markdown_lines(head, lines)}")
        latex.append(tables.latex_lines(head, lines, f"{title}.", f"{stem}-{name}"))
    texts = {f"{stem}.csv": tables.csv_text(outcome)}
    if found:
        parts.append(comparisons.comparisons_markdown(found))
        latex.append(comparisons.comparisons_latex(found, stem))
        texts[f"{stem}-tests.csv"] = comparisons.comparisons_csv(found)
    made = {"dataset": outcome.dataset, "missing cells": outcome.missing, **outcome.about}
    texts |= {
        f"{stem}.md": "\n".join(parts),
        f"{stem}.tex": "\n".join(latex),
        f"{stem}-settings.json": json.dumps(made, indent=1) + "\n",
    }
    for name, content in texts.items():
        _write(folder / name, content.encode())
    return [folder / name for name in texts]


def _plain_tables(
    outcome: Outcome,
) -> list[tuple[str, str, Sequence[str], Sequence[Sequence[str]]]]:
    """Return title, short name, head and lines of tables of text: with the paper, networks."""
    gaps = comparisons.difference_lines(comparisons.differences(outcome))
    above = comparisons.exceedance_lines(comparisons.above_ceiling(outcome))
    found = [
        ("Ours minus the paper's", "differences", comparisons.DIFFERENCE_HEAD, gaps),
        ("Printed figures above the ceiling", "ceiling", comparisons.EXCEEDANCE_HEAD, above),
    ]
    found.append(("Networks", "networks", _NETWORK_HEAD, _network_lines(outcome)))
    return [table for table in found if table[-1]]


_NETWORK_HEAD = ("network", "steps", "tasks", "images", "minutes of one core")


def _network_lines(outcome: Outcome) -> list[list[str]]:
    """Return how much each network was trained, in the columns of ``_NETWORK_HEAD``."""
    networks = outcome.about.get("networks", {})
    if not isinstance(networks, dict):
        return []
    lines = []
    for name, made in networks.items():
        minutes = f"{made['minutes']:,.1f}" if "minutes" in made else tables.NOTHING
        lines.append([name, *(f"{made[x]:,}" for x in ("steps", "tasks", "images")), minutes])
    return lines


def _write_figures(pictures: Sequence[Picture], folder: Path, stem: str) -> list[Path]:
    paths = []
    for picture in pictures:
        for kind in ("png", "pdf"):
            path = folder / f"{stem}-{picture.name}.{kind}"
            _write(path, file_bytes(picture.figure, kind))
            paths.append(path)
    return paths


# ---------------------------------------------------------------- the page


def _section(
    outcome: Outcome, stem: str, pictures: Sequence[Picture], files: Sequence[Path]
) -> dict[str, Any]:
    """Return what the template shows of an outcome."""
    laid_out = tables.lay_out(outcome)
    by_name = {path.name: path for path in files}
    return {
        "anchor": stem,
        "title": _title(outcome),
        "outcome": outcome,
        "headline": headline(outcome),
        "findings": findings(outcome),
        "features_note": features_note(outcome.rows()),
        "pictures": [
            (_width(picture), by_name[f"{stem}-{picture.name}.png"].read_bytes(), picture.caption)
            for picture in pictures
        ],
        "has_paper": any(table.has_paper for table in laid_out),
        "tables": [_table(table, outcome) for table in laid_out],
        "plain_tables": _plain_tables(outcome),
        "tests": [] if outcome.experiment == "parameters" else _tests(outcome),
        "test_note": comparisons.TEST_NOTE,
        "about": _about(outcome),
        "command": outcome.about.get(
            "command", f"fspll reproduce {outcome.experiment} --profile {outcome.profile}"
        ),
        "files": list(by_name),
    }


def _width(picture: Picture) -> str:
    width = picture.figure.get_figwidth()
    return "wide" if width > _WIDE else "middle" if width > 7 else "narrow"


def _table(table: Table, outcome: Outcome) -> dict[str, Any]:
    firsts = {0, *accumulate(width for _, width in table.spans)}
    return {
        "title": table.title,
        "corner": table.corner,
        "spans": table.spans if any(heading for heading, _ in table.spans) else [],
        "columns": [own for _, own in table.columns],
        "groups": [
            [
                (name, [_entry(entry, number in firsts) for number, entry in enumerate(entries)])
                for name, entries in group
            ]
            for group in table.groups
        ],
        "note": tables.note(table, outcome, "below it"),
    }


def _entry(entry: Entry, first: bool) -> dict[str, Any]:
    """Return a cell's figures as text, and the class that gives it its color."""
    kinds = ["first"] if first else []
    beside = None if entry.paper is None else share(entry.paper.mean)
    if entry.paper is not None and entry.ours is not None:
        gap = entry.ours.mean - entry.paper.mean
        beside = f"{beside} {signed(gap)}"
        size = sum(abs(gap) >= step for step in (0.02, 0.05, 0.15))
        kinds += [f"{'up' if gap > 0 else 'down'}{size}"] if size else []
    return {
        "kind": " ".join(kinds),
        "mean": None if entry.ours is None else share(entry.ours.mean),
        "half_width": None if entry.ours is None else share(entry.ours.half_width),
        "best": entry.best,
        "beside": beside,
    }


def _tests(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the signed-rank tests of each tested row: counts, and every single one."""
    found = comparisons.all_comparisons(outcome)
    tests = []
    for row in dict.fromkeys(comparison.row for comparison in found):
        of_row = [count for count in comparisons.counts(found) if count.row == row]
        conditions, lines = comparisons.comparison_grid(found, row)
        tests.append(
            {
                "row": row,
                "head": [f"{row} against", *comparisons.COUNT_HEAD[2:]],
                "counts": [line[1:] for line in comparisons.count_lines(of_row)],
                "conditions": [f"r {c.r}, {c.n_way}-way {c.n_shot}" for c in conditions],
                "lines": [(name, [_test(cell) for cell in cells]) for name, cells in lines],
            }
        )
    return tests


def _test(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    kind = None
    if comparison.p < 0.05:
        kind = "up2" if comparison.difference > 0 else "down2"
    return {"kind": kind, "difference": signed(comparison.difference), "p": p_value(comparison.p)}


def _about(outcome: Outcome) -> dict[str, Any]:
    cells = outcome.measured.values()
    return {
        "data": outcome.dataset,
        "profile": outcome.profile,
        "cells measured": len(cells),
        "cells missing": outcome.missing,
        "processor time of the tasks": f"{sum(c.seconds for c in cells) / 60:,.1f} minutes",
        **outcome.about,
    }
