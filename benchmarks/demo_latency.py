"""How long the page of `treelax demo` takes from a change to the picture of it, in a real browser.

    python benchmarks/run.py demo-latency                       needs chromium
    python benchmarks/run.py demo-latency --words 10 30 60 --times 30

Starts the demo, opens its page in a headless browser, and uses one control after the other, with random
scores and with those of the English parser, with which the page opens; the trees are those that the page
chooses for them. A time is what the page itself measures: from the event to the frame after the pictures
are drawn, the way to the server and back included. Browser and server share the machine.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks.demo_load import server
from benchmarks.measure import Row

if TYPE_CHECKING:
    from playwright.sync_api import Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WARM_UP = 3
# What each control is made to do, in the page: {n} is the number of the turn.
CONTROLS = {
    "temperature": "move('temperature', ({n} % 10) / 10 - 0.5)",
    "noise": "move('noise', ({n} % 10) / 10 + 0.05)",
    "new noise": "press('resample')",
    "relaxation": "press(document.querySelector('input[name=relaxation]:not(:checked)'))",
    "roots": "press(document.querySelector('input[name=roots]:not(:checked)'))",
    "pin an arc": "press('pin')",
    "draw a sample": "press('draw-1')",
    "type a word": "type({n})",
}
HELPERS = """
window.press = (what) => (typeof what === "string" ? document.getElementById(what) : what).click();
window.move = (id, value) => {
  const slider = document.getElementById(id);
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
};
window.type = (n) => {
  const text = document.getElementById("text");
  text.value = text.value.replace(/\\S+$/, `word${n}`);
  text.dispatchEvent(new Event("input", { bubbles: true }));
};
"""
# a picture of an earlier change may still be on its way
DRAWN = """
() => new Promise((done) => {
  const begun = performance.now();
  new PerformanceObserver((list, observer) => {
    const drawn = list.getEntriesByName("picture").find((each) => each.startTime >= begun);
    if (!drawn) return;
    observer.disconnect();
    done(drawn.duration);
  }).observe({ type: "measure" });
  ACTION;
})
"""


def rows_of(page: Page, address: str, source: str, words: int, times: int) -> Iterator[Row]:
    """A row for every control, of a sentence with scores from a source."""
    text = " ".join(f"word{i}" for i in range(words))
    page.goto("about:blank")
    page.goto(f"{address}#{urlencode({'source': source, 'text': text})}")
    page.locator("#timing:not(:empty)").wait_for()
    page.evaluate(HELPERS)
    for control, action in CONTROLS.items():
        if control == "relaxation" and page.locator("input[name=relaxation]:disabled").count():
            continue  # non-projective trees have one
        turns = (
            DRAWN.replace("ACTION", action.replace("{n}", str(n))) for n in range(WARM_UP + times)
        )
        taken = sorted([page.evaluate(turn) for turn in turns][WARM_UP:])
        yield {
            **{"control": control, "words": words, "source": source},
            **{"structure": page.input_value("#structure"), "times": times},
            "ms_median": round(statistics.median(taken), 1),
            "ms_p90": round(taken[len(taken) * 9 // 10], 1),
            "ms_worst": round(taken[-1], 1),
        }


def measure(words: tuple[int, ...] = (30,), times: int = 30) -> Iterator[Row]:
    """A row for every number of words, source of scores and control."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit("no Chromium on this machine; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with server() as (_, address), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        for count in words:
            for source in ("random", "english"):
                yield from rows_of(page, address, source, count, times)
        browser.close()
