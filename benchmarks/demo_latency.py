"""How long the page of `treelax demo` takes from a change to the picture of it, in a real browser.

    python benchmarks/demo_latency.py                       needs chromium
    python benchmarks/demo_latency.py --words 10 30 60 --times 30

Starts the demo, opens its page in a headless browser, and uses one control after the other, with random
scores and with those of the English parser, with which the page opens; the trees are those that the page
chooses for them. A time is what the page itself measures: from the event to the frame after the pictures
are drawn, the way to the server and back included. Browser and server share the machine.

Writes ``results/demo-latency-<date>.csv`` and prints a table.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import shutil
import statistics
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks import machine
from benchmarks.demo_load import RESULTS, server
from benchmarks.report import table, write_rows

if TYPE_CHECKING:
    from playwright.sync_api import Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COLUMNS = (
    *("control", "words", "source", "structure", "times", "ms_median", "ms_p90", "ms_worst"),
    *("machine", "torch", "commit"),
)
WARM_UP = 3
SOURCES = ("random", "english")
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


def milliseconds(page: Page, action: str) -> float:
    """Do something and give the time the page took to show it."""
    duration: float = page.evaluate(DRAWN.replace("ACTION", action))
    return duration


def measure(
    page: Page, address: str, source: str, words: int, times: int
) -> list[dict[str, object]]:
    """A row for every control, of a sentence with scores from a source."""
    text = " ".join(f"word{i}" for i in range(words))
    page.goto("about:blank")
    page.goto(f"{address}#{urlencode({'source': source, 'text': text})}")
    page.locator("#timing:not(:empty)").wait_for()
    page.evaluate(HELPERS)
    rows = []
    for control, action in CONTROLS.items():
        if control == "relaxation" and page.locator("input[name=relaxation]:disabled").count():
            continue  # non-projective trees have one
        taken = sorted(
            [milliseconds(page, action.replace("{n}", str(n))) for n in range(WARM_UP + times)][
                WARM_UP:
            ]
        )
        rows.append(
            {
                "control": control,
                "words": words,
                "source": source,
                "structure": page.input_value("#structure"),
                "times": times,
                "ms_median": round(statistics.median(taken), 1),
                "ms_p90": round(taken[len(taken) * 9 // 10], 1),
                "ms_worst": round(taken[-1], 1),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, nargs="+", default=[30], help="of the sentence")
    parser.add_argument("--times", type=int, default=30, help="that each control is used")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise SystemExit("no Chromium on this machine; on Debian: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    here = machine.describe("cpu")
    rows = []
    with server() as (_, address), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        for words in arguments.words:
            for source in SOURCES:
                rows += measure(page, address, source, words, arguments.times)
        browser.close()
    path = arguments.out / f"demo-latency-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    shown = ("control", "words", "source", "ms_median", "ms_p90", "ms_worst")
    print(table(list(shown), [[str(row[name]) for name in shown] for row in rows]))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
