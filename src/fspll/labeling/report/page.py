"""The page of a labeling: how sure the labels are, what to ask, and what could not be decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fspll._common.errors import InputError
from fspll._common.files import write_beside
from fspll._common.html import elements as html
from fspll._common.html.elements import Html, tag
from fspll._common.version import __version__
from fspll.labeling import Labeling, Question
from fspll.labeling.report.cards import MOST_CARDS, bars, cards, least_sure, look
from fspll.labeling.report.map2d import chosen_columns, draw_map
from fspll.labeling.report.style import CSS
from fspll.labeling.report.undecided import SURE, in_order, in_words, show_undecided
from fspll.labeling.report.words import beginning, counted, name, percent, shorten, spoken

MOST_CLASSES = 400  # lines of the table of classes
_QUESTIONS_SHOWN, _QUESTIONS_LISTED = 10, 100
_UNREADABLE = 100


def write_report(
    result: Labeling, path: Path | str, pictures: Sequence[Path] | None = None
) -> None:
    """Write what labeling found as one page that needs nothing else and asks nothing of the web.

    Parameters
    ----------
    result : Labeling
    path : path
        The file, usually ``report.html``; replaced when it is there.
    pictures : sequence of path, optional
        The picture of every sample; those that cannot be read are left out. By default those of
        the result.
    """
    pictures = result.pictures if pictures is None else pictures
    if pictures is not None and len(pictures) != len(result):
        raise InputError(f"{len(pictures)} pictures do not fit {len(result)} samples")
    sections = [
        ("ask", "What to ask a person first", _ask(result, pictures)),
        ("undecided", "What could not be decided, and why", show_undecided(result)),
        ("classes", "Classes", _classes(result)),
        ("map", "Map", draw_map(result)),
        ("samples", "Texts" if pictures is None else "Pictures", _samples(result, pictures)),
    ]
    kept = [(anchor, title, content) for anchor, title, content in sections if content]
    body = [_style(), _summary(result)]
    body += [html.section(title, content, anchor=anchor) for anchor, title, content in kept]
    body.append(_about(result))
    contents = [(anchor, title) for anchor, title, _ in kept]
    page = html.page("Labels and how sure they are", html.join(body), contents=contents)
    with write_beside(path) as beside:
        # File names need not be text; what cannot be written becomes a question mark.
        beside.write_bytes(page.encode("utf-8", errors="replace"))


def _style() -> Html:
    return Html(f"<style>{CSS}</style>")


# -------------------------------------------------------------------- the first words


def _summary(result: Labeling) -> Html:
    n, sure = len(result), int((result.confidence >= SURE).sum())
    open_ones = Counter(one.kind for one in result.undecided)
    tiles = [
        (f"{n:,}", "sample" if n == 1 else "samples"),
        (f"{len(result.classes):,}", "class" if len(result.classes) == 1 else "classes"),
        _level(result),
        (f"{sure:,}", f"labels at least {SURE:.0%} sure"),
        (f"{len(result.undecided):,}", "need a look"),
    ]
    if result.answers:
        tiles.append((f"{len(result.answers):,}", "answered by a person"))
    parts = [tag("p", _first_words(result, open_ones), class_="lead"), html.tiles(tiles)]
    if open_ones["contradiction"] and result.rectifier == "evidence":
        parts.append(tag("p", _warning(open_ones["contradiction"]), class_="warn"))
    if result.notes:
        parts.append(html.bullets(beginning(note, 600) for note in result.notes))
    if result.unreadable:
        left_out = [_reason(one.name, one.reason) for one in result.unreadable[:_UNREADABLE]]
        more = len(result.unreadable) - len(left_out)
        left_out += [html.text(f"and {more:,} more")] if more else []
        words = f"{counted(len(result.unreadable), 'sample')} could not be read and left out"
        parts.append(html.details(words, html.bullets(left_out)))
    return html.join(parts)


def _level(result: Labeling) -> tuple[str, str]:
    if result.rectifier != "evidence":
        return f"{result.expected_accuracy:.2f}", "mean score of the labels"
    return percent(result.expected_accuracy), "of the labels are expected to be right"


def _first_words(result: Labeling, open_ones: Counter[str]) -> str:
    n = len(result)
    said = [
        f"{counted(n, 'sample')} got one label each, out of {len(result.classes):,} labels in all."
        if len(result.classes) > 1
        else f"{counted(n, 'sample')} and one label: there was nothing to decide."
    ]
    if result.rectifier == "evidence":
        said.append(f"Expect {_about_right(result)} of the {n:,} labels to be right.")
    else:
        said.append(
            f"The rule '{result.rectifier}' gives scores, not probabilities: they put labels in "
            f"order, but do not say how many are right."
        )
    if not result.undecided:
        said.append("No sample needs a look.")
        return " ".join(said)
    counts = [in_words(kind, open_ones[kind]) for kind in in_order(list(open_ones))]
    total = len(result.undecided)
    said.append(f"{counted(total, 'sample needs', 'samples need')} a look: {spoken(counts)}.")
    return " ".join(said)


def _about_right(result: Labeling) -> str:
    right = float(result.confidence.sum())
    if right > len(result) - 0.05:
        return "all" if right > len(result) - 1e-6 else "practically all"
    return f"about {right:,.1f}" if len(result) < 1000 else f"about {right:,.0f}"


def _warning(count: int) -> str:
    return (
        f"These figures take the candidate sets at their word. "
        f"{counted(count, 'sample looks', 'samples look')} as if the true label were missing from "
        f"the set; each where it is makes one label more wrong than expected."
    )


def _reason(who: str, why: str) -> Html:
    return html.join([name(who), ": ", beginning(why, 300)])


# -------------------------------------------------------------------- what to ask


def _ask(result: Labeling, pictures: Sequence[Path] | None) -> Html:
    if not result.review:
        return tag("p", "Nothing: no answer is expected to change a label.")
    shown, rest = result.review[:_QUESTIONS_SHOWN], result.review[_QUESTIONS_SHOWN:]
    parts = [tag("p", *_ask_words(result))]
    parts.append(tag("ol", *(_question(result, one, pictures) for one in shown), class_="ask"))
    if rest:
        lines = [
            [name(result.names[one.index]), *_cells(result, one)]
            for one in rest[:_QUESTIONS_LISTED]
        ]
        head = ["sample", "label", "sure", "labels gained", "right then"]
        words = f"{counted(len(rest), 'more question')}, in this order"
        parts.append(html.details(words, html.table(head, lines)))
    return html.join(parts)


def _ask_words(result: Labeling) -> list[object]:
    words: list[object] = [
        "The samples whose answers are expected to put most labels right, each given those before "
        "it. Write answers into the column ",
        tag("code", "answer"),
        " of ",
        tag("code", "review.csv"),
        ", as many as you like, and run the same command with ",
        tag("code", "--answers review.csv"),
        ".",
    ]
    if result.rectifier == "evidence":
        few = result.review[: min(5, len(result.review))]
        then = f" After {counted(len(few), 'answer')} expect {percent(few[-1].right_after)} right"
        if len(result.review) > len(few):
            last = percent(result.review[-1].right_after)
            then += f", after all {len(result.review):,}, {last}"
        words.append(then + ".")
    return words


def _question(result: Labeling, one: Question, pictures: Sequence[Path] | None) -> Html:
    gain = f"{one.gain:.1f}" if one.gain >= 0.05 else "under 0.1"
    gained = f"Gains {gain} {'label' if gain == '1.0' else 'labels'}"
    gained += f"; {percent(one.right_after)} right then." if one.right_after else "."
    if one.gain == 0:
        gained = "What it gains cannot be computed: the true label may be outside the set."
    why = f" Why: {beginning(one.reason, 300)}." if one.reason else ""
    seen = look(result, one.index, pictures)
    before, inside = (seen, "") if pictures is not None else ("", seen)
    words = tag("p", gained, why)
    what = [name(result.names[one.index]), inside, bars(result, one.index), words]
    return tag("li", before, tag("div", *what, class_="what"))


def _cells(result: Labeling, one: Question) -> list[object]:
    return [
        shorten(result.labels[one.index], 30),
        percent(float(result.confidence[one.index]), 0),
        f"{one.gain:.2f}",
        percent(one.right_after),
    ]


# -------------------------------------------------------------------- classes and samples


def _classes(result: Labeling) -> Html:
    top, count = chosen_columns(result), len(result.classes)
    chosen = np.bincount(top, minlength=count)
    offered = np.bincount(result.candidates.matrix.indices, minlength=count)
    total = np.bincount(top, weights=result.confidence, minlength=count)
    smallest = np.full(count, np.inf)
    np.minimum.at(smallest, top, result.confidence)
    mean = total / np.maximum(chosen, 1)
    rows = np.arange(count)
    note: object = ""
    if len(rows) > MOST_CLASSES:
        rows = np.lexsort((mean, chosen == 0))[:MOST_CLASSES]
        words = f"The {MOST_CLASSES} least sure of {count:,} classes; labels.csv has all."
        note = tag("p", words, class_="soft")
    lines = [
        [
            shorten(result.classes[row]),
            f"{chosen[row]:,}",
            f"{offered[row]:,}",
            percent(float(mean[row])) if chosen[row] else "–",
            percent(float(smallest[row])) if chosen[row] else "–",
        ]
        for row in rows
    ]
    head = ["label", "chosen for", "candidate of", "mean confidence", "smallest"]
    words = "Samples that got each label, samples that had it as a candidate, and how sure it is."
    return html.join([tag("p", words, class_="soft"), note, html.table(head, lines)])


def _samples(result: Labeling, pictures: Sequence[Path] | None) -> Html:
    if pictures is None and result.texts is None:
        return html.text("")
    rows = least_sure(result)
    words = "The least sure come first, after those that contradict their candidates."
    if len(rows) < len(result):
        words += f" {MOST_CARDS} of {len(result):,} are shown."
    words += " Framed ones need a look; the chosen label is on top."
    return html.join([tag("p", words, class_="soft"), cards(result, rows, pictures)])


def _about(result: Labeling) -> Html:
    words = (
        f"Made by fspll {__version__}, encoder {shorten(result.encoder)}, rectifier "
        f"{result.rectifier}. The labels are in labels.csv, the model in model.fspll."
    )
    return tag("p", words, class_="soft")
