"""Pictures as SVG that stand alone: no script, text as text, for light and dark pages.

A file, or an image in a page, has a background of its own that follows the reader's choice of light
or dark. Put into a page as elements, a picture has none: its text takes the colour of the page, and
its lines have colours that can be seen on both. Rules of style are bound to the root of a document,
so that they touch nothing else in such a page, and there are no names that two pictures could share.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path

from treelax.errors import BackendError, InputError
from treelax.files import atomic_write

__all__ = [
    "Picture",
    "clean",
    "draw_note",
    "number",
    "stack_pictures",
    "text_element",
    "text_width",
]

# of Okabe and Ito, as in curves, for light and for dark pages
COLOURS = {
    "blue": ("#0072B2", "#56B4E9"),
    "vermillion": ("#D55E00", "#E69F00"),
    "green": ("#009E73", "#2FBF96"),
    "grey": ("#767676", "#9A9A9A"),
}
INK, PAPER = ("#1A1A1A", "#E6E6E6"), ("#FFFFFF", "#16181C")  # light and dark
NOTE, NOTE_MARGIN, NOTE_LONGEST = 13.0, 16.0, 200  # size of a note, around it, its characters
CONVERTER = "rsvg-convert"
CONVERTED = {"png": ["--zoom=2", f"--background-color={PAPER[0]}"], "pdf": []}
# what XML cannot hold, and what would turn the direction of all that follows
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NARROW, _WIDE = frozenset("!'(),.:;I[]`fijlrt|{}/\\ "), frozenset("%@MWmw")


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
        description: the same in full, for those who hear it read.

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

    def svg(self) -> str:
        """The drawing as SVG; equal drawings give equal text.

        Returns:
            The ``<svg>`` element, with its text as text and without a script.

        Example:
            >>> "<script" in Picture(1, 1, "", "<script>", "").svg()
            False
        """
        width, height = number(self.width), number(self.height)
        title, description = clean(self.title), clean(self.description)
        # two pictures in a page must not share a name, and none may change from day to day
        name = "treelax-" + sha256(f"{self.body}{title}{description}".encode()).hexdigest()[:10]
        about = f'<title id="{name}-title">{title}</title>'
        labelled = f"{name}-title"
        if description:
            about += f'<desc id="{name}-desc">{description}</desc>'
            labelled += f" {name}-desc"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="treelax" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            f'aria-labelledby="{labelled}" fill="currentColor" '
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

        Returns:
            The path.

        Raises:
            InputError: the name ends otherwise.
            BackendError: rsvg-convert is needed and not installed, or fails.
            DataError: the file cannot be written.

        Example:
            >>> import tempfile
            >>> picture = Picture(20, 10, "", "nothing", "")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     picture.save(Path(folder, "one.svg")).read_text() == picture.svg()
            True
        """
        file = Path(path)
        kind = file.suffix.lower().removeprefix(".")
        if kind != "svg" and kind not in CONVERTED:
            raise InputError(
                f"{file}: received the suffix {file.suffix!r}; expected .svg, .png or .pdf"
            )
        data = self.svg().encode()
        if kind != "svg":
            data = _converted(data, kind, file)
        with atomic_write(file) as out:
            out.write(data)
        return file


def stack_pictures(pictures: Sequence[Picture], *, title: str | None = None) -> Picture:
    """Put pictures above each other, flush left.

    Args:
        pictures: from top to bottom.
        title: of the whole, which is not drawn; by default those of the pictures.

    Returns:
        One picture.

    Raises:
        InputError: there are none.

    Example:
        >>> one = Picture(20, 10, "", "one", "")
        >>> both = stack_pictures([one, one])
        >>> both.width, both.height, both.title
        (20, 20.0, 'one; one')
    """
    if not pictures:
        raise InputError("pictures: received none; expected at least one")
    if len(pictures) == 1 and title is None:
        return pictures[0]
    parts, y = [], 0.0
    for picture in pictures:
        parts.append(f'<g transform="translate(0 {number(y)})">\n{picture.body}\n</g>')
        y += picture.height
    return Picture(
        max(picture.width for picture in pictures),
        y,
        "\n".join(parts),
        "; ".join(picture.title for picture in pictures) if title is None else title,
        " ".join(picture.description for picture in pictures if picture.description),
    )


def draw_note(text: str) -> Picture:
    """A line of text as a picture, to stand between others.

    Args:
        text: the line, shown to its first 200 characters.

    Returns:
        The picture.

    Example:
        >>> draw_note("15 others").title
        '15 others'
    """
    element = text_element(
        *(NOTE_MARGIN, NOTE_MARGIN + NOTE), text, size=NOTE, anchor="start", longest=NOTE_LONGEST
    )
    width = text_width(text, NOTE, NOTE_LONGEST) + 2 * NOTE_MARGIN
    return Picture(width, NOTE + 2 * NOTE_MARGIN, element, text, "")


def _converted(data: bytes, kind: str, file: Path) -> bytes:
    program = shutil.which(CONVERTER)
    if program is None:
        raise BackendError(
            f"{file}: .{kind} needs the program {CONVERTER} (of librsvg), which is not installed; "
            "install it, or save as .svg"
        )
    done = subprocess.run(
        [program, f"--format={kind}", *CONVERTED[kind]],
        input=data,
        capture_output=True,
        check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": "0"},  # else a PDF holds the time of day
    )
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it gave nothing"]
        raise BackendError(
            f"{file}: was not written, {CONVERTER} failed ({said[0]}); save as .svg instead"
        )
    return done.stdout


# ------------------------------------------------------------------ parts of a drawing


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
    return escape(_FORBIDDEN.sub("�", _TURNING.sub("", text)))


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
