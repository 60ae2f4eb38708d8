"""The demo on a port of this machine, a browser on its page, and what the page should show."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from pages import PATIENCE

from treelax.apps.demo.answers import answer
from treelax.apps.demo.app import create_app
from treelax.apps.demo.messages import SourceName, TreeReply, TreeRequest
from treelax.apps.demo.score_sources import Source
from treelax.apps.demo.server import address, listen, own_hosts, server_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

Sources = Mapping[SourceName, Source]
LEAST_WEIGHT = 0.05  # lighter arcs are not drawn
WORDS = "the old cat watched a small bird"
TELESCOPE = "I saw the man with the telescope ."  # what the page opens with
# what the page puts off, such as the link, comes at once
IMPATIENT = "const later = setTimeout; window.setTimeout = (act, wait) => later(act, wait / 20);"
ARCS = """([picture, which]) => [...document.querySelectorAll(`#${picture} ${which}`)].map((arc) =>
  [arc.dataset.head, arc.dataset.word, arc.dataset.weight].map(Number))"""


@contextmanager
def a_server(
    sources: Sources, *, at_once: int | None = None, longest: float = PATIENCE, **limits: Any
) -> Iterator[str]:
    """The demo in a thread, and its address."""
    with listen("127.0.0.1", 0) as bound:
        hosts = own_hosts("127.0.0.1", bound)
        app = create_app(sources, hosts=hosts, at_once=at_once, longest=longest)
        server = server_of(app, **limits)
        thread = Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield address(bound)
        finally:
            server.should_exit = True
            thread.join()


class Visit:
    """A page that someone looks at, what its browser complains about, and all that it asks for."""

    def __init__(self, page: Page, home: str, sources: Sources) -> None:
        self.page, self.home, self.sources = page, home, sources
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": lambda request: self.asked.append(request.url),
        }
        page.set_default_timeout(1000 * PATIENCE)
        for event, note in self._listeners.items():
            page.on(event, note)

    def leave(self) -> None:
        """Let the page be for the next one who comes."""
        self.page.unroute_all()
        self.page.goto("about:blank")
        for event, note in self._listeners.items():
            self.page.remove_listener(event, note)

    def open(self, **state: object) -> Visit:
        """Open the page in some state and wait for its first picture."""
        self.page.goto("about:blank")  # a change of state alone would not load the page anew
        self.page.goto(f"{self.home}#{urlencode(state)}" if state else self.home)
        self.page.locator("#timing:not(:empty), #problem:not([hidden])").first.wait_for()
        eventually(lambda: {"temperature", "roots"} <= set(self.state()), True)
        return self

    def state(self) -> dict[str, str]:
        """The state as the link has it."""
        link = self.page.evaluate("location.hash.slice(1)")
        return {name: value for name, [value] in parse_qs(link).items()}

    def shows_its_state(self, **changed: str) -> TreeReply:
        """Wait until the link has these values and the page shows what the library says of it."""
        eventually(lambda: {name: self.state().get(name, "") for name in changed}, changed)
        reply = answer(request_of(self.state()), self.sources)
        soft = {
            (head, word): weight
            for head, row in enumerate(reply.soft)
            for word, weight in enumerate(row)
            if weight and weight >= LEAST_WEIGHT
        }
        words = [word if len(word) <= 20 else f"{word[:19]}…" for word in reply.words]
        expected = [soft, *map(arcs_of, (reply.best, reply.best_perturbed)), words]
        expected.append(arcs_of(reply.samples.last or []))
        eventually(
            lambda: [
                self.arcs("soft-arcs"),
                self.arcs("best-arcs", ".arc:not(.below)"),
                self.arcs("best-arcs", ".arc.below"),
                self.words("soft-arcs"),
                self.arcs("sample-arcs"),
            ],
            expected,
        )
        return reply

    def refused(self, *statuses: str) -> None:
        """These are the refusals that the browser has noted on its console, and nothing else."""
        noted = [text.partition("status of ")[2][:3] for text in self.complaints]
        assert noted == list(statuses)
        self.complaints.clear()

    def arcs(self, picture: str, which: str = ".arc") -> dict[tuple[int, int], float]:
        """The arcs of a picture with their weights."""
        drawn = self.page.evaluate(ARCS, [picture, which])
        return {(int(head), int(word)): round(weight, 6) for head, word, weight in drawn}

    def words(self, picture: str) -> list[str]:
        """The words of a picture."""
        return self.page.locator(f"#{picture} .word text:not(.number)").all_text_contents()

    def choose(self, head: int, word: int) -> None:
        """Choose an arc in the form."""
        self.page.locator("#change").evaluate("details => (details.open = true)")
        # a head cannot be the word itself, so that of the next arc may have to wait
        self.page.select_option("#arc-head", index=0)
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
            f'#{picture} .arc[data-head="{head}"][data-word="{word}"] .hit'
        ).first
        arc.scroll_into_view_if_needed()
        x, y = arc.evaluate(
            "path => { const at = path.getPointAtLength(path.getTotalLength() / 2)"
            ".matrixTransform(path.getScreenCTM()); return [at.x, at.y]; }"
        )
        self.page.mouse.click(x, y)


Visitor = Callable[..., Visit]


def arcs_of(parts: list[tuple[int, int]]) -> dict[tuple[int, int], float]:
    return dict.fromkeys(parts, 1.0)


def heads_of(parts: Iterable[Sequence[int]]) -> list[int]:
    """The head of every word; parts come in the order of the words."""
    return [head for head, _ in parts]


def request_of(state: Mapping[str, str]) -> TreeRequest:
    """The request that a page in such a state makes, written anew from the description of links."""

    def arcs(name: str) -> list[dict[str, float]]:
        parts = re.findall(r"(\d+)-(\d+):?([^,]+)?", state.get(name, ""))
        return [
            {"head": int(head), "word": int(word), **({"score": float(score)} if score else {})}
            for head, word, score in parts
        ]

    def changes(number: str) -> dict[str, Any]:
        return {kind: arcs(f"{kind}{number}") for kind in ("edits", "pinned", "forbidden")}

    second = {"text": state.get("second", ""), **changes("2")}
    target = next(iter(arcs("arc")), None)  # none while the server is to choose
    return TreeRequest.model_validate(
        {
            "source": state["source"],
            "text": state["text"],
            "second": second if second["text"] else None,
            "shown": state.get("shown", "first"),
            "structure": state["structure"],
            "estimator": state["estimator"],
            "relative": state["units"] == "spread",
            "target": target,
            "temperature": float(state["temperature"]),
            "noise_scale": float(state["noise"]),
            "noise_seed": int(state["seed"]),
            "relaxation": state["relaxation"],
            "single_root": state["roots"] == "single",
            "score_seed": int(state.get("scores", 0)),
            "samples": int(state.get("samples", 0)),
            "sample_seed": int(state.get("drawn", 0)),
            **changes(""),
        }
    )


def eventually(current: Callable[[], Any], expected: Any) -> None:
    """Wait until a page shows what it should."""
    end = time.monotonic() + PATIENCE
    now = current()
    while now != expected and time.monotonic() < end:
        time.sleep(0.01)
        now = current()
    assert now == expected
