"""The command itself: an address of its own, and answers that survive a kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from fspll.annotations import read_answers

from .conftest import wait_for


@contextmanager
def app(*arguments):
    """Start ``fspll app``; yield the process and its address."""
    command = [sys.executable, "-m", "fspll", "app", *map(str, arguments), "--no-open"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def ready(home):
    def is_ready():
        try:
            return httpx.get(f"{home}api/status").json()["state"] == "ready"
        except httpx.TransportError:
            return False

    wait_for(is_ready)


def test_every_acknowledged_answer_survives_a_kill(result):
    with app(result) as (process, address):
        home = f"{address}w/result/"
        ready(home)
        acknowledged = {}
        sample = httpx.get(f"{home}api/queue?name=review").json()["next"]
        for _ in range(5):
            given = {"id": sample["id"], "label": sample["candidates"][-1]["label"], "who": "Ada"}
            answer = httpx.post(f"{home}api/answer", json=given)
            assert answer.status_code == 200
            acknowledged[sample["name"]] = given["label"]
            sample = answer.json()["next"]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert read_answers(result / "answers.csv") == acknowledged
    with app(result) as (_, again):
        assert again != address  # another secret
        ready(f"{again}w/result/")
        progress = httpx.get(f"{again}w/result/api/status").json()["progress"]
        assert progress["answered"] == 5


def test_an_interrupt_ends_it_quietly(result):
    with app(result) as (process, address):
        ready(f"{address}w/result/")
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        process.wait(timeout=20)
        assert time.monotonic() - start < 15
        assert "Traceback" not in process.stderr.read()
    assert not (result / ".fspll.lock").exists()


def test_what_is_no_result_is_refused(run_command, tmp_path):
    code, complaints = run_command("app", tmp_path / "nowhere", "--no-open")
    assert code == 2
    assert "is not a folder; name the folder of a result" in complaints
    code, complaints = run_command("app", tmp_path, "--no-open")
    assert code == 2
    assert "does not say how it was made" in complaints


def test_a_port_in_use_is_said(run_command):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, complaints = run_command("app", "--no-open", "--port", port)
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in complaints


@pytest.fixture
def run_command(monkeypatch, capsys):
    from fspll.cli.main import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fspll", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    return run
