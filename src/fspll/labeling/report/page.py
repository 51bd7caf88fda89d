"""The page of a labeling: how sure the labels are, what to ask, and what could not be decided.

Functions here return what ``page.html.j2`` shows, as plain values; the template has the markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fspll._common.errors import InputError
from fspll._common.files import write_beside
from fspll._common.html.rendering import render
from fspll._common.version import __version__
from fspll._common.words import counted, percent, shorten, spoken
from fspll.labeling.reasons import SURE
from fspll.labeling.report.cards import least_sure, show_samples
from fspll.labeling.report.classes import CLASS_COLUMNS, show_classes
from fspll.labeling.report.gallery import Gallery
from fspll.labeling.report.map2d import draw_map
from fspll.labeling.report.questions import FIRST, after_answers, answer_data, show_questions
from fspll.labeling.report.undecided import in_order, in_words, show_undecided
from fspll.labeling.result import Labeling
from fspll.labeling.wording import (
    audit_sentence,
    check_sentence,
    condition,
    separation_warning,
    understood,
)

MOST_CLASSES = 400  # lines of the table of classes
MOST_ANNOTATORS = 100  # lines of the table of annotators


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
    with_samples = pictures is not None or result.texts is not None
    # Large copies first: those that are there already are not added again.
    gallery, least = Gallery(pictures), least_sure(result) if with_samples else []
    gallery.add([one.index for one in result.review[:FIRST]] + least)
    questions, undecided = show_questions(result, gallery), show_undecided(result, gallery)
    samples = show_samples(result, least, gallery)
    answerable = [one["sample"] for one in questions] + samples
    for kind in undecided:
        answerable += [one for group in kind["groups"] for one in group["samples"]]
    sections = [
        ("ask", "What to ask a person first"),
        ("undecided", "What could not be decided, and why"),
        ("classes", "Classes"),
        *([("annotators", "Annotators")] if result.annotators else []),
        ("map", "Map"),
        *([("samples", "Texts" if pictures is None else "Pictures")] if with_samples else []),
    ]
    page = render(
        __package__,
        "page.html.j2",
        title="Labels and how sure they are",
        contents=sections,
        titles=dict(sections),
        version=__version__,
        encoder=result.encoder,
        rectifier=result.rectifier,
        n_samples=len(result),
        n_classes=len(result.classes),
        sure=f"{SURE:.0%}",
        lead=_lead(result),
        understood=understood(result),
        figures=_figures(result),
        trust=[one for one in (audit_sentence(result), check_sentence(result)) if one],
        warnings=[one for one in (separation_warning(result), _warning(result)) if one],
        notes=result.notes,
        unreadable=result.unreadable,
        questions=questions,
        n_first=FIRST,
        n_questions=len(result.review),
        after_answers=after_answers(result),
        answer_data=answer_data(result, answerable),
        undecided=undecided,
        class_columns=list(CLASS_COLUMNS),
        classes=show_classes(result, MOST_CLASSES),
        annotators=_annotators(result),
        n_annotators=len(result.annotators),
        map=draw_map(result, gallery),
        samples=samples,
        pictures=gallery.held,
    )
    with write_beside(path) as beside:
        # File names need not be text; what cannot be written becomes a question mark.
        beside.write_bytes(page.encode("utf-8", errors="replace"))


# -------------------------------------------------------------------- the first words


def _lead(result: Labeling) -> str:
    n, open_ones = len(result), Counter(one.kind for one in result.undecided)
    said = [
        f"{counted(n, 'sample')} got one label each, out of {len(result.classes):,} labels in all."
        if len(result.classes) > 1
        else f"{counted(n, 'sample')} and one label: there was nothing to decide."
    ]
    if result.calibrated:
        on = condition(result)
        right = f"Expect {_about_right(result)} of the {n:,} labels to be right"
        said.append(f"{right}{on and ' ' + on}.")
    else:
        said.append(
            f"The rule '{result.rectifier}' gives scores, not probabilities: they put labels in "
            f"order, but do not say how many are right."
        )
    if result.outside.any():
        count = counted(int(result.outside.sum()), "label is", "labels are")
        said.append(f"{count} outside the candidate sets.")
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


def _figures(result: Labeling) -> list[tuple[str, str]]:
    n, sure = len(result), int((result.confidence >= SURE).sum())
    tiles = [
        (f"{n:,}", "sample" if n == 1 else "samples"),
        (f"{len(result.classes):,}", "class" if len(result.classes) == 1 else "classes"),
        (percent(result.expected_accuracy), "of the labels are expected to be right")
        if result.calibrated
        else (f"{result.expected_accuracy:.2f}", "mean score of the labels"),
        (f"{sure:,}", f"labels at least {SURE:.0%} sure"),
        (f"{len(result.undecided):,}", "need a look"),
    ]
    if result.audit is not None and result.audit.n_answers:
        count = f"of {counted(result.audit.n_answers, 'audited label')}"
        tiles.append(
            (
                percent(result.audit.share, 0),
                f"{count} {'is' if result.audit.n_answers == 1 else 'are'} right",
            )
        )
    if result.answers:
        tiles.append((f"{len(result.answers):,}", "answered by a person"))
    return tiles


def _warning(result: Labeling) -> str | None:
    count = sum(one.kind == "contradiction" for one in result.undecided)
    if not count or not result.calibrated or result.check is not None:
        return None  # a check counts missing labels in
    return (
        f"These figures assume that every candidate set contains the true label. "
        f"{counted(count, 'sample looks', 'samples look')} as if the true label were missing from "
        f"the set; each where it is makes one label more wrong than expected."
    )


# -------------------------------------------------------------------- annotators


def _annotators(result: Labeling) -> list[list[str]]:
    """Return a line per annotator, the lowest agreement first, or per one of the lowest."""
    lowest = sorted(result.annotators, key=lambda one: (one.agreement, -one.judgments, one.name))
    return [
        [shorten(one.name), f"{one.judgments:,}", percent(one.agreement, 0)]
        for one in lowest[:MOST_ANNOTATORS]
    ]
