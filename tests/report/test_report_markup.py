"""Nothing of a user's becomes markup, whatever it is."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from treelax.report.markup import Html, join, scroller, table, tag
from treelax.table import Table

TEXTS = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["<script>alert(1)</script>", "</style>", "<!--", "&lt;", "\"'", "\u202e", "\ud800", "a\nb"]
)


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[str | None] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.values += [value for _, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@given(TEXTS, TEXTS)
def test_texts_stay_texts(child: str, value: str) -> None:
    element = tag("p", child, title=value)
    seen = Seen(element)
    assert seen.tags == ["p"]
    assert len(seen.values) == 1
    element.encode()  # what is no character has gone
    for given_text, shown in ((child, seen.text), (value, seen.values[0] or "")):
        if given_text.isprintable():
            assert shown == given_text


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=3), TEXTS)
def test_tables_stay_tables(rows: list[list[str]], title: str) -> None:
    made = table(Table(["a", "b"], rows, title, title))
    assert Seen(made).tags == [
        *("figure", "figcaption", "div", "table", "thead", "tr", "th", "th", "tbody"),
        *(["tr", "th", "td"] * len(rows)),
        "p",
    ]


def test_what_is_markup_is_not_escaped_again() -> None:
    assert tag("b", Html("&lt;")) == "<b>&lt;</b>"
    assert join([tag("i", "<"), "<", None], Html(" ")) == "<i>&lt;</i> &lt;"
    assert scroller(tag("b", "x"), '"') == '<div class="scroll" data-label="&quot;"><b>x</b></div>'
    assert tag("input", type="text", disabled=True, hidden=False, value=None) == (
        '<input type="text" disabled>'
    )


def test_columns_of_numbers_are_flush_right() -> None:
    rows = [["a", "99.1 ± 0.2", "x", 1234], ["b", "–", "1", None]]
    made = table(Table(["run", "n", "text", "count"], rows, "t"), markers=["changed", ""])
    assert made.count('class="number"') == 6  # two columns of three cells
    assert '<tr class="changed"><th scope="row">a</th>' in made
    assert ">1,234<" in made
