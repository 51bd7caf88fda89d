"""Shared fixtures: where the real data is, when it is there at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _real_data_folders() -> list[Path]:
    """``$FSPLL_DATA`` first, then a ``shared/data`` folder beside the checkout."""
    chosen = os.environ.get("FSPLL_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return ([Path(chosen)] if chosen else []) + [beside]


_FOLDERS = _real_data_folders()


@pytest.fixture
def real_data():
    """Return a function that finds a real data file by its relative path, or skips the test."""

    def find(relative: str) -> Path:
        for folder in _FOLDERS:
            if (folder / relative).exists():
                return folder / relative
        pytest.skip(f"real data {relative} not found; set FSPLL_DATA to its folder to run this")

    return find


@pytest.fixture(scope="module")
def one_thread():
    """Small tensors gain nothing from threads, which wait for each other on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory, monkeypatch):
    """Keep tests out of the user's cache and data folders."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))  # where macOS keeps its caches
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    monkeypatch.setenv("FSPLL_DATA", str(home / "data"))
