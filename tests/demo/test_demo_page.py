"""The page in a browser: every control, and pictures that show what the library computes."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright", reason="needs playwright: pip install playwright")

from demo_visits import LEAST_WEIGHT, TELESCOPE, WORDS, Visitor, eventually, heads_of, request_of
from playwright.sync_api import expect

from treelax.apps.demo.answers import answer
from treelax.apps.demo.messages import MOST_WORDS


def test_every_control(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS)
    page = visit.page
    before = visit.shows_its_state(source="random", text=WORDS)

    page.focus("#temperature")
    page.keyboard.press("Home")
    cold = visit.shows_its_state(temperature="0.01")
    assert page.inner_text("#temperature-value") == "0.0100"
    assert cold.soft != before.soft
    page.keyboard.press("End")
    visit.shows_its_state(temperature="100")
    page.fill("#temperature", "0")
    visit.shows_its_state(temperature="1")

    # as the model was trained, or as multiples of the spread of its scores
    page.uncheck("#relative")
    visit.shows_its_state(units="score", temperature="1", noise="1")
    page.check("#relative")
    relative = visit.shows_its_state(units="spread", temperature="0.2", noise="0.3")
    assert page.inner_text("#spread-value") == f"{relative.spread:.3g}"

    page.focus("#noise")
    page.keyboard.press("Home")
    quiet = visit.shows_its_state(noise="0")
    assert quiet.best == quiet.best_perturbed
    page.fill("#noise", "0.5")
    visit.shows_its_state(noise="12.5")
    assert page.inner_text("#noise-value") == "12.5"

    page.click("#resample")
    seed = page.input_value("#noise-seed")
    visit.shows_its_state(seed=seed)
    assert seed != "0"
    page.fill("#noise-seed", "77")
    visit.shows_its_state(seed="77")
    for wrong, used in (("-5", "77"), ("1e3", "1000"), ("12.9", "12"), ("", "12")):
        page.fill("#noise-seed", wrong)
        page.locator("#noise-seed").blur()
        assert page.input_value("#noise-seed") == used, wrong
        visit.shows_its_state(seed=used)

    page.check("input[name=relaxation][value=entropy]")
    visit.shows_its_state(relaxation="entropy")
    page.check("input[name=roots][value=single]")
    single = visit.shows_its_state(roots="single")
    assert heads_of(single.best).count(0) == 1

    page.click("#new-scores")
    eventually(lambda: "scores" in visit.state(), True)
    visit.shows_its_state()
    page.fill("#text", "dogs bark")
    visit.shows_its_state(text="dogs bark")
    page.fill("#text", WORDS)

    page.select_option("#source", "zero")
    assert page.is_hidden("#new-scores")
    visit.shows_its_state(source="zero", relaxation="softmax", roots="several")
    page.select_option("#source", "listops")
    expect(page.locator("#alert")).to_contain_text("this model reads ListOps only")
    page.get_by_role("button", name="Nested list").click()
    visit.shows_its_state(source="listops", text="[MAX 2 9 [MIN 4 [SM 7 3 ] ] 0 ]")
    page.select_option("#source", "english")  # an example makes room for another
    visit.shows_its_state(source="english", text=TELESCOPE)
    visit.refused("409")


def test_arcs_are_pinned_and_forbidden_by_clicks(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS, noise=0)
    page = visit.page
    reply = visit.shows_its_state(noise="0")
    page.click("#change summary")
    page.check("input[name=click][value=pin]")
    best = heads_of(reply.best)
    other = next(head for head in range(8) if head not in (3, best[2]))
    visit.click_cell("scores", other, 3)
    pinned = visit.shows_its_state(pinned=f"{other}-3", click="pin")
    assert pinned.best[2] == (other, 3)
    assert page.get_attribute("#pin", "aria-pressed") == "true"
    assert page.locator("#soft-arcs .arc.pinned").count() == 1
    visit.click_cell("soft", other, 3)  # once more: free
    visit.shows_its_state(pinned="")

    page.check("input[name=click][value=forbid]")
    head = best[0]
    visit.click_arc("best-arcs", head, 1)
    forbidden = visit.shows_its_state(forbidden=f"{head}-1")
    assert forbidden.best[0] != (head, 1)
    visit.choose(head, 1)
    assert page.input_value("#arc-score") == ""
    assert "forbidden" in page.inner_text("#readout")

    page.check("input[name=click][value=choose]")
    visit.click_cell("marginals", 2, 5)
    eventually(lambda: visit.state()["arc"], "2-5")
    assert page.input_value("#arc-head") == "2"
    assert page.inner_text("#readout").startswith("2 old → 5 a: score ")

    # a pinned head takes the place of another, and of a ban
    page.check("input[name=click][value=pin]")
    visit.click_cell("scores", best[6], 7)
    visit.click_cell("scores", head, 1)
    visit.shows_its_state(forbidden="", pinned=f"{best[6]}-7,{head}-1")
    chip = page.locator("#changes button").first
    assert "7 bird pinned" in chip.inner_text()
    chip.click()
    visit.shows_its_state(pinned=f"{head}-1")
    page.click("#free-all")
    visit.shows_its_state(pinned="")
    assert page.is_hidden("#changes-row")


def test_arcs_by_keyboard_and_by_the_form(visitor: Visitor) -> None:
    visit = visitor().open(source="zero", text="a b c", noise=0, arc="0-1")
    page = visit.page
    visit.shows_its_state(source="zero")
    page.click("#change summary")
    page.focus("#heat-scores")
    keys = page.keyboard
    keys.press("ArrowRight")
    keys.press("ArrowDown")
    eventually(lambda: visit.state()["arc"], "1-2")
    keys.press("ArrowDown")  # over what is no arc
    eventually(lambda: visit.state()["arc"], "3-2")
    keys.press("p")
    reply = visit.shows_its_state(pinned="3-2")
    assert reply.best[1] == (3, 2)
    keys.press("f")
    visit.shows_its_state(pinned="", forbidden="3-2")
    keys.press("Delete")
    visit.shows_its_state(forbidden="")
    keys.press("+")
    keys.press("+")
    visit.shows_its_state(edits="3-2:1")
    keys.press("-")
    visit.shows_its_state(edits="3-2:0.5")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "arc-score"
    page.fill("#arc-score", "4.25")
    reply = visit.shows_its_state(edits="3-2:4.25")
    assert reply.scores[3][2] == 4.25
    page.fill("#arc-score", "")
    visit.shows_its_state(edits="")

    # and by the form
    visit.choose(3, 1)
    page.click("#pin")
    visit.shows_its_state(pinned="3-1", arc="3-1")
    page.click("#forbid")
    visit.shows_its_state(pinned="", forbidden="3-1")
    page.fill("#arc-score", "-2")  # a score allows the arc again
    visit.shows_its_state(forbidden="", edits="3-1:-2")
    page.fill("#arc-score", "5e9")  # too large: the field shows the one in use
    page.locator("#arc-score").blur()
    assert page.input_value("#arc-score") == "1000000"
    visit.shows_its_state(edits="3-1:1000000")
    page.click("#free")
    visit.shows_its_state(edits="")
    assert page.locator("#arc-head option:disabled").all_text_contents() == ["1 a"]


def test_samples(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS, drawn=5)
    page = visit.page
    assert page.inner_text("#sample-facts") == "None drawn yet."
    page.click("#draw-1")
    visit.shows_its_state(samples="1")
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
    dots = re.findall(r"M(\S+) (\S+)h0", page.get_attribute("#scatter .dots", "d") or "")
    shown = [(round((float(x) - 38) / 200, 6), round(1 - (float(y) - 8) / 200, 6)) for x, y in dots]
    assert sorted(shown) == sorted((a, b) for a, b in pairs if a >= 0.001 or b)

    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    eventually(lambda: int(visit.state()["samples"]) >= 113, True)
    page.click("#play")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    visit.shows_its_state()
    page.click("#start-over")
    eventually(lambda: "samples" in visit.state(), False)
    assert visit.state()["drawn"] != "5"
    visit.shows_its_state()


def test_cells_have_the_colours_of_their_numbers(visitor: Visitor) -> None:
    visit = visitor(1500).open(source="random", text=WORDS, samples=30, forbidden="0-1", arc="7-1")
    reply = visit.shows_its_state(samples="30")
    # scores and noise less the mean of each column, on one scale; the gradient has its own
    centred = {
        name: [list(row) for row in zip(*map(less_mean, zip(*matrix, strict=True)), strict=True)]
        for name in ("scores", "noise", "perturbed")
        for matrix in [getattr(reply, name)]
    }
    assert reply.gradient is not None
    slopes = [[-(value or 0.0) for value in row] for row in reply.gradient]
    largest = dict.fromkeys(centred, max(map(largest_of, centred.values())))
    largest["gradient"] = max(
        largest_of(slopes), 5e-4 / reply.spread
    )  # what is smaller is shown as none
    matrices = {
        **centred,
        "gradient": slopes,
        "soft": reply.soft,
        "marginals": reply.marginals,
        "frequencies": reply.samples.frequencies,
    }
    # the cursor is on head 7 and word 1, from which all other cells follow
    wrong = visit.page.evaluate(
        """async ([matrices, largest]) => {
          const { scoreColour, shareColour } = await import("/static/colours.js");
          const wrong = [];
          for (const [name, rows] of Object.entries(matrices)) {
            const canvas = document.querySelector(`#heat-${name} canvas`);
            const cursor = document.querySelector(`#heat-${name} .cursor`);
            const cell = cursor.offsetWidth - 1;
            const left = cursor.offsetLeft + 1, top = cursor.offsetTop + 1 - 7 * cell;
            const context = canvas.getContext("2d");
            rows.forEach((row, head) => row.forEach((value, word) => {
              if (word === 0 || word === head || value === null) return;
              const x = left + (word - 0.5) * cell - 1, y = top + (head + 0.5) * cell - 1;
              const [r, g, b] = context.getImageData(x, y, 1, 1).data;
              const colour = name in largest
                ? scoreColour(value, largest[name], false) : shareColour(value, false);
              if (colour !== `rgb(${r}, ${g}, ${b})`) wrong.push([name, head, word, colour, r, g, b]);
            }));
          }
          return wrong;
        }""",
        [matrices, largest],
    )
    assert wrong == []
    # of reading colours, which only a test does
    visit.complaints[:] = [text for text in visit.complaints if "getImageData" not in text]


def less_mean(column: tuple[float | None, ...]) -> list[float | None]:
    given = [value for value in column if value is not None]
    mean = sum(given) / max(len(given), 1)
    return [None if value is None else value - mean for value in column]


def largest_of(matrix: list[list[float | None]]) -> float:
    return max(abs(value) for row in matrix for value in row if value is not None)


def test_scores_far_larger_than_the_noise(visitor: Visitor) -> None:
    """With noise and temperature as in training a line says that the scores are far larger."""
    visit = visitor().open(source="listops", text="[MAX 2 9 [MIN 4 7 ] 0 ]", units="score")
    page = visit.page
    reply = visit.shows_its_state(source="listops", noise="1")
    assert "Value 9." in page.inner_text("#said")
    assert page.locator("#tags .tag").all_text_contents() == ["4", "", "", "2", *[""] * 5]
    assert page.inner_text("#timing").startswith("9 words, drawn in ")
    assert page.is_hidden("#problem")
    spread = page.locator("#spread")
    scores = [score for row in reply.scores for score in row if score is not None]
    expect(spread).to_contain_text(f"Scores differ by up to {max(scores) - min(scores):.0f}, noise")
    # the slider goes far enough to see other trees, and then there is no line
    page.focus("#noise")
    page.keyboard.press("End")
    noisy = visit.shows_its_state(noise="100")
    assert noisy.best_perturbed != reply.best
    expect(spread).to_be_hidden()


def test_the_table_of_words(visitor: Visitor) -> None:
    visit = visitor().open(source="random", text=WORDS, samples=1)
    reply = visit.shows_its_state(samples="1")
    visit.page.click("#words summary")
    rows = visit.page.locator("#words tbody tr")
    expect(rows).to_have_count(7)
    cells = rows.nth(2).locator("th, td").all_text_contents()
    label = ["root", *(f"{place} {word}" for place, word in enumerate(WORDS.split(), 1))]
    column = [row[3] or 0.0 for row in reply.soft]
    head, _ = reply.best[2]
    assert cells == [
        "3",
        "cat",
        label[head],
        f"{reply.marginals[head][3]:.3f}",
        label[reply.best_perturbed[2][0]],
        label[column.index(max(column))],
        f"{max(column):.3f}",
        label[(reply.samples.last or [])[2][0]],
    ]


# ------------------------------------------------------------------ long texts


def test_only_the_heaviest_arcs_of_long_texts_are_drawn(visitor: Visitor) -> None:
    text = " ".join(f"w{i}" for i in range(1, MOST_WORDS + 1))
    visit = visitor().open(source="zero", text=text, noise=0, temperature=1)
    reply = answer(request_of(visit.state()), visit.sources)
    heavy = sorted((w for row in reply.soft for w in row if w and w >= LEAST_WEIGHT), reverse=True)
    drawn = visit.arcs("soft-arcs")
    assert sorted(drawn.values(), reverse=True) == heavy[:600]
    assert all(weight == reply.soft[head][word] for (head, word), weight in drawn.items())
    assert visit.page.inner_text("#soft-facts").startswith(f"The {len(heavy) - 600} lightest ")
    assert len(visit.arcs("best-arcs", ".arc:not(.below)")) == MOST_WORDS
