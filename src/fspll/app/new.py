"""The page *New*: files in, how they were read, and a result to review."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from fspll._common.errors import FsPLLError, InputError
from fspll.app.fields import FIELDS, for_page
from fspll.app.open_uploads import Uploads
from fspll.app.pages import show
from fspll.app.pictures import SIDES
from fspll.app.preview import look, prepare_run
from fspll.app.reading_options import ENCODINGS
from fspll.app.requests import UnknownError, json_response, read_json
from fspll.app.session import Session
from fspll.app.uploads import (
    MOST_BYTES,
    MOST_FILES,
    MOST_PICTURE_BYTES,
    MOST_REQUEST_BYTES,
    MOST_TABLE_BYTES,
    RESULT,
    Upload,
)


def page(request: Request) -> Response:
    """Return the page."""
    most = {
        "files": f"{MOST_FILES:,}",
        "bytes": f"{MOST_BYTES >> 30} GiB",
        "picture": MOST_PICTURE_BYTES,
        "table": MOST_TABLE_BYTES,
        "request": MOST_REQUEST_BYTES,
    }
    return show(request, "new.html.j2", "New", fields=FIELDS, encodings=ENCODINGS, most=most)


def start(request: Request) -> Response:
    """Begin an upload; return its secret."""
    return json_response({"upload": _uploads(request).start().key})


def state(request: Request) -> Response:
    """Return what an upload holds, and where its result is."""
    upload = _upload(request)
    return json_response(
        {"files": list(upload.files), "pictures": upload.n_pictures, "workspace": upload.workspace}
    )


async def upload(request: Request) -> Response:
    """Take one file: its name is in the query, its bytes are the body, and go to the disk."""
    found = _unfinished(request)
    try:
        with found.receive(request.query_params.get("name", "")) as incoming:
            async for chunk in request.stream():
                await run_in_threadpool(incoming.write, chunk)
            await run_in_threadpool(incoming.keep)
    except ClientDisconnect:  # nobody is there to be told
        raise InputError("the file did not arrive as a whole") from None
    return json_response({"files": list(found.files), "pictures": found.n_pictures})


async def remove(request: Request) -> Response:
    """Remove a file of an upload, or all its pictures."""

    def removed(found: Upload, given: dict[str, Any]) -> dict[str, Any]:
        name = given.get("name")
        if not isinstance(name, str) and given.get("pictures") is not True:
            raise InputError("say what to remove: the name of a file, or the pictures")
        found.remove(name if isinstance(name, str) else None)
        return {"files": list(found.files), "pictures": found.n_pictures}

    return await _json_of(request, _unfinished, removed)


async def reading(request: Request) -> Response:
    """Return how an upload is understood with the options of the request."""
    return await _json_of(request, _upload, look)


async def run(request: Request) -> Response:
    """Label an upload in a workspace of its own; return that."""
    uploads = _uploads(request)

    def begun(found: Upload, given: dict[str, Any]) -> dict[str, Any]:
        with found.lock:
            if uploads.is_running(found):  # another window was quicker
                raise InputError("this data set is being labeled already")
            prepared = prepare_run(found, given, request.app.state.speak)
            if found.workspace:  # of a run that failed
                uploads.workspaces.remove(found.workspace)
            name = secrets.token_urlsafe(24)
            uploads.workspaces.add(name, Session(found.folder / RESULT, prepared))
            found.workspace = name
        return {"workspace": name}

    return await _json_of(request, _unfinished, begun)


async def close(request: Request) -> Response:
    """Delete an upload with everything that came of it."""
    uploads = _uploads(request)

    def closed(found: Upload, given: dict[str, Any]) -> dict[str, Any]:
        uploads.close(found.key)
        return {}

    return await _json_of(request, _upload, closed)


def picture(request: Request) -> Response:
    """Return the picture of one of the first samples, small."""
    upload, number = _upload(request), request.path_params["number"]
    path = upload.shown[number] if number < len(upload.shown) else None
    if path is None:
        raise UnknownError("there is no such picture")
    try:
        data, kind = request.app.state.copies.get(path, SIDES["small"])
    except FsPLLError as error:
        raise InputError(for_page(str(error), upload.folder)) from error
    return Response(data, media_type=f"image/{kind}")


def _uploads(request: Request) -> Uploads:
    return request.app.state.uploads


def _upload(request: Request) -> Upload:
    return _uploads(request).get(request.path_params["upload"])


def _unfinished(request: Request) -> Upload:
    """Return an upload that may still be changed."""
    found = _upload(request)
    if _uploads(request).is_running(found):
        raise InputError("this data set is being labeled already; begin a new one")
    return found


async def _json_of(
    request: Request,
    find: Callable[[Request], Upload],
    function: Callable[[Upload, dict[str, Any]], dict[str, Any]],
) -> Response:
    """Answer with what a function makes of the upload and the JSON object of a request."""
    given, found = await read_json(request), find(request)
    try:
        return json_response(await run_in_threadpool(function, found, given))
    except FsPLLError as error:
        raise InputError(for_page(str(error), found.folder)) from error


ROUTES = [
    Route("/new", page),
    Route("/new/start", start, methods=["POST"]),
    Mount(
        "/new/{upload}",
        routes=[
            Route("/state", state),
            Route("/upload", upload, methods=["POST"]),
            Route("/remove", remove, methods=["POST"]),
            Route("/reading", reading, methods=["POST"]),
            Route("/run", run, methods=["POST"]),
            Route("/close", close, methods=["POST"]),
            Route("/picture/{number:int}", picture),
        ],
    ),
]
