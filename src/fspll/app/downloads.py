"""The files of a result, and all of them in one archive."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from fspll.app.requests import UnknownError, json_response, session_of
from fspll.app.session import Session
from fspll.labeling.folder import NAMES, REPORT, RUN

OFFERED = tuple(name for name in NAMES if name != RUN)  # which has paths of this machine
ALL, TASKS = "everything.zip", "label-studio.json"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


def download(request: Request) -> Response:
    """Return a file of the result as it was saved last."""
    session = session_of(request)
    name = request.path_params["name"]
    with session.ready():
        folder = session.folder
    if name == ALL:
        return _attachment(Response(archive(folder), media_type="application/zip"), ALL)
    if name == TASKS:
        return _attachment(_tasks(session), TASKS)
    if name not in OFFERED or not (folder / name).is_file():
        raise UnknownError(f"there is no {name!r:.60} to download")
    kind = "application/octet-stream" if name != REPORT else "text/html"
    return _attachment(FileResponse(folder / name, media_type=kind), name)


def _tasks(session: Session) -> Response:
    """Return every sample as a task of Label Studio, with its label as a prediction."""
    from fspll.labeling.label_studio.tasks import tasks_with_predictions

    result = session.labeling()
    if result is None:
        raise UnknownError("the tasks come in a moment, when the model is there")
    return json_response(tasks_with_predictions(result))


def archive(folder: Path) -> bytes:
    """Return the files of a result in one zip."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name in OFFERED:
            if (folder / name).is_file():
                about = zipfile.ZipInfo(name, _TIME)
                about.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(about, (folder / name).read_bytes())
    return made.getvalue()


def _attachment(response: Response, name: str) -> Response:
    response.headers["content-disposition"] = f'attachment; filename="{name}"'
    return response


ROUTES = [Route("/download/{name}", download)]
