"""The page *Look*: samples filtered, sorted and paged as a plain loop would, and the map."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")

from starlette.testclient import TestClient

from fspll import app
from fspll.app import look, map_points
from fspll.app.choosing import KINDS
from fspll.app.server import make_app
from fspll.app.session import Session
from fspll.app.table import natural, table_of
from fspll.app.workspaces import MAIN, Workspaces
from fspll.labeling.report.undecided import in_order
from fspll.labeling.run import Run

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def labeled(tmp_path_factory):
    """Label 90 vectors of three classes by three annotators; a name and a label are scripts."""
    tmp_path = tmp_path_factory.mktemp("look")
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=90)
    labels = ["ant", SCRIPT, "Bee 2"]
    X = rng.normal(size=(90, 5)) + 1.6 * np.eye(5)[truth]
    np.save(tmp_path / "X.npy", X)
    lines = ["sample,annotator,label"]
    for row, one in enumerate(truth):
        name = SCRIPT if row == 7 else f"n{row}"
        for who, right in (("Ada", 0.95), ("Ben", 0.6), ("Cy", 0.7)):
            if who == "Ada" or rng.random() < 0.7:
                given = one if rng.random() < right else rng.integers(3)
                lines.append(f"{name},{who},{labels[given]}")
    (tmp_path / "said.csv").write_text("\n".join(lines) + "\n")
    run = Run(tmp_path / "said.csv", {"features": tmp_path / "X.npy"})
    run.save(run.label(run.read(), progress=False), tmp_path / "judged", report=False)
    return tmp_path / "judged"


@pytest.fixture
def judged(labeled, tmp_path):
    """Return a folder with that result, for one test."""
    return Path(shutil.copytree(labeled, tmp_path / "judged"))


@pytest.fixture
def looking(judged, settled):
    """Return a client that shows the folder, with two answers and a discarded sample."""
    workspaces = Workspaces()
    session = Session(judged)
    workspaces.add(MAIN, session)
    server = make_app(workspaces, "token")
    with TestClient(server, base_url="http://127.0.0.1") as client:
        client.session, client.home = settled(session), f"/token/w/{MAIN}/"
        session.answer(3, "ant")
        session.answer(11, "new")
        session.discard(20)
        settled(session)
        yield client


def get(client, address):
    response = client.get(f"{client.home}api/{address}")
    assert response.status_code == 200, response.text
    return response.json()


def refusal(client, address):
    response = client.get(f"{client.home}api/{address}")
    assert response.status_code == 400
    return response.json()["error"]


def one_by_one(session, sort="doubt", label="", reason="", annotator="", answered="", q=""):
    """Choose and sort as :func:`fspll.app.choosing.choose` does, sample by sample."""
    view, annotations, found = session.view, session.annotations, []
    said = annotations.judgments
    for row, name in enumerate(annotations.names):
        answer = session.current().get(row)
        now = view.labels[row]
        sure = view.confidence[row]
        kind, why = view.reasons.get(row, ("", ""))
        if answer is not None:
            now, sure, kind, why = (None if answer.discarded else answer.label), 1.0, "", ""
        if label and now != label:
            continue
        if reason and kind != reason:
            continue
        if annotator:
            who = said.names.index(annotator)
            pairs = zip(said.rows.tolist(), said.annotators.tolist(), strict=True)
            if (row, who) not in set(pairs):
                continue
        if answered == "yes" and (answer is None or answer.discarded):
            continue
        if answered == "no" and answer is not None:
            continue
        if answered == "discarded" and not (answer is not None and answer.discarded):
            continue
        if q and q.lower() not in name.lower():
            continue
        settled = not (why or (now is not None and sure < 0.9))
        doubt = (settled, 2.0 if now is None else sure)
        by_name = natural(name)
        by_label = (now is None, natural(now or ""), doubt[1])
        found.append(((doubt, by_name, by_label)[("doubt", "name", "label").index(sort)], row))
    return [row for _, row in sorted(found, key=lambda one: one[0])]


QUERIES = [
    {},
    {"sort": "name"},
    {"sort": "label"},
    {"label": "ant"},
    {"label": SCRIPT, "sort": "name"},
    {"label": "new"},
    {"reason": "between"},
    {"reason": "contradiction", "sort": "label"},
    {"annotator": "Ben"},
    {"annotator": "Cy", "label": "Bee 2", "answered": "no"},
    {"answered": "yes"},
    {"answered": "no", "sort": "name"},
    {"answered": "discarded"},
    {"q": "N1", "sort": "name"},
    {"q": "<SCRIPT>"},
    {"annotator": "Ada", "q": "7", "sort": "label"},
]


def test_samples_are_those_of_a_plain_loop(looking, monkeypatch):
    monkeypatch.setattr(look, "PAGE", 7)
    session, sizes = looking.session, set()
    for query in QUERIES:
        expected = one_by_one(session, **query)
        sizes.add(len(expected))
        shown = []
        for page in itertools.count(1):
            response = looking.get(f"{looking.home}api/samples", params={**query, "page": page})
            found = response.json()
            assert (found["total"], found["page"]) == (len(expected), page)
            assert len(found["samples"]) <= 7
            shown += [one["id"] for one in found["samples"]]
            if page == found["pages"]:
                break
        assert shown == expected, query
    assert len(sizes) > 6  # or the queries would not tell anything


def test_names_are_sorted_as_people_do(looking):
    names = [one["name"] for one in get(looking, "samples?sort=name")["samples"]]
    assert names[:4] == [SCRIPT, "n0", "n1", "n2"]
    assert names.index("n9") < names.index("n10")


def test_a_page_that_answers_have_emptied_is_the_last_one(looking):
    found = get(looking, "samples?page=900")
    assert (found["page"], found["pages"], len(found["samples"])) == (2, 2, 30)


def test_samples_by_number_keep_the_order(looking):
    found = get(looking, "samples?ids=20,3,5")
    assert [one["id"] for one in found["samples"]] == [20, 3, 5]
    left_out, answered, other = found["samples"]
    assert (left_out["discarded"], left_out["confidence"]) == (True, None)
    assert (answered["answered"], answered["label"], answered["confidence"]) == (True, "ant", 1.0)
    assert (other["answered"], other["label"]) == (False, looking.session.view.labels[5])


UNKNOWN = [
    ("sort=size", "sort is one of 'doubt', 'name', 'label', not 'size'"),
    ("label=anz", "there is no label 'anz' here (did you mean 'ant'?)"),
    ("annotator=Dan", "there is no annotator 'Dan' here"),
    ("reason=why", "reason is one of 'contradiction', 'inseparable', 'naming', 'few'"),
    ("answered=maybe", "answered is one of 'yes', 'no', 'discarded', not 'maybe'"),
    ("page=0", "page is a number from 1, not '0'"),
    ("page=two", "page is a number from 1, not 'two'"),
    ("page=" + 5000 * "9", "page is a number from 1, not '999"),
    ("q=" + 201 * "x", "a search has at most 200 characters, not 201"),
    ("ids=1,x", "ids are at most 60 numbers of samples, with commas between them"),
    ("ids=90", "ids are at most 60 numbers of samples, with commas between them"),
    ("ids=" + ",".join(["1"] * 61), "ids are at most 60 numbers"),
]


def test_unknown_values_get_a_sentence(looking):
    for query, sentence in UNKNOWN:
        assert refusal(looking, f"samples?{query}").startswith(sentence)


def test_without_annotators_none_can_be_asked_for(client):
    said = refusal(client, "samples?annotator=Ada")
    assert said == "these labels do not say which annotator gave which"
    assert get(client, "overview")["annotators"] == []


def test_the_overview_counts_what_there_is(looking):
    session, found = looking.session, get(looking, "overview")
    assert [one["label"] for one in found["classes"]] == [*session.annotations.classes, "new"]
    for one in found["classes"]:
        rows = one_by_one(session, label=one["label"])
        sure = [1.0 if row in session.current() else session.view.confidence[row] for row in rows]
        assert one["count"] == len(rows)
        assert one["confidence"] == pytest.approx(np.mean(sure))
        assert one["doubtful"] == sum(row in session.view.reasons for row in rows)
    assert found["doubtful"] == len(session.view.reasons) > 0
    kinds = {one["kind"]: one["words"] for one in found["reasons"]}
    count = len(one_by_one(session, reason="between"))
    assert kinds["between"] == f"{count} lie between two classes"
    labeling = session.view.labeling.annotators
    assert [(one["name"], one["judgments"], one["agreement"]) for one in found["annotators"]] == [
        (one.name, one.judgments, pytest.approx(one.agreement)) for one in labeling
    ]


def test_kinds_of_doubt_are_those_of_the_report():
    assert in_order([*reversed(KINDS), "other"]) == [*KINDS, "other"]


def test_an_answer_counts_before_the_model_is_fitted_again(client, monkeypatch):
    monkeypatch.setattr(Session, "_fit", lambda *_: None)
    first = get(client, "samples")["samples"][0]
    before = get(client, "overview")["doubtful"]
    assert first["doubtful"]
    client.session.answer(first["id"], "c")
    found = get(client, f"samples?ids={first['id']}")["samples"][0]
    assert (found["label"], found["confidence"], found["doubtful"]) == ("c", 1.0, False)
    assert get(client, "overview")["doubtful"] == before - 1
    assert first["id"] in [one["id"] for one in get(client, "samples?answered=yes")["samples"]]


# -------------------------------------------------------------------- the map


def test_the_map_has_every_sample_with_a_label(looking):
    session, found = looking.session, get(looking, "map?annotator=Ben&label=ant")
    assert found["ids"] == [row for row in range(90) if row != 20]
    assert found["labels"][11] == "new"
    for at, row in enumerate(found["ids"]):
        assert found["open"][at] == (row in session.view.reasons)
    chosen = {row for row, on in zip(found["ids"], found["match"], strict=True) if on}
    assert chosen == set(one_by_one(session, annotator="Ben", label="ant"))
    assert max(*found["x"], *found["y"]) == 1
    assert min(found["x"]) == min(found["y"]) == 0


def test_the_map_is_computed_once_per_fit(looking, settled, monkeypatch):
    calls = []
    plane = map_points.find_plane
    monkeypatch.setattr(map_points, "find_plane", lambda *given: calls.append(1) or plane(*given))
    before = get(looking, "map")
    get(looking, "map?label=ant")
    assert len(calls) == 1
    looking.session.discard(before["ids"][0])
    # What was discarded is gone before the model is fitted again.
    assert get(looking, "map")["ids"] == before["ids"][1:]
    settled(looking.session)
    get(looking, "map")
    assert len(calls) == 2


def test_the_doubtful_are_always_on_the_map(looking):
    session = looking.session
    table, features = table_of(session), session.view.features.copy()
    features[5] = np.nan  # could not be read
    doubtful = set(np.flatnonzero(table.doubtful).tolist()) - {5}
    most = len(doubtful) + 4
    found = map_points.find_points(features, table, most)
    assert len(found.rows) == most
    assert doubtful < set(found.rows.tolist())
    assert not {5, 20} & set(found.rows.tolist())
    assert f"Only {most} of 88 samples" in found.caption
    fewer = map_points.find_points(features, table, 3)
    expected = [row for row in one_by_one(session) if row != 5][:3]
    assert sorted(expected) == fewer.rows.tolist()


def test_before_the_first_fit_there_are_samples_but_no_map(judged, settled, monkeypatch):
    monkeypatch.setattr(Session, "_first_fit", lambda self, answers: None)
    workspaces = Workspaces()
    session = Session(judged)
    workspaces.add(MAIN, session)
    with TestClient(make_app(workspaces, "token"), base_url="http://127.0.0.1") as client:
        client.home = f"/token/w/{MAIN}/"
        settled(session)
        assert get(client, "map") == {"fitted": False}
        found = get(client, "samples")
        assert (found["fitted"], found["total"]) == (False, 90)
        assert found["samples"][0]["confidence"] == np.nanmin(session.view.confidence)
        assert get(client, "samples?reason=between")["total"] == 0
        assert {one["name"] for one in get(client, "overview")["annotators"]} == {
            "Ada",
            "Ben",
            "Cy",
        }


# -------------------------------------------------------------------- taking back


def test_an_answer_of_another_day_can_be_taken_back(looking, open_session, settled):
    looking.session.close()
    session = open_session(looking.session.folder)
    workspaces = Workspaces()
    workspaces._sessions[MAIN] = session
    with TestClient(make_app(workspaces, "token"), base_url="http://127.0.0.1") as client:
        address = f"/token/w/{MAIN}/api/"
        assert client.post(f"{address}withdraw", json={"id": 3}).json()["progress"]["answered"] == 1
        assert client.get(f"{address}sample/3").json()["answer"] is None
        again = client.post(f"{address}withdraw", json={"id": 3})
        assert again.json() == {"error": "'n3' has no answer that could be taken back"}
        wrong = client.post(f"{address}withdraw", json={"id": "3"})
        assert wrong.json() == {"error": "id is a whole number, not '3'"}


def test_an_answer_of_the_audit_can_be_taken_back(client):
    number = client.session.queue("audit")[0]
    client.session.answer(number, "a", queue="audit")
    assert get(client, f"sample/{number}")["audited"] is True
    client.post(f"{client.home}api/withdraw", json={"id": number})
    assert number in client.session.queue("audit")
    assert get(client, f"sample/{number}")["audited"] is False


# -------------------------------------------------------------------- scripts in the data


def test_scripts_in_the_data_are_only_data(looking):
    found = looking.get(f"{looking.home}api/samples", params={"q": SCRIPT})
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert [one["name"] for one in found.json()["samples"]] == [SCRIPT]
    assert SCRIPT in [one["label"] for one in get(looking, "overview")["classes"]]
    page = looking.get(f"{looking.home}look", params={"q": SCRIPT, "label": SCRIPT})
    assert page.status_code == 200
    assert "alert(1)" not in page.text
    assert "static/look.js" in page.text
    assert looking.get("/token/static/report.css").headers["content-type"].startswith("text/css")


def test_no_script_of_the_app_writes_html():
    scripts = sorted((Path(app.__file__).parent / "static").glob("*.js"))
    assert len(scripts) > 5
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in text, f"{path.name} uses {way}"
