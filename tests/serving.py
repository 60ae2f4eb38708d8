"""A server on this machine that behaves, or misbehaves, as a test asks."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

from treelax.apps.data.text.download import Archive


@dataclass
class Served:
    """What the server has and does.

    Attributes:
        data: the file.
        cut: after how many bytes each answer is cut off; the last counts for all further ones,
            None is never.
        statuses: with which status each request is refused first.
        ranges: whether it knows how to send a part.
        lengths: whether it says how long an answer is.
        asked: the ranges that were asked for, None for the whole.
    """

    data: bytes
    cut: list[int | None] = field(default_factory=lambda: [None])
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    lengths: bool = True
    asked: list[str | None] = field(default_factory=list)
    port: int = 0

    def archive(self, data: bytes | None = None, name: str = "a.zip") -> Archive:
        """The address of the file, with the checksum of these bytes."""
        right = self.data if data is None else data
        url = f"http://127.0.0.1:{self.port}/corpora/{name}"
        return Archive(url, hashlib.sha256(right).hexdigest(), len(right))

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        wanted = request.headers["Range"]
        self.asked.append(wanted)
        cut = self.cut.pop(0) if len(self.cut) > 1 else self.cut[0]
        if self.statuses:
            request.send_error(self.statuses.pop(0))
            return
        first = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and self.ranges else 0
        if first >= len(self.data) and first:
            request.send_error(416)
            return
        body = self.data[first:]
        request.send_response(206 if first else 200)
        if first:
            last = len(self.data) - 1
            request.send_header("Content-Range", f"bytes {first}-{last}/{len(self.data)}")
        if self.lengths:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:cut])


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    """Serve in a thread of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    with (
        mock.patch.dict(os.environ, {"no_proxy": "127.0.0.1"}),
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
    ):
        served.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
