"""A visit to the page in a browser: what it opens with, every control, changed arcs, links, trouble.

Whatever is done, the pictures show what the library computes of the state in the link.
"""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

import torch
from demo_visits import LEAST_WEIGHT, TELESCOPE, WORDS, Visitor, eventually, heads_of, request_of
from pages import axe_violations
from playwright.sync_api import Route, expect

from treelax.apps.demo.answers import answer
from treelax.apps.demo.messages import MOST_WORDS
from treelax.apps.pictures.style import COLOURS
from treelax.trees import is_tree

EXPRESSION = "[MAX 2 9 [MIN 4 7 ] 0 ]"


def test_what_a_newcomer_sees(visitor: Visitor) -> None:
    """A sentence, a soft tree, noise that matters; numbers of the library; a tour."""
    visit = visitor(1440).open()
    page = visit.page
    reply = visit.shows_its_state(source="english", text=TELESCOPE, seed="0", arc="2-7")
    assert sum(0.1 <= (weight or 0) <= 0.9 for row in reply.soft for weight in row) >= 3
    box = page.locator("#soft-arcs").bounding_box() or {}
    assert box["y"] + box["height"] <= 900
    page.click("#change summary")
    weight, marginal = reply.soft[2][7], reply.marginals[2][7]
    readout = rf"2 saw → 7 telescope: score .*, weight {weight:.3f}, marginal {marginal:.3f}"
    expect(page.locator("#readout")).to_have_text(re.compile(readout))
    assert f"entropy of all trees {reply.entropy:.2f} nats" in page.inner_text("#best-facts")
    assert reply.answer is not None
    assert page.inner_text("#said") == reply.answer.text
    assert page.locator("#tags .tag").all_text_contents() == reply.answer.tags
    assert "1 − weight of 2 saw → 7 telescope" in page.inner_text("#loss")
    page.click("#words summary")
    expect(page.locator("#words tbody tr")).to_have_count(8)

    note = page.locator("#note")
    page.locator('#best-arcs .word[data-word="7"]').hover()
    expect(note).to_contain_text("Heads of 7 telescope")
    lit = page.locator("#soft-arcs .arc.lit")
    assert set(lit.evaluate_all("all => all.map((arc) => arc.dataset.word)")) == {"7"}
    page.mouse.move(2, 2)
    expect(note).to_be_hidden()
    page.locator("#step-3 .scroll").focus()  # and by keyboard
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("Heads of 2 saw: root ")

    page.click("#tour")
    for stop in range(1, 6):
        expect(page.locator("#tour-place")).to_have_text(f"{stop} of 5")
        expect(page.locator(".toured")).to_have_id(f"step-{stop}")
        visit.shows_its_state(temperature="0.6" if stop == 3 else "0.2")
        page.click("#tour-next")
    expect(page.locator("#tour-panel")).to_be_hidden()
    for _ in range(2):  # left or begun again halfway, it puts the temperature back
        for name in ("tour", "tour-next", "tour-next"):
            page.click(f"#{name}")
        visit.shows_its_state(temperature="0.6")
    page.keyboard.press("Escape")
    visit.shows_its_state(temperature="0.2")

    page = visitor(390, has_touch=True).open().page  # a tap shows what a pointer does
    page.tap("#soft-arcs .word[data-word='7']")
    expect(page.locator("#note")).to_contain_text("Heads of 7 telescope")
    for picture in ("best-arcs", "heat-marginals"):  # and sliders stay in sight
        page.evaluate("id => document.getElementById(id).scrollIntoView()", picture)
        box = page.locator("#temperature").bounding_box() or {}
        assert 0 <= box["y"] < 130


