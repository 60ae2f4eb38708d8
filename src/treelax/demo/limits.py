"""What keeps the server well: small requests, few at once, and headers that bind the browser."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator, Collection, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_BYTES", "Busy", "CheckedBody", "Gate", "HeadAsGet", "OwnHost", "SafeHeaders"]

MOST_BYTES = 4_000_000  # edits of all arcs between 200 words
SMALL = 65_536  # bytes
MOST_LARGE = 8
HEADERS = {
    # nothing from elsewhere, no script or style inside the page, no frame around it
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


class Busy(Exception):
    """Too many requests wait already."""


class Gate:
    """Lets a few requests work at once and a bounded number wait for it.

    Args:
        at_once: how many may work.
        waiting: how many more may wait.

    Example:
        >>> import asyncio
        >>> async def two() -> str:
        ...     gate = Gate(at_once=1, waiting=0)
        ...     async with gate.turn():
        ...         try:
        ...             async with gate.turn():
        ...                 return "both"
        ...         except Busy:
        ...             return "one"
        >>> asyncio.run(two())
        'one'
    """

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self.most = at_once + waiting
        self.inside = 0
        self._turns = Semaphore(at_once)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and have it, as a context manager.

        Raises:
            Busy: too many wait already.
        """
        if self.inside >= self.most:
            raise Busy
        self.inside += 1
        try:
            async with self._turns:
                yield
        finally:
            self.inside -= 1


class CheckedBody:
    """Refuses bodies that are too large or not UTF-8, before anything else reads them.

    At most `MOST_LARGE` bodies beyond `SMALL` are read and answered at once; others wait.

    Args:
        app: what comes after it.
        most: bytes.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_BYTES) -> None:
        self.app = app
        self.most = most
        self._large = Semaphore(MOST_LARGE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, which is small, and hand it on as one piece."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        async with AsyncExitStack() as held:
            await self._read(scope, receive, send, held)

    async def _read(self, scope: Scope, receive: Receive, send: Send, held: AsyncExitStack) -> None:
        body = bytearray()
        more, large = True, False
        while more:
            if len(body) > SMALL and not large:
                large = True
                await held.enter_async_context(self._large)
            message = await receive()
            if message["type"] != "http.request":  # the client is gone
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.most:
                detail = f"the body has more than {self.most:,} bytes; expected fewer"
                await _refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)(scope, receive, send)
                return
        unread = _not_utf8(body)
        if unread is not None:
            await _refuse(HTTPStatus.BAD_REQUEST, unread)(scope, receive, send)
            return
        handed_on = False

        async def again() -> Message:
            nonlocal handed_on
            if handed_on:
                return await receive()
            handed_on = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, again, send)


class OwnHost:
    """Refuses requests whose Host header names another host, see `treelax.demo.server.own_hosts`.

    Starlette's TrustedHostMiddleware does not say what it expects, and older versions take no IPv6.

    Args:
        app: what comes after it.
        hosts: names and addresses, in lower case.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the header, whatever its port."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("host", "")
            try:
                name = urlsplit(f"//{given}").hostname
            except ValueError:
                name = None
            if name not in self.hosts:
                detail = (
                    f"Host: received {given[:100]!a}; expected {', '.join(sorted(self.hosts))}: "
                    "open the address that treelax demo printed, or start it with --host 0.0.0.0 to "
                    "let other machines in"
                )
                await _refuse(HTTPStatus.BAD_REQUEST, detail)(scope, receive, send)
                return
        await self.app(scope, receive, send)


class HeadAsGet:
    """Answers HEAD as GET, without the body.

    Args:
        app: what comes after it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on as GET and let no body of the reply through."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def without_body(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, without_body)


class SafeHeaders:
    """Puts `HEADERS` on every reply.

    Args:
        app: what comes after it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the headers as the reply starts."""

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        await self.app(scope, receive, with_headers)


def _not_utf8(body: bytearray) -> str | None:
    """Why the body cannot be JSON in UTF-8, with the byte, counted from 1; or None."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"the body is not UTF-8 (byte {error.start + 1}); expected JSON in UTF-8"
    place = body.find(0) + 1
    if not place:
        return None
    # Python would take the body for UTF-16
    return (
        f"the body has a NUL byte (byte {place}); expected JSON in UTF-8, which has none and writes "
        "such a character \\u0000"
    )


def _refuse(status: HTTPStatus, detail: str) -> JSONResponse:
    # what is left of the body is not read, so the connection cannot go on
    return JSONResponse({"detail": detail}, status, headers={"connection": "close"})
