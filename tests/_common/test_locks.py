"""One process at a time in a folder, and a killed one blocks nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from fspll._common.errors import DataError
from fspll._common.locks import LOCK, lock_folder

HOLD = """
import sys, time
from fspll._common.locks import lock_folder
with lock_folder(sys.argv[1]):
    open(sys.argv[1] + "/mine", "w").close()
    print("held", flush=True)
    time.sleep(60)
"""
IN_USE = r"in use: another fspll process writes into it; wait until that has ended"


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder ``tmp_path / "out"``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path, holder):
    out = tmp_path / "out"
    with pytest.raises(DataError, match=IN_USE), lock_folder(out):
        pytest.fail("two processes are in one folder")
    assert names(out) == [LOCK, "mine"]
    holder.kill()
    holder.wait()
    with lock_folder(out):
        (out / "next").touch()
    assert names(out) == ["mine", "next"]


def test_a_process_that_is_about_to_end_can_be_waited_for(tmp_path, holder):
    threading.Timer(0.5, holder.kill).start()
    with lock_folder(tmp_path / "out", wait=60):
        assert names(tmp_path / "out") == [LOCK, "mine"]


def test_the_same_thread_may_lock_again_and_others_may_not(tmp_path):
    complaints = []

    def other():
        try:
            with lock_folder(tmp_path):
                complaints.append("both are in")
        except DataError as error:
            complaints.append(str(error))

    with lock_folder(tmp_path):
        with lock_folder(str(tmp_path)):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    (complaint,) = complaints
    assert "is in use: another fspll process" in complaint
    with lock_folder(tmp_path):
        pass
    assert names(tmp_path) == []


def test_a_folder_that_stays_empty_is_not_left_behind(tmp_path):
    with pytest.raises(RuntimeError), lock_folder(tmp_path / "a" / "b"):
        raise RuntimeError
    assert names(tmp_path) == []


def test_what_a_killed_process_left_is_removed(tmp_path, gone):
    for name in (LOCK, f".model.fspll.{gone}.part", f".x.{os.getpid()}.part", "labels.csv"):
        (tmp_path / name).write_text("half")
    with lock_folder(tmp_path):
        assert names(tmp_path) == sorted([LOCK, f".x.{os.getpid()}.part", "labels.csv"])
    assert names(tmp_path) == [f".x.{os.getpid()}.part", "labels.csv"]


def test_what_cannot_be_written_into_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match=r"^cannot write into .*file: "),
        lock_folder(tmp_path / "file"),
    ):
        pytest.fail("a file is no folder")


FORK = """
import os, sys, time
from fspll._common.locks import lock_folder
with lock_folder(sys.argv[1]):
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        sys.exit()
    time.sleep(60)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_killed_process_neither_keeps_the_lock_nor_ends_it(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path)], **pipes, text=True
    ) as parent:
        child = int(parent.stdout.readline())
        try:
            with pytest.raises(DataError, match=IN_USE), lock_folder(tmp_path):
                pytest.fail("two processes are in one folder")
            parent.kill()
            parent.wait()
            with lock_folder(tmp_path):
                parent.stdin.write("end\n")
                parent.stdin.close()
                assert parent.stdout.read() == ""  # until the child has closed it
                assert names(tmp_path) == [LOCK]
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, 9)
