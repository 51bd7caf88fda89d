"""Who may ask the server for what: this machine's owner, from the page's own address.

Everything is below a path that only the owner knows (a random token in the address). A page of
another site cannot know it; and even if it did, requests that carry another origin are refused, and
so are those for another host, by which a name that points to this machine (DNS rebinding) would let
foreign scripts read what they get. Sizes are limited before anything is kept.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MOST_BYTES = 1 << 20  # of a request, unless its path is for more
# Nothing from elsewhere, no script in the page itself, no frame around it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_SAFE = {"GET", "HEAD"}
_DIGITS = 15  # of the length of a request


def new_token() -> str:
    """Return a secret that nobody can guess, fit for an address."""
    return secrets.token_urlsafe(24)


def is_known_host(header: str, names: Iterable[str]) -> bool:
    """Tell whether a ``Host`` is this machine: a number, ``localhost`` or one of some names.

    A number cannot be made to point elsewhere, which is what DNS rebinding does with a name.

    >>> [is_known_host(one, []) for one in ("127.0.0.1:8000", "[::1]:80", "localhost", "evil.org")]
    [True, True, True, False]
    """
    try:
        host = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host in {name.lower() for name in names}:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Tell whether an address is reached from this machine alone.

    >>> [is_loopback(one) for one in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "box.local")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware that lets only the owner's own requests through.

    Parameters
    ----------
    app : ASGI application
        Gets paths without the token.
    token : str
        The first part of every path.
    hosts : iterable of str
        Names of this machine that may stand in ``Host``, besides ``localhost`` and numbers.
    others : mapping of str to str
        Tokens of other programs, such as Label Studio, each with the path of the application that
        it leads to, and to nothing else.
    sizes : mapping of str to int
        The most bytes of requests whose paths contain a text, where that is not ``MOST_BYTES``.
    """

    def __init__(
        self,
        app: Any,
        token: str,
        *,
        hosts: Iterable[str] = (),
        others: Mapping[str, str] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.app, self.hosts = app, tuple(hosts)
        self.prefixes = {token: "", **(others or {})}
        self.sizes = sizes or {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        token, _, rest = scope["path"].lstrip("/").partition("/")
        path = f"{self.prefixes[token]}/{rest}"
        scope = {**scope, "path": path, "raw_path": path.encode(), "fspll_base": f"/{token}/"}
        most = next((size for part, size in self.sizes.items() if part in path), MOST_BYTES)
        if int(headers.get(b"content-length", "0")) > most:
            await _refuse(send, 413, f"more than {most:,} bytes are not taken")
            return
        await self.app(scope, _limited(receive, most), _with_headers(send))

    def _refusal(self, scope: Message, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Return status and reason where a request is refused."""
        if not is_known_host(headers.get(b"host", ""), self.hosts):
            return 421, "this host is not served here"
        token = scope["path"].lstrip("/").partition("/")[0]
        if not any(hmac.compare_digest(token.encode(), one.encode()) for one in self.prefixes):
            return 404, "there is nothing here; open the address that fspll app printed"
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or len(length) > _DIGITS:
            return 400, "the length of the request is no number"
        origin = headers.get(b"origin")
        foreign = origin is not None and urlsplit(origin).netloc != headers.get(b"host")
        site = headers.get(b"sec-fetch-site", "none")
        if scope["method"] not in _SAFE and (foreign or site not in ("same-origin", "none")):
            return 403, "requests of other sites are refused"
        return None


class TooLargeError(Exception):
    """A request has more bytes than it may have."""


def _limited(receive: Receive, most: int) -> Receive:
    """Return what reads a request, but not more of it than it may have."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            raise TooLargeError(f"more than {most:,} bytes are not taken")
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            there = {name.lower() for name, _ in given}
            more = [
                (n.encode(), v.encode()) for n, v in _HEADERS.items() if n.encode() not in there
            ]
            message = {**message, "headers": given + more}
        await send(message)

    return with_headers


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = f"{reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    guarded = _with_headers(send)
    await guarded({"type": "http.response.start", "status": status, "headers": headers})
    await guarded({"type": "http.response.body", "body": body})
