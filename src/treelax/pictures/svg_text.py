"""Text and numbers as SVG has them, and about how wide a text is."""

from __future__ import annotations

import re
import unicodedata
from html import escape

__all__ = ["clean", "is_right_to_left", "number", "shortened", "text_element", "text_width"]

# what XML cannot hold, and what would turn the direction of all that follows
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROW, _WIDE = frozenset("!'(),.:;I[]`fijlrt|{}/\\ "), frozenset("%@MWmw")


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
    longest: int = 32,
) -> str:
    """A ``<text>`` element of its own for a word, so that no word turns the direction of another.

    Args:
        x: where it begins, has its middle or ends, by ``anchor``.
        y: of the base line.
        text: shown to its first ``longest`` characters; the whole is told on demand.
        size: of the font.
        anchor: "start" (left), "middle" or "end" (right), also for text from right to left.
        attributes: more of them, as SVG.
        longest: characters to show.

    Returns:
        The element.

    Example:
        >>> text_element(5, 9, "a<b", size=12)
        '<text x="5" y="9" font-size="12" text-anchor="middle">a&lt;b</text>'
    """
    whole = text
    text = shortened(text, longest)
    if is_right_to_left(text):
        attributes = f'{attributes} direction="rtl" unicode-bidi="isolate"'.strip()
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
    more = f" {attributes}" if attributes else ""
    tip = "" if whole == text else f"<title>{clean(whole)}</title>"
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" '
        f'text-anchor="{anchor}"{more}>{tip}{clean(text)}</text>'
    )


def shortened(text: str, longest: int = 32) -> str:
    """The first characters of a text, with a sign if there are more.

    Example:
        >>> shortened("elephants", 5)
        'elep…'
    """
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


def text_width(text: str, size: float, longest: int = 32) -> float:
    """About how wide a text is in a wide sans-serif font: which one there will be is not known.

    Example:
        >>> text_width("iii", 10) < text_width("www", 10)
        True
    """
    width = 0.0
    for character in shortened(text, longest):
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
