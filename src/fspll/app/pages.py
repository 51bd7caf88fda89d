"""The pages: each a template that says nothing yet; its script asks for the rest."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from fspll._common.html import rendering
from fspll._common.version import __version__
from fspll.app.requests import UnknownError, session_of
from fspll.app.workspaces import MAIN
from fspll.labeling.report import map2d

_STATIC = Path(__file__).parent / "static"
_STYLE = Path(rendering.__file__).with_name("style.css")  # that of all reports
_LABEL_STYLE = Path(map2d.__file__).with_name("report.css")  # with the colors of the map
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# What every page of a workspace links to, and what the server has besides.
PLACES = (("review", "Review"), ("audit", "Audit"), ("look", "Look"), ("files", "Files"))


@cache
def _templates() -> Environment:
    return rendering.environment("fspll.app")


def show(request: Request, template: str, title: str, **values: object) -> Response:
    """Return a page.

    Parameters
    ----------
    request : Request
    template : str
        A file of ``templates/`` that extends ``shell.html.j2``.
    title : str
    **values
        What the template wants besides.
    """
    base = request.scope["fspll_base"]
    workspace = request.path_params.get("workspace", "")
    page = _templates().get_template(f"templates/{template}")
    return HTMLResponse(
        page.render(
            title=title,
            base=base,
            workspace=workspace,
            home=f"{base}w/{workspace}/" if workspace else base,
            place=request.url.path.rstrip("/").rpartition("/")[2],
            places=PLACES if workspace else (),
            main=MAIN if request.app.state.workspaces.has_main else "",
            version=__version__,
            **values,
        )
    )


def start(request: Request) -> Response:
    """Lead to the result that the server was started with, or to a new one."""
    place = f"w/{MAIN}/review" if request.app.state.workspaces.has_main else "new"
    return RedirectResponse(request.scope["fspll_base"] + place)


def review(request: Request) -> Response:
    """Return the page that asks about one sample at a time."""
    session_of(request)
    return show(request, "review.html.j2", "Review", queue="review")


def audit(request: Request) -> Response:
    """Return the same page for labels that were drawn at random."""
    session_of(request)
    return show(request, "review.html.j2", "Audit", queue="audit")


def files(request: Request) -> Response:
    """Return the page with the files of the result."""
    session_of(request)
    return show(request, "files.html.j2", "Files")


def static(request: Request) -> Response:
    """Return a script or a style sheet of the package."""
    name = request.path_params["name"]
    known = {path.name: path for path in _STATIC.iterdir() if path.suffix in _KINDS}
    known |= {"base.css": _STYLE, "report.css": _LABEL_STYLE}
    if name not in known:
        raise UnknownError("there is no such file")
    path = known[name]
    return FileResponse(
        path, media_type=_KINDS[path.suffix], headers={"cache-control": "private, max-age=600"}
    )
