"""The app as an ML backend: what Label Studio asks, and what comes back to the answers."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from fspll.annotations import read_answers
from fspll.app.server import make_app
from fspll.app.session import Session
from fspll.app.workspaces import MAIN, Workspaces
from fspll.labeling.label_studio import labeling_config


@pytest.fixture
def studio(result, settled):
    """Return a client that knows Label Studio's secret, with the session."""
    workspaces = Workspaces()
    session = Session(result)
    workspaces.add(MAIN, session)
    app = make_app(workspaces, "token", label_studio="secret")
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.session = settled(session)
        client.config = labeling_config(session.labeling())
        yield client


def event(studio, action, number, sample, choices, **more):
    annotation = {
        "id": number,
        "task": 1,
        "was_cancelled": False,
        "result": [
            {
                "from_name": "label",
                "to_name": "sample",
                "type": "choices",
                "value": {"choices": choices},
            }
        ],
        **more,
    }
    body = {
        "action": action,
        "annotation": annotation,
        "task": {"id": 1, "data": {"sample": sample}},
        "project": {"id": 1},
    }
    response = studio.post("/secret/webhook", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def answers(studio):
    return read_answers(studio.session.folder / "answers.csv", kept=True)


def test_health_and_setup_answer_at_once(result, studio):
    assert studio.get("/secret/health").json()["status"] == "UP"
    body = {"project": "1.1", "schema": studio.config, "access_token": "x", "hostname": ""}
    version = studio.post("/secret/setup", json=body).json()["model_version"]
    assert version.startswith("fspll ")
    # Before anything is read as well.
    workspaces = Workspaces()
    workspaces._sessions[MAIN] = Session(result)  # not started
    with TestClient(make_app(workspaces, "t", label_studio="s"), base_url="http://[::1]") as early:
        assert early.get("/s/health").status_code == 200
        assert early.post("/s/setup", json=body).json() == {"model_version": "fspll, starting"}
        refused = early.post("/s/predict", json={"tasks": [], "label_config": studio.config})
        assert refused.status_code == 400
        assert "still being read" in refused.json()["error"]
        workspaces._sessions.clear()


def test_a_prediction_per_task(studio):
    tasks = [{"id": 5, "data": {"sample": "s03"}}, {"id": 6, "data": {"sample": "nobody"}}]
    body = {"tasks": tasks, "label_config": studio.config}
    found = studio.post("/secret/predict", json=body).json()["results"]
    view = studio.session.view
    assert found[0]["result"][0]["value"] == {"choices": [view.labels[3]]}
    assert found[0]["score"] == pytest.approx(view.confidence[3])
    assert found[1]["result"] == []


def test_answers_come_back_change_and_go(studio):
    event(studio, "ANNOTATION_CREATED", 7, "s03", ["b"])
    assert answers(studio) == {"s03": "b"}
    (one,) = answers(studio).records
    assert one.who == "Label Studio"
    event(studio, "ANNOTATION_UPDATED", 7, "s03", ["a"])
    assert answers(studio) == {"s03": "a"}
    ignored = event(studio, "ANNOTATION_CREATED", 8, "s04", ["a", "b"])
    assert ignored["ignored"] == ["annotation 8 is no answer: it has 2 labels, not one"]
    gone = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 7}], "project": {"id": 1}}
    assert studio.post("/secret/webhook", json=gone).status_code == 200
    assert answers(studio) == {}


def test_odd_requests_get_a_sentence(studio):
    for path, body in (("webhook", {}), ("predict", {"tasks": 3}), ("setup", {"schema": "<a"})):
        response = studio.post(f"/secret/{path}", json=body)
        assert response.status_code == 400, path
        assert response.json()["error"]
    assert studio.get("/secret/versions").status_code == 404


def test_its_secret_opens_nothing_else(studio):
    for path in ("w/result/api/status", "../w/result/api/status", "static/app.css", "new"):
        assert studio.get(f"/secret/{path}").status_code == 404
    # And without --label-studio there is no such place.
    assert studio.get("/other/health").status_code == 404


def test_the_page_offers_the_tasks(studio):
    tasks = studio.get("/token/w/result/download/label-studio.json").json()
    assert len(tasks) == 30
    assert set(tasks[0]) == {"data", "predictions"}
