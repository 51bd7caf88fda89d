"""Downloads against a server on this machine that cuts, lies and changes its mind."""

from __future__ import annotations

import hashlib
import io
import stat
import threading
import urllib.request
import zipfile
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fspll.datasets import catalogue
from fspll.datasets.catalogue import Archive, check_archive
from fspll.datasets.fetch import _SafeRedirects, download, get_dataset
from fspll.errors import DataError, InputError

BODY = bytes(range(256)) * 800  # 204,800 bytes: several blocks
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


@dataclass
class Page:
    body: bytes
    etag: str = '"v1"'
    kind: str = "application/zip"
    ranges: bool = True
    if_range: bool = True
    says_length: bool = True
    cuts: list[int] = field(default_factory=list)  # bytes after which each answer ends
    errors: list[int] = field(default_factory=list)  # status codes to answer first
    location: str = ""
    stall: threading.Event | None = None  # wait for it where a cut would be


@dataclass
class Site:
    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self):
        site, page = self.site, self.site.pages.get(self.path)
        site.asked.append(dict(self.headers))
        if page is None:
            self.send_error(404)
        elif page.errors:
            self.send_error(page.errors.pop(0))
        elif page.location:
            self.send_response(302)
            self.send_header("Location", page.location)
            self.end_headers()
        else:
            self._answer(page)

    def _answer(self, page):
        wanted = self.headers.get("Range", "") if page.ranges else ""
        if page.if_range and self.headers.get("If-Range") != page.etag:
            wanted = ""
        start = int(wanted[len("bytes=") : -1]) if wanted else 0
        if start >= len(page.body):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Type", page.kind)
        self.send_header("ETag", page.etag)
        if wanted:
            last, n = len(page.body) - 1, len(page.body)
            self.send_header("Content-Range", f"bytes {start}-{last}/{n}")
        if page.says_length:
            self.send_header("Content-Length", str(len(page.body) - start))
        self.end_headers()
        end = start + page.cuts.pop(0) if page.cuts else len(page.body)
        # Noted first: the client may be done, and its test over, before this thread goes on.
        self.site.sent.append(len(page.body[start:end]))
        self.wfile.write(page.body[start:end])
        self.wfile.flush()
        if page.stall and end < len(page.body):
            page.stall.wait(10)

    def log_message(self, *args):
        pass


