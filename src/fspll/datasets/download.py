"""Download one address into one file: resumable, verified, renamed into place at the end.

A refused download leaves what was there as it was. Only a connection that broke leaves something:
the ``.part`` file from which the next run goes on.

Why not pooch: it starts a broken download again from the first byte, has no limit of size, and
accepts a file by its checksum only, where copies of data sets have to be accepted by their content.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll._common.files import file_md5, no_empty_folder, remove_stale, write_beside
from fspll._common.version import __version__

Progress = Callable[[str, int, "int | None"], None]
"""Called with a file's name, its bytes so far, and its bytes in all (None when not known)."""

_BLOCK = 2**16
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head")


class _RetryError(Exception):
    """Another attempt may help; what arrived is kept and only the rest will be asked for."""


def download(
    url: str,
    target: Path | str,
    *,
    max_bytes: int,
    md5: str | None = None,
    check: Callable[[Path], object] | None = None,
    progress: Progress | None = None,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 30.0,
    opener: urllib.request.OpenerDirector | None = None,
) -> Path:
    """Download one file; verify it; rename it into place.

    The bytes go to ``<target>.part``, with a note beside it that holds the server's validator (a
    strong ETag, or else Last-Modified). The next attempt, in this run or a later one, asks only
    for the rest, and only if the file is still the same one on the server (``If-Range``).

    Parameters
    ----------
    url : str
        An ``https`` address; plain ``http`` is accepted from this machine itself only.
    target : path
        Where the file goes; an existing file is replaced at the very end.
    max_bytes : int
        Refuse a file larger than this.
    md5 : str, optional
        Checksum that the file must have.
    check : callable, optional
        Called with the path of the complete file; raises an error of this package to refuse it.
    progress : callable, optional
        See :data:`Progress`.
    attempts, pause, timeout
        How often to connect, seconds before the second attempt (then doubled), and seconds without
        a byte after which a connection counts as cut.
    opener : urllib.request.OpenerDirector, optional
        What opens the address, e.g. one with a proxy of its own.

    Returns
    -------
    Path
        The target.
    """
    refuse_insecure(url)
    target = Path(target)
    part = PartialFile(target, url)
    opener = opener or make_opener(url)
    remove_stale(target.parent, target.name)
    with no_empty_folder(target.parent):
        for attempt in range(1, attempts + 1):
            try:
                _receive(url, part, opener, max_bytes, timeout, progress)
                break
            except _RetryError as error:
                if attempt == attempts:
                    raise DataError(_give_up(url, part, attempts, error)) from error
                time.sleep(pause * 2 ** (attempt - 1))
        try:
            _check_md5(part.path, md5)
            if check is not None:
                check(part.path)
        except FsPLLError as error:
            part.remove()
            # The part is gone: name the address, which a person knows, in its place.
            raise DataError(str(error).replace(str(part.path), url)) from error
        part.finish(target)
    return target


class PartialFile:
    """A file on its way: its bytes so far and a note of which version of which URL they are."""

    def __init__(self, target: Path, url: str) -> None:
        self.url = url
        self.path = target.with_name(f"{target.name}.part")
        self.note = target.with_name(f"{target.name}.part.json")
        self.name = target.name

    def size(self) -> int:
        """Return how many bytes are there."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def resume_point(self) -> tuple[int, str]:
        """Return the bytes at hand and their validator, or ``(0, "")`` to begin anew.

        Without a validator nobody can tell whether the rest belongs to the same file.
        """
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            if note["url"] == self.url and note["validator"] and self.size():
                return self.size(), str(note["validator"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, ""

    def open(self, start: int, validator: str) -> IO[bytes]:
        """Open for appending at ``start``; at zero, empty the file before its note changes."""
        if start:
            return self.path.open("ab")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"")
        with write_beside(self.note) as note:
            note.write_text(json.dumps({"url": self.url, "validator": validator}), encoding="utf-8")
        return self.path.open("wb")

    def finish(self, target: Path) -> None:
        """Rename the whole file to ``target``."""
        try:
            self.path.replace(target)
        except OSError as error:
            raise DataError(f"cannot write {target}: {error.strerror or error}") from error
        self.remove()

    def remove(self) -> None:
        """Remove the bytes and their note, if they are there."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def _give_up(url: str, part: PartialFile, attempts: int, error: _RetryError) -> str:
    kept = part.size()
    rest = f"; {kept} bytes are kept, run it again to go on from there" if kept else ""
    return f"the download of {url} failed {attempts} times, at last because {error}{rest}"


