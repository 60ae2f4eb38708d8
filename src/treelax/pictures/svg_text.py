"""Text and numbers as SVG has them, and about how wide a text is."""

from __future__ import annotations

import re
import unicodedata
from html import escape

__all__ = [
    "clean",
    "is_right_to_left",
    "number",
    "text_element",
    "text_width",
    "title_element",
    "without_control",
]

# what XML cannot hold, and what would turn the direction of all that follows
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROW, _WIDE = frozenset("!'(),.:;I[]`fijlrt|{}/\\ "), frozenset("%@MWmw")
LONGEST, TITLE_LONGEST = 32, 200  # characters of a word and of a title that are shown


def number(value: float) -> str:
    """A number as SVG has it, to a hundredth of a pixel.

    Example:
        >>> number(2.0), number(-0.001), number(1 / 3)
        ('2', '0', '0.33')
    """
    return f"{round(value, 2) + 0:.2f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    """A text as it may stand in SVG: markup is text, and nothing in it that XML cannot hold.

    Example:
        >>> clean("<b> & \\x00")
        '&lt;b&gt; &amp; �'
    """
    return escape(without_control(text))


def without_control(text: str) -> str:
    """A text without what XML cannot hold, or would turn the direction of what follows."""
    return _FORBIDDEN.sub("�", _TURNING.sub("", text))


def text_element(
    x: float,
    y: float,
    text: str,
    *,
    size: float,
    anchor: str = "middle",
    attributes: str = "",
    longest: int = LONGEST,
) -> str:
    """A ``<text>`` element of its own for a word, so that no word turns the direction of another.

    It is cut after ``longest`` characters and then has the whole as its tooltip. An anchor "start" is
    the left end, "end" the right one, also for text from right to left.

    Example:
        >>> text_element(5, 9, "a<b", size=12)
        '<text x="5" y="9" font-size="12" text-anchor="middle">a&lt;b</text>'
    """
    whole, text = text, _shortened(text, longest)
    if is_right_to_left(text):
        attributes = f'{attributes} direction="rtl" unicode-bidi="isolate"'.strip()
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
    more = f" {attributes}" if attributes else ""
    tip = "" if whole == text else f"<title>{clean(whole)}</title>"
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" '
        f'text-anchor="{anchor}"{more}>{tip}{clean(text)}</text>'
    )


def title_element(x: float, y: float, title: str, size: float) -> str:
    """The title of a picture, from its left edge."""
    bold = 'font-weight="600"'
    return text_element(
        x, y, title, size=size, anchor="start", attributes=bold, longest=TITLE_LONGEST
    )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def is_right_to_left(text: str) -> bool:
    """Whether a text runs from right to left: its first letter says so.

    Example:
        >>> is_right_to_left("שלום"), is_right_to_left("(peace)")
        (True, False)
    """
    for character in text:
        match unicodedata.bidirectional(character):
            case "R" | "AL":
                return True
            case "L":
                return False
    return False


def text_width(text: str, size: float, longest: int = LONGEST) -> float:
    """About how wide a text is in a wide sans-serif font, as the reader's font is not known."""
    width = 0.0
    for character in _shortened(text, longest):
        if unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        if unicodedata.east_asian_width(character) in "WF":
            width += 1.1
        elif character in _NARROW:
            width += 0.42
        elif character in _WIDE:
            width += 0.98
        else:
            width += 0.72 if character.isupper() else 0.64
    return width * size
