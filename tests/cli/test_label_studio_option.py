"""``fspll label --to-label-studio``: tasks for Label Studio beside the other results."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from fspll.annotations import read_answers
from fspll.labeling.label_studio import read_config

VECTORS = "name,x,candidates\na,0.0,cat|lynx\nb,0.1,cat\nc,5.0,lynx\nd,5.1,lynx|cat\n"


@pytest.fixture(autouse=True)
def no_page(monkeypatch):
    """Write something small in the place of the report."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(
        "fspll.labeling.saving.write_report", lambda result, path: path.write_text("")
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(VECTORS)
    return path


def test_tasks_and_configuration_are_written(run, table, tmp_path):
    path = tmp_path / "tasks.json"
    given = ("label", table, "--features-columns", "x", "--out", tmp_path / "out")
    code, output, errors = run(*given, "--to-label-studio", path)
    assert (code, errors) == (0, "")
    assert output.splitlines()[-1] == (
        f"{path} has 4 tasks for Label Studio, the least sure first: make a project there, paste "
        f"{tmp_path / 'tasks.xml'} into its Labeling Interface (Settings), then "
        "Import the tasks"
    )
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert sorted(task["data"]["sample"] for task in tasks) == ["a", "b", "c", "d"]
    config = (tmp_path / "tasks.xml").read_text(encoding="utf-8")
    assert read_config(config, ["cat"]).key == "sample"


def test_pictures_come_with_how_to_serve_them(run, tmp_path, monkeypatch):
    monkeypatch.delenv("LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT", raising=False)
    folder = tmp_path / "my pets"
    folder.mkdir()
    for name, shade in {"a.png": 0, "b.png": 20, "c.png": 230, "d.png": 255}.items():
        Image.new("L", (28, 28), shade).save(folder / name)
    table = tmp_path / "labels.csv"
    table.write_text("file,candidates\na.png,cat|lynx\nb.png,cat\nc.png,lynx\nd.png,lynx|cat\n")
    given = ("label", table, "--images", folder, "--encoder", "omniglot-conv4")
    path = tmp_path / "tasks.json"
    code, output, _ = run(*given, "--out", tmp_path / "out", "--to-label-studio", path)
    assert code == 0
    assert output.splitlines()[-1] == (
        "So that it shows your pictures, start it with "
        "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={tmp_path} and add the local storage "
        f"'{folder}' to the project (Settings, Cloud Storage)"
    )
    tasks = json.loads(path.read_text(encoding="utf-8"))
    addresses = {task["data"]["image"] for task in tasks}
    assert addresses == {f"/data/local-files/?d=my%20pets/{name}.png" for name in "abcd"}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "labels.json",
            "error: {folder}/labels.json is read here, and would be overwritten; write",
        ),
        (
            "tasks.csv",
            "error: Label Studio takes tasks as JSON; let the name of {folder}/tasks.csv",
        ),
    ],
)
def test_refused_before_anything_is_done(run, tmp_path, target, message):
    table = tmp_path / "labels.json"
    table.write_text('[{"sample": "a", "candidates": ["x"], "v": [1.0]}]')
    before = table.read_bytes()
    given = ("label", table, "--features-columns", "v", "--out", tmp_path / "out")
    code, output, errors = run(*given, "--to-label-studio", tmp_path / target)
    assert (code, output) == (2, "")
    assert errors.startswith(message.format(folder=tmp_path))
    assert table.read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_csv_export_of_our_tasks_is_a_file_of_answers(run, table, tmp_path):
    """The columns are those of an export of Label Studio 1.23.2 for tasks and configuration."""
    export = tmp_path / "project-1.csv"
    export.write_text(
        '"annotation_id","annotator","candidates","created_at","id","label","lead_time","sample"\n'
        '7,"1","cat, lynx","2026-01-01T10:00:00Z",3,"lynx",2.5,"a"\n'
    )
    assert read_answers(export) == {"a": "lynx"}
    given = ("label", table, "--features-columns", "x", "--out", tmp_path / "out")
    code, output, errors = run(*given, "--answers", export)
    assert (code, errors) == (0, "")
    assert "1 answered by a person" in output