@pytest.fixture
def site():
    handler = type("Bound", (Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.site = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield handler.site
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(site, tmp_path):
    """Download /file of the site to ``tmp_path / "file"`` without pauses."""

    def run(**options):
        options = {"max_bytes": 10**6, "pause": 0, "timeout": 5} | options
        return download(f"{site.url}/file", tmp_path / "file", **options)

    return run


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class TestDownload:
    def test_whole(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY)
        seen = []
        path = fetch(
            md5=hashlib.md5(BODY).hexdigest(), progress=lambda *report: seen.append(report)
        )
        assert path.read_bytes() == BODY
        assert seen[-1] == ("file", len(BODY), len(BODY))
        assert [n for _, n, _ in seen] == sorted(n for _, n, _ in seen)
        assert names(tmp_path) == ["file"]

    def test_cut_is_resumed_and_only_the_rest_is_sent(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY, cuts=[100_000])
        assert fetch().read_bytes() == BODY
        assert "Range" not in site.asked[0]
        assert site.asked[1]["Range"] == "bytes=100000-"
        assert site.asked[1]["If-Range"] == '"v1"'
        assert site.sent == [100_000, len(BODY) - 100_000]
        assert names(tmp_path) == ["file"]

    def test_later_run_goes_on_where_the_first_stopped(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY, cuts=[70_000])
        with pytest.raises(DataError, match=r"failed 1 times.* 70000 of 204800 .*70000 bytes are"):
            fetch(attempts=1)
        assert names(tmp_path) == ["file.part", "file.part.json"]
        assert fetch().read_bytes() == BODY
        assert site.sent == [70_000, len(BODY) - 70_000]

    def test_truncated_every_time_is_an_error(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY, cuts=[10, 10, 10])
        with pytest.raises(DataError, match=r"failed 3 times.*closed after 30 of 204800 bytes"):
            fetch(attempts=3)
        assert not (tmp_path / "file").exists()

    def test_server_without_ranges_restarts(self, site, fetch):
        site.pages["/file"] = Page(BODY, ranges=False, cuts=[100_000])
        assert fetch().read_bytes() == BODY
        assert site.sent == [100_000, len(BODY)]

    def test_server_without_validator_is_not_asked_for_a_range(self, site, fetch):
        site.pages["/file"] = Page(BODY, etag='W/"weak"', cuts=[100_000])
        assert fetch().read_bytes() == BODY
        assert "Range" not in site.asked[1]

    @pytest.mark.parametrize("if_range", [True, False], ids=["obeyed", "ignored by the server"])
    def test_changed_file_restarts(self, site, fetch, if_range):
        site.pages["/file"] = Page(BODY, cuts=[100_000])
        with pytest.raises(DataError, match="run it again to go on"):
            fetch(attempts=1)
        changed = BODY[::-1]
        site.pages["/file"] = Page(changed, etag='"v2"', if_range=if_range)
        assert fetch().read_bytes() == changed

    def test_part_longer_than_the_file_restarts(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY, cuts=[100_000])
        with pytest.raises(DataError):
            fetch(attempts=1)
        with (tmp_path / "file.part").open("ab") as part:
            part.write(BODY)
        assert fetch().read_bytes() == BODY

    def test_interrupt_keeps_the_part(self, site, fetch, tmp_path):
        site.pages["/file"] = Page(BODY)

        def press_ctrl_c(name, done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch(progress=press_ctrl_c)
        kept = (tmp_path / "file.part").stat().st_size
        assert 0 < kept <= len(BODY)
        assert fetch().read_bytes() == BODY
        assert site.asked[1]["Range"] == f"bytes={kept}-"

    def test_stalled_connection_is_resumed(self, site, fetch):
        stall = threading.Event()
        site.pages["/file"] = Page(BODY, cuts=[50_000], stall=stall)
        try:
            assert fetch(timeout=0.3).read_bytes() == BODY
        finally:
            stall.set()
        assert site.asked[1]["Range"] == "bytes=50000-"

    def test_busy_server_is_asked_again(self, site, fetch):
        site.pages["/file"] = Page(BODY, errors=[503, 429])
        assert fetch().read_bytes() == BODY

    def test_missing_file_is_asked_for_once(self, site, fetch, tmp_path):
        with pytest.raises(DataError, match=r"cannot download .*/file: the server answered 404"):
            fetch()
        assert len(site.asked) == 1
        assert names(tmp_path) == []

    @pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/zip"])
    def test_web_page_is_refused(self, site, fetch, tmp_path, kind):
        site.pages["/file"] = Page(b"\n<!DOCTYPE html><p>log in first", kind=kind)
        with pytest.raises(DataError, match="a web page where a data file was expected"):
            fetch()
        assert names(tmp_path) == []

    def test_web_page_does_not_cost_the_part(self, site, fetch):
        site.pages["/file"] = Page(BODY, cuts=[100_000])
        with pytest.raises(DataError):
            fetch(attempts=1)
        site.pages["/file"] = Page(b"<html>log in", kind="text/html", etag='"page"')
        with pytest.raises(DataError, match="web page"):
            fetch()
        site.pages["/file"] = Page(BODY)
        assert fetch().read_bytes() == BODY
        assert site.sent[-1] == len(BODY) - 100_000

    def test_wrong_checksum_leaves_only_the_old_file(self, site, fetch, tmp_path):
        (tmp_path / "file").write_bytes(b"old and good")
        site.pages["/file"] = Page(BODY)
        found = hashlib.md5(BODY).hexdigest()
        with pytest.raises(DataError, match=rf"/file has the MD5 checksum {found} where 00f was"):
            fetch(md5="00f")
        assert names(tmp_path) == ["file"]
        assert (tmp_path / "file").read_bytes() == b"old and good"

    @pytest.mark.parametrize("says_length", [True, False])
    def test_oversize_is_refused(self, site, fetch, tmp_path, says_length):
        site.pages["/file"] = Page(BODY, says_length=says_length)
        with pytest.raises(DataError, match="bytes or more; at most 150000 are accepted"):
            fetch(max_bytes=150_000)
        assert names(tmp_path) == []

    def test_folder_that_cannot_be_written(self, site, tmp_path):
        site.pages["/file"] = Page(BODY)
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
    def test_unsafe_address(self, tmp_path, url, message):
        with pytest.raises(InputError, match=message):
            download(url, tmp_path / "file", max_bytes=10)

    def test_redirection_is_followed_with_the_range(self, site, fetch):
        site.pages["/file"] = Page(b"", location="/elsewhere")
        site.pages["/elsewhere"] = Page(BODY, cuts=[100_000])
        assert fetch().read_bytes() == BODY
        assert site.asked[-1]["Range"] == "bytes=100000-"

    def test_redirection_to_plain_http_is_refused(self, site, fetch):
        site.pages["/file"] = Page(b"", location="http://raw.githubusercontent.com/file")
        with pytest.raises(InputError, match="only https:// addresses are"):
            fetch()

    def test_redirection_to_this_machine_is_refused(self):
        request = urllib.request.Request("https://raw.githubusercontent.com/file")
        with pytest.raises(InputError, match="redirects to this machine"):
            _SafeRedirects().redirect_request(
                request, io.BytesIO(), 302, "", HTTPMessage(), "http://127.0.0.1/file"
            )

    def test_proxy_is_not_asked_for_this_machine(self, site, fetch, monkeypatch):
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        site.pages["/file"] = Page(BODY)
        assert fetch(attempts=1).read_bytes() == BODY


# Omniglot in small: the same layout and rules, fewer characters.
SMALL = tuple(
    Archive(f"images_{part}.zip", f"unset/images_{part}.zip", "unset", 2, 4)
    for part in ("background", "evaluation")
)


def pack(path, top, *, n_characters=2, n_drawings=20, extra=None, picture=PNG):
    with zipfile.ZipFile(path, "w") as packed:
        for alphabet in ("Greek", "Latin"):
            for c in range(1, n_characters + 1):
                for d in range(1, n_drawings + 1):
                    packed.writestr(f"{top}/{alphabet}/character{c:02}/{c:04}_{d:02}.png", picture)
        if extra is not None:
            packed.writestr(extra, "target")
    return path.read_bytes()


def link_member():
    member = zipfile.ZipInfo("images_background/Greek/link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


def tampered(path):
    body = pack(path, "images_background")
    return body.replace(b"picture", b"Picture", 1)


BAD_ZIPS = {
    "truncated": (lambda p: pack(p, "t")[:-100], "is not a whole zip file"),
    "outside": (lambda p: pack(p, "t", extra="../evil"), r"'\.\./evil' points outside"),
    "link": (lambda p: pack(p, "t", extra=link_member()), "is a link"),
    "tampered": (tampered, r"is damaged: Bad CRC-32"),
    "too few characters": (lambda p: pack(p, "t", n_characters=1), "has 2 characters of 2 alph"),
    "too few drawings": (lambda p: pack(p, "t", n_drawings=19), "19 drawings of Greek/character01"),
    "no pictures": (lambda p: pack(p, "t", picture=b"text"), "is not a PNG picture"),
    "no zip": (lambda p: b"nothing of the kind", "is not a whole zip file"),
}


@pytest.fixture
def small(tmp_path):
    """Return a folder with both zips of the small Omniglot."""
    folder = tmp_path / "source"
    folder.mkdir()
    for archive in SMALL:
        pack(folder / archive.name, archive.name.removesuffix(".zip"))
    return folder


@pytest.fixture
def known(monkeypatch, site):
    """Let the catalogue know the small Omniglot; its public home is the test server."""

    def know(**md5):
        archives = tuple(
            Archive(a.name, f"{site.url}/home/{a.name}", md5.get(a.name[7:11], "unset"), 2, 4)
            for a in SMALL
        )
        monkeypatch.setitem(catalogue.CATALOGUE, "omniglot", catalogue._omniglot(archives))

    know()
    return know


def serve(site, folder, under):
    for archive in SMALL:
        site.pages[f"/{under}/{archive.name}"] = Page((folder / archive.name).read_bytes())


@pytest.mark.parametrize("kind", BAD_ZIPS)
def test_bad_zip_from_a_server_is_refused(site, fetch, tmp_path, kind):
    make, message = BAD_ZIPS[kind]
    site.pages["/file"] = Page(make(tmp_path / "made.zip"))
    (tmp_path / "made.zip").unlink(missing_ok=True)
    (tmp_path / "file").write_bytes(b"old and good")
    with pytest.raises(DataError, match=message) as caught:
        fetch(check=partial(check_archive, archive=SMALL[0]))
    assert ".part" not in str(caught.value)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old and good"


@pytest.mark.usefixtures("known")
class TestGetDataset:
    def test_public_home_needs_the_known_checksums(self, site, small, known, tmp_path):
        serve(site, small, "home")
        with pytest.raises(DataError, match=r"has the MD5 checksum .* where unset was expected"):
            get_dataset("omniglot", root=tmp_path / "to")
        assert names(tmp_path / "to") == []
        sums = [hashlib.md5((small / a.name).read_bytes()).hexdigest() for a in SMALL]
        known(back=sums[0], eval=sums[1])
        fetched = get_dataset("omniglot", root=tmp_path / "to")
        assert fetched.summary == "160 drawings of 8 characters, canonical files"
        assert [path.name for path in fetched.written] == [a.name for a in SMALL]

    def test_other_server_is_judged_by_content(self, site, small, tmp_path):
        serve(site, small, "mirror")
        fetched = get_dataset("omniglot", f"{site.url}/mirror/", tmp_path / "to")
        assert fetched.summary == "160 drawings of 8 characters, re-packed files"
        assert fetched.folder == tmp_path / "to"
        assert names(tmp_path / "to") == ["images_background.zip", "images_evaluation.zip"]

    def test_address_of_one_file(self, site, tmp_path):
        with pytest.raises(InputError, match="give the address of the folder"):
            get_dataset("omniglot", f"{site.url}/images_background.zip", tmp_path / "to")

    def test_only_what_is_missing_or_damaged_is_downloaded(self, site, small, tmp_path):
        serve(site, small, "mirror")
        get_dataset("omniglot", small, tmp_path / "to")
        (tmp_path / "to" / "images_evaluation.zip").write_bytes(b"damaged")
        fetched = get_dataset("omniglot", f"{site.url}/mirror", tmp_path / "to")
        assert [path.name for path in fetched.written] == ["images_evaluation.zip"]
        assert len(site.asked) == 1
        assert get_dataset("omniglot", root=tmp_path / "to").written == ()
        assert len(site.asked) == 1

    def test_refused_replacement_leaves_the_good_copy(self, site, small, tmp_path):
        get_dataset("omniglot", small, tmp_path / "to")
        before = (tmp_path / "to" / "images_background.zip").read_bytes()
        site.pages["/bad/images_background.zip"] = Page(tampered(tmp_path / "made.zip"))
        (small / "images_background.zip").write_bytes(tampered(tmp_path / "made.zip"))
        for source in (f"{site.url}/bad", small):
            with pytest.raises(DataError, match=r"is damaged: Bad CRC-32"):
                get_dataset("omniglot", source, tmp_path / "to", force=True)
        assert (tmp_path / "to" / "images_background.zip").read_bytes() == before
        assert names(tmp_path / "to") == ["images_background.zip", "images_evaluation.zip"]

    @pytest.mark.parametrize("kind", BAD_ZIPS)
    def test_bad_local_zip_leaves_nothing(self, small, tmp_path, kind):
        make, message = BAD_ZIPS[kind]
        (small / "images_evaluation.zip").write_bytes(make(tmp_path / "made.zip"))
        with pytest.raises(DataError, match=message):
            get_dataset("omniglot", small, tmp_path / "to")
        assert not (tmp_path / "to").exists()

    def test_local_files_one_by_one(self, small, tmp_path):
        background, evaluation = (small / a.name for a in SMALL)
        with pytest.raises(InputError, match=r"has no images_evaluation\.zip or images_ev"):
            get_dataset("omniglot", background, tmp_path / "to")
        (tmp_path / "to").mkdir()
        (tmp_path / "to" / f"{background.name}.part").write_bytes(b"of a broken download")
        get_dataset("omniglot", [background, evaluation], tmp_path / "to")
        assert names(tmp_path / "to") == [background.name, evaluation.name]
        assert (tmp_path / "to" / background.name).read_bytes() == background.read_bytes()

    def test_local_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(InputError, match=r"nowhere does not exist"):
            get_dataset("omniglot", tmp_path / "nowhere", tmp_path / "to")

    def test_local_folder_is_the_target_itself(self, small):
        fetched = get_dataset("omniglot", small, small, force=True)
        assert fetched.summary.startswith("160 drawings")
        assert names(small) == ["images_background.zip", "images_evaluation.zip"]

    def test_what_cannot_be_downloaded_says_where_to_place_it(self, tmp_path):
        with pytest.raises(InputError, match=r"ImageNet's licence; place images/ .* in .*/to$"):
            get_dataset("mini_imagenet", root=tmp_path / "to")
        with pytest.raises(InputError, match=r"lost is not downloadable; place lost.mat by hand"):
            get_dataset("lost")
        assert get_dataset("glyphs").folder is None


def test_real_omniglot_is_copied(real_data, tmp_path):
    folder = real_data("omniglot/images_background.zip").parent
    fetched = get_dataset("omniglot", folder, tmp_path / "to")
    assert fetched.summary.startswith("32460 drawings of 1623 characters, ")
    assert len(fetched.written) == 2
