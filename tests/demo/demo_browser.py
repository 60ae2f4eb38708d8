"""A browser on the page of the demo, and what the page should show."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from playwright.sync_api import Page

from treelax.demo.answers import answer
from treelax.demo.messages import Arc, Edit, SecondText, SourceName, TreeReply, TreeRequest
from treelax.demo.sources import Source

LEAST_WEIGHT = 0.01  # lighter arcs are not drawn
PATIENCE = 15.0  # seconds; only a test that fails waits that long
WORDS = "the old cat watched a small bird"


@dataclass
class Visit:
    """A page that someone looks at.

    Attributes:
        page: in the browser.
        home: its address, without a state.
        sources: those of the server.
        complaints: what the browser said on its console, and errors of scripts.
        asked: the addresses of all requests.
    """

    page: Page
    home: str
    sources: Mapping[SourceName, Source]
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Take down what the browser says and asks for."""
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, **state: object) -> Visit:
        """Open the page in some state and wait for its first picture."""
        self.page.goto("about:blank")  # a change of state alone would not load the page anew
        self.page.goto(f"{self.home}#{urlencode(state)}" if state else self.home)
        self.page.locator("#timing:not(:empty), #alert:not([hidden])").first.wait_for()
        eventually(lambda: {"temperature", "roots"} <= set(self.state()), True)
        return self

    def state(self) -> dict[str, str]:
        """The state as the link has it."""
        link = self.page.evaluate("location.hash.slice(1)")
        return {name: value for name, [value] in parse_qs(link).items()}

    def expected(self) -> TreeReply:
        """What the library says of the state in the link."""
        return answer(request_of(self.state()), self.sources)

    def shows_its_state(self, **changed: str) -> TreeReply:
        """Wait until the link has these values and the page shows what the library says of it."""
        eventually(lambda: {name: self.state().get(name, "") for name in changed}, changed)
        reply = self.expected()
        soft = {
            (head, word): weight
            for head, row in enumerate(reply.soft)
            for word, weight in enumerate(row)
            if weight and weight >= LEAST_WEIGHT
        }
        eventually(lambda: self.arcs("soft-arcs"), soft)
        best = arcs_of(reply.best)
        eventually(lambda: self.arcs("best-arcs", ".arc-line:not(.below)"), best)
        below = arcs_of(reply.best_perturbed)
        eventually(lambda: self.arcs("best-arcs", ".arc-line.below"), below)
        last = arcs_of(reply.samples.last or [])
        eventually(lambda: self.arcs("sample-arcs"), last)
        words = [word if len(word) <= 20 else f"{word[:19]}…" for word in reply.words]
        eventually(lambda: self.words("soft-arcs"), ["root", *words])
        return reply

    def arcs(self, picture: str, which: str = ".arc-line") -> dict[tuple[int, int], float]:
        """The arcs of a picture with their opacity."""
        found: list[list[float]] = self.page.locator(f"#{picture} {which}").evaluate_all(
            "all => all.map(arc => [arc.dataset.head, arc.dataset.word,"
            " getComputedStyle(arc).opacity].map(Number))"
        )
        return {(int(head), int(word)): round(weight, 6) for head, word, weight in found}

    def words(self, picture: str) -> list[str]:
        """The words of a picture."""
        return self.page.locator(f"#{picture} text:not(.number, .tag)").all_text_contents()

    def choose(self, head: int, word: int) -> None:
        """Choose an arc in the form."""
        # a head cannot be the word itself, so that of the next arc may have to wait
        self.page.select_option("#arc-head", "0")
        self.page.select_option("#arc-word", str(word))
        self.page.select_option("#arc-head", str(head))

    def click_cell(self, matrix: str, head: int, word: int) -> None:
        """Click on a cell, which is where the cursor is when the arc is chosen."""
        self.choose(head, word)
        self.page.locator(f"#heat-{matrix} .cursor").scroll_into_view_if_needed()
        box = self.page.locator(f"#heat-{matrix} .cursor").bounding_box()
        assert box is not None
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def click_arc(self, picture: str, head: int, word: int) -> None:
        """Click on the top of an arc."""
        arc = self.page.locator(
            f'#{picture} .arc-hit[data-head="{head}"][data-word="{word}"]'
        ).first
        arc.scroll_into_view_if_needed()
        x, y = arc.evaluate(
            "path => { const at = path.getPointAtLength(path.getTotalLength() / 2)"
            ".matrixTransform(path.getScreenCTM()); return [at.x, at.y]; }"
        )
        self.page.mouse.click(x, y)


Visitor = Callable[..., Visit]


def arcs_of(heads: list[int]) -> dict[tuple[int, int], float]:
    return {(head, word): 1.0 for word, head in enumerate(heads, 1)}


def request_of(state: Mapping[str, str]) -> TreeRequest:
    """The request that a page in such a state makes, written anew from the description of links."""

    def arcs(name: str) -> list[tuple[str, str]]:
        written = state.get(name, "").split(",")
        return [(head, rest) for head, _, rest in (arc.partition("-") for arc in written) if head]

    def changes(number: str) -> dict[str, Any]:
        edits = [(head, *rest.split(":")) for head, rest in arcs(f"edits{number}")]
        return {
            "edits": [Edit(head=int(h), word=int(m), score=float(score)) for h, m, score in edits],
            "pinned": [Arc(head=int(h), word=int(m)) for h, m in arcs(f"pinned{number}")],
            "forbidden": [Arc(head=int(h), word=int(m)) for h, m in arcs(f"forbidden{number}")],
        }

    second = state.get("second", "")
    return TreeRequest(
        source=state["source"],  # type: ignore[arg-type]
        text=state["text"],
        second=SecondText(text=second, **changes("2")) if second else None,
        shown=state.get("shown", "first"),  # type: ignore[arg-type]
        temperature=float(state["temperature"]),
        noise_scale=float(state["noise"]),
        noise_seed=int(state["seed"]),
        relaxation=state["relaxation"],  # type: ignore[arg-type]
        single_root=state["roots"] == "single",
        score_seed=int(state.get("scores", 0)),
        samples=int(state.get("samples", 0)),
        sample_seed=int(state.get("drawn", 0)),
        **changes(""),
    )


def eventually(found: Callable[[], Any], expected: Any) -> None:
    """Wait until a page shows what it should."""
    end = time.monotonic() + PATIENCE
    now = found()
    while now != expected and time.monotonic() < end:
        time.sleep(0.03)
        now = found()
    assert now == expected
