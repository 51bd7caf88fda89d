"""A worker does not outlive the process that started it."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

WORKER = "import sys, time; from fspll._common.processes import end_with; end_with({}); {}"
PARENT = """
import os, subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1].replace("PARENT", str(os.getpid()))],
                          stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
time.sleep(600)
"""


def test_a_worker_ends_when_its_parent_is_killed():
    code = WORKER.format("PARENT", "print('up', flush=True); time.sleep(600)")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, code], stdout=subprocess.PIPE, text=True
    )
    worker = psutil.Process(int(parent.stdout.readline()))
    try:
        assert worker.is_running()
        parent.kill()
        parent.wait()
        assert psutil.wait_procs([worker], timeout=60)[1] == []
    finally:
        parent.stdout.close()
        if worker.is_running():
            worker.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="the number of a parent stays on Windows")
def test_a_worker_whose_parent_is_gone_already_ends_at_once(gone):
    code = WORKER.format(gone, "time.sleep(600)")
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 1
