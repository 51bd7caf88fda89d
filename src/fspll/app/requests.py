"""What requests ask for and what they get: JSON in and out, a workspace by its name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from fspll._common.errors import FsPLLError, InputError
from fspll.app.session import Session


class UnknownError(InputError):
    """What was asked for does not exist."""


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as JSON; what is no number becomes null."""
    body = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode("utf-8", errors="replace"), status, media_type="application/json")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


async def read_json(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise InputError("the request must be JSON (Content-Type: application/json)")
    try:
        given = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError("the request must be a JSON object")
    return given


async def json_of(
    request: Request, function: Callable[[Session, dict[str, Any]], dict[str, Any]]
) -> Response:
    """Answer a request with what a function makes of its session and its JSON object."""
    given = await read_json(request)
    session = session_of(request)
    # In a thread: it may wait for the disk.
    return json_response(await run_in_threadpool(function, session, given))


def session_of(request: Request) -> Session:
    """Return the session of the workspace that the path names."""
    workspaces = request.app.state.workspaces
    return workspaces.session(request.path_params["workspace"])


def error_response(error: FsPLLError) -> Response:
    """Return an error as one sentence."""
    status = 404 if isinstance(error, UnknownError) else 400
    return json_response({"error": " ".join(str(error).split())}, status)
