"""The demo on a port of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

import uvicorn

from treelax.demo.app import create_app
from treelax.demo.messages import SourceName
from treelax.demo.server import address, listen
from treelax.demo.sources import Source


@contextmanager
def a_server(sources: Mapping[SourceName, Source]) -> Iterator[str]:
    """The demo in a thread, and its address."""
    config = uvicorn.Config(create_app(sources), log_level="warning", ws="none")
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as bound:
        thread = Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield address(bound)
        finally:
            server.should_exit = True
            thread.join()
