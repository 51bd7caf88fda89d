"""Start the server on this machine, and stop it."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from fspll._common.errors import DataError, InputError
from fspll.app.security import is_loopback, new_token
from fspll.app.server import make_app
from fspll.app.session import Session
from fspll.app.workspaces import MAIN, Workspaces
from fspll.labeling.run import Run


def serve(
    folder: Path | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_page: bool = True,
    label_studio: bool = False,
    speak: Callable[[str], str] = str,
    announce: Callable[[str, str, str], None],
) -> None:
    """Serve the pages until interrupted.

    Parameters
    ----------
    folder : Path or None
        The result to begin with.
    host, port
        Where to listen; port 0 takes a free one.
    open_page : bool
        Open the address in a browser.
    label_studio : bool
        Also speak Label Studio's protocol.
    speak : callable
        Words the notes of results, as of :class:`fspll.labeling.run.Run`.
    announce : callable
        Called with the address, that for Label Studio or "", and a warning or "", once the server
        listens.
    """
    workspaces = Workspaces()
    if label_studio and folder is None:
        raise InputError("label_studio=True needs a result to serve: name its folder")
    if folder is not None:
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder; name the folder of a result")
        run = Run.of_folder(folder, speak)  # first: it refuses what is no result
        workspaces.add(MAIN, Session(folder, run))
    listening = listen(host, port)
    token, studio_token = new_token(), new_token()
    number = listening.getsockname()[1]
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
    shown = f"[{shown}]" if ":" in shown and not shown.startswith("[") else shown
    place = f"http://{shown}:{number}/"
    address = f"{place}{token}/"
    studio = f"{place}{studio_token}" if label_studio else ""
    config = uvicorn.Config(
        make_app(
            workspaces,
            token,
            hosts=(host,),
            label_studio=studio_token if label_studio else None,
            speak=speak,
        ),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    announce(address, studio, "" if is_loopback(host) else _exposed(host))
    if open_page:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say in one sentence why there is none."""
    made = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol's number, which asyncio looks for before it turns off Nagle's algorithm:
        # otherwise most answers wait 40 ms for an acknowledgment.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()  # a browser that is opened before the server runs waits instead of failing
    except OSError as error:
        if made is not None:
            made.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return made


def _exposed(host: str) -> str:
    return (
        f"{host} is not this machine alone: whoever can reach it and knows the address below can "
        "see all samples and answer, and what is sent is not encrypted"
    )