def test_every_control(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS)
    page = visit.page
    visit.shows_its_state(source="random", text=WORDS)
    page.focus("#temperature")
    page.keyboard.press("Home")
    visit.shows_its_state(temperature="0.01")
    page.uncheck("#relative")  # as the model was trained, or as multiples of the scores' spread
    visit.shows_its_state(units="score", temperature="1", noise="1")
    page.check("#relative")
    visit.shows_its_state(units="spread", temperature="0.2", noise="0.3")
    page.fill("#noise", "0.5")
    visit.shows_its_state(noise="12.5")
    page.click("#resample")
    eventually(lambda: visit.state()["seed"] != "0", True)
    for typed, used in (("-5", None), ("1e3", "1000"), ("12.9", "12"), ("", "12")):
        used = used or visit.state()["seed"]
        page.fill("#noise-seed", typed)
        page.locator("#noise-seed").blur()
        assert page.input_value("#noise-seed") == used, typed
        visit.shows_its_state(seed=used)
    page.check("input[name=relaxation][value=entropy]")
    page.check("input[name=roots][value=single]")
    single = visit.shows_its_state(relaxation="entropy", roots="single")
    assert heads_of(single.best).count(0) == 1
    page.click("#new-scores")
    eventually(lambda: "scores" in visit.state(), True)
    page.fill("#text", "dogs bark")
    visit.shows_its_state(text="dogs bark")
    page.fill("#text", WORDS)
    for name, free in (("nonprojective", 2), ("heads", 0), ("binary", 2), ("projective", 4)):
        page.select_option("#structure", name)
        visit.shows_its_state(structure=name)
        assert page.locator("#relaxations input:enabled, #roots input:enabled").count() == free
    for name in ("straight-through", "marginals", "sparsemap", "spigot", "imle", "relaxed"):
        before = page.inner_text("#soft-note")
        page.select_option("#estimator", name)
        visit.shows_its_state(estimator=name)
        assert page.inner_text("#soft-note") != before

    page.click("#draw-1")
    page.click("#draw-10")
    page.click("#draw-100")
    reply = visit.shows_its_state(samples="111")
    pairs = [
        (marginal or 0, frequency or 0)
        for rows in zip(reply.marginals, reply.samples.frequencies, strict=True)
        for marginal, frequency in zip(*rows, strict=True)
    ]
    gap = max(abs(a - b) for a, b in pairs)
    facts = f"111 drawn; largest difference between frequency and marginal: {gap:.3f}."
    eventually(lambda: page.inner_text("#sample-facts"), facts)
    page.click("#play")
    eventually(lambda: int(visit.state()["samples"]) >= 113, True)
    page.click("#play")
    page.click("#start-over")
    eventually(lambda: "samples" in visit.state(), False)

    page.select_option("#source", "english")  # a model of arcs has no scores of spans
    visit.shows_its_state(source="english")
    expect(page.locator("#structure option:disabled")).to_have_text(["binary (spans)"])
    visit.open()
    for estimator in ("imle", "relaxed"):  # the arc of the loss always has a gradient
        page.select_option("#estimator", estimator)
        for button in page.locator("#examples button").all():
            button.click()
            expect(button).to_have_attribute("aria-pressed", "true")
            eventually(lambda: visit.state()["text"], page.input_value("#text"))
            eventually(lambda: "arc" in visit.state(), True)
            assert visit.shows_its_state(estimator=estimator).gradient is not None
            if estimator == "imle":
                expect(page.locator("#loss")).to_contain_text("Gradient descent raises the orange")
    visit.open(source="listops", text=EXPRESSION, units="score")  # noise as in training
    visit.shows_its_state(noise="1")
    assert "Value 9." in page.inner_text("#said")
    expect(page.locator("#spread")).to_contain_text("Scores differ by up to")
    page.fill("#noise", "2")
    visit.shows_its_state(noise="100")
    expect(page.locator("#spread")).to_be_hidden()


