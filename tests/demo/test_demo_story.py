"""The page as a newcomer meets it: what it opens with, its five steps, what lights up, the tour."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

import math
import re
from itertools import chain

from demo_visits import TELESCOPE, WORDS, Visitor, eventually
from playwright.sync_api import Page, expect

from treelax.apps.demo.messages import TreeReply

# what moved by itself, as browsers measure it: no input half a second before
SHIFTS = """window.shifted = 0;
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
}).observe({ type: "layout-shift", buffered: true });"""


def between(reply: TreeReply) -> int:
    """How many arcs are neither in the tree nor out of it."""
    return sum(0.1 <= (weight or 0) <= 0.9 for row in reply.soft for weight in row)


def moved(one: TreeReply, other: TreeReply) -> float:
    pairs = zip(chain(*one.soft), chain(*other.soft), strict=True)
    return max(abs((a or 0) - (b or 0)) for a, b in pairs)


def tops(page: Page, *ids: str) -> list[float]:
    return [(page.locator(f"#{name}").bounding_box() or {})["y"] for name in ids]


def test_the_first_screen(visitor: Visitor) -> None:
    """Without a click: an English sentence, a tree that is soft, and noise that matters."""
    visit = visitor(1440).open()
    page = visit.page
    reply = visit.shows_its_state(source="english", text=TELESCOPE, units="spread", seed="0")
    assert between(reply) >= 3
    box = page.locator("#soft-arcs").bounding_box() or {}
    assert box["y"] + box["height"] <= 900
    expect(page.locator("#tags li")).to_have_count(8)
    places = tops(page, "step-3", "step-4", "step-5")
    for _ in range(10):
        seed = page.input_value("#noise-seed")
        page.click("#resample")
        eventually(lambda: visit.state()["seed"] != seed, True)  # noqa: B023
        before, reply = reply, visit.shows_its_state()
        assert moved(before, reply) >= 0.1
        assert tops(page, "step-3", "step-4", "step-5") == places


@pytest.mark.parametrize("width", [390, 1024, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_moves_by_itself(visitor: Visitor, width: int, scheme: str) -> None:
    visit = visitor(width, scheme)
    page = visit.page
    page.add_init_script(SHIFTS)
    visit.open(samples=1)
    page.evaluate("document.getElementById('draw-10').click()")  # which no browser takes for input
    visit.shows_its_state(samples="11")
    page.evaluate("document.getElementById('resample').click()")
    eventually(lambda: visit.state()["seed"] != "0", True)
    visit.shows_its_state()
    assert page.evaluate("window.shifted") <= 0.1
    # three matrices in a row, or each in its own
    row = ("#heat-marginals", "#heat-frequencies", "#scatter")
    boxes = [page.locator(name).bounding_box() or {} for name in row]
    assert len({round(box["x"]) for box in boxes}) == (1 if width == 390 else 3)


def test_the_five_steps_show_what_the_library_computes(visitor: Visitor) -> None:
    visit = visitor().open()
    page = visit.page
    numbers = page.locator(".step h2 .number").all_text_contents()
    assert numbers == ["1", "2", "3", "4", "5"]
    reply = visit.shows_its_state(source="english", arc="2-7")
    page.click("#change summary")
    expect(page.locator("#readout")).to_have_text(
        f"2 saw → 7 telescope: score {minus(reply.scores[2][7], 2)}, noise {signed(reply.noise[2][7])}, "
        f"weight {reply.soft[2][7]:.3f}, marginal {reply.marginals[2][7]:.3f}"
    )
    changed = len(set(reply.best_perturbed) - set(reply.best))
    facts = page.inner_text("#best-facts")
    assert f"entropy of all trees {reply.entropy:.2f} nats" in facts
    assert (f"This noise changes {changed} of 8 arcs." in facts) == bool(changed)
    assert reply.answer is not None
    assert page.inner_text("#said") == reply.answer.text
    assert page.locator("#tags .tag").all_text_contents() == reply.answer.tags
    assert "1 − weight of 2 saw → 7 telescope" in page.inner_text("#loss")


def minus(value: float | None, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float | None) -> str:
    assert value is not None
    return f"{'−' if value < 0 else '+'}{abs(value):.2f}"


@pytest.mark.parametrize(
    "estimator", ["straight-through", "marginals", "sparsemap", "spigot", "imle"]
)
def test_estimators(visitor: Visitor, estimator: str) -> None:
    visit = visitor().open()
    soft = visit.shows_its_state(estimator="relaxed")
    said = visit.page.inner_text("#soft-note")
    visit.page.select_option("#estimator", estimator)
    reply = visit.shows_its_state(estimator=estimator)
    assert reply.soft != soft.soft
    assert visit.page.inner_text("#soft-note") != said


def test_structures(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS, pinned="1-2")
    page = visit.page
    for name, free in (("nonprojective", 2), ("heads", 0), ("projective", 4), ("binary", 2)):
        page.select_option("#structure", name)
        visit.shows_its_state(structure=name)
        assert page.locator("#relaxations input:enabled, #roots input:enabled").count() == free
    # a pinned arc is no span
    visit.shows_its_state(pinned="", structure="binary")
    visit.choose(2, 5)
    page.click("#pin")
    reply = visit.shows_its_state(pinned="2-5")
    assert (2, 5) in reply.best
    # spans that cross cannot both be pinned
    visit.choose(4, 6)
    page.click("#pin")
    visit.shows_its_state(pinned="4-6")
    assert page.is_hidden("#words")
    # a model of arcs has no scores of spans
    page.select_option("#source", "english")
    visit.shows_its_state(source="english", structure="nonprojective")
    expect(page.locator("#structure option:disabled")).to_have_text(["binary (spans)"])
    assert page.get_attribute("#structure", "title") == "This model scores arcs, not spans."
    visit.open(source="english", structure="binary")  # nor has a link
    visit.shows_its_state(source="english", structure="nonprojective")


def test_the_arc_of_the_loss_is_one_that_is_not_certain(visitor: Visitor) -> None:
    """Until the reader chooses one, which stays as long as its words do."""
    visit = visitor().open()
    page = visit.page
    visit.shows_its_state(arc="2-7")

    def chosen_is_least_certain() -> bool:
        reply = visit.shows_its_state()
        assert reply.target is not None
        weight = reply.soft[reply.target.head][reply.target.word] or 0
        # the root's column and a word on itself weigh 0, which is as far from 0.5 as can be
        nearest = min(
            abs((other or 0) - 0.5)
            for head, row in enumerate(reply.soft)
            for word, other in enumerate(row)
            if (head, word) not in reply.best_perturbed
        )
        return "arc" in visit.state() and abs(weight - 0.5) <= nearest + 1e-3

    text = "She ate the pizza with a fork"
    page.fill("#text", text)
    visit.shows_its_state(text=text)
    eventually(chosen_is_least_certain, True)
    for control, value in (
        ("structure", "projective"),
        ("source", "random"),
        ("structure", "binary"),
    ):
        page.select_option(f"#{control}", value)
        visit.shows_its_state(**{control: value})
        eventually(chosen_is_least_certain, True)
        expect(page.locator("#loss")).not_to_have_text("")
    assert "each span was drawn" in page.inner_text("main")
    assert "mean of all spans" in page.inner_text("#scale-note")
    expect(page.locator("#change summary")).to_have_text("Change a span")
    # of the reader's own
    page.select_option("#structure", "projective")
    visit.choose(1, 7)
    visit.shows_its_state(arc="1-7")
    page.fill("#text", "Today She ate the pizza with a fork")
    visit.shows_its_state(arc="2-8")
    expect(page.locator("#loss")).to_contain_text("1 − weight of 2 She → 8 fork")
    page.select_option("#structure", "heads")
    visit.shows_its_state(structure="heads", arc="2-8")
    page.fill("#text", "Today She ate the pizza")  # one of its words is gone
    eventually(lambda: visit.state().get("arc", "2-8") != "2-8", True)


def test_examples(visitor: Visitor) -> None:
    visit = visitor().open()
    page = visit.page
    buttons = page.locator("#examples button")
    assert buttons.count() == 6
    for at in range(6):
        buttons.nth(at).click()
        expect(buttons.nth(at)).to_have_attribute("aria-pressed", "true")
        assert page.inner_text("#about")
        eventually(lambda: visit.state()["text"], page.input_value("#text"))
        reply = visit.shows_its_state()
        assert reply.gradient is not None  # the chosen arc is one
        assert between(reply) >= 1


@pytest.mark.parametrize("estimator", ["spigot", "imle"])
def test_every_example_starts_with_a_gradient(visitor: Visitor, estimator: str) -> None:
    """The arc of the loss is not in the tree yet: from whole trees one that is has no gradient."""
    visit = visitor().open()
    page = visit.page
    page.select_option("#estimator", estimator)
    for button in page.locator("#examples button").all():
        button.click()
        visit.shows_its_state(text=page.input_value("#text"))
        eventually(lambda: "arc" in visit.state(), True)
        reply = visit.shows_its_state()
        assert reply.target is not None
        assert reply.soft[reply.target.head][reply.target.word] == 0
        expect(page.locator("#loss")).to_contain_text("Gradient descent raises the orange scores")
    # an arc that nobody chose is another one for another estimator
    page.select_option("#estimator", "relaxed")
    visit.shows_its_state(estimator="relaxed")
    page.select_option("#estimator", estimator)
    visit.shows_its_state(estimator=estimator)
    expect(page.locator("#loss")).to_contain_text("Gradient descent raises the orange scores")


def test_an_arc_that_lights_up_keeps_its_weight(visitor: Visitor) -> None:
    visit = visitor().open(arc="1-5")
    page = visit.page
    line = "#soft-arcs .arc[data-weight^='0.']"
    faint = page.locator(f"{line} .line").first
    before = faint.evaluate("line => getComputedStyle(line).opacity")
    assert 0 < float(before) < 1
    word = page.locator(line).first.get_attribute("data-word")
    page.locator(f'#soft-arcs .word[data-word="{word}"]').hover()
    expect(page.locator(f"{line}").first).to_have_class(re.compile("lit"))
    assert faint.evaluate("line => getComputedStyle(line).opacity") == before


def test_the_tour_ends_with_what_a_click_does(visitor: Visitor) -> None:
    visit = visitor(1440).open()
    page = visit.page
    for name in ("tour", *4 * ["tour-next"]):
        page.click(f"#{name}")
    expect(page.locator("#tour-text")).to_contain_text(
        "choose an arc with a click: “How it learns”"
    )
    page.click("#tour-next")
    (head, word) = next(iter(visit.arcs("best-arcs", ".arc:not(.below)")))
    visit.click_arc("best-arcs", head, word)
    visit.shows_its_state(arc=f"{head}-{word}", pinned="")
    assert "How it learns" in page.inner_text("#gradient-title")
    expect(page.locator("#loss")).to_contain_text("1 − weight of")


def test_the_probability_of_a_long_sentence(visitor: Visitor) -> None:
    """Too small to be a number other than 0: its logarithm."""
    visit = visitor().open(source="random", text="w " * 199 + "w")
    reply = visit.shows_its_state()
    assert math.exp(reply.best_log_probability) < 1e-20
    expect(visit.page.locator("#best-facts")).to_contain_text(
        f"Log probability {minus(reply.best_log_probability, 2)} nats, entropy"
    )
    reply = visit.open(source="random", text="a b").shows_its_state()
    expect(visit.page.locator("#best-facts")).to_contain_text("Probability 0.")


def test_what_is_the_papers_and_why_there_is_no_choice(visitor: Visitor) -> None:
    visit = visitor().open()
    relaxed, note = visit.page.locator("#relaxed"), visit.page.locator("#relaxation-note")
    expect(relaxed).to_have_text("relaxed")
    expect(note).to_have_text("Non-projective trees: entropy only.")
    visit.open(source="zero")
    expect(relaxed).to_have_text("relaxed (the paper’s)")
    expect(note).to_be_hidden()
    visit.page.select_option("#estimator", "sparsemap")
    expect(note).to_have_text("This estimator has no relaxation.")


def test_the_form_of_an_arc_opens_in_sight(visitor: Visitor) -> None:
    visit = visitor(1440).open()
    visit.page.click("#change summary")

    def end() -> float:
        box = visit.page.locator("#keys").bounding_box() or {}
        return float(box["y"] + box["height"])

    eventually(lambda: end() <= 900, True)
    # on a phone it comes after the soft tree, which is on the first screen, and before other pictures
    narrow = visitor(390).open().page
    places = tops(narrow, "text", "live", "step-3", "structure", "change", "step-1", "step-4")
    assert places == sorted(places)
    box = narrow.locator("#soft-arcs").bounding_box() or {}
    assert box["y"] + box["height"] <= 844


def test_labels_of_words_are_not_cut(visitor: Visitor) -> None:
    """They end in an ellipsis before the edge, and the whole word is their title."""
    visit = visitor().open(source="zero", text="WWWWWWWWW neighbour", arc="2-1")
    page = visit.page
    canvas = page.locator("#heat-scores canvas")
    ink = canvas.evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 66, 2, canvas.height - 66).data.some(Boolean)"
    )
    assert not ink
    box = page.locator("#heat-scores .cursor").bounding_box() or {}
    page.mouse.move(box["x"] - 30, box["y"] + box["height"] / 2)
    expect(canvas).to_have_attribute("title", "neighbour")
    visit.complaints[:] = [text for text in visit.complaints if "getImageData" not in text]


def lit(page: Page, picture: str) -> list[tuple[str | None, str | None]]:
    found = page.locator(f"#{picture} .arc.lit")
    return found.evaluate_all("all => all.map((arc) => [arc.dataset.head, arc.dataset.word])")


def test_an_arc_a_word_and_a_cell_light_up(visitor: Visitor) -> None:
    visit = visitor(1440).open(arc="1-5")
    page = visit.page
    reply = visit.shows_its_state(arc="1-5")
    note, box = page.locator("#note"), page.locator("#heat-scores .light")
    # a cell: the chosen one, whose place is known
    cell = page.locator("#heat-perturbed .cursor").bounding_box() or {}
    page.mouse.move(cell["x"] + 5, cell["y"] + 5)
    expect(note).to_contain_text(f"1 I → 5 with: score {minus(reply.scores[1][5], 2)}, noise ")
    expect(box).to_be_visible()
    expect(page.locator("#soft-arcs .word.lit text:not(.number)")).to_have_text(["I", "with"])
    # an arc
    arc = page.locator('#soft-arcs .arc[data-head="0"][data-word="2"] .hit').bounding_box() or {}
    page.mouse.move(arc["x"] + arc["width"] / 2, arc["y"] + 8)
    expect(note).to_contain_text("root → 2 saw: score ")
    assert lit(page, "soft-arcs") == lit(page, "best-arcs")[:1] == [["0", "2"]]
    # a word: the heads it may have, the heaviest first
    page.locator('#best-arcs .word[data-word="7"]').hover()
    expect(note).to_contain_text("Heads of 7 telescope")
    column = sorted(((row[7] or 0, head) for head, row in enumerate(reply.soft)), reverse=True)
    labels = ["root", *(f"{place} {word}" for place, word in enumerate(reply.words, 1))]
    weight, head = column[0]
    cells = note.locator("tr").first.locator("td").all_inner_texts()
    assert cells == [labels[head], "", f"{weight:.2f}", f"score {minus(reply.scores[head][7], 1)}"]
    assert all(word == "7" for _, word in lit(page, "soft-arcs"))
    page.mouse.move(2, 2)
    expect(note).to_be_hidden()
    assert lit(page, "soft-arcs") == []

    # and by keyboard: words in a tree, cells in the matrix of scores
    page.locator("#step-3 .scroll").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#spoken")).to_contain_text("Heads of 2 saw: root ")
    expect(note).to_be_visible()
    page.focus("#heat-scores")
    page.keyboard.press("ArrowDown")
    eventually(lambda: visit.state()["arc"], "2-5")
    expect(page.locator("#soft-arcs .word.lit text:not(.number)")).to_have_text(["saw", "with"])


def test_the_tour(visitor: Visitor) -> None:
    visit = visitor().open()
    page = visit.page
    visit.shows_its_state(seed="0", temperature="0.2")
    page.click("#tour")
    for stop in range(1, 6):
        expect(page.locator("#tour-place")).to_have_text(f"{stop} of 5")
        expect(page.locator(".toured")).to_have_id(f"step-{stop}")
        heat = "0.6" if stop == 3 else "0.2"
        visit.shows_its_state(temperature=heat)
        assert (visit.state()["seed"] == "0") == (stop == 1)
        expect(page.locator("#tour-next")).to_be_focused()
        expect(page.locator("#tour-end")).to_be_visible(visible=stop < 5)
        page.click("#tour-next")
    expect(page.locator("#tour-panel")).to_be_hidden()
    expect(page.locator("#tour")).to_be_focused()
    # left halfway, it puts the temperature back
    page.click("#tour")
    page.click("#tour-next")
    page.click("#tour-next")
    visit.shows_its_state(temperature="0.6")
    page.keyboard.press("Escape")
    visit.shows_its_state(temperature="0.2")
    expect(page.locator(".toured")).to_have_count(0)


def test_the_style_is_that_of_other_pictures(visitor: Visitor) -> None:
    from treelax.apps.pictures.style import COLOURS

    for scheme, at in (("light", 0), ("dark", 1)):
        page = visitor(1280, scheme).open().page
        for name, colour in (("arc", "blue"), ("arc-below", "vermillion")):
            found = page.evaluate(
                "name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)",
                name,
            )
            assert found.strip() == COLOURS[colour][at]


def test_a_tour_begun_again_halfway_puts_the_temperature_back(visitor: Visitor) -> None:
    page = visitor().open().page
    before = page.input_value("#temperature")
    for place in ("tour", "tour-next", "tour-next"):
        page.click(f"#{place}")
    assert page.input_value("#temperature") != before
    page.click("#tour")
    assert page.input_value("#temperature") == before


def test_a_tap_shows_what_a_pointer_does(visitor: Visitor) -> None:
    page = visitor(390, has_touch=True).open().page
    page.tap("#soft-arcs .word[data-word='7']")
    expect(page.locator("#note")).to_contain_text("Heads of 7 telescope")
    page.tap("#step-4 h2")
    expect(page.locator("#note")).to_be_hidden()


def test_a_long_word_does_not_widen_the_page(visitor: Visitor) -> None:
    page = visitor(390).open(text="a " + "long" * 50 + " word .").page
    expect(page.locator(".tags li").nth(1)).to_contain_text("longlong")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
