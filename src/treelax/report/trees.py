"""Pictures of trees inside a page: what all of them share stands in the style of the page."""

from __future__ import annotations

from treelax.pictures.svg import COLOURS, Picture
from treelax.pictures.svg_text import number
from treelax.report.markup import Html, join, scroller, tag

__all__ = ["inline_picture"]

# attributes that many elements have alike, and the class that stands for them in the style sheet
FACTORED = {
    **{f' color="{light}" fill="currentColor"': "" for light, _ in COLOURS.values()},
    ' fill="none" stroke="currentColor" stroke-width="1.8"': ' class="arc"',
    ' font-size="16" text-anchor="middle"': ' class="word"',
    ' font-size="12" text-anchor="middle" opacity="0.75"': ' class="tag"',
    ' font-size="11" text-anchor="middle"': ' class="label"',
}


def inline_picture(picture: Picture, name: str, title: str) -> Html:
    """A picture in a box that scrolls."""
    body = picture.body
    # texts have no quotation marks of their own, so that nothing else can look like this
    for attributes, short in FACTORED.items():
        body = body.replace(attributes, short)
    width, height = number(picture.width), number(picture.height)
    drawn = tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", picture.description, id=f"{name}-desc"),
        Html(body),
        class_="treelax",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    return scroller(join([drawn]), title)
