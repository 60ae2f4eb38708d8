"""The pages of the site in a browser: everyone can read them, and they fit into their window."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import torch

import treelax as tx

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from pages import a_browser, axe_violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SITE = Path(__file__).resolve().parents[1] / "site"
PAGES = ("index", "first-look", "own-data", "how-it-works", "benchmarks", "api/ops", "structures")
WINDOWS = ((1440, "light"), (1024, "dark"), (390, "dark"))  # each page has one in turn
# of the theme: names of its menus, and boxes that its script puts around wide tables
THEME = {"landmark-unique", "scrollable-region-focusable"}

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="make docs builds site/")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


def test_pages_can_be_read_and_fit(browser: Browser) -> None:
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name, (width, scheme) in zip(PAGES, itertools.cycle(WINDOWS)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto((SITE / f"{name}.html").as_uri())
        faults = [fault for fault in axe_violations(page) if fault[0] not in THEME]
        assert (name, faults) == (name, [])
        drawn = page.locator("article img").evaluate_all("all => all.map(e => e.naturalWidth > 0)")
        assert (name, all(drawn)) == (name, True)
        for other, _ in WINDOWS:
            page.set_viewport_size({"width": other, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= other, name
        if name == "how-it-works":  # formulas have the font of the site
            page.evaluate("document.fonts.ready")
            style = page.locator("math").first.evaluate("e => getComputedStyle(e).fontFamily")
            assert "Treelax Math" in style
            faces = "[...document.fonts].map(f => [f.family.replaceAll('\"', ''), f.status])"
            assert ["Treelax Math", "loaded"] in page.evaluate(faces)
    assert errors == []
    page.close()


def weights(page: Page, kind: str) -> torch.Tensor:
    """The tree that the start page shows."""
    arcs = page.locator(f".soft-tree .{kind}").evaluate_all(
        "all => all.map(e => [e.dataset.head, e.dataset.word, e.dataset.weight].map(Number))"
    )
    tree = torch.zeros(7, 7, dtype=torch.float64)
    for head, word, weight in arcs:
        tree[int(head), int(word)] = weight
    return tree


def test_the_soft_tree_of_the_start_page(browser: Browser) -> None:
    """Every control, its numbers against the library's, and a change at every draw of noise."""
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    scores = torch.tensor(page.evaluate("softTree.scores"), dtype=torch.float64)
    shown = weights(page, "soft")
    assert ((shown > 0.1) & (shown < 0.9)).sum() >= 3
    assert torch.equal(weights(page, "best"), tx.ops.best_tree(scores, single_root=True))
    box = page.locator(".soft-tree")
    for relaxation in ("softmax", "entropy"):
        box.get_by_label("Relaxation").select_option(relaxation)
        for place in (-2, 0, 2.5):
            box.get_by_label("Temperature").fill(str(place))
            expected = tx.ops.soft_tree(
                scores, temperature=math.exp(place), relaxation=relaxation, single_root=True
            )
            assert (weights(page, "soft") - expected).abs().max() < 1e-6
            assert box.locator("output").inner_text() == f"{math.exp(place):.2f}"
        # at its lower end the slider has made it the best tree, as the page says
        box.get_by_label("Temperature").press("Home")
        assert (weights(page, "soft") - weights(page, "best")).abs().max() < 0.05
    box.get_by_label("Temperature").fill("0")
    seen = [box.locator("p").inner_text()]
    for _ in range(10):
        box.get_by_role("button", name="Draw new noise").click()
        seen.append(box.locator("p").inner_text())
    assert all(before != after for before, after in itertools.pairwise(seen))
    assert box.get_by_label("Noise").is_checked()
    box.get_by_label("Noise").uncheck()
    assert box.locator("p").inner_text() == seen[0]
    page.close()


def test_an_address_that_does_not_exist_leads_on(browser: Browser) -> None:
    """Wherever the site is on its host, and however deep the address."""
    below, address = "treelax/", "a/b/c/nowhere"
    with serving_site(below) as host:
        page = browser.new_page()
        page.goto(f"{host}/{below}{address}")
        page.wait_for_load_state("networkidle")
        assert axe_violations(page) == []
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        bar = page.locator("header").evaluate("bar => getComputedStyle(bar).backgroundColor")
        assert bar == "rgb(63, 81, 181)"
        links = page.locator("a").evaluate_all("all => all.map(link => link.href)")
        assert len(links) == 5
        for link in links:
            assert link.startswith(f"{host}/{below}")
            assert page.request.get(link).ok
        page.get_by_role("link", name="the start page").click()
        page.wait_for_url(f"{host}/{below}index.html")
        assert page.get_by_role("heading", name="treelax").is_visible()
        page.close()


@contextmanager
def serving_site(below: str) -> Iterator[str]:
    """The address of a host that has the site in a folder, and its page for what does not exist."""

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            inside = path.removeprefix(f"/{below}") if path.startswith(f"/{below}") else "/nowhere"
            return super().translate_path(f"/{inside}")

        def send_error(self, code: int, *args: Any) -> None:
            body = (SITE / "404.html").read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(SITE))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_search_works_in_pages_from_a_folder(browser: Browser) -> None:
    """Without a server, without errors in the console, and with nothing that cannot be loaded."""
    page = browser.new_page()
    problems: list[str] = []
    page.on("console", lambda each: problems.append(each.text) if each.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("requestfailed", lambda request: problems.append(request.url))
    page.goto((SITE / "api" / "ops.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.get_by_placeholder("Search").fill("Eisner's algorithm")
    page.get_by_text(re.compile(r"^[1-9]\d* results$")).wait_for()
    page.get_by_placeholder("Search").press("Enter")
    page.wait_for_url("**/how-it-works.html*")
    assert problems == []
    page.close()
