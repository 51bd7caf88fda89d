"""The results that a server shows: the one it was started with, and those made in the browser."""

from __future__ import annotations

import threading
import time

from fspll.app.requests import UnknownError
from fspll.app.session import Session

MAIN = "result"


class Workspaces:
    """Sessions by name. A name that is not ``MAIN`` is a secret of the browser that made it."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, session: Session) -> None:
        """Start a session."""
        with self._lock:
            self._sessions[name] = session
        session.start()

    def session(self, name: str) -> Session:
        """Return a session; an unknown name is refused."""
        with self._lock:
            session = self._sessions.get(name)
            if session is not None:
                self._used[name] = time.monotonic()
        if session is None:
            raise UnknownError("there is no such result here")
        return session

    def last_use(self, name: str) -> float:
        """Return when somebody last asked for a session, by ``time.monotonic``."""
        return self._used.get(name, 0.0)

    @property
    def has_main(self) -> bool:
        """Whether the server was started with a result."""
        return MAIN in self._sessions

    def remove(self, name: str) -> None:
        """Close a session, and forget it."""
        with self._lock:
            session = self._sessions.pop(name, None)
            self._used.pop(name, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        """Let all folders go."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            session.close()
