"""Tasks for Label Studio's importer, and the requests of its ML-backend protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fspll import label
from fspll._common.errors import InputError
from fspll.labeling.label_studio import (
    labeling_config,
    model_version,
    predict_tasks,
    read_config,
    setup,
    tasks_with_predictions,
    write_tasks,
)
from fspll.labeling.label_studio.tasks import ROOT, check_target, local_storage, order_by_doubt


def choice(prediction):
    return prediction["result"][0]["value"]["choices"]


def test_tasks_are_in_the_order_of_doubt(result):
    order = order_by_doubt(result)
    asked = [question.index for question in result.review]
    assert asked == order[: len(asked)]
    assert sorted(order) == list(range(len(result)))
    rest = [result.confidence[row] for row in order[len(asked) :]]
    assert rest == sorted(rest)
    tasks = tasks_with_predictions(result)
    assert [task["data"]["sample"] for task in tasks] == [result.names[row] for row in order]
    first = tasks[0]
    assert first["data"] == {"sample": result.names[order[0]], "candidates": "cat, lynx"}
    (prediction,) = first["predictions"]
    assert prediction["model_version"] == model_version(result)
    assert prediction["score"] == pytest.approx(result.confidence[order[0]])
    assert choice(prediction) == [result.labels[order[0]]]


def test_answered_samples_come_last(annotations):
    found = label(annotations, answers={"f.png": "lynx"}, progress=False)
    assert [found.names[row] for row in order_by_doubt(found)][-1] == "f.png"


def test_pictures_have_addresses(result, tmp_path, monkeypatch):
    monkeypatch.delenv(ROOT, raising=False)
    folder = tmp_path / "my pets"
    shown = replace(result, pictures=tuple(folder / name for name in result.names))
    assert local_storage(shown) == (tmp_path, folder)
    data = {one["data"]["sample"]: one["data"] for one in tasks_with_predictions(shown)}
    assert data["e.png"]["image"] == "/data/local-files/?d=my%20pets/e.png"
    assert data["cats/b.png"]["image"] == "/data/local-files/?d=my%20pets/cats/b.png"
    monkeypatch.setenv(ROOT, str(tmp_path.parent))
    assert local_storage(shown) == (tmp_path.parent, folder)
    data = tasks_with_predictions(shown)[0]["data"]
    assert data["image"].startswith(f"/data/local-files/?d={tmp_path.name}/my%20pets/")
    monkeypatch.setenv(ROOT, str(folder / "cats"))  # no picture would be found below it
    assert local_storage(shown) == (tmp_path, folder)


def test_pictures_of_label_studio_stay_where_they_are(result):
    files = tuple(f"/data/upload/3/0000000{n}-x{n}.jpg" for n in range(6))
    found = replace(result, files=files)
    assert local_storage(found) is None
    tasks = tasks_with_predictions(found)
    assert {task["data"]["image"] for task in tasks} == set(files)
    assert read_config(labeling_config(found), ["cat"]).key == "image"
    here = replace(found, pictures=tuple(Path("pets", name) for name in result.names))
    assert {task["data"]["image"] for task in tasks_with_predictions(here)} == set(files)
    served = tasks_with_predictions(here, lambda row: f"http://127.0.0.1:8000/s/{row}")
    assert served[0]["data"]["image"] == f"http://127.0.0.1:8000/s/{order_by_doubt(here)[0]}"


def test_texts_and_numbers(result):
    found = replace(result, texts=tuple(f"text {n}" for n in range(6)))
    assert {task["data"]["text"] for task in tasks_with_predictions(found)} == set(found.texts)
    assert read_config(labeling_config(found), ["cat"]).key == "text"
    numbers = label((np.array([[0.0], [0.1], [5.0]]), [{1, 2}, {1}, {2}]), progress=False)
    tasks = tasks_with_predictions(numbers)
    assert choice(tasks[0]["predictions"][0]) in (["1"], ["2"])
    json.dumps(tasks)
    assert read_config(labeling_config(numbers), [1, 2]).choices == {"1": "1", "2": "2"}


def test_files_are_written_beside_each_other(result, tmp_path):
    config = write_tasks(result, tmp_path / "out" / "tasks.json")
    assert config == tmp_path / "out" / "tasks.xml"
    assert json.loads((tmp_path / "out" / "tasks.json").read_text("utf-8")) == (
        tasks_with_predictions(result)
    )
    assert config.read_text("utf-8") == labeling_config(result) + "\n"


def test_what_is_read_is_not_overwritten(tmp_path):
    for name in ("labels.json", "labels.xml"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"labels.json is read here, and would be overwritten"):
        check_target(tmp_path / "labels.json", [tmp_path / "labels.json"])
    with pytest.raises(InputError, match=r"labels.xml is read here, and would be overwritten"):
        check_target(tmp_path / "labels.json", [tmp_path / "labels.xml"])
    with pytest.raises(InputError, match=r"let the name of tasks.csv end in .json"):
        check_target(Path("tasks.csv"), [])
    check_target(tmp_path / "new.json", [tmp_path / "labels.json"])


# -------------------------------------------------------------------- the protocol


def test_setup_names_the_version(result, body):
    assert setup(result, body("setup")) == {"model_version": model_version(result)}
    with pytest.raises(InputError, match="there is no labeling configuration"):
        setup(result, ["schema"])
    other = body("setup") | {"schema": "<View/>"}
    with pytest.raises(
        InputError, match=r"no <Choices> with a label of this result, such as 'cat'"
    ):
        setup(result, other)


def test_the_version_changes_with_the_labels(result):
    assert model_version(result) == model_version(replace(result, notes=["other"]))
    assert model_version(result).startswith("fspll ")
    for change in ({"labels": result.labels[::-1]}, {"confidence": result.confidence * 0.9}):
        assert model_version(replace(result, **change)) != model_version(result)


def test_predictions_for_recorded_tasks(result, body):
    request = body("predict")
    request["tasks"].append(request["tasks"][0] | {"data": {"image": "/data/upload/1/no.png"}})
    found = predict_tasks(result, request["tasks"], request["label_config"])
    version = model_version(result)
    assert found["model_version"] == version
    first, second, nobody = found["results"]
    assert first == {
        "model_version": version,
        "score": pytest.approx(result.confidence[0]),
        "result": [
            {
                "from_name": "label",
                "to_name": "image",
                "type": "choices",
                "value": {"choices": [result.labels[0]]},
            }
        ],
    }
    assert choice(second) == ["cat"]
    assert nobody == {"model_version": version, "score": 0.0, "result": []}
    json.dumps(found)


def test_labels_that_the_project_lacks_are_not_predicted(result, body):
    config = body("predict")["label_config"].replace('<Choice value="cat"/>', "")
    tasks = [{"data": {"image": name}} for name in result.names]
    found = predict_tasks(result, tasks, config)["results"]
    lynx = result.labels == "lynx"
    assert [bool(one["result"]) for one in found] == lynx.tolist()
    assert [one["score"] > 0 for one in found] == lynx.tolist()


@pytest.mark.parametrize("tasks", [None, {}, "tasks", 7])
def test_tasks_are_a_list(result, body, tasks):
    with pytest.raises(
        InputError, match="a request for predictions has a list of tasks in 'tasks'"
    ):
        predict_tasks(result, tasks, body("predict")["label_config"])


# -------------------------------------------------------------------- by its own package


def test_label_studio_takes_our_predictions(result, body):
    """The sdk wants an older NumPy than this package is tested with: not in the extra ``dev``."""
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface
    for shown in (result, replace(result, texts=result.names)):
        ours = interface(labeling_config(shown))
        for task in tasks_with_predictions(shown):
            assert ours.validate_prediction(task["predictions"][0], return_errors=True) == []
            assert ours.validate_task({"data": task["data"]})
    request = body("predict")
    request["tasks"].append({"data": {"image": "nobody's"}})
    theirs = interface(request["label_config"])
    for one in predict_tasks(result, request["tasks"], request["label_config"])["results"]:
        assert theirs.validate_prediction(one, return_errors=True) == []
    aliased = request["label_config"].replace('value="cat"', 'value="cat" alias="c"')
    for one in predict_tasks(result, request["tasks"][:2], aliased)["results"]:
        assert interface(aliased).validate_prediction(one, return_errors=True) == []
    wrong = {"result": [{**one["result"][0], "value": {"choices": ["dog"]}}]}
    assert theirs.validate_prediction(wrong, return_errors=True) != []  # it would notice
