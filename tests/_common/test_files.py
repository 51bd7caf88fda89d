"""Files are written whole or not at all, and folders come from the environment."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from fspll._common.errors import DataError
from fspll._common.files import DATA_VARIABLE, data_dir, decoded_dir, user_cache_dir, write_beside


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_half(target, error):
    """Write a part, then fail."""
    with write_beside(target) as path:
        path.write_text("half")
        raise error


def test_the_target_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "new" / "folder" / "a.txt"
    with write_beside(target) as path:
        assert path.parent == target.parent
        assert path != target
        path.write_text("half")
        assert not target.exists()
        path.write_text("whole")
    assert target.read_text() == "whole"
    assert names(target.parent) == ["a.txt"]


@pytest.fixture
def steps(monkeypatch):
    """Note which files and folders are flushed to the disk, and when a file is renamed."""
    steps = []
    fsync, replace = os.fsync, Path.replace

    def noting_fsync(number):
        steps.append(("flush", os.fstat(number).st_ino))
        fsync(number)

    def noting_replace(path, target):
        steps.append(("rename", path.stat().st_ino))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(Path, "replace", noting_replace)
    return steps


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not flush folders")
def test_a_file_is_on_the_disk_before_it_gets_its_name_and_the_name_after(tmp_path, steps):
    target = tmp_path / "new" / "folder" / "a.txt"
    with write_beside(target) as path:
        path.write_text("whole")
    file, new, folder = (one.stat().st_ino for one in (target, tmp_path / "new", target.parent))
    made = [("flush", new), ("flush", tmp_path.stat().st_ino)]
    assert steps == [*made, ("flush", file), ("rename", file), ("flush", folder)]


def test_what_cannot_be_flushed_is_not_written(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def full(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(DataError, match=r"^cannot write .*a.txt: No space left on device$"),
        write_beside(target) as path,
    ):
        path.write_text("new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_system_that_cannot_flush_is_written_to(tmp_path, monkeypatch):
    def no_such_thing(number):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", no_such_thing)
    with write_beside(tmp_path / "a.txt") as path:
        path.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_an_old_file_is_replaced(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with write_beside(str(target)) as path:
        path.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt(), SystemExit(3)])
def test_an_old_file_survives_an_exception(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(type(error)) as caught:
        write_half(target, error)
    assert caught.value is error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_failing_first_write_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError):
        write_half(tmp_path / "a.txt", RuntimeError())
    assert names(tmp_path) == []


def test_a_full_disk_is_a_data_error(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(DataError, match=r"cannot write .*a\.txt: No space left on device"):
        write_half(target, OSError(28, "No space left on device"))
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(DataError, match=r"cannot write .*file.a\.txt: ") as caught,
        write_beside(tmp_path / "file" / "a.txt"),
    ):
        pytest.fail("the block must not run")
    assert isinstance(caught.value.__cause__, OSError)
    assert names(tmp_path) == ["file"]


def test_a_target_that_is_a_folder(tmp_path):
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "a.txt" / "inside").write_text("kept")
    with (
        pytest.raises(DataError, match=r"cannot write .*a\.txt: "),
        write_beside(tmp_path / "a.txt") as path,
    ):
        path.write_text("whole")
    assert names(tmp_path) == ["a.txt"]
    assert names(tmp_path / "a.txt") == ["inside"]


def test_writing_nothing_is_an_error(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with (
        pytest.raises(DataError, match=r"cannot write .*a\.txt: No such file"),
        write_beside(target),
    ):
        pass
    assert target.read_text() == "old"


def test_errors_of_our_own_pass_unchanged(tmp_path):
    with pytest.raises(DataError, match=r"^picture 3 is damaged$"), write_beside(tmp_path / "a"):
        raise DataError("picture 3 is damaged")


def test_the_data_folder_is_the_environments(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    assert data_dir() == tmp_path / "data"
    assert not data_dir().exists()  # named, not made
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv(DATA_VARIABLE, "~/pictures")
    assert data_dir() == tmp_path / "pictures"
    assert DATA_VARIABLE == "FSPLL_DATA"


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_data_folder_the_cache_holds_the_data(monkeypatch, value):
    if value is None:
        monkeypatch.delenv(DATA_VARIABLE)
    else:
        monkeypatch.setenv(DATA_VARIABLE, value)
    assert data_dir() == user_cache_dir() / "data"


def test_decoded_pictures_never_go_to_the_data_folder(monkeypatch, tmp_path):
    before = decoded_dir()
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert decoded_dir() == before == user_cache_dir() / "decoded"


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "elsewhere", "elsewhere/fspll"),
        ("linux", "XDG_CACHE_HOME", "", "home/.cache/fspll"),
        ("win32", "LOCALAPPDATA", "elsewhere", "elsewhere/fspll"),
        ("win32", "LOCALAPPDATA", "", "home/AppData/Local/fspll"),
        ("darwin", "XDG_CACHE_HOME", "elsewhere", "home/Library/Caches/fspll"),
    ],
)
def test_the_platforms_cache(monkeypatch, tmp_path, platform, variable, value, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setenv(variable, str(tmp_path / value) if value else "")
    assert user_cache_dir() == tmp_path / expected
