"""The server: routes put together, and run on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from fspll._common.errors import FsPLLError
from fspll.app import answers_api, downloads, new, pages, pictures
from fspll.app.open_uploads import Uploads
from fspll.app.pictures import Copies
from fspll.app.requests import error_response, json_response
from fspll.app.security import Guard, TooLargeError
from fspll.app.workspaces import Workspaces

# Everything about one result; its pages, and what their scripts ask for.
WORKSPACE = [
    Route("/review", pages.review),
    Route("/audit", pages.audit),
    Route("/files", pages.files),
    *downloads.ROUTES,
    *pictures.ROUTES,
    Mount("/api", routes=answers_api.ROUTES),
]


def make_app(
    workspaces: Workspaces,
    token: str,
    *,
    hosts: tuple[str, ...] = (),
    others: Mapping[str, str] | None = None,
) -> Guard:
    """Return the application.

    Parameters
    ----------
    workspaces : Workspaces
        Closed when the server stops.
    token : str
        What every address begins with.
    hosts, others
        As of :class:`fspll.app.security.Guard`.
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
            Mount("/w/{workspace}", routes=WORKSPACE),
            *new.ROUTES,
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
    app.state.uploads = uploads
    app.state.copies = Copies()
    return Guard(app, token, hosts=hosts, others=others)


def _sentence(request: Request, error: Any) -> Response:
    return error_response(error)


def _too_large(request: Request, error: Exception) -> Response:
    return json_response({"error": str(error)}, 413)


def _nothing(request: Request, error: Any) -> Response:
    return json_response({"error": "there is nothing here"}, error.status_code)


def _bug(request: Request, error: Exception) -> Response:
    about = f"{type(error).__name__}: {error}"
    return json_response({"error": f"something went wrong here ({about}); nothing was lost"}, 500)
