"""The demo without a network, and in a browser."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="needs fastapi: pip install 'treelax[demo]'")

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from browsing import a_browser
from demo_serving import a_server
from fastapi.testclient import TestClient

from treelax.demo.app import create_app
from treelax.demo.messages import SourceName
from treelax.demo.models import load_sources
from treelax.demo.sources import Source

if TYPE_CHECKING:
    from demo_browser import Visitor
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def sources() -> Mapping[SourceName, Source]:
    return load_sources()


@pytest.fixture(scope="session")
def client(sources: Mapping[SourceName, Source]) -> TestClient:
    return TestClient(create_app(sources), raise_server_exceptions=False)


# not for the session: while it is there, its event loop is that of the thread
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def home(browser: Browser, sources: Mapping[SourceName, Source]) -> Iterator[str]:
    with a_server(sources) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, home: str, sources: Mapping[SourceName, Source]) -> Iterator[Visitor]:
    """Someone with a new browser; at the end nothing may have gone wrong."""
    from demo_browser import Visit

    visits = []

    def come(width: int = 1280, **options: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        visits.append(Visit(context.new_page(), home, sources))
        visits[-1].listen()
        return visits[-1]

    yield come
    for visit in visits:
        assert visit.complaints == []
        assert {url for url in visit.asked if not url.startswith(home)} <= {"about:blank"}
        visit.page.context.close()