def test_arcs_are_changed_by_clicks_by_keys_and_in_a_form(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS, noise=0)
    page = visit.page
    reply = visit.shows_its_state(noise="0")
    page.click("#change summary")
    page.check("input[name=click][value=pin]")
    best = heads_of(reply.best)
    other = next(head for head in range(8) if head not in (3, best[2]))
    visit.click_cell("scores", other, 3)
    assert visit.shows_its_state(pinned=f"{other}-3", click="pin").best[2] == (other, 3)
    assert page.locator("#soft-arcs .arc.pinned").count() == 1
    visit.click_cell("soft", other, 3)  # a second click frees it
    visit.shows_its_state(pinned="")
    page.check("input[name=click][value=forbid]")
    visit.click_arc("best-arcs", best[0], 1)
    assert visit.shows_its_state(forbidden=f"{best[0]}-1").best[0] != (best[0], 1)
    page.locator("#changes button").first.click()
    visit.shows_its_state(forbidden="")
    page.check("input[name=click][value=choose]")
    visit.click_cell("marginals", 2, 5)
    eventually(lambda: visit.state()["arc"], "2-5")

    page.focus("#heat-scores")
    for key, state in (
        ("p", {"pinned": "2-5"}),
        ("f", {"pinned": "", "forbidden": "2-5"}),
        ("Delete", {"forbidden": ""}),
        ("ArrowDown", {"arc": "3-5"}),
        ("+", {"edits": "3-5:"}),
    ):
        page.keyboard.press(key)
        if key == "+":
            eventually(lambda: visit.state().get("edits", "").startswith("3-5:"), True)
        else:
            visit.shows_its_state(**state)
    page.keyboard.press("Enter")
    page.fill("#arc-score", "4.25")
    assert visit.shows_its_state(edits="3-5:4.25").scores[3][5] == 4.25
    page.fill("#arc-score", "5e9")  # too large: the field shows the one in use
    page.locator("#arc-score").blur()
    assert page.input_value("#arc-score") == "1000000"
    page.click("#free")
    visit.shows_its_state(edits="")

    # forbidding the last arcs leaves no tree, which is said, and there is a way out
    visit.open(source="zero", text="a b", forbidden="0-1", arc="0-2", noise=0)
    page.click("#forbid")
    expect(page.locator("#alert")).to_contain_text("leave no projective tree; free one")
    expect(page.locator("#changes button")).to_have_count(2)
    page.click("#way-out")
    visit.shows_its_state(forbidden="")
    visit.refused("409")


def test_changes_follow_their_words(visitor: Visitor) -> None:
    visit = visitor().open(
        source="zero", text=WORDS, pinned="1-2", forbidden="3-4", edits="0-7:2", arc="1-2"
    )
    page = visit.page
    visit.shows_its_state(pinned="1-2")
    # letter by letter: for a while the first word is "Yesterdaythe"
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Yesterday ")
    moved = {"pinned": "2-3", "forbidden": "4-5", "edits": "0-8:2", "arc": "2-3"}
    visit.shows_its_state(text=f"Yesterday {WORDS}", **moved)
    chips = page.locator("#changes button").all_text_contents()
    assert chips == ["2 the → 3 old pinned", "4 cat → 5 watched forbidden", "root → 8 bird score 2"]
    # those of words that are gone are dropped, and come back with the words
    page.fill("#text", WORDS.removeprefix("the "))
    visit.shows_its_state(pinned="", forbidden="2-3", edits="0-6:2")
    expect(page.locator("#status")).to_have_text("1 change was dropped: the words are gone.")
    page.fill("#text", WORDS)
    visit.shows_its_state(pinned="1-2", forbidden="3-4", edits="0-7:2")
    expect(page.locator("#status")).to_have_text("")
    page.get_by_role("button", name="Binary tree").click()  # another text has none
    visit.shows_its_state(pinned="", edits="", forbidden="")
    expect(page.locator("#status")).to_have_text("3 changes were cleared.")


