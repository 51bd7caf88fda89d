"""For tests of downloads: a server on this machine that cuts, lies and changes its mind."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fspll.datasets.download import download


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

    def put(self, path, body, **options):
        """Answer requests for ``path`` with a page; see :class:`Page`."""
        self.pages[path] = Page(body, **options)


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
