"""The record of a run, by which its folder can go on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fspll import label
from fspll._common.errors import DataError
from fspll.labeling import Run
from fspll.labeling.run import gather_answers

X = np.random.default_rng(0).normal(size=(8, 3)).round(3)


@pytest.fixture
def given(tmp_path):
    np.save(tmp_path / "X.npy", X)
    lines = ["sample;labels", *(f"s{row};a/b" for row in range(8))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    options = ("--delimiter", "/", "--candidates", "labels", "--no-cache", "--sure", "0.9")
    return (
        "label",
        tmp_path / "table.csv",
        "--features",
        tmp_path / "X.npy",
        "--out",
        out,
        *options,
    )


def test_a_folder_says_how_it_was_made_and_gives_the_same_files_again(run, tmp_path, given):
    assert run(*given)[0] == 0
    out, again = tmp_path / "out", tmp_path / "again"
    made = Run.of_folder(out)
    assert made.file == tmp_path / "table.csv"
    assert made.reading["delimiter"] == "/"
    assert made.reading["candidates"] == ["labels"]
    assert made.reading["features"] == tmp_path / "X.npy"
    assert made.labeling["cache"] is False
    assert made.saving["sure"] == 0.9
    result = made.label(made.read(), answers=gather_answers([], out, None), progress=False)
    made.save(result, again)
    names = sorted(path.name for path in out.iterdir())
    assert "run.json" in names
    assert names == sorted(path.name for path in again.iterdir())
    for name in names:
        assert (out / name).read_bytes() == (again / name).read_bytes(), name


def test_paths_are_recorded_as_absolute(run, tmp_path, given, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = [Path(one).relative_to(tmp_path) if isinstance(one, Path) else one for one in given]
    assert run(*relative)[0] == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["file"] == str(tmp_path / "table.csv")
    assert record["reading"]["features"] == str(tmp_path / "X.npy")


@pytest.mark.parametrize("name", ["features", "photos", "text"])
def test_a_folder_called_like_an_encoder_does_not_become_the_encoder(tmp_path, monkeypatch, name):
    """``fspll label labels.csv --images photos/ --encoder photos``, as the README has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    Run(tmp_path / "table.csv", labeling={"encoder": name}).write(tmp_path)
    assert Run.of_folder(tmp_path).labeling["encoder"] == name


def test_a_checkpoint_is_recorded_as_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.safetensors").touch()
    Run(tmp_path / "table.csv", labeling={"encoder": "mine.safetensors"}).write(tmp_path)
    encoder = Run.of_folder(tmp_path).labeling["encoder"]
    assert encoder == str(tmp_path / "mine.safetensors")


def test_a_result_of_python_has_no_record_and_removes_an_old_one(run, tmp_path, given):
    assert run(*given)[0] == 0
    label((X, [{"a", "b"}] * 8), progress=False).save(tmp_path / "out")
    with pytest.raises(DataError, match=r"does not say how it was made \(there is no run.json\)"):
        Run.of_folder(tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "not the record of a run, or one of another version"),
        ('{"format": 2}', "not the record of a run, or one of another version"),
        ('{"format": 1, "file": "a.csv", "reading": {}}', "lacks the file or the options"),
        ('{"format": 1, "file": 3, "reading": {}, "labeling": {}, "saving": {}}', "lacks the file"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_damaged_records(tmp_path, content, message):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(DataError, match=message):
        Run.of_folder(tmp_path)
