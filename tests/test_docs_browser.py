"""The pages of the site in a browser: everyone can read them, and they fit into their window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from pages import a_browser, axe_violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = Path(__file__).resolve().parents[1] / "site"
PAGES = (
    "index",
    "own-data",
    "how-it-works",
    "relaxations",
    "reproduction",
    "benchmarks",
    "api/ops",
)
WINDOWS = ((1280, "light"), (390, "dark"))
# of the theme: names of its menus, and boxes that its script puts around wide tables
THEME = {"landmark-unique", "scrollable-region-focusable"}

pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="make docs builds site/")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_pages_can_be_read_and_fit(browser: Browser, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in PAGES:
        page.goto((SITE / f"{name}.html").as_uri())
        found = [fault for fault in axe_violations(page) if fault[0] not in THEME]
        assert (name, found) == (name, [])
        assert (name, page.evaluate("document.documentElement.scrollWidth") <= width) == (
            name,
            True,
        )
        drawn = page.locator("article img").evaluate_all("all => all.map(e => e.naturalWidth > 0)")
        assert (name, all(drawn)) == (name, True)
    assert errors == []
    context.close()


@pytest.mark.parametrize("name", ["index", "api/ops"])
def test_search_works_in_pages_from_a_folder(browser: Browser, name: str) -> None:
    """Without a server, without errors in the console, and with nothing that cannot be loaded."""
    page = browser.new_page()
    told: list[str] = []
    page.on("console", lambda each: told.append(each.text) if each.type == "error" else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("requestfailed", lambda request: told.append(request.url))
    page.goto((SITE / f"{name}.html").as_uri())
    page.get_by_role("button", name="Search").first.click()
    page.get_by_placeholder("Search").fill("Eisner's algorithm")
    page.get_by_text(re.compile(r"^[1-9]\d* results$")).wait_for()
    page.get_by_placeholder("Search").press("Enter")
    page.wait_for_url("**/how-it-works.html*")
    assert told == []
    page.close()
