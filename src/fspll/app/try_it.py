"""The page "Try it": a few-shot task from drawn characters, and a pad to draw one more.

Shapes: n given drawings, q new ones, l classes, c candidates per drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fspll._common.arguments import is_integer
from fspll._common.errors import InputError
from fspll.app.pad import draw_strokes, ink_address
from fspll.app.pages import show
from fspll.app.playground import (
    AS_GIVEN,
    LETTERS,
    METHODS,
    N_QUERY,
    Settings,
    Solved,
    Step,
    characters,
    classify,
    solve,
    steps,
)
from fspll.app.requests import json_response, read_json
from fspll.classifier import FsPLLClassifier
from fspll.labeling.report.plane import find_plane

_EDGE = 0.07  # of the map, which stays free at each side
_DIGITS = 4

Place = Callable[[np.ndarray], np.ndarray]


def page(request: Request) -> Response:
    """Return the page."""
    return show(request, "try.html.j2", "Try it", methods=METHODS, n_query=N_QUERY)


async def task(request: Request) -> Response:
    """Answer with a task and what the methods made of it."""
    given = await read_json(request)
    return json_response(await run_in_threadpool(lambda: describe(solve(Settings.read(given)))))


async def draw(request: Request) -> Response:
    """Answer with the classes of a drawing: strokes of a pen, or one of the task's new drawings."""
    given = await read_json(request)
    return json_response(await run_in_threadpool(lambda: _classified(given)))


def _classified(given: dict[str, Any]) -> dict[str, Any]:
    settings = Settings.read(given)
    if "query" in given:
        number, solved = given["query"], solve(settings)
        last = len(solved.new) - 1
        if not is_integer(number) or not 0 <= number <= last:
            raise InputError(
                f"query must be the number of a new drawing, 0 to {last}, not {number!r:.60}"
            )
        picture = characters().images[solved.new[number]]
    else:
        picture = draw_strokes(given.get("strokes"))
        solved = solve(settings)
    return {"picture": ink_address(picture), "probabilities": classify(solved, picture)}


# -------------------------------------------------------------------- what the page shows


def describe(solved: Solved) -> dict[str, Any]:
    """Return everything that the page shows of a task."""
    place = _placing(solved)
    found = solved.diagnosis
    return {
        "labels": list(LETTERS[: solved.candidates.shape[1]]),
        "given": [
            {
                "picture": picture,
                "truth": truth,
                "candidates": np.flatnonzero(mask).tolist(),
                "at": at,
            }
            for picture, truth, mask, at in zip(
                _pictures(solved.given),
                solved.truth.tolist(),
                solved.candidates,
                place(_features(solved.given)).tolist(),
                strict=True,
            )
        ],
        "new": [
            {"picture": picture, "truth": truth}
            for picture, truth in zip(_pictures(solved.new), solved.new_truth.tolist(), strict=True)
        ],
        "given_order": solved.given_order.tolist(),
        "new_order": solved.new_order.tolist(),
        "ceiling": found.ceiling,
        "ceiling_error": found.ceiling_error,
        "undecided": [[LETTERS[label] for label in group] for group in found.undecided],
        "methods": {key: _described(model, solved, place) for key, model in solved.models.items()},
    }


def _described(model: FsPLLClassifier, solved: Solved, place: Place) -> dict[str, Any]:
    """Return what one method made of a task; confidences are those of the candidates, (n, c)."""
    columns = np.stack([np.flatnonzero(mask) for mask in solved.candidates])
    probabilities = model.predict_proba(_features(solved.new))
    predicted = probabilities.argmax(axis=1)
    return {
        "labels_right": int((model.labels_ == solved.truth).sum()),
        "queries_right": int((predicted == solved.new_truth).sum()),
        "predicted": predicted.tolist(),
        "sure": _rounded(probabilities.max(axis=1)),
        "steps": [
            {
                "name": step.name,
                "labels": _chosen(step).tolist(),
                "confidence": _rounded(np.take_along_axis(step.confidence, columns, axis=1)),
                "prototypes": place(step.prototypes).tolist(),
            }
            for step in steps(model, _features(solved.given))
        ],
    }


def _features(rows: np.ndarray) -> np.ndarray:
    return characters().features[rows]


def _pictures(rows: np.ndarray) -> list[str]:
    return [ink_address(image) for image in characters().images[rows]]


def _rounded(values: np.ndarray) -> list[Any]:
    return values.astype(float).round(_DIGITS).tolist()


def _chosen(step: Step) -> np.ndarray:
    """Return the likeliest label of every drawing, -1 where all candidates are equally likely."""
    is_open = (step.name == AS_GIVEN) & (step.confidence.max(axis=1) < 1)
    return np.where(is_open, -1, step.confidence.argmax(axis=1))


def _placing(solved: Solved) -> Place:
    """Return how features (..., m) become shares of the map's width and height (..., 2)."""
    plane = find_plane(_features(solved.given), solved.truth)
    flat = plane.place(_features(solved.given))
    low = flat.min(axis=0)
    extent = np.maximum(np.ptp(flat, axis=0), 1e-9)

    def place(features: np.ndarray) -> np.ndarray:
        share = (plane.place(features) - low) / extent
        return (_EDGE + (1 - 2 * _EDGE) * share).round(_DIGITS)

    return place


ROUTES = [
    Route("/try", page),
    Route("/try/api/task", task, methods=["POST"]),
    Route("/try/api/draw", draw, methods=["POST"]),
]
