"""Which addresses files are fetched from: HTTPS anywhere, plain HTTP on this machine only."""

from __future__ import annotations

import http.client
import ipaddress
import re
import urllib.request
from typing import IO
from urllib.parse import urlsplit

from fspll._common.errors import InputError


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
