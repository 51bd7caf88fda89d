"""Downloads against a server on this machine that cuts, lies and changes its mind."""

from __future__ import annotations

import hashlib
import io
import threading
import urllib.request
from http.client import HTTPMessage

import pytest

from fspll._common.errors import DataError, InputError
from fspll.datasets.download import SafeRedirects, download

BODY = bytes(range(256)) * 800  # 204,800 bytes: several blocks


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_whole(site, fetch, tmp_path):
    site.put("/file", BODY)
    seen = []
    path = fetch(md5=hashlib.md5(BODY).hexdigest(), progress=lambda *report: seen.append(report))
    assert path.read_bytes() == BODY
    assert seen[-1] == ("file", len(BODY), len(BODY))
    assert [n for _, n, _ in seen] == sorted(n for _, n, _ in seen)
    assert names(tmp_path) == ["file"]


def test_cut_is_resumed_and_only_the_rest_is_sent(site, fetch, tmp_path):
    site.put("/file", BODY, cuts=[100_000])
    assert fetch().read_bytes() == BODY
    assert "Range" not in site.asked[0]
    assert site.asked[1]["Range"] == "bytes=100000-"
    assert site.asked[1]["If-Range"] == '"v1"'
    assert site.sent == [100_000, len(BODY) - 100_000]
    assert names(tmp_path) == ["file"]


def test_later_run_goes_on_where_the_first_stopped(site, fetch, tmp_path):
    site.put("/file", BODY, cuts=[70_000])
    with pytest.raises(DataError, match=r"failed 1 times.* 70000 of 204800 .*70000 bytes are"):
        fetch(attempts=1)
    assert names(tmp_path) == ["file.part", "file.part.json"]
    assert fetch().read_bytes() == BODY
    assert site.sent == [70_000, len(BODY) - 70_000]


def test_truncated_every_time_is_an_error(site, fetch, tmp_path):
    site.put("/file", BODY, cuts=[10, 10, 10])
    with pytest.raises(DataError, match=r"failed 3 times.*closed after 30 of 204800 bytes"):
        fetch(attempts=3)
    assert not (tmp_path / "file").exists()


def test_server_without_ranges_restarts(site, fetch):
    site.put("/file", BODY, ranges=False, cuts=[100_000])
    assert fetch().read_bytes() == BODY
    assert site.sent == [100_000, len(BODY)]


def test_server_without_validator_is_not_asked_for_a_range(site, fetch):
    site.put("/file", BODY, etag='W/"weak"', cuts=[100_000])
    assert fetch().read_bytes() == BODY
    assert "Range" not in site.asked[1]


@pytest.mark.parametrize("if_range", [True, False], ids=["obeyed", "ignored by the server"])
def test_changed_file_restarts(site, fetch, if_range):
    site.put("/file", BODY, cuts=[100_000])
    with pytest.raises(DataError, match="run it again to go on"):
        fetch(attempts=1)
    changed = BODY[::-1]
    site.put("/file", changed, etag='"v2"', if_range=if_range)
    assert fetch().read_bytes() == changed


def test_part_longer_than_the_file_restarts(site, fetch, tmp_path):
    site.put("/file", BODY, cuts=[100_000])
    with pytest.raises(DataError):
        fetch(attempts=1)
    with (tmp_path / "file.part").open("ab") as part:
        part.write(BODY)
    assert fetch().read_bytes() == BODY