def test_links_and_texts_of_others(visitor: Visitor) -> None:
    """A link restores everything; nonsense does no harm; markup is text."""
    state = {
        "source": "random", "text": "a <b>b</b> c&d ü", "temperature": "0.35", "noise": "2.5",
        "seed": "123", "relaxation": "entropy", "roots": "single", "scores": "9", "samples": "40",
        "drawn": "8", "edits": "1-2:3.5,2-1:-4", "pinned": "3-4", "forbidden": "0-1,2-3",
        "click": "forbid", "arc": "2-3", "structure": "nonprojective", "estimator": "imle",
        "units": "score",
    }  # fmt: skip
    visit = visitor().open(**state)
    page = visit.page
    visit.shows_its_state(**state)
    assert page.is_checked("input[name=roots][value=single]")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#link")
    expect(page.locator("#link-said")).to_have_text("Link copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(copied)
    visit.shows_its_state(**state)
    page.evaluate("location.hash = '#source=zero&text=x+y'")  # typed into an open page
    visit.shows_its_state(source="zero", text="x y", relaxation="softmax")

    visit.open(
        source="nothing", text="The cat sat.", temperature="hot", noise="-1", seed="x", samples="1e9",
        relaxation="<b>", roots="many", structure="round", estimator="guess",
        units="mm", edits="1-2:NaN,9,5-5:1,a-b:1,0-1:1e99", pinned="0-0,1-1,2",
        forbidden="-1-2,999-1", click="delete", arc="7-7", more="?",
    )  # fmt: skip
    visit.shows_its_state(
        source="english", temperature="0.2", noise="0.3", units="spread", seed="0", samples="",
        relaxation="entropy", roots="single", structure="nonprojective", estimator="relaxed",
        edits="", pinned="", forbidden="", click="",
    )  # fmt: skip

    text = "<script>window.bad=1</script> <img/src=x/onerror=window.bad=1> &lt; ${bad}"
    visit.open(source="zero", text=text, edits="1-2:1", samples=1)
    visit.shows_its_state(text=text)
    assert visit.words("soft-arcs")[0] == "<script>window.bad=…"
    assert page.evaluate("window.bad") is None
    assert page.locator("main script, main img, main b").count() == 0


def test_trouble_is_said_and_passes(visitor: Visitor) -> None:
    visit = visitor().open(source="listops", text="[MAX dogs ]")
    page, alert = visit.page, visit.page.locator("#alert")
    expect(alert).to_contain_text("token 2 is 'dogs'; expected [MIN")
    page.fill("#text", "[MAX 2 ]")
    expect(page.locator("#problem")).to_be_hidden()
    page.fill("#text", " ")
    expect(alert).to_have_text("text has no words; expected 1 to 200")
    expect(page.locator("#pictures")).to_have_class("pictures stale")
    expect(page.locator("#said")).to_have_text("")
    page.get_by_role("button", name="Use the example").click()
    visit.shows_its_state(source="listops")
    visit.open(source="english", text="a, " * 150)  # words as its model counts them
    page.get_by_role("button", name="Keep the first 100 words").click()
    expect(page.locator("#timing")).to_contain_text("200 words")
    assert page.input_value("#text") == ("a, " * 100).strip()
    visit.refused("409", "409", "409")

    visit.open(source="zero", text="a b", samples=7)
    statuses = [503, 503]

    def busy(route: Route) -> None:
        if statuses:
            headers = {"retry-after": "0.01"}
            route.fulfill(status=statuses.pop(), headers=headers, json={"detail": "busy"})
        else:
            route.continue_()

    page.route("**/api/trees", busy)  # it tries again
    page.fill("#text", "a b c")
    visit.shows_its_state(text="a b c")
    assert not statuses
    page.unroute("**/api/trees")
    detail = "this takes more than 20 s; try fewer words or samples, or another estimator"
    page.route("**/api/trees", lambda route: route.fulfill(status=504, json={"detail": detail}))
    page.fill("#text", "a b c d")
    expect(alert).to_have_text(detail)
    page.unroute("**/api/trees")
    page.get_by_role("button", name="Drop the samples").click()
    visit.shows_its_state(text="a b c d", samples="")
    page.route("**/api/trees", lambda route: route.abort())
    page.fill("#text", "a b")
    expect(alert).to_contain_text("The server does not answer.")
    expect(page.locator("#pictures")).to_have_class(re.compile("stale"))
    page.unroute("**/api/trees")
    page.fill("#text", "a b x")
    visit.shows_its_state(text="a b x")
    # a slider that is dragged asks for few pictures, and the last one is that of its end
    visit.asked.clear()
    page.evaluate(
        """() => {
          const slider = document.getElementById("temperature");
          for (let i = 0; i < 100; i++) {
            slider.value = i / 50;
            slider.dispatchEvent(new Event("input"));
          }
        }"""
    )
    visit.shows_its_state(temperature="95.5")
    assert len([url for url in visit.asked if url.endswith("/api/trees")]) == 2
    visit.complaints.clear()


def test_cells_have_the_colours_of_their_numbers(visitor: Visitor) -> None:
    visit = visitor(1500).open(source="random", text=WORDS, samples=30, forbidden="0-1", arc="7-1")
    reply = visit.shows_its_state(samples="30")
    matrices = {
        "soft": reply.soft,
        "marginals": reply.marginals,
        "frequencies": reply.samples.frequencies,
    }
    # the cursor is on head 7 and word 1, from which all other cells follow
    wrong = visit.page.evaluate(
        """async (matrices) => {
          const { shareColour } = await import("/static/colours.js");
          const wrong = [];
          for (const [name, rows] of Object.entries(matrices)) {
            const canvas = document.querySelector(`#heat-${name} canvas`);
            const cursor = document.querySelector(`#heat-${name} .cursor`);
            const cell = cursor.offsetWidth - 1;
            const left = cursor.offsetLeft + 1, top = cursor.offsetTop + 1 - 7 * cell;
            const context = canvas.getContext("2d");
            rows.forEach((row, head) => row.forEach((value, word) => {
              if (word === 0 || word === head) return;
              const x = left + (word - 0.5) * cell - 1, y = top + (head + 0.5) * cell - 1;
              const [r, g, b] = context.getImageData(x, y, 1, 1).data;
              const colour = shareColour(value, false);
              if (colour !== `rgb(${r}, ${g}, ${b})`) wrong.push([name, head, word, colour, r, g, b]);
            }));
          }
          return wrong;
        }""",
        matrices,
    )
    assert wrong == []
    visit.complaints[:] = [text for text in visit.complaints if "getImageData" not in text]


def test_long_texts(visitor: Visitor) -> None:
    """The heaviest arcs alone are drawn, and a tiny probability is shown as its logarithm."""
    text = " ".join(f"w{i}" for i in range(1, MOST_WORDS + 1))
    visit = visitor().open(source="zero", text=text, noise=0, temperature=1)
    reply = answer(request_of(visit.state()), visit.sources)
    heavy = sorted((w for row in reply.soft for w in row if w and w >= LEAST_WEIGHT), reverse=True)
    drawn = visit.arcs("soft-arcs")
    assert sorted(drawn.values(), reverse=True) == heavy[:600]
    assert all(weight == reply.soft[head][word] for (head, word), weight in drawn.items())
    assert visit.page.inner_text("#soft-facts").startswith(f"The {len(heavy) - 600} lightest ")
    logarithm = f"{reply.best_log_probability:.2f}".replace("-", "−")
    expect(visit.page.locator("#best-facts")).to_contain_text(f"Log probability {logarithm} nats")
    visit.open(source="random", text=60 * "w ", estimator="sparsemap", temperature=100)
    expect(visit.page.locator("#soft-facts")).to_contain_text("SparseMAP stopped early")


def test_two_texts(visitor: Visitor) -> None:
    """Pins are of the text that is shown, and follow the words of either."""
    first, second = "the film was good", "the bad plot"
    visit = visitor().open(source="pairs")
    page = visit.page
    page.fill("#text", first)
    page.get_by_label("Second text (a)").fill(second)
    reply = visit.shows_its_state(text=first, second=second)
    assert reply.answer is not None
    expect(page.locator("#said")).to_have_text(reply.answer.text)
    assert visit.words("soft-arcs") == ["NULL", *first.split()]
    assert page.locator("#soft-arcs .number").all_text_contents() == ["", "1", "2", "3", "4"]
    visit.choose(5, 2)
    page.click("#pin")
    page.check("input[name=shown][value=second]")
    visit.shows_its_state(shown="second", pinned="5-2")
    assert visit.words("soft-arcs") == ["NULL", *second.split()]
    assert page.is_hidden("#changes-row")
    visit.choose(0, 4)
    page.click("#forbid")
    page.fill("#text", f"so {first}")
    page.fill("#second", f"so {second}")
    visit.shows_its_state(pinned="6-3", forbidden2="0-5", arc="0-5")
    state = visit.state()  # a link restores both
    visit.open(**state)
    visit.shows_its_state(**state)
    page.select_option("#source", "zero")
    visit.shows_its_state(source="zero", second="", shown="")
    # a model of heads, whose best ones are no tree, with a link that asks for a single root
    visit.open(source="heads", text=EXPRESSION, roots="single", samples="1")
    reply = visit.shows_its_state(roots="several", structure="heads")
    assert not is_tree(torch.tensor(heads_of(reply.best)))


# what does not fit into a window of some width
CUT_OFF = """(all, width) => all.filter((e) => e.checkVisibility())
  .map((e) => [e.id || e.textContent, e.getBoundingClientRect()])
  .filter(([, box]) => box.left < 0 || box.right > width + 0.5).map(([name]) => name)"""
# no gradient, and a tiny number in its legend
FLAT = {"estimator": "sparsemap", "noise": "0", "temperature": "0.02"}
# what moved by itself, as browsers measure it: no input half a second before
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.mark.parametrize(
    ("width", "scheme", "state"),
    [
        (390, "dark", {"text": f"{WORDS} {'x' * 99}", "pinned": "4-3", "edits": "1-2:3"}),
        (1440, "light", {"source": "listops", "text": EXPRESSION} | FLAT),
    ],
)
def test_the_page_is_for_everyone(
    visitor: Visitor, width: int, scheme: str, state: dict[str, str]
) -> None:
    """No rule of axe is broken, nothing is wider than the window or moves, the focus can be seen."""
    # the page's own policy lets no other script run in it
    visit = visitor(width, scheme, bypass_csp=True)
    page = visit.page
    page.add_init_script(SHIFTS)
    visit.open(samples=1, **state)
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
    names: list[str] = []
    for _ in range(80):
        page.keyboard.press("Tab")
        name, style, thickness = page.evaluate(
            "() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.id || e.name || e.textContent.trim(), s.outlineStyle,"
            " parseFloat(s.outlineWidth)]; }"
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert (style, thickness >= 2) == ("solid", True), name
        names.append(name)
    assert names[0] == "Skip to the soft tree"
    controls = ["text", "source", "noise", "temperature", "structure", "estimator", "heat-scores"]
    assert [name for name in names if name in controls] == controls
    page.evaluate("document.getElementById('resample').click()")  # which is no input to a browser
    eventually(lambda: visit.state()["seed"] != "0", True)
    visit.shows_its_state()
    assert page.evaluate("window.shifted") <= 0.1
    colours = [
        page.evaluate("n => getComputedStyle(document.documentElement).getPropertyValue(n)", name)
        for name in ("--arc", "--arc-below")
    ]
    assert [colour.strip() for colour in colours] == [
        COLOURS[name][scheme == "dark"] for name in ("blue", "vermillion")
    ]
    page.locator("#words").evaluate("details => (details.open = true)")
    assert axe_violations(page) == []
    heights = page.locator("button, select, textarea, .choice label").evaluate_all(
        "all => all.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24  # WCAG 2.2, target size
    drawn = page.locator("#heat-scores canvas")
    for other in (600, 360, 768, 1440):
        before = drawn.evaluate("canvas => canvas.style.width")
        page.set_viewport_size({"width": other, "height": 900})
        # matrices are drawn again a frame later, in another size
        eventually(lambda: drawn.evaluate("canvas => canvas.style.width") != before, True)  # noqa: B023
        eventually(lambda: page.evaluate("document.documentElement.scrollWidth") <= other, True)  # noqa: B023
        parts = page.locator("button, select, input, textarea, canvas, h2, .note")
        eventually(lambda: parts.evaluate_all(CUT_OFF, other), [])  # noqa: B023
