"""The socket that the demo listens on, and the server behind it."""

from __future__ import annotations

import ipaddress
import socket
import threading
import webbrowser

import torch
import uvicorn
from fastapi import FastAPI

from treelax.errors import InputError

__all__ = ["address", "is_loopback", "listen", "serve"]

BACKLOG = 128
MOST_CONNECTIONS = 512


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
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[bound])
