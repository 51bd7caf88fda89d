"""Requests that are not the owner's own get nothing."""

from __future__ import annotations

import pytest

from fspll.app.security import MOST_BYTES

JSON = {"content-type": "application/json"}


def answers(client):
    return dict(client.session.store.answers)


def test_the_page_is_there_for_its_owner(client):
    start = client.get("/token/")
    assert start.status_code == 307
    assert start.headers["location"] == "/token/w/result/review"
    page = client.get(start.headers["location"])
    assert page.status_code == 200
    assert 'src="/token/static/review.js"' in page.text
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    # Nothing in the page runs or is styled by itself: everything is a file of the server.
    assert "<script>" not in page.text
    assert "style=" not in page.text
    assert "onclick" not in page.text


@pytest.mark.parametrize(
    "path", ["/", "/wrong/", "/wrong/w/result/api/status", "/w/result/api/status", "//", "/toke"]
)
def test_without_the_token_there_is_nothing(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert "open the address that fspll app printed" in response.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(client, host):
    response = client.get(f"{client.home}api/status", headers={"host": host})
    assert response.status_code == 421
    assert response.text == "this host is not served here\n"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:80", "[::1]:9"])
def test_this_machine_by_its_numbers(client, host):
    assert client.get(f"{client.home}api/status", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1234"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_requests_of_other_sites_change_nothing(client, headers):
    given = {"id": 0, "label": "a"}
    response = client.post(f"{client.home}api/answer", json=given, headers=headers)
    assert response.status_code == 403
    assert response.text == "requests of other sites are refused\n"
    assert answers(client) == {}
    own = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    assert client.post(f"{client.home}api/answer", json=given, headers=own).status_code == 200
    assert answers(client) == {"s00": "a"}


def test_forms_of_other_sites_are_no_json(client):
    """A form needs no permission of the browser, but cannot send JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        response = client.post(
            f"{client.home}api/answer",
            content=b'{"id": 0, "label": "a"}',
            headers={"content-type": kind},
        )
        assert response.status_code == 400
        assert "must be JSON" in response.json()["error"]
    assert answers(client) == {}


def test_large_requests_are_refused(client):
    large = b'{"id": 0, "label": "' + b"a" * MOST_BYTES + b'"}'
    response = client.post(f"{client.home}api/answer", content=large, headers=JSON)
    assert response.status_code == 413
    lying = {**JSON, "content-length": "9" * 5000}
    assert client.post(f"{client.home}api/answer", content=b"{}", headers=lying).status_code == 400

    def parts():  # without a length
        for _ in range(MOST_BYTES // 1000 + 2):
            yield b" " * 1000

    response = client.post(f"{client.home}api/answer", content=parts(), headers=JSON)
    assert response.status_code == 413
    assert "are not taken" in response.json()["error"]


@pytest.mark.parametrize(
    "path",
    [
        "static/../server.py",
        "static/..%2fserver.py",
        "static/%2e%2e%2fserver.py",
        "w/result/download/run.json",
        "w/result/download/..%2flabels.csv",
        "w/result/download/%2fetc%2fpasswd",
        "w/result/picture/large/0",  # vectors have none
        "w/result/picture/huge/0",
        "w/other/review",
        "w/..%2fresult/review",
    ],
)
def test_no_path_of_the_client_is_opened(client, path):
    response = client.get(f"/token/{path}")
    assert response.status_code == 404
    assert "error" in response.json()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"[1]", "must be a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id": "0", "label": "a"}', "id is a whole number"),
        (b'{"id": true, "label": "a"}', "id is a whole number"),
        (b'{"id": 30, "label": "a"}', "there is no sample 30; there are 30 samples"),
        (b'{"id": -1, "label": "a"}', "there is no sample -1"),
        (b'{"id": 0}', "a label is needed"),
        (b'{"id": 0, "label": "  "}', "a label is needed"),
        (b'{"id": 0, "label": 3}', "a label is a text"),
        (b'{"id": 0, "label": "\\u0000"}', "no text file can hold"),
        (b'{"id": 0, "label": "a", "who": 3}', "a name is a text"),
        (b'{"id": 0, "label": "a", "queue": "x"}', "a queue is 'review' or 'audit'"),
        (b'{"id": 0, "label": "a", "skipped": 3}', "skipped is a list"),
        (b'{"id": 0, "label": "a", "skipped": ["x"]}', "skipped is a whole number"),
    ],
)
def test_odd_requests_get_a_sentence_and_change_nothing(client, body, message):
    response = client.post(f"{client.home}api/answer", content=body, headers=JSON)
    assert response.status_code == 400
    assert message in response.json()["error"]
    if "skipped is a whole" not in message:
        assert answers(client) == {}


def test_long_labels_are_refused(client):
    given = {"id": 0, "label": "a" * 201}
    response = client.post(f"{client.home}api/answer", json=given)
    assert response.json()["error"] == "a label has at most 200 characters, not 201"
