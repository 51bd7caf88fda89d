"""What the review page asks and gets."""

from __future__ import annotations

import csv
import io
import zipfile

import pytest

from fspll.annotations import read_answers


def queue(client, name="review"):
    return client.get(f"{client.home}api/queue?name={name}").json()


def post(client, what, **given):
    response = client.post(f"{client.home}api/{what}", json=given)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_sample_in_full(client):
    first = queue(client)["next"]
    session = client.session
    assert first["name"] == f"s{first['id']:02}"
    assert first["kind"] == "vector"
    assert first["columns"] == [["place", f"shelf {first['id']}"]]
    chances = {one["label"]: one["probability"] for one in first["candidates"]}
    assert chances == session.view.probabilities[first["id"]]
    assert list(chances.values()) == sorted(chances.values(), reverse=True)
    assert first["label"] == session.view.labels[first["id"]]
    question = session.view.questions[0]
    assert (first["id"], first["gain"]) == (question.sample, question.gain)
    assert first["right_after"] == question.right_after
    assert all(one["confidence"] >= 0.98 for one in first["neighbors"])


def test_an_answer_brings_the_next_sample(client):
    found = queue(client)
    first, second, third = found["queue"][:3]
    then = post(client, "answer", id=first, label="a", who="Ada", skipped=[second])
    assert then["next"]["id"] == third
    assert first not in then["queue"]
    assert then["progress"]["answered"] == 1
    # Where all others are skipped, they come again.
    everything = then["queue"]
    again = post(client, "answer", id=first, label="b", skipped=everything)
    assert again["next"]["id"] == again["queue"][0]
    back = post(client, "undo", event=again["event"])
    assert back["next"]["id"] == first
    assert back["next"]["answer"] == "a"
    assert post(client, "undo", event=then["event"])["next"]["answer"] is None
    assert dict(client.session.store.answers) == {}


def test_another_label_and_a_discard(client):
    first, second = queue(client)["queue"][:2]
    post(client, "answer", id=first, label="none of them")
    post(client, "answer", id=second, discard=True)
    assert read_answers(client.session.folder / "answers.csv") == {f"s{first:02}": "none of them"}
    shown = client.get(f"{client.home}api/sample/{second}").json()
    assert shown["discarded"] is True
    assert shown["answer"] is None


def test_an_audit_does_not_tell_what_the_model_thinks(client):
    shown = queue(client, "audit")["next"]
    assert shown["label"] is None
    assert shown["confidence"] is None
    assert shown["neighbors"] == []
    assert [list(one) for one in shown["candidates"]] == [["label"], ["label"]]
    labels = [one["label"] for one in shown["candidates"]]
    assert labels == sorted(labels)


def test_the_files_come_from_a_full_run(client, settled):
    assert client.get(f"{client.home}download/answers.csv").status_code == 404
    first = queue(client)["queue"][0]
    post(client, "answer", id=first, label="c", who="Ada")
    post(client, "save")
    settled(client.session)
    response = client.get(f"{client.home}download/labels.csv")
    assert response.headers["content-disposition"] == 'attachment; filename="labels.csv"'
    rows = {row["sample"]: row for row in csv.DictReader(io.StringIO(response.text))}
    assert rows[f"s{first:02}"]["label"] == "c"
    assert rows[f"s{first:02}"]["confidence"] == "1.0000"
    packed = client.get(f"{client.home}download/everything.zip")
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        names = archive.namelist()
        assert archive.read("labels.csv") == response.content
    assert {"labels.csv", "model.fspll", "report.html", "answers.csv", "answers.log"} <= {*names}
    assert "run.json" not in names


def test_an_audit_can_be_drawn_on_the_page(client, settled):
    post(client, "save", audit=10)
    settled(client.session)
    assert len(queue(client, "audit")["queue"]) == 10
    response = client.post(f"{client.home}api/save", json={"audit": 31})
    assert response.json()["error"] == "audit is between 1 and 30, not 31"


@pytest.mark.parametrize("page", ["review", "audit", "files"])
def test_pages_name_their_places(client, page):
    shown = client.get(client.home + page).text
    assert f'<a href="{client.home}{page}" aria-current="page">' in shown
    assert "<title>" in shown


def test_markup_in_names_and_labels_stays_text(tmp_path, table, open_session):
    from starlette.testclient import TestClient

    from fspll.app.server import make_app
    from fspll.app.workspaces import Workspaces

    text = (tmp_path / "labels.csv").read_text()
    nasty = "<script>alert(1)</script>"
    (tmp_path / "labels.csv").write_text(text.replace("s00", nasty).replace("a|b", f"{nasty}|b"))
    workspaces = Workspaces()
    session = open_session(tmp_path / "new", table())
    workspaces._sessions["x"] = session
    with TestClient(make_app(workspaces, "token"), base_url="http://localhost") as client:
        shown = client.get("/token/w/x/api/sample/0")
        assert shown.headers["content-type"] == "application/json"
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert shown.json()["name"] == nasty
        assert nasty not in client.get("/token/w/x/review").text
