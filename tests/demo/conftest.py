"""The demo without a network, and in a browser."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="needs fastapi: pip install 'treelax[demo]'")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from demo_visits import IMPATIENT, Sources, Visit, Visitor, a_server
from fastapi.testclient import TestClient
from pages import PATIENCE, a_browser
from sentence_runs import train

from treelax.apps.demo.app import create_app
from treelax.apps.demo.score_sources import ModelSource, load_sources
from treelax.apps.tasks import load
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.listops.model import ListOpsTagger, ModelConfig
from treelax.apps.tasks.listops.parser import ListOpsParser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def pair_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pairs, with a NULL token in front of every text."""
    return train("pair", tmp_path_factory.mktemp("pair"), train__epochs=2, data__null=True)


@pytest.fixture(scope="session")
def sources(pair_run: Path) -> Sources:
    """The built-in ones, a model of pairs, and one of heads, whose best ones form a cycle."""
    torch.manual_seed(0)
    model = ModelConfig(trees="heads", embedding_size=8, encoder_size=8, scorer_size=8)
    chooser = ListOpsParser(ListOpsTagger(model).eval(), ListOpsConfig(model=model))
    pairs = ModelSource(load(pair_run), "pairs", "pairs")
    return load_sources() | {"pairs": pairs, "heads": ModelSource(chooser, "heads", "heads")}


@pytest.fixture(scope="session")
def client(sources: Sources) -> TestClient:
    return TestClient(create_app(sources, longest=PATIENCE), raise_server_exceptions=False)


@pytest.fixture(scope="session")
def ask(client: TestClient) -> Callable[..., dict[str, Any]]:
    def asked(**request: Any) -> dict[str, Any]:
        reply = client.post("/api/trees", json=request)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    return asked


# not for the session: while it is there, its event loop is that of the thread
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    with a_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def home(browser: Browser, sources: Sources) -> Iterator[str]:
    with a_server(sources) as address:
        yield address


@pytest.fixture(scope="module")
def pages(browser: Browser) -> Iterator[dict[str, Page]]:
    """Pages of the browser, which are opened once: a new one takes longer than most tests."""
    yield {}
    for context in browser.contexts:
        context.close()


@pytest.fixture
def visitor(
    browser: Browser, pages: dict[str, Page], home: str, sources: Sources
) -> Iterator[Visitor]:
    """Someone with a browser; at the end nothing may have gone wrong."""
    visits = []

    def come(width: int = 1280, scheme: Any = "light", **options: Any) -> Visit:
        if str(options) not in pages:
            pages[str(options)] = browser.new_context(**options).new_page()
            pages[str(options)].add_init_script(IMPATIENT)
        page = pages[str(options)]
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.bring_to_front()  # frames of a page behind another may wait
        visits.append(Visit(page, home, sources))
        return visits[-1]

    yield come
    for visit in visits:
        visit.leave()
        assert visit.complaints == []
        assert {url for url in visit.asked if not url.startswith(home)} <= {"about:blank"}
