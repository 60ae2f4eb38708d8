"""The socket that the demo listens on, and the server behind it."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import webbrowser
from functools import partial
from typing import Any, cast

import torch
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from treelax.errors import InputError

__all__ = ["address", "is_loopback", "listen", "own_hosts", "serve", "server_of"]

BACKLOG = 128
# asyncio accepts this many connections per iteration and closes a surplus one three iterations later,
# so open files stay below 256, the default limit of macOS
ACCEPTED_AT_ONCE = 32
MOST_CONNECTIONS = 96
PATIENCE = 20.0  # seconds


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Args:
        host: a name or an address of this machine.
        port: 0 for any that is free.

    Returns:
        The socket; it is the caller's to close.

    Raises:
        InputError: the port is taken or not allowed, or the address is not of this machine.

    Example:
        >>> with listen("127.0.0.1", 0) as bound:
        ...     is_loopback(bound), address(bound).startswith("http://127.0.0.1:")
        (True, True)
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"--host: received {host!r}, which cannot be found; expected an address of this machine "
            "such as 127.0.0.1"
        ) from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        what = (error.strerror or str(error)).lower()
        raise InputError(
            f"--port: cannot listen on {host} port {port}: {what}; expected a free port: give "
            "another, or --port 0 for any"
        ) from error
    return bound


def address(bound: socket.socket) -> str:
    """Where a browser finds the page.

    Args:
        bound: the socket.

    Returns:
        The address of the page.

    Example:
        See `listen`.
    """
    host, port = bound.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:  # listens everywhere, also here
        host = "127.0.0.1" if bound.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can reach a socket.

    Args:
        bound: the socket.

    Returns:
        True if so.

    Example:
        See `listen`.
    """
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def own_hosts(host: str, bound: socket.socket) -> set[str] | None:
    """The hosts that a request to a loopback socket may name; any other is DNS rebinding.

    Args:
        host: that the socket was asked for.
        bound: the socket.

    Returns:
        Names and addresses, or None for any where other machines can reach the socket.

    Example:
        >>> with listen("127.0.0.1", 0) as bound:
        ...     sorted(own_hosts("127.0.0.1", bound))
        ['127.0.0.1', '::1', 'localhost']
    """
    if not is_loopback(bound):
        return None
    return {"localhost", "127.0.0.1", "::1", host.lower(), bound.getsockname()[0]}


class _Patient(H11Protocol):
    """Closes connections whose client is too slow; beyond `most`, that of the slowest.

    uvicorn has no timeout for reading a request or for writing a reply.
    """

    deadline: asyncio.TimerHandle | None = None  # set while the server waits for the client

    def __init__(self, *args: Any, patience: float, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.patience = patience
        self.most = most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > self.most:
            others = cast("set[_Patient]", self.connections)
            waiting = {other.deadline.when(): other for other in others if other.deadline}
            first = waiting[min(waiting)]
            others.discard(first)
            first.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        self._forget()
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def shutdown(self) -> None:
        super().shutdown()
        if self.deadline is not None and not self.transport.is_closing():
            self.transport.abort()

    def _watch(self) -> None:
        asked = self.cycle is not None and not self.cycle.more_body
        if asked and not self.cycle.response_complete and not self.flow.write_paused:
            self._forget()
        elif self.deadline is None:
            self.deadline = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or []:
            bound.listen(BACKLOG)  # asyncio uses one number for this and ACCEPTED_AT_ONCE


def server_of(
    app: FastAPI, *, patience: float = PATIENCE, most: int = MOST_CONNECTIONS
) -> uvicorn.Server:
    """The server, to be run on a socket.

    Args:
        app: the demo.
        patience: seconds that a client has to send a request, and to read a reply.
        most: connections at once.

    Returns:
        The server.

    Example:
        >>> server_of(FastAPI()).started
        False
    """
    protocol = partial(_Patient, patience=patience, most=most)
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", protocol),
        loop="asyncio",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
    )
    return _Server(config)


def serve(app: FastAPI, bound: socket.socket, *, open_browser: bool = False) -> None:
    """Answer until interrupted.

    Args:
        app: the demo.
        bound: the socket, which listens.
        open_browser: show the page in the browser of the machine.
    """
    torch.set_num_threads(1)  # sentences are small, and several requests compute at once
    if open_browser:
        # a browser may not return before it is closed
        threading.Thread(target=webbrowser.open, args=(address(bound),), daemon=True).start()
    server_of(app).run(sockets=[bound])