def test_interrupt_keeps_the_part(site, fetch, tmp_path):
    site.put("/file", BODY)

    def press_ctrl_c(name, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(progress=press_ctrl_c)
    kept = (tmp_path / "file.part").stat().st_size
    assert 0 < kept <= len(BODY)
    assert fetch().read_bytes() == BODY
    assert site.asked[1]["Range"] == f"bytes={kept}-"


def test_stalled_connection_is_resumed(site, fetch):
    stall = threading.Event()
    site.put("/file", BODY, cuts=[50_000], stall=stall)
    try:
        assert fetch(timeout=0.3).read_bytes() == BODY
    finally:
        stall.set()
    assert site.asked[1]["Range"] == "bytes=50000-"


def test_busy_server_is_asked_again(site, fetch):
    site.put("/file", BODY, errors=[503, 429])
    assert fetch().read_bytes() == BODY


def test_missing_file_is_asked_for_once(site, fetch, tmp_path):
    with pytest.raises(DataError, match=r"cannot download .*/file: the server answered 404"):
        fetch()
    assert len(site.asked) == 1
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/zip"])
def test_web_page_is_refused(site, fetch, tmp_path, kind):
    site.put("/file", b"\n<!DOCTYPE html><p>log in first", kind=kind)
    with pytest.raises(DataError, match="a web page where a data file was expected"):
        fetch()
    assert names(tmp_path) == []


def test_web_page_does_not_cost_the_part(site, fetch):
    site.put("/file", BODY, cuts=[100_000])
    with pytest.raises(DataError):
        fetch(attempts=1)
    site.put("/file", b"<html>log in", kind="text/html", etag='"page"')
    with pytest.raises(DataError, match="web page"):
        fetch()
    site.put("/file", BODY)
    assert fetch().read_bytes() == BODY
    assert site.sent[-1] == len(BODY) - 100_000


def test_wrong_checksum_leaves_only_the_old_file(site, fetch, tmp_path):
    (tmp_path / "file").write_bytes(b"old and good")
    site.put("/file", BODY)
    found = hashlib.md5(BODY).hexdigest()
    with pytest.raises(DataError, match=rf"/file has the MD5 checksum {found} where 00f was"):
        fetch(md5="00f")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old and good"


@pytest.mark.parametrize("says_length", [True, False])
def test_oversize_is_refused(site, fetch, tmp_path, says_length):
    site.put("/file", BODY, says_length=says_length)
    with pytest.raises(DataError, match="bytes or more; at most 150000 are accepted"):
        fetch(max_bytes=150_000)
    assert names(tmp_path) == []


def test_refused_first_download_leaves_no_folder(site, tmp_path):
    site.put("/file", BODY)
    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "new" / "deep", tmp_path / "mine"):
        with pytest.raises(DataError, match="MD5 checksum"):
            download(f"{site.url}/file", folder / "file", max_bytes=10**6, md5="00f")
    assert names(tmp_path) == ["mine"]


def test_broken_first_download_keeps_its_folder(site, tmp_path):
    site.put("/file", BODY, cuts=[70_000])
    with pytest.raises(DataError, match="70000 bytes are kept"):
        download(f"{site.url}/file", tmp_path / "new" / "file", max_bytes=10**6, attempts=1)
    assert names(tmp_path / "new") == ["file.part", "file.part.json"]


def test_folder_that_cannot_be_written(site, tmp_path):
    site.put("/file", BODY)
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match=r"cannot write .*file.part: "):
        download(f"{site.url}/file", tmp_path / "taken" / "file", max_bytes=10**6)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://raw.githubusercontent.com/file", "only https:// addresses are"),
        ("ftp://127.0.0.1/file", "only https:// addresses are"),
        ("file:///etc/passwd", "is not a usable address"),
        ("https://", "is not a usable address"),
        ("https://127.0.0.1/a b", "is not a usable address"),
        ("https://127.0.0.1:none/", "is not a usable address"),
    ],
)
def test_unsafe_address(tmp_path, url, message):
    with pytest.raises(InputError, match=message):
        download(url, tmp_path / "file", max_bytes=10)


def test_redirection_is_followed_with_the_range(site, fetch):
    site.put("/file", b"", location="/elsewhere")
    site.put("/elsewhere", BODY, cuts=[100_000])
    assert fetch().read_bytes() == BODY
    assert site.asked[-1]["Range"] == "bytes=100000-"


def test_redirection_to_plain_http_is_refused(site, fetch):
    site.put("/file", b"", location="http://raw.githubusercontent.com/file")
    with pytest.raises(InputError, match="only https:// addresses are"):
        fetch()


def test_redirection_to_this_machine_is_refused():
    request = urllib.request.Request("https://raw.githubusercontent.com/file")
    with pytest.raises(InputError, match="redirects to this machine"):
        SafeRedirects().redirect_request(
            request, io.BytesIO(), 302, "", HTTPMessage(), "http://127.0.0.1/file"
        )


def test_proxy_is_not_asked_for_this_machine(site, fetch, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    site.put("/file", BODY)
    assert fetch(attempts=1).read_bytes() == BODY
