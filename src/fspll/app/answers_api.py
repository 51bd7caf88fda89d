"""Requests of the review page: what to ask, one sample in full, and what a person says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fspll._common.errors import InputError
from fspll.annotations.answers import Answer
from fspll.app.requests import json_of, json_response, session_of
from fspll.app.session import Session
from fspll.app.store import AUDIT_QUEUE, REVIEW_QUEUE
from fspll.app.view import SETTLED

MOST_SKIPPED = 1000
_WORDS = 400  # characters of a neighbor's text
_COLUMNS = 12  # of the user's own that a page shows


def describe(session: Session, sample: int, queue: str = REVIEW_QUEUE) -> dict[str, Any]:
    """Return everything that a page shows of a sample.

    In an audit it is not told how sure the model is, nor of what: the person's judgment is to be
    their own.
    """
    with session.ready():
        view, annotations = session.view, session.annotations
        answers = session.current()
        shown = brief(session, sample, answers)  # first: it refuses a sample that does not exist
        said = answers.get(sample)
        candidates = list(map(str, session.candidates.names(sample)))
        found: dict[str, Any] = {
            **shown,
            "queue": queue,
            "columns": [(t, cells[sample]) for t, cells in annotations.columns[:_COLUMNS]],
            "annotators": who_said(session, sample),
            "answer": None if said is None else said.label,
            "audited": session.store.get(session.keys[sample], AUDIT_QUEUE) is not None,
            "origin": annotations.origins[sample],
        }
        if queue == AUDIT_QUEUE:
            found |= {"candidates": [{"label": one} for one in sorted(candidates)]}
            return found | {"label": None, "confidence": None, "neighbors": [], "reason": ""}
        chances = view.probabilities[sample]
        labels = sorted({*candidates, *chances}, key=lambda one: (-chances.get(one, 0.0), one))
        asked = next((one for one in view.questions if one.sample == sample), None)
        confidence = session.confidence()
        near = view.neighbors(sample, confidence >= SETTLED)
        return found | {
            "candidates": [{"label": one, "probability": chances.get(one)} for one in labels],
            "gain": None if asked is None else asked.gain,
            "right_after": None if asked is None else asked.right_after or None,
            "reason": view.reasons.get(sample, ("", ""))[1],
            "neighbors": [brief(session, one, answers) for one in near],
            "fitted": view.labeling is not None,
        }


def brief(session: Session, sample: int, answers: Mapping[int, Answer]) -> dict[str, Any]:
    """Return what a page shows of one sample among many; ``answers`` are the session's."""
    name = session.key(sample)[0]
    said = answers.get(sample)
    sure = float(session.view.confidence[sample])
    if said is not None:
        sure = float("nan") if said.discarded else 1.0
    label = session.view.labels[sample]
    text = None if session.texts is None else session.texts[sample]
    return {
        "id": sample,
        "name": name,
        "kind": "picture" if session.pictures is not None else "text" if text else "vector",
        "text": text,
        "label": label if said is None or said.discarded else said.label,
        "confidence": None if np.isnan(sure) else sure,
        "answered": said is not None,
        "discarded": said is not None and said.discarded,
    }


def who_said(session: Session, sample: int) -> list[dict[str, Any]]:
    """Return which annotator gave the sample which labels."""
    said = session.annotations.judgments
    if said is None:
        return []
    found: dict[str, list[str]] = {}
    for at in np.flatnonzero(said.rows == sample).tolist():
        label = int(said.labels[at])
        name = session.annotations.classes[label] if label >= 0 else "another label"
        found.setdefault(said.names[int(said.annotators[at])], []).append(name)
    return [{"who": who, "labels": labels} for who, labels in found.items()]


def next_of(queue: Sequence[int], skipped: Sequence[int]) -> int | None:
    """Return the first sample that was not skipped; if all were, the first again."""
    left_out = set(skipped)
    return next((one for one in queue if one not in left_out), queue[0] if queue else None)


# -------------------------------------------------------------------- requests


def status(request: Request) -> Response:
    """Return how far the session is."""
    return json_response(session_of(request).status())


def queue(request: Request) -> Response:
    """Return the samples to ask about, and the first of them."""
    session = session_of(request)
    name = _queue(request.query_params.get("name", REVIEW_QUEUE))
    return json_response(_state(session, name, []))


def sample(request: Request) -> Response:
    """Return one sample in full."""
    session = session_of(request)
    name = _queue(request.query_params.get("queue", REVIEW_QUEUE))
    return json_response(describe(session, request.path_params["sample"], name))


async def answer(request: Request) -> Response:
    """Keep what a person said; return the next sample."""
    return await json_of(request, _answer)


async def undo(request: Request) -> Response:
    """Take an answer back; return its sample."""
    return await json_of(request, _undo)


async def save(request: Request) -> Response:
    """Write the files of the result anew, as the command would."""
    return await json_of(request, _save)


def _answer(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    number, name = _number(given.get("id"), "id"), _queue(given.get("queue", REVIEW_QUEUE))
    who, skipped = given.get("who", ""), given.get("skipped", [])
    if not isinstance(skipped, list) or len(skipped) > MOST_SKIPPED:
        raise InputError(f"skipped is a list of at most {MOST_SKIPPED} samples")
    if given.get("discard") is True:
        event = session.discard(number, who=who)
    else:
        event = session.answer(number, given.get("label", ""), who=who, queue=name)
    skipped = [_number(one, "skipped") for one in skipped]
    return {"event": event.number, **_state(session, name, skipped)}


def _undo(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    event = session.undo(_number(given.get("event"), "event"))
    found = _state(session, event.queue, [])
    number = session.numbers[event.key[0]]
    return {**found, "event": event.number, "next": describe(session, number, event.queue)}


def _save(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    audit = given.get("audit")
    if audit is not None and not 1 <= _number(audit, "audit") <= len(session.annotations):
        raise InputError(f"audit is between 1 and {len(session.annotations)}, not {audit}")
    session.save(**({} if audit is None else {"audit": audit}))
    return session.status()


def _state(session: Session, name: str, skipped: Sequence[int]) -> dict[str, Any]:
    with session.ready():
        ids = session.queue(name)
        first = next_of(ids, skipped)
        return {
            "queue": ids,
            "next": None if first is None else describe(session, first, name),
            "progress": session.progress(),
            "version": session.version,
        }


def _queue(name: Any) -> str:
    if name not in (REVIEW_QUEUE, AUDIT_QUEUE):
        raise InputError(f"a queue is 'review' or 'audit', not {name!r:.40}")
    return name


def _number(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{what} is a whole number, not {value!r:.40}")
    return value


ROUTES = [
    Route("/status", status),
    Route("/queue", queue),
    Route("/sample/{sample:int}", sample),
    Route("/answer", answer, methods=["POST"]),
    Route("/undo", undo, methods=["POST"]),
    Route("/save", save, methods=["POST"]),
]
