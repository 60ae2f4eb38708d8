"""Pages: their code and commands run, a browser, accessibility faults, and the elements of a report."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 300.0  # seconds, on a busy machine; only a test that fails waits that long
NO_BROWSER = "no Chromium on this machine"
HINT = (
    f"{NO_BROWSER}: the tests in a browser were left out; "
    "on Debian: apt-get install chromium, then once more make test"
)


def run_page(text: str, *, commands: str | None = None, **names: object) -> list[tuple[str, str]]:
    """Run the Python of a page in its order, and commands without this word, if one is given.

    Returns each output that the page shows below one of these, with what was printed.
    """
    outputs, printed = [], None
    for kind, block in BLOCK.findall(text):
        if kind in ("", "text"):
            if printed is not None:
                outputs.append((block, printed))
            continue
        # with an encoding, or trees would be drawn in ASCII
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) as out:
            if kind == "python":
                exec(compile(block, "page", "exec"), names)
            elif kind == "sh" and commands is not None:
                for line in block.replace("\\\n", "").splitlines():
                    if commands not in line:
                        _run_command(line)
        out.seek(0)
        printed = out.read() if kind == "python" or commands is not None else None
    return outputs


def _run_command(line: str) -> None:
    """Run a line of a shell; that programs in Python run is tested with the examples."""
    from treelax.__main__ import main

    before, pipe, command = line.rpartition(" | ")
    program, *words = shlex.split(command)
    if program == "python":
        assert Path(__file__).parents[1].joinpath(words[0]).is_file()
        return
    assert program == "treelax"
    text = " ".join(shlex.split(before.removeprefix("echo "))) + "\n" if pipe else ""
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()))):
        assert main(words) == 0, line


@contextmanager
def a_browser() -> Iterator[Browser]:
    """The Chromium of the machine; skips where there is none."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)
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


VOID = {"img", "input", "link", "meta"}
# attributes from which a browser fetches something
FETCHED = {"src", "srcset", "data", "poster", "action", "background", "xlink:href"}


class ReportPage(HTMLParser):
    """A report, read strictly: every element is closed where it should be.

    Attributes:
        elements: name and attributes of each, in order.
        texts: all that can be read, script and style left out.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self._open: list[str] = []
        assert text.startswith("<!DOCTYPE html>\n")
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, names)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.raw[self._open[-1]] = data
        elif data.strip():
            self.texts.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def all(self, name: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of all elements with a name and, among their classes, a class."""
        return [
            own
            for tag, own in self.elements
            if tag == name
            and all(
                value in own.get(key.rstrip("_").replace("_", "-"), "").split()
                for key, value in attributes.items()
            )
        ]


def read_page(file: Path) -> ReportPage:
    """A report, once all that every report must be is checked."""
    text = file.read_text(encoding="utf-8")
    page = ReportPage(text)
    ids = [own["id"] for _, own in page.elements if "id" in own]
    assert len(set(ids)) == len(ids)
    for name, own in page.elements:
        fetched = [own[key] for key in FETCHED & own.keys()]
        assert all(value.startswith("data:image/svg+xml;base64,") for value in fetched), (name, own)
        assert not any(key.startswith("on") or key == "style" for key in own), (name, own)
        for key in ("for", "aria-labelledby"):
            assert set(own.get(key, "").split()) <= set(ids)
        if "href" in own:
            target = own["href"]
            assert target == "data:," or target.removeprefix("#") in ids, target
    assert not re.search(r"url\(|@import|https?://", page.raw["style"] + page.raw["script"])
    [policy] = [own["content"] for own in page.all("meta", http_equiv="Content-Security-Policy")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert len(page.all("script")) == len(page.all("style")) == 1
    return page
