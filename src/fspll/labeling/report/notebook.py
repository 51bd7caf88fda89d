"""A result as the cell of a notebook shows it: summary, classes and the first questions."""

from __future__ import annotations

from fspll._common.html.rendering import render
from fspll._common.words import beginning, percent
from fspll.labeling.report.classes import CLASS_COLUMNS, show_classes
from fspll.labeling.result import Labeling
from fspll.labeling.wording import expectation, sample_name, separation_warning, understood

_CLASSES, _QUESTIONS = 12, 5
_QUESTION_COLUMNS = ("sample", "guess", "sure", "why")


def show_in_notebook(result: Labeling) -> str:
    """Return a piece of HTML, without a script or a style sheet of its own."""
    return render(
        __package__,
        "notebook.html.j2",
        n_samples=len(result),
        expectation=expectation(result),
        understood=understood(result),
        warning=separation_warning(result),
        n_classes=len(result.classes),
        class_columns=CLASS_COLUMNS,
        classes=show_classes(result, _CLASSES),
        n_questions=len(result.review),
        question_columns=_QUESTION_COLUMNS,
        questions=[
            [
                sample_name(result, one.index),
                result.labels[one.index],
                percent(float(result.confidence[one.index]), 0),
                beginning(one.reason or "not sure", 200),
            ]
            for one in result.review[:_QUESTIONS]
        ],
    )
