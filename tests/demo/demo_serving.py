"""The demo on a port of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

from treelax.demo.app import create_app
from treelax.demo.messages import SourceName
from treelax.demo.server import address, listen, own_hosts, server_of
from treelax.demo.sources import Source


@contextmanager
def a_server(
    sources: Mapping[SourceName, Source], *, at_once: int | None = None, **limits: Any
) -> Iterator[str]:
    """The demo in a thread, and its address."""
    with listen("127.0.0.1", 0) as bound:
        app = create_app(sources, hosts=own_hosts("127.0.0.1", bound), at_once=at_once)
        server = server_of(app, **limits)
        thread = Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield address(bound)
        finally:
            server.should_exit = True
            thread.join()