def _receive(
    url: str,
    part: PartialFile,
    opener: urllib.request.OpenerDirector,
    max_bytes: int,
    timeout: float,
    progress: Progress | None,
) -> None:
    """Make one request and write what comes; raise ``_RetryError`` when another may help."""
    start, validator = part.resume_point()
    headers = {"User-Agent": f"fspll/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": validator}
    with _open(urllib.request.Request(url, headers=headers), part, opener, timeout) as response:
        begin, total = _extent(response, url)
        served = _validator(response.headers)
        # Some servers honor Range but not If-Range: compare the versions here as well.
        if begin not in (0, start) or (begin and served not in ("", validator)):
            part.remove()
            raise _RetryError("the file changed on the server while it was being downloaded")
        _refuse_oversize(url, total or 0, max_bytes)
        size, block = begin, _read(response, _BLOCK)
        # Before the part file is opened: a network's login page must not cost what is already here.
        html = response.headers.get_content_type() in _HTML_TYPES
        if html or (not begin and block.lstrip()[:16].lower().startswith(_HTML_STARTS)):
            raise DataError(f"{url} answered with a web page where a data file was expected")
        try:
            with part.open(begin, served) as file:
                while block:
                    size += len(block)
                    if size > max_bytes:
                        break
                    file.write(block)
                    if progress is not None:
                        progress(part.name, size, total)
                    block = _read(response, _BLOCK if total is None else min(_BLOCK, total - size))
        except OSError as error:
            raise DataError(f"cannot write {part.path}: {error.strerror or error}") from error
    if size > max_bytes:
        part.remove()
        _refuse_oversize(url, size, max_bytes)
    if total is not None and size < total:
        raise _RetryError(f"the connection closed after {size} of {total} bytes")


def _open(
    request: urllib.request.Request,
    part: PartialFile,
    opener: urllib.request.OpenerDirector,
    timeout: float,
) -> http.client.HTTPResponse:
    """Open a request; sort what goes wrong into refusals and what is worth another attempt."""
    url = request.full_url
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"{error.code} {error.reason}"
        if error.code == 416:  # the part is longer than the file: it is of no use
            part.remove()
        elif error.code != 429 and error.code < 500:
            raise DataError(f"cannot download {url}: the server answered {answer}") from error
        raise _RetryError(f"the server answered {answer}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        lasting = isinstance(reason, ssl.SSLCertVerificationError) or not isinstance(
            reason, (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)
        )
        if lasting:
            raise DataError(f"cannot download {url}: {reason}") from error
        raise _RetryError(_connection_broke(reason)) from error


def _read(response: http.client.HTTPResponse, n_bytes: int) -> bytes:
    # read1 hands on whatever arrived, so that a cut costs nothing that was already received.
    try:
        return response.read1(n_bytes) if n_bytes else b""
    except (OSError, http.client.HTTPException) as error:
        raise _RetryError(_connection_broke(error)) from error


def _connection_broke(error: object) -> str:
    return f"the connection broke ({error or type(error).__name__})"


def _extent(response: http.client.HTTPResponse, url: str) -> tuple[int, int | None]:
    """Return where the body begins in the file and how long the whole file is, if known."""
    length = response.headers.get("Content-Length", "")
    if response.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if not found:
            raise DataError(f"{url} answered with a part of the file without saying which")
        return int(found[1]), int(found[2])
    if response.status != 200:
        raise DataError(f"cannot download {url}: the server answered {response.status}")
    return 0, int(length) if length.isdecimal() else None


def _validator(headers: Message) -> str:
    """Return what identifies this version of the file; weak ETags do not promise equal bytes."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _refuse_oversize(url: str, n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise DataError(f"{url} has {n_bytes} bytes or more; at most {max_bytes} are accepted")


def _check_md5(path: Path, expected: str | None) -> None:
    if expected is not None and (found := file_md5(path)) != expected:
        raise DataError(
            f"{path} has the MD5 checksum {found} where {expected} was expected; "
            "the download was thrown away"
        )


# Which addresses: HTTPS anywhere, plain HTTP on this machine only.


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_insecure(url: str) -> None:
    """Accept HTTPS, and plain HTTP from this machine only."""
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port or 1) > 0 and url.isascii()
    except ValueError:
        usable = False
    if not usable or re.search(r"[\x00-\x20\x7f]", url):
        raise InputError(f"{url!r} is not a usable address; an https:// address was expected")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(url)):
        raise InputError(f"{url} is not fetched because only https:// addresses are; use one")


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow a redirection only to where the first request could have gone."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the next request, or refuse it."""
        try:
            refuse_insecure(newurl)
            if _is_loopback(newurl) and not _is_loopback(req.full_url):
                raise InputError(f"{req.full_url} redirects to this machine, which is refused")
        except InputError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def make_opener(url: str) -> urllib.request.OpenerDirector:
    """Return what opens an address and follows its safe redirections."""
    # A proxy cannot reach the loopback address of this machine.
    proxies = [urllib.request.ProxyHandler({})] if _is_loopback(url) else []
    return urllib.request.build_opener(SafeRedirects, *proxies)
