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


def serve(
    folder: Path | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_page: bool = True,
    announce: Callable[[str, str], None],
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
    announce : callable
        Called with the address, and a warning or "", once the server listens.
    """
    workspaces = Workspaces()
    if folder is not None:
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder; name the folder of a result")
        session = Session(folder)  # first: it refuses what is no result
        workspaces.add(MAIN, session)
    listening = _listen(host, port)
    token = new_token()
    number = listening.getsockname()[1]
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
    shown = f"[{shown}]" if ":" in shown and not shown.startswith("[") else shown
    address = f"http://{shown}:{number}/{token}/"
    config = uvicorn.Config(
        make_app(workspaces, token, hosts=(host,)),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    announce(address, "" if is_loopback(host) else _exposed(host))
    if open_page:
        webbrowser.open(address)
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say in one sentence why there is none."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol's number, which asyncio looks for before it turns off Nagle's algorithm:
        # otherwise most answers wait 40 ms for an acknowledgment.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return made


def _exposed(host: str) -> str:
    return (
        f"{host} is not this machine alone: whoever can reach it and knows the address below can "
        "see all samples and answer, and what is sent is not encrypted"
    )
