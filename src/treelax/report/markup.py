"""HTML that is escaped by construction: text becomes markup through these functions alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from treelax.pictures.svg_text import clean
from treelax.table import Table, cell_text, looks_like_number

__all__ = ["Html", "join", "scroller", "table", "tag"]

VOID = frozenset({"img", "input", "link", "meta"})
_SPACES = re.compile(r"[\t\n\r\f\v]+")


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | int | bool | None) -> Html:
    """An element; children and attributes that are not `Html` are escaped."""
    parts = [name]
    for key, value in attributes.items():
        written = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(written)
        elif value is not None and value is not False:
            parts.append(f'{written}="{_escaped(str(value))}"')
    start = f"<{' '.join(parts)}>"
    if name in VOID:
        return Html(start)
    return Html(f"{start}{join(children)}</{name}>")


def join(parts: Iterable[str | None], between: str = "") -> Html:
    """Texts and elements one after the other; texts are escaped."""
    return Html(between.join(_escaped(part) for part in parts if part is not None))


def scroller(content: Html, label: str) -> Html:
    """A box that scrolls where its content is too wide, so that the page does not."""
    return tag("div", content, class_="scroll", data_label=label)


def table(content: Table, *, markers: Sequence[str] = ()) -> Html:
    """A table with its title above and its note below; columns of numbers are flush right.

    Args:
        content: whole numbers are grouped by thousands, other numbers get two decimals.
        markers: a class for each row, or none at all.

    Returns:
        A figure that holds the table.

    Example:
        >>> print(table(Table(["run", "UAS"], [["a", 50.0]], "T")))
        <figure class="table"><figcaption>T</figcaption><div class="scroll" data-label="T">\
<table aria-label="T"><thead><tr><th scope="col">run</th><th scope="col" class="number">UAS</th>\
</tr></thead><tbody><tr><th scope="row">a</th><td class="number">50.00</td></tr></tbody></table>\
</div></figure>
    """
    texts = [[cell_text(cell) for cell in row] for row in content.rows]
    columns = zip(*texts, strict=True) if texts else [() for _ in content.columns]
    kinds = [
        "number" if i and all(map(looks_like_number, column)) else None
        for i, column in enumerate(columns)
    ]
    head = [
        tag("th", name, scope="col", class_=kind)
        for name, kind in zip(content.columns, kinds, strict=True)
    ]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, class_=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)),
            class_=marker or None,
        )
        for row, marker in zip(texts, markers or [""] * len(texts), strict=True)
    ]
    whole = tag(
        "table", tag("thead", tag("tr", *head)), tag("tbody", *body), aria_label=content.title
    )
    # not a caption, which would be no wider than a narrow table and scroll with a wide one
    title = tag("figcaption", content.title)
    note = None if content.note is None else tag("p", content.note, class_="note")
    return tag("figure", title, scroller(whole, content.title), note, class_="table")


def _escaped(text: str) -> str:
    return text if isinstance(text, Html) else clean(_SPACES.sub(" ", text))
