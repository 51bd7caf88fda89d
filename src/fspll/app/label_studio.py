"""What a running Label Studio asks and tells: its ML-backend protocol, below a secret of its own.

``docs/label-studio.md`` says what it sends. Everything about tasks, predictions and events is in
:mod:`fspll.labeling.label_studio`; here are the requests.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fspll._common.errors import InputError
from fspll.app.requests import json_response, read_json
from fspll.app.session import Session
from fspll.app.store import REVIEW_QUEUE
from fspll.app.workspaces import MAIN

if TYPE_CHECKING:
    from fspll.labeling.label_studio.matching import SampleIndex
    from fspll.labeling.result import Labeling

WHO = "Label Studio"
_STARTING = "fspll, starting"


@dataclass
class Connection:
    """What has to be remembered between requests.

    Attributes
    ----------
    log : AnnotationLog
        Which annotation gave which answer, as long as this process runs.
    """

    log: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    _indexed: tuple[Labeling, SampleIndex] | None = None

    def index(self, result: Labeling) -> SampleIndex:
        """Return the samples of a result by what tasks may call them."""
        from fspll.labeling.label_studio.matching import SampleIndex

        if self._indexed is None or self._indexed[0] is not result:
            self._indexed = (result, SampleIndex(result))
        return self._indexed[1]


def health(request: Request) -> Response:
    """Say that the server is there."""
    return json_response({"status": "UP", "model_class": "fspll"})


async def setup(request: Request) -> Response:
    """Say which version predictions have now; at once, whether or not the model is there yet."""
    given = await read_json(request)
    return json_response(await run_in_threadpool(_setup, _session(request), given))


async def predict(request: Request) -> Response:
    """Return a prediction per task."""
    given = await read_json(request)
    return json_response(await run_in_threadpool(_predict, request.app.state, given))


async def webhook(request: Request) -> Response:
    """Keep the answers that people gave, or took back."""
    given = await read_json(request)
    return json_response(await run_in_threadpool(_webhook, request.app.state, given))


def _session(request: Request) -> Session:
    return request.app.state.workspaces.session(MAIN)


def _setup(session: Session, given: dict[str, Any]) -> dict[str, Any]:
    from fspll.labeling.label_studio.predicting import setup

    result = session.labeling()
    return {"model_version": _STARTING} if result is None else setup(result, given)


def _fitted(session: Session) -> Labeling:
    result = session.labeling()
    if result is None:
        raise InputError("the result is still being read; try again in a moment")
    return result


def _predict(state: Any, given: dict[str, Any]) -> dict[str, Any]:
    from fspll.labeling.label_studio.predicting import predict_tasks

    result = _fitted(state.workspaces.session(MAIN))
    connection: Connection = state.label_studio
    with connection.lock:
        index = connection.index(result)
    return predict_tasks(result, given.get("tasks"), given.get("label_config"), index)


def _webhook(state: Any, given: dict[str, Any]) -> dict[str, Any]:
    from fspll.labeling.label_studio.events import AnnotationLog, read_event

    session: Session = state.workspaces.session(MAIN)
    connection: Connection = state.label_studio
    result = _fitted(session)
    with connection.lock:  # answers count in the order in which they came
        event = read_event(result, given, connection.index(result))
        connection.log = AnnotationLog() if connection.log is None else connection.log
        changed = connection.log.apply(event)
        for name, label in changed.items():
            with session.ready():
                number = session.numbers[name]
                before = session.store.get(session.key(number), REVIEW_QUEUE)
                if label is None and before is not None:
                    session.withdraw(number)
                elif label is not None and (before is None or before.label != str(label)):
                    session.answer(number, str(label), who=WHO)
    return {"action": event.action, "answers": len(changed), "ignored": list(event.ignored)}


ROUTES = [
    Route("/", health),
    Route("/health", health),
    Route("/setup", setup, methods=["POST"]),
    Route("/predict", predict, methods=["POST"]),
    Route("/webhook", webhook, methods=["POST"]),
]
