"""The page of a reproduction: tables, figures, and what made them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from fspll._common.files import write_beside
from fspll._common.html import elements as html
from fspll._common.html.elements import Html, tag
from fspll._common.version import __version__
from fspll.experiments.reproduce import figures, grid_tables, verdict_tables
from fspll.experiments.reproduce.figures import Picture
from fspll.experiments.reproduce.findings import features_note, findings, headline
from fspll.experiments.reproduce.grid_layout import Entry, GridTable, note
from fspll.experiments.reproduce.grid_layout import grid_tables as laid_out
from fspll.experiments.reproduce.grid_rows import measured, p_value, share, signed
from fspll.experiments.reproduce.outcomes import Outcome
from fspll.experiments.reproduce.verdicts import Verdict, above_ceiling, counts, differences

_TITLES = {
    "omniglot": "The Omniglot tables",
    "mini-imagenet": "Accuracy against the samples a class",
    "noise": "What wrong labels cost",
    "parameters": "Accuracy against k and λ",
}
_WIDE = 9.0  # inches


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
    figures.require_matplotlib()
    written: list[Path] = []
    sections = []
    stems = _stems(outcomes)
    for outcome, stem in zip(outcomes, stems, strict=True):
        files = _write_tables(outcome, folder, stem)
        pictures = figures.draw(outcome)
        files += _write_figures(pictures, folder, stem)
        shown = [_picture(picture, folder / f"{stem}-{picture.name}.png") for picture in pictures]
        sections.append(_section(outcome, stem, shown, files))
        written += files
    contents = [(stem, _title(outcome)) for outcome, stem in zip(outcomes, stems, strict=True)]
    title = "Few-Shot Partial-Label Learning, reproduced"
    body = html.join([_opening(outcomes), *sections])
    target = folder / "index.html"
    _write(target, html.page(title, body, contents=contents).encode())
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
    tables = laid_out(outcome)
    found = verdict_tables.all_verdicts(outcome)
    heading = f"# {_title(outcome)}: {outcome.dataset}, profile {outcome.profile}\n\n"
    summary = "".join(f"- {sentence}\n" for sentence in findings(outcome))
    extra = features_note(outcome.rows())
    parts = [heading + summary + (f"\n{extra}\n" if extra else "")]
    parts += [grid_tables.markdown(table, outcome) for table in tables]
    latex = ["% The document needs \\usepackage{booktabs}.\n"]
    latex += [grid_tables.latex(table, outcome) for table in tables]
    for title, name, head, lines in _plain_tables(outcome):
        parts.append(f"### {title}\n\n{verdict_tables.markdown_lines(head, lines)}")
        latex.append(verdict_tables.latex_lines(head, lines, f"{title}.", f"{stem}-{name}"))
    texts = {f"{stem}.csv": grid_tables.csv_text(outcome)}
    if found:
        parts.append(verdict_tables.verdicts_markdown(found))
        latex.append(verdict_tables.verdicts_latex(found, stem))
        texts[f"{stem}-tests.csv"] = verdict_tables.verdicts_csv(found)
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
    """Return title, short name, head and lines of the tables that compare with the paper."""
    gaps = verdict_tables.difference_lines(differences(outcome))
    above = verdict_tables.exceedance_lines(above_ceiling(outcome))
    tables = [
        ("Ours minus the paper's", "differences", verdict_tables.DIFFERENCE_HEAD, gaps),
        ("Printed figures above the ceiling", "ceiling", verdict_tables.EXCEEDANCE_HEAD, above),
    ]
    return [table for table in tables if table[-1]]


def _write_figures(pictures: Sequence[Picture], folder: Path, stem: str) -> list[Path]:
    paths = []
    for picture in pictures:
        for kind in ("png", "pdf"):
            path = folder / f"{stem}-{picture.name}.{kind}"
            _write(path, figures.render(picture.figure, kind))
            paths.append(path)
    return paths


# ---------------------------------------------------------------- the page


def _opening(outcomes: Sequence[Outcome]) -> Html:
    lead = (
        "The experiments of Zhao, Yu, Liu, Yan, Cui and Domeniconi, “Few-Shot Partial-Label "
        "Learning” (IJCAI 2021), run again by fspll "
        f"{__version__}, each figure beside the one in print where there is one."
    )
    parts = [tag("p", lead, class_="lead")]
    for outcome in outcomes:
        parts.append(tag("h3", f"{_title(outcome)}: {outcome.dataset}"))
        first = headline(outcome)
        parts += [html.tiles(first)] if first else []
        parts.append(html.bullets(findings(outcome)))
    if not outcomes:
        parts.append(tag("p", "Nothing has been measured yet."))
    return html.join(parts)


def _section(outcome: Outcome, stem: str, shown: Sequence[Html], files: Sequence[Path]) -> Html:
    words = f"Measured on {outcome.dataset}; profile {outcome.profile}."
    extra = features_note(outcome.rows())
    parts: list[Html] = [tag("p", words), *shown]
    tables = laid_out(outcome)
    parts += [tag("p", extra)] if extra else []
    if any(table.has_paper for table in tables):
        parts.append(_key())
    parts += [_table(table, outcome) for table in tables]
    parts += _comparisons(outcome)
    parts.append(_about(outcome))
    parts.append(_repeat(outcome, files))
    return html.section(_title(outcome), *parts, anchor=stem)


def _picture(picture: Picture, png: Path) -> Html:
    width = picture.figure.get_figwidth()
    shown = html.figure(png.read_bytes(), "png", picture.caption)
    return tag(
        "div", shown, class_="wide" if width > _WIDE else "middle" if width > 7 else "narrow"
    )


def _key() -> Html:
    samples = [("down3", "−.15 and more"), ("down2", "−.05"), ("down1", "−.02")]
    samples += [("up1", "+.02"), ("up2", "+.05"), ("up3", "+.15 and more")]
    spans = [tag("span", words, class_=kind) for kind, words in samples]
    words = "Large: ours, with the half-width of its 95% interval. Below: the paper's mean, and "
    words += "ours minus it. Bold: the best of a group. Ours lower or higher by "
    return tag("p", words, html.join(spans, " "), class_="soft key")


def _table(table: GridTable, outcome: Outcome) -> Html:
    spans = [(top, len(list(same))) for top, same in groupby(column[0] for column in table.columns)]
    firsts = {sum(width for _, width in spans[:number]) for number in range(len(spans))}
    head = []
    if any(top for top, _ in spans):
        cells = [
            tag("th", top, colspan=width, scope="colgroup", class_="span") for top, width in spans
        ]
        head.append(tag("tr", tag("th"), *cells))
    own = [tag("th", name, scope="col") for _, name in table.columns]
    head.append(tag("tr", tag("th", table.corner, scope="col"), *own))
    bodies = [
        tag(
            "tbody",
            *(
                tag(
                    "tr",
                    tag("th", line.label, scope="row"),
                    *(_cell(entry, i in firsts) for i, entry in enumerate(line.entries)),
                )
                for line in group
            ),
        )
        for group in table.groups
    ]
    shown = html.scrolling(tag("table", tag("thead", *head), *bodies))
    return tag(
        "div",
        tag("h3", table.title),
        shown,
        tag("p", note(table, outcome, "below it"), class_="soft"),
    )


def _cell(entry: Entry, first: bool) -> Html:
    kinds = ["first"] if first else []
    parts: list[object] = []
    if entry.ours is None:
        parts.append("–")
    else:
        mean = share(entry.ours.mean)
        parts += [tag("b", mean) if entry.best else mean, " "]
        parts.append(tag("small", f"±{share(entry.ours.half_width)}"))
    if entry.paper is not None:
        beside = share(entry.paper.mean)
        if entry.ours is not None:
            gap = entry.ours.mean - entry.paper.mean
            beside += f" {signed(gap)}"
            size = sum(abs(gap) >= step for step in (0.02, 0.05, 0.15))
            kinds += [f"{'up' if gap > 0 else 'down'}{size}"] if size else []
        parts.append(tag("span", beside, class_="beside"))
    return tag("td", *parts, class_=" ".join(kinds) or None)


def _comparisons(outcome: Outcome) -> list[Html]:
    parts = []
    for title, _, head, lines in _plain_tables(outcome):
        parts += [tag("h3", title), html.table(head, lines)]
    found = [] if outcome.experiment == "parameters" else verdict_tables.all_verdicts(outcome)
    if found:
        parts.append(tag("h3", "Signed-rank tests"))
        parts.append(tag("p", verdict_tables.TEST_NOTE, class_="soft"))
        for row in dict.fromkeys(verdict.row for verdict in found):
            lines = verdict_tables.count_lines(c for c in counts(found) if c.row == row)
            head = [f"{row} against", *verdict_tables.COUNT_HEAD[2:]]
            parts += [html.table(head, [line[1:] for line in lines]), _every_test(found, row)]
    return parts


def _every_test(found: Sequence[Verdict], row: str) -> Html:
    places, lines = verdict_tables.verdict_grid(found, row)
    head = ["against", *(f"r {p.r}, {p.n_way}-way {p.n_shot}" for p in places)]
    body = [[name, *map(_verdict, cells)] for name, cells in lines]
    words = f"{row} in every setting: mean difference, and p below it"
    return html.details(words, html.table(head, body))


def _verdict(verdict: Verdict | None) -> object:
    if verdict is None:
        return "–"
    kind = None
    if verdict.p < 0.05:
        kind = "up2" if verdict.difference > 0 else "down2"
    below = tag("span", p_value(verdict.p), class_="beside")
    return tag("div", signed(verdict.difference), below, class_=kind)


def _about(outcome: Outcome) -> Html:
    seconds = sum(cell.seconds for cell in measured(outcome).values())
    facts = {
        "data": outcome.dataset,
        "profile": outcome.profile,
        "cells measured": len(measured(outcome)),
        "cells missing": outcome.missing,
        "processor time of the tasks": f"{seconds / 60:,.1f} minutes",
        **outcome.about,
    }
    return html.details("Settings, budgets, versions and time", html.nested(facts))


def _repeat(outcome: Outcome, files: Sequence[Path]) -> Html:
    usual = f"fspll reproduce {outcome.experiment} --profile {outcome.profile}"
    command = outcome.about.get("command", usual)
    links = html.join((tag("a", path.name, href=path.name) for path in files), ", ")
    return html.details("Repeat it, and files", tag("pre", command), tag("p", links))
