"""A small result, and the app that shows it."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")

from starlette.testclient import TestClient

from fspll.app.server import make_app
from fspll.app.session import FAILED, READY, Session
from fspll.app.workspaces import MAIN, Workspaces
from fspll.labeling.run import Run

TOKEN = "token"


def wait_for(what, seconds=30.0):
    """Wait until something holds, and return what it returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


@pytest.fixture
def settled():
    """Return a function that waits until a session has nothing more to do."""

    def settled(session):
        def done():
            status = session.status()
            assert status["state"] != FAILED, status["message"]
            return status["state"] == READY and not status["updating"]

        wait_for(done)
        return session

    return settled


@pytest.fixture
def table(tmp_path):
    """Write 30 vectors of three classes with sets of two; return a function that makes a run."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 10)
    X = rng.normal(size=(30, 4)) + 2.0 * np.eye(4)[truth]
    np.save(tmp_path / "X.npy", X)
    lines = ["sample,candidates,place"]
    for row, one in enumerate(truth):
        other = (one + 1 + row % 2) % 3
        lines.append(f"s{row:02},{'|'.join(sorted('abc'[i] for i in (one, other)))},shelf {row}")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")

    def run(**options):
        reading = {"features": tmp_path / "X.npy", **options}
        return Run(tmp_path / "labels.csv", reading)

    return run


@pytest.fixture
def result(tmp_path, table):
    """Label the table; return the folder."""
    run = table()
    run.save(run.label(run.read(), progress=False, audit=4), tmp_path / "out", report=False)
    return tmp_path / "out"


@pytest.fixture
def open_session(settled):
    """Return a function that opens a folder; all are closed in the end."""
    opened = []

    def open_session(folder, run=None):
        session = Session(folder, run)
        opened.append(session)
        session.start()
        return settled(session)

    yield open_session
    for session in opened:
        session.close()


@pytest.fixture
def client(result, settled):
    """Return a client of an app that shows the result; ``client.session`` is its session."""
    workspaces = Workspaces()
    session = Session(result)
    workspaces.add(MAIN, session)
    app = make_app(workspaces, TOKEN)
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
        client.session = settled(session)
        client.home = f"/{TOKEN}/w/{MAIN}/"
        yield client
