"""The server's socket."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("uvicorn", reason="the extra 'app' is not installed")

from fspll.app import running


def test_answers_do_not_wait_for_acknowledgments():
    """Only where a socket knows its protocol does asyncio turn off Nagle's algorithm."""
    with running.listen("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.proto == socket.IPPROTO_TCP


def test_connections_wait_for_the_server():
    """The address is printed, and a browser opened, before the server takes its first request."""
    with (
        running.listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname(), timeout=5) as connected,
    ):
        assert connected.getpeername() == listening.getsockname()
