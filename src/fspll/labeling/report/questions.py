"""What to ask a person first, and what a page needs to take the answers down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from fspll._common.words import counted, percent
from fspll.annotations.answers import COLUMNS
from fspll.labeling.folder import ANSWERS
from fspll.labeling.report.cards import Sample, show_samples
from fspll.labeling.report.gallery import SMALL_SIDE, Gallery
from fspll.labeling.result import Labeling
from fspll.labeling.review import Question

FIRST = 10  # questions that are shown at once
MOST_QUESTIONS = 500  # of which only the review list of another rectifier has so many
MOST_SUGGESTED = 1000  # labels that are suggested while another label is typed


def show_questions(result: Labeling, gallery: Gallery) -> list[dict[str, Any]]:
    """Return the questions with their samples, whose pictures are added to the gallery."""
    asked = result.review[:MOST_QUESTIONS]
    rows = [one.index for one in asked]
    gallery.add(rows, SMALL_SIDE)
    return [
        {"sample": sample, "gained": _gained(one), "reason": one.reason}
        for one, sample in zip(asked, show_samples(result, rows, gallery), strict=True)
    ]


def _gained(one: Question) -> str:
    if one.gain == 0:  # a contradiction, where nothing was held out
        return "What it gains cannot be computed: the true label may be outside the set."
    gain = f"{one.gain:.1f}" if one.gain >= 0.05 else "under 0.1"
    then = f"; {percent(one.right_after)} right then" if one.right_after else ""
    return f"Gains {gain} {'label' if gain == '1.0' else 'labels'}{then}."


def after_answers(result: Labeling) -> str:
    """Return what to expect after some answers, where probabilities say it."""
    if not result.calibrated or not result.review:
        return ""
    few = result.review[: min(5, len(result.review))]
    then = f" After {counted(len(few), 'answer')} expect {percent(few[-1].right_after)} right"
    if len(result.review) > len(few):
        last = percent(result.review[-1].right_after)
        then += f", after all {len(result.review):,}, {last}"
    return then + "."


def answer_data(result: Labeling, samples: Iterable[Sample]) -> dict[str, Any]:
    """Return what ``answers.js`` makes the file of answers from.

    Parameters
    ----------
    result : Labeling
    samples : iterable of Sample
        Those that can be answered on the page.

    Returns
    -------
    dict
        ``samples`` has name and content hash by row, ``labels`` the whole label by column; pages
        show both shortened. The browser keeps answers under ``key``, which is another one for
        another result.
    """
    contents = result.contents or ("",) * len(result)
    shown = {sample.row: sample for sample in samples}
    offered = {
        one.column: str(one.label)
        for sample in shown.values()
        for one in (*sample.candidates, *sample.outside)
    }
    return {
        "key": f"fspll-answers-{_digest(result)}",
        "file": ANSWERS,
        "columns": COLUMNS,
        "samples": {row: [result.names[row], contents[row]] for row in shown},
        "labels": offered,
        "suggested": [str(label) for label in result.classes[:MOST_SUGGESTED].tolist()],
    }


def _digest(result: Labeling) -> str:
    """Return a hash of the samples, of their labels and of what was answered before."""
    digest = hashlib.sha256(np.ascontiguousarray(result.confidence).tobytes())
    for part in (result.names, result.contents, result.labels.tolist(), [*result.answers.items()]):
        digest.update(json.dumps(part, default=str).encode())
    return digest.hexdigest()[:32]
