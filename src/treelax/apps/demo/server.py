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

PATIENCE = 60.0  # seconds
MOST_CONNECTIONS = 96
# asyncio accepts this many connections before it sees any, so that open files stay below 256, the
# default limit of macOS
BACKLOG = 64


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on a name or address of this machine; port 0 takes any.

    >>> with listen("127.0.0.1", 0) as bound:
    ...     is_loopback(bound), address(bound).startswith("http://127.0.0.1:")
    (True, True)
    """
    try:
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(where, family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).split(" (")[0].lower()
        raise InputError(
            f"cannot listen on --host {host} --port {port}: {reason}; expected an address of this "
            "machine and a free port (--port 0 takes any)"
        ) from error


def address(bound: socket.socket) -> str:
    """Where a browser finds the page."""
    host, port = bound.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:  # listens everywhere, also here
        host = "127.0.0.1" if bound.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can reach a socket."""
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


def own_hosts(host: str, bound: socket.socket) -> set[str] | None:
    """The hosts that a request may name, None for any; on loopback others are DNS rebinding."""
    if not is_loopback(bound):
        return None
    return {"localhost", "127.0.0.1", "::1", host.lower(), bound.getsockname()[0]}


class _Patient(H11Protocol):
    """Closes a connection on which no reply ends in time, which uvicorn does not; beyond ``most``
    connections, the one that has waited longest.
    """

    deadline: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, patience: float, most: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.patience, self.most = patience, most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio sets it only where the listening socket names its protocol; without it the second
        # of two requests in a row waits 40 ms for an acknowledgement
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()
        if len(self.connections) > self.most:
            others = cast("set[_Patient]", self.connections)
            first = min(others, key=lambda other: other.deadline.when() if other.deadline else 0)
            others.discard(first)
            first.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def _wait(self) -> None:
        self._forget()
        self.deadline = self.loop.call_later(self.patience, self.transport.abort)

    def _forget(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()


class _Server(uvicorn.Server):
    """Ends at once: nobody waits for a reply, and work without its client ends."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            cast("_Patient", connection).transport.abort()
        await super().shutdown(sockets)


def server_of(
    app: FastAPI, *, patience: float = PATIENCE, most: int = MOST_CONNECTIONS
) -> uvicorn.Server:
    """The server, to be run on a socket: seconds for a request and its reply, connections at once."""
    protocol = partial(_Patient, patience=patience, most=most)
    config = uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", protocol),
        loop="asyncio",
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
    )
    return _Server(config)


def serve(app: FastAPI, bound: socket.socket, *, open_browser: bool = False) -> None:
    """Answer until interrupted."""
    torch.set_num_threads(1)  # sentences are small, and several requests compute at once
    if open_browser:
        # a browser may not return before it is closed
        threading.Thread(target=webbrowser.open, args=(address(bound),), daemon=True).start()
    server_of(app).run(sockets=[bound])
