"""The server: routes put together, and run on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from fspll._common.errors import FsPLLError
from fspll.app import answers_api, downloads, look, new, pages, pictures, try_it
from fspll.app import label_studio as studio
from fspll.app.open_uploads import Uploads
from fspll.app.pictures import Copies
from fspll.app.requests import error_response, json_response
from fspll.app.security import Guard, TooLargeError
from fspll.app.uploads import MOST_REQUEST_BYTES
from fspll.app.workspaces import Workspaces

LABEL_STUDIO = "/label-studio"
SIZES = {"/upload": MOST_REQUEST_BYTES, LABEL_STUDIO: 16 << 20}  # bytes of larger requests
# Everything about one result; its pages, and what their scripts ask for.
WORKSPACE = [
    Route("/review", pages.review),
    Route("/audit", pages.audit),
    Route("/look", look.look),
    Route("/files", pages.files),
    *downloads.ROUTES,
    *pictures.ROUTES,
    Mount("/api", routes=[*answers_api.ROUTES, *look.ROUTES]),
]


def make_app(
    workspaces: Workspaces,
    token: str,
    *,
    hosts: tuple[str, ...] = (),
    label_studio: str | None = None,
    speak: Callable[[str], str] = str,
) -> Guard:
    """Return the application.

    Parameters
    ----------
    workspaces : Workspaces
        Closed when the server stops.
    token : str
        What every address begins with.
    hosts : tuple of str
        As of :class:`fspll.app.security.Guard`.
    label_studio : str, optional
        The token below which Label Studio asks; by default it may not.
    speak : callable
        Words the notes of new results, as of :class:`fspll.labeling.run.Run`.
    """
    uploads = Uploads(workspaces)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        uploads.close_all()
        workspaces.close()

    app = Starlette(
        routes=[
            Route("/", pages.start),
            Route("/static/{name}", pages.static),
            *try_it.ROUTES,
            Mount("/w/{workspace}", routes=WORKSPACE),
            *new.ROUTES,
            Mount(LABEL_STUDIO, routes=studio.ROUTES),
        ],
        exception_handlers={
            FsPLLError: _sentence,
            TooLargeError: _too_large,
            404: _nothing,
            405: _nothing,
            500: _bug,
        },
        lifespan=lifespan,
    )
    app.state.workspaces = workspaces
    app.state.uploads, app.state.speak = uploads, speak
    app.state.copies = Copies()
    app.state.label_studio = studio.Connection()
    others = {} if label_studio is None else {label_studio: LABEL_STUDIO}
    return Guard(app, token, hosts=hosts, others=others, sizes=SIZES)


def _sentence(request: Request, error: Any) -> Response:
    return error_response(error)


def _too_large(request: Request, error: Exception) -> Response:
    return json_response({"error": str(error)}, 413)


def _nothing(request: Request, error: Any) -> Response:
    return json_response({"error": "there is nothing here"}, error.status_code)


def _bug(request: Request, error: Exception) -> Response:
    about = f"{type(error).__name__}: {error}"
    return json_response({"error": f"something went wrong here ({about}); nothing was lost"}, 500)
