"""What is cleared away after a killed process, and what is left alone."""

from __future__ import annotations

import os
import socket
import time

import pytest

from fspll._common import files
from fspll._common.files import no_empty_folder, remove_stale, write_beside


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(folder):
    folder.mkdir(parents=True)
    raise OSError("the disk is full")


def test_files_of_processes_that_are_gone_are_removed(tmp_path, gone):
    mine = os.getpid()
    stale = [f".a.zip.{gone}.part", f".a.zip.part.json.{gone}.part"]
    kept = [f".a.zip.{mine}.part", f".b.zip.{gone}.part", "a.zip", "a.zip.part", ".a.zip.x.part"]
    for name in (*stale, *kept):
        (tmp_path / name).touch()
    remove_stale(tmp_path, "a.zip")
    assert names(tmp_path) == sorted(kept)


def test_files_of_yesterday_are_removed_whoever_has_their_number(tmp_path):
    for name, hours in (("old", 25), ("new", 23)):
        path = tmp_path / f".{name}.{os.getpid()}.part"
        path.touch()
        os.utime(path, (time.time() - hours * 3600,) * 2)
        remove_stale(tmp_path, name)
    assert names(tmp_path) == [f".new.{os.getpid()}.part"]


def test_the_names_are_those_of_write_beside(tmp_path):
    with write_beside(tmp_path / "a.npy") as path:
        path.touch()
        os.utime(path, (0, 0))
        remove_stale(tmp_path, "a")
        assert names(tmp_path) == []
        path.touch()


@pytest.fixture
def on_machine(monkeypatch):
    """Return a function that gives this machine another name."""

    def on_machine(name):
        files._host.cache_clear()
        monkeypatch.setattr(socket, "gethostname", lambda: name)

    yield on_machine
    files._host.cache_clear()


def test_files_of_another_machine_stay_for_a_day(tmp_path, on_machine, gone):
    on_machine("far")
    for name, hours in (("old", 25), ("new", 23)):
        path = tmp_path / f".{name}.{files._host()}-{gone}.part"
        path.touch()
        os.utime(path, (time.time() - hours * 3600,) * 2)
    on_machine("near \udce9")
    remove_stale(tmp_path, "")
    assert names(tmp_path) == [path.name]
    on_machine("far")
    remove_stale(tmp_path, "")
    assert names(tmp_path) == []


def test_two_machines_write_to_different_files(tmp_path, on_machine):
    paths = set()
    for machine in ("near", "far"):
        on_machine(machine)
        with write_beside(tmp_path / "a.csv") as path:
            path.touch()
            paths.add(path)
    assert len(paths) == 2


def test_a_write_removes_what_a_killed_one_left(tmp_path, gone):
    for name in (f".a.csv.{gone}.part", f".b.csv.{gone}.part"):
        (tmp_path / name).touch()
    with write_beside(tmp_path / "a.csv") as path:
        path.touch()
    assert names(tmp_path) == [f".b.csv.{gone}.part", "a.csv"]


def test_missing_folder_has_nothing_to_remove(tmp_path):
    remove_stale(tmp_path / "none", "a")
    assert names(tmp_path) == []


def test_only_folders_that_were_made_and_left_empty_go(tmp_path):
    with pytest.raises(OSError, match="full"), no_empty_folder(tmp_path / "a" / "b"):
        fill(tmp_path / "a" / "b")
    assert names(tmp_path) == []
    (tmp_path / "a").mkdir()
    with no_empty_folder(tmp_path / "a"):
        pass
    with no_empty_folder(tmp_path / "c" / "d"):
        (tmp_path / "c" / "d").mkdir(parents=True)
        (tmp_path / "c" / "file").touch()
    assert names(tmp_path) == ["a", "c"]
    assert names(tmp_path / "c") == ["file"]
