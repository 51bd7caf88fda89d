"""The allocator setting that commands make: it holds on glibc, and says so where it does not."""

import subprocess
import sys

import pytest

from fspll import devices


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc on Linux has it")
def test_freed_memory_is_kept():
    # In a process of its own, because the setting cannot be taken back.
    script = """
import resource, torch
from fspll.devices import keep_freed_memory
kept = keep_freed_memory()
faults = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(32 << 20).fill_(1)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(kept, faults[0] > 100, faults[2] < faults[0] / 10)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    kept, *rest = done.stdout.split()
    if kept == "False":
        pytest.skip("this C library has no mallopt")
    assert rest == ["True", "True"]


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(devices.sys, "platform", "darwin")
    assert devices.keep_freed_memory() is False
