"""Pictures as SVG that stand alone: no script, text as text, for light and dark pages.

A file, or an image in a page, has a background, which follows the reader's light or dark mode.
Inside a page a picture has none: its text has the colour of the page, and its lines can be seen on
both. Style rules are bound to the root of a document, so they affect nothing else in such a page.
"""

from __future__ import annotations

import os
import re
import subprocess
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from treelax.apps.pictures.style import COLOURS, INK, PAPER
from treelax.errors import BackendError, InputError
from treelax.files import atomic_write

NOTE, NOTE_MARGIN = 13.0, 16.0  # size of a note, and around it
# what XML cannot hold, and what would turn the direction of all that follows
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROW, _WIDE = frozenset("!'(),.:;I[]`fijlrt|{}/\\ "), frozenset("%@MWmw")
LONGEST, TITLE_LONGEST = 32, 200  # characters of a word and of a title that are shown


def _style() -> str:
    dark = "".join(
        f"svg.treelax:root .treelax-{name}{{color:{colours[1]}}}"
        for name, colours in COLOURS.items()
    )
    return (
        f"svg.treelax:root{{color:{INK[0]}}}svg.treelax:root .treelax-paper{{fill:{PAPER[0]}}}"
        f"@media (prefers-color-scheme:dark){{svg.treelax:root{{color:{INK[1]}}}"
        f"svg.treelax:root .treelax-paper{{fill:{PAPER[1]}}}"
        f"svg.treelax:root .treelax-on{{fill:{PAPER[1]}}}{dark}}}"
    )


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG, to be saved, put into a page or shown in a notebook.

    Attributes:
        width: in pixels.
        height: in pixels.
        body: the elements, as SVG.
        title: what it shows, in a few words.
        description: the same in full, for screen readers.
        drawing: the words and lines, if it is of a tree: `align_pictures` draws them anew.

    Example:
        >>> picture = Picture(20, 10, "<path d='M0 5H20' stroke='currentColor'/>", "a line", "")
        >>> picture.svg().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        True
    """

    width: float
    height: float
    body: str
    title: str
    description: str
    drawing: Any = field(default=None, compare=False, repr=False)

    def svg(self) -> str:
        """The ``<svg>`` element, with text as text and without a script; equal drawings, equal text."""
        width, height = number(self.width), number(self.height)
        role, about = spoken(self.title, self.description, self.body)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="treelax" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" {role} fill="currentColor" '
            "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n"
            f"{about}\n<style>{_style()}</style>\n"
            f'<rect class="treelax-paper" width="{width}" height="{height}" fill="none"/>\n'
            f"{self.body}\n</svg>\n"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a file, whole or not at all; equal drawings give equal bytes.

        Args:
            path: ends in ``.svg``, or in ``.png`` or ``.pdf`` where the program rsvg-convert (of
                librsvg) is installed; replaced if it exists.
        """
        data = self.svg().encode()
        return save(path, lambda kind: data if kind == "svg" else _converted(data, kind))


def save(path: str | os.PathLike[str], render: Callable[[str], bytes]) -> Path:
    """Write what ``render`` makes of the kind that the suffix names, whole or not at all."""
    file = Path(path)
    kind = file.suffix.lower()[1:]
    if kind not in ("svg", "png", "pdf"):
        raise InputError(
            f"{file}: received the suffix {file.suffix!r}; expected .svg, .png or .pdf"
        )
    data = render(kind)
    with atomic_write(file) as out:
        out.write(data)
    return file


def spoken(title: str, description: str, body: str) -> tuple[str, str]:
    """What screen readers read: attributes of ``<svg>``, and its first elements."""
    title, description = clean(title), clean(description)
    # two pictures in a page must not share a name, and none may change from day to day
    name = "treelax-" + sha256(f"{body}{title}{description}".encode()).hexdigest()[:10]
    about, labelled = f'<title id="{name}-title">{title}</title>', f"{name}-title"
    if description:
        about += f'<desc id="{name}-desc">{description}</desc>'
        labelled += f" {name}-desc"
    return f'role="img" aria-labelledby="{labelled}"', about


def draw_note(text: str) -> Picture:
    """A line of text as a picture, to stand between others; cut after 200 characters."""
    at = NOTE_MARGIN, NOTE_MARGIN + NOTE
    element = text_element(*at, text, size=NOTE, anchor="start", longest=TITLE_LONGEST)
    width = text_width(text, NOTE, TITLE_LONGEST) + 2 * NOTE_MARGIN
    return Picture(width, NOTE + 2 * NOTE_MARGIN, element, text, "")


def _converted(data: bytes, kind: str) -> bytes:
    options = ["--zoom=2", f"--background-color={PAPER[0]}"] if kind == "png" else []
    command = ["rsvg-convert", f"--format={kind}", *options]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}  # else a PDF holds the time of day
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=True, env=environment)
    except FileNotFoundError:
        needed = "rsvg-convert (of librsvg), which is not installed"
        raise BackendError(f".{kind} needs the program {needed}; save as .svg instead") from None
    except subprocess.CalledProcessError as error:
        message = error.stderr.decode(errors="replace").strip()
        raise BackendError(f"rsvg-convert failed ({message}); save as .svg instead") from error
    return done.stdout


def number(value: float) -> str:
    """A number as SVG has it, to a hundredth of a pixel: ``2``, ``0.33``."""
    return f"{round(value, 2) + 0:.2f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    """A text as it may stand in SVG: markup is text, and nothing in it that XML cannot hold."""
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
    """A ``<text>`` element, cut after ``longest`` characters, with the whole text as its tooltip.

    An anchor "start" is the left end, "end" the right one, also for text from right to left.
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
    """Whether a text runs from right to left: its first letter says so."""
    directions = (unicodedata.bidirectional(character) for character in text)
    return next((d for d in directions if d in ("R", "AL", "L")), "L") != "L"


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
