"""A short form of ``make fuzz``, and that the fuzzer finds what it looks for."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it forks")
SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
READERS = [
    *("csv", "answers", "json", "label-studio", "npz", "npy", "mat", "folder", "model"),
    *("checkpoint", "zip", "pictures", "results"),
]


def test_no_reader_has_findings(tmp_path):
    """In a process of its own: a fork of one that has threads may wait for ever."""
    asked = ["--readers", ",".join(READERS), "--cases", "500", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *asked, "--keep", tmp_path / "kept"],
        capture_output=True,
        text=True,
        timeout=250,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in lines] == READERS
    assert all("500 cases" in line and line.endswith(" 0 findings") for line in lines)


def loop(case, folder):
    while True:
        pass


PLANTED = {
    "foreign": (lambda case, folder: {}["key"], "KeyError in test_fuzz.py"),
    "refused": (lambda case, folder: refuse(), None),
    "crash": (lambda case, folder: ctypes.string_at(0), "the process ended: SIGSEGV"),
    "loop": (loop, "the process ended: SIGPROF"),
    "sleep": (lambda case, folder: time.sleep(600), "the process ended: SIGKILL"),
    "memory": (lambda case, folder: take_memory(200 << 20), "memory: "),
    "hidden": (lambda case, folder: hide(), "MemoryError behind: all is well"),
}


def take_memory(size):
    """Take new pages: memory that this process freed before would not count as more."""
    taken = mmap.mmap(-1, size)
    taken[:: mmap.PAGESIZE] = b"\1" * (size // mmap.PAGESIZE)


def refuse():
    from fspll._common.errors import DataError

    raise DataError("a sentence")


def hide():
    from fspll._common.errors import DataError

    try:
        bytearray(1 << 40)
    except MemoryError as error:
        raise DataError("all is well") from error


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_a_finding(name, monkeypatch):
    import fuzz

    monkeypatch.setattr(fuzz, "SECONDS", 0.2)
    monkeypatch.setattr(fuzz, "WAIT", 1 if name == "sleep" else 30)  # on a busy machine
    read, expected = PLANTED[name]
    calls = []  # a sample as it is comes first, and is no case

    def later(case, folder):
        calls.append(case)
        return read(case, folder) if len(calls) > 1 else None

    reader = fuzz.Reader([fuzz.Sample((b"some bytes",))], later)
    tried, found = fuzz.fuzz("planted", reader, 0, range(2), float("inf"))
    assert tried == 2
    if expected is None:
        assert found == []
    else:
        assert [one.case for one in found] == [0, 1]
        assert all(one.what.startswith(expected) for one in found)


def test_cases_have_a_number():
    import fuzz

    reader = fuzz.Reader([fuzz.Sample((b"{'some': 'bytes'}",))], print, (b"word",))
    cases = [fuzz.make_case("one", reader, 3, number) for number in range(300)]
    assert cases == [fuzz.make_case("one", reader, 3, number) for number in range(300)]
    assert len(set(cases)) > 200
    assert b"{'some': 'bytes'}" in cases  # samples come as they are, now and then
