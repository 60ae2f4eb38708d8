"""A browser for tests of pages, and what finds faults of access in them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_BROWSER = "no Chromium on this machine"
HINT = (
    f"{NO_BROWSER}: the tests in a browser were left out; "
    "on Debian: apt-get install chromium, then once more make test"
)


@contextmanager
def a_browser() -> Iterator[Browser]:
    """The Chromium of the machine; skips where there is none."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(NO_BROWSER)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def axe_violations(page: Page) -> list[tuple[str, list[str]]]:
    """The rules of axe-core that a page breaks, each with the elements that break it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
