"""The allocator setting that commands make: it saves page faults, and says where it cannot."""

import subprocess
import sys

import pytest

from fspll._common import devices

# Three large maps a step, made and freed again, as in meta-training.
SCRIPT = """
import resource, sys, torch
from fspll._common.devices import keep_freed_memory
print(keep_freed_memory() if sys.argv[1] == "keep" else True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(12):
    x = torch.empty(16 << 20).fill_(1)
    y = x * 2
    z = x + y
    del x, y, z
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(how: str) -> tuple[str, int]:
    # In a process of its own, because the setting cannot be taken back.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True, timeout=120
    )
    answer, faults = done.stdout.split()
    return answer, int(faults)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc on Linux has it")
def test_freed_memory_is_kept():
    answer, kept = run("keep")
    if answer == "False":
        pytest.skip("this C library has no mallopt")
    assert kept < run("plain")[1] / 2


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(devices.sys, "platform", "darwin")
    assert devices.keep_freed_memory() is False
