"""``fspll cache``: what is kept, and what clearing removes."""

from __future__ import annotations

import numpy as np
import pytest

from fspll._common.files import decoded_dir, features_dir
from fspll.embeddings.features import encode_cached


@pytest.fixture
def kept():
    """Keep features of two pictures and the pixels of a set."""
    encode_cached("omniglot-conv4", [np.full((28, 28), i, dtype=np.uint8) for i in range(2)])
    decoded_dir().mkdir(parents=True)
    (decoded_dir() / "pets-28-0a1b-2c3d.npy").write_bytes(bytes(2_500_000))
    (decoded_dir() / "pets-28-0a1b-2c3d.json").write_text("{}")
    (decoded_dir() / "notes.txt").write_text("mine")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_kept_at_first(run):
    code, output, errors = run("cache")
    assert (code, errors) == (0, "")
    assert [line.split("\t")[0::3] for line in output.splitlines()] == [
        ["decoded", "0 files"],
        ["features", "0 files"],
    ]
    assert run("cache", "--clear", "all")[0] == 0


def test_sizes_and_places(run, kept):
    code, output, _ = run("cache")
    lines = [line.split("\t") for line in output.splitlines()]
    assert code == 0
    assert lines[0] == [
        "decoded",
        "pixels of data sets and folders",
        str(decoded_dir()),
        "2 files",
        "2.5 MB",
    ]
    assert lines[1][2:4] == [str(features_dir()), "1 file"]


def test_clearing_removes_own_files_of_that_cache_only(run, kept, gone):
    remains = decoded_dir() / f".pets-28-0a1b-2c3d.npy.{gone}.part"
    remains.touch()
    code, output, errors = run("cache", "--clear", "decoded")
    assert (code, errors) == (0, "")
    assert output == "decoded: 2 files removed, 2.5 MB\n"
    assert names(decoded_dir()) == ["notes.txt"]
    assert len(names(features_dir())) == 1
    code, output, _ = run("cache", "--clear", "all")
    assert output.splitlines()[0] == "decoded: 0 files removed, 0.0 MB"
    assert names(features_dir()) == []
    encode_cached("omniglot-conv4", [np.zeros((28, 28), dtype=np.uint8)])
    assert len(names(features_dir())) == 1


def test_other_names_are_refused(run, kept):
    code, output, errors = run("cache", "--clear", "data")
    assert (code, output) == (2, "")
    assert errors == "error: the cache must be one of decoded, features, all, not 'data'"


def test_what_cannot_be_removed_is_named(run, kept, monkeypatch):
    def refuse(path, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    code, _, errors = run("cache", "--clear", "decoded")
    assert code == 2
    assert errors.startswith(f"error: cannot remove {decoded_dir()}")
    assert errors.endswith("Permission denied")
