"""The page *Look*: all samples, the map, classes and annotators; and what its script asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fspll._common.errors import InputError
from fspll._common.words import beginning
from fspll.app.answers_api import brief
from fspll.app.choosing import Query, choose, matching
from fspll.app.map_points import points_of
from fspll.app.pages import show
from fspll.app.requests import json_of, json_response, session_of
from fspll.app.session import MOST_CLASSES, Session
from fspll.app.store import AUDIT_QUEUE, REVIEW_QUEUE
from fspll.app.table import NO_LABEL, Table, table_of
from fspll.labeling.report.map2d import N_COLORS, mark_shapes
from fspll.labeling.report.undecided import in_order, in_words

PAGE = 60  # samples of a page
_CARD_TEXT, _MAP_TEXT = 400, 160  # characters of a text


def look(request: Request) -> Response:
    """Return the page."""
    session_of(request)
    return show(request, "look.html.j2", "Look")


def samples(request: Request) -> Response:
    """Return one page of the samples that a query asks for, or those with given numbers."""
    given, session = request.query_params, session_of(request)
    query = Query.of(given)
    with session.ready():
        table = table_of(session)
        rows = choose(table, query) if "ids" not in given else _numbers(given["ids"], table)
        pages = max(1, -(-len(rows) // PAGE))
        page = min(query.page, pages)  # answers may have emptied the one that was asked for
        shown = rows[(page - 1) * PAGE : page * PAGE]
        return json_response(
            {
                "total": len(rows),
                "page": page,
                "pages": pages,
                "samples": [_card(session, table, row) for row in shown.tolist()],
                "fitted": session.view.labeling is not None,
                "version": table.version,
            }
        )


def overview(request: Request) -> Response:
    """Return what there is to filter by: classes, kinds of doubt and annotators, with figures."""
    session = session_of(request)
    with session.ready():
        table = table_of(session)
        return json_response(
            {
                "samples": len(table),
                "doubtful": int(table.doubtful.sum()),
                "fitted": session.view.labeling is not None,
                "calibrated": session.view.calibrated,
                "classes": _classes(table),
                "more_classes": max(0, len(table.classes) - MOST_CLASSES),
                "reasons": [
                    {"kind": kind, "words": in_words(kind, len(table.kinds[kind]))}
                    for kind in in_order(list(table.kinds))
                ],
                "annotators": _annotators(table),
                "shapes": mark_shapes(),
                "colors": N_COLORS,
                "version": table.version,
            }
        )


def sample_map(request: Request) -> Response:
    """Return the points of the map, and which of them a query asks for."""
    session, query = session_of(request), Query.of(request.query_params)
    points = points_of(session)
    if points is None:
        return json_response({"fitted": False})
    with session.ready():
        table = table_of(session)
        # What has been discarded since the last fit has no label any more.
        kept = table.columns[points.rows] != NO_LABEL
        rows, places = points.rows[kept], points.places[kept].round(4)
        columns, texts = table.columns[rows].tolist(), session.texts
        ids = rows.tolist()
        return json_response(
            {
                "fitted": True,
                "ids": ids,
                "x": places[:, 0].tolist(),
                "y": places[:, 1].tolist(),
                "columns": columns,
                "confidence": table.confidence[rows].tolist(),
                "open": table.doubtful[rows].tolist(),
                "match": matching(table, query)[rows].tolist(),
                "names": [session.keys[row][0] for row in ids],
                "labels": [table.classes[column] for column in columns],
                "texts": texts and [beginning(texts[row], _MAP_TEXT) for row in ids],
                "pictures": session.pictures is not None,
                "caption": points.caption,
                "version": table.version,
            }
        )


async def withdraw(request: Request) -> Response:
    """Take back the answer of a sample, whenever it was given."""
    return await json_of(request, _withdraw)


def _withdraw(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    number = given.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"id is a whole number, not {number!r:.40}")
    with session.ready():
        key = session.key(number)
        queue = next((q for q in (AUDIT_QUEUE, REVIEW_QUEUE) if session.store.get(key, q)), None)
        if queue is None:
            raise InputError(f"{key[0]!r} has no answer that could be taken back")
        event = session.withdraw(number, queue=queue)
        return {"event": event.number, "progress": session.progress()}


# -------------------------------------------------------------------- what is shown


def _card(session: Session, table: Table, row: int) -> dict[str, Any]:
    found = brief(session, row, table.answers)
    found["doubtful"] = bool(table.doubtful[row])
    if found["text"] is not None:
        found["text"] = beginning(found["text"], _CARD_TEXT)
    return found


def _classes(table: Table) -> list[dict[str, Any]]:
    """Return figures of the classes; of very many, those with most doubtful samples."""
    labeled, count = table.columns != NO_LABEL, len(table.classes)
    columns = table.columns[labeled]
    size = np.bincount(columns, minlength=count)
    total = np.bincount(columns, weights=table.confidence[labeled], minlength=count)
    doubtful = np.bincount(columns, weights=table.doubtful[labeled], minlength=count)
    chosen: Sequence[int] = range(count)
    if count > MOST_CLASSES:
        chosen = np.sort(np.lexsort((-size, -doubtful))[:MOST_CLASSES]).tolist()
    return [
        {
            "label": table.classes[column],
            "column": column,
            "count": int(size[column]),
            "confidence": float(total[column] / size[column]) if size[column] else None,
            "doubtful": int(doubtful[column]),
        }
        for column in chosen
    ]


def _annotators(table: Table) -> list[dict[str, Any]]:
    """Return how often annotators agree with the labels, those who labeled most first."""
    found = table.agreement
    if found is None or table.fixed.judgments is None:
        return []
    each = zip(table.fixed.judgments.names, found.judged.tolist(), found.share, strict=True)
    everyone = [
        {"name": name, "judgments": judged, "agreement": float(share)}
        for name, judged, share in each
        if judged
    ]
    return sorted(everyone, key=lambda one: (-one["judgments"], one["name"]))


def _numbers(text: str, table: Table) -> np.ndarray:
    parts = text.split(",")[: PAGE + 1]
    right = all(one.isascii() and one.isdecimal() and len(one) < 10 for one in parts)
    if not right or len(parts) > PAGE or max(map(int, parts)) >= len(table):
        raise InputError(f"ids are at most {PAGE} numbers of samples, with commas between them")
    return np.array([*map(int, parts)])


ROUTES = [
    Route("/samples", samples),
    Route("/overview", overview),
    Route("/map", sample_map),
    Route("/withdraw", withdraw, methods=["POST"]),
]
