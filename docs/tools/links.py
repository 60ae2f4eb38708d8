"""Links of Markdown pages and of built HTML pages, and what they lead to; no network is used.

Sources are judged as a repository host shows them: a relative link leads to a file, and what follows
``#`` is the anchor of one of its headings. The slugs are those of the site too (see ``zensical.toml``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(<?([^()<>\s]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
EXPLICIT = re.compile(r"<a\s[^>]*\b(?:id|name)=\"([^\"]+)\"")
SLUG_DROPS = re.compile(r"[^\w\- ]")
# what a browser fetches by itself when it shows a page
FETCHED = {
    ("audio", "src"),
    ("embed", "src"),
    ("iframe", "src"),
    ("image", "href"),
    ("img", "src"),
    ("object", "data"),
    ("script", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("track", "src"),
    ("use", "href"),
    ("video", "src"),
}
FETCHED_RELATIONS = {
    *("stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest"),
    *("preconnect", "dns-prefetch"),
}
CSS_ADDRESS = re.compile(r"(?:url\(|@import\s+)\s*['\"]?((?:https?:)?//[^'\")\s;]+)")


@dataclass(frozen=True)
class Link:
    """A link of a page.

    Attributes:
        target: as written.
        line: counted from 1.
    """

    target: str
    line: int

    @property
    def is_external(self) -> bool:
        """Whether it leads out of the repository or the site."""
        return bool(urlsplit(self.target).scheme) or self.target.startswith("//")

    @property
    def path(self) -> str:
        """What stands before ``#``."""
        return unquote(self.target.partition("#")[0])

    @property
    def anchor(self) -> str:
        """What stands behind ``#``."""
        return unquote(self.target.partition("#")[2])


def marked_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of a page with their numbers, and whether they are outside blocks of code."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        yield number, line, not fence and not match
        if not fence:
            fence = match[1] if match else ""
        elif match and match[1].startswith(fence) and line.strip() == match[1]:
            fence = ""


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside blocks of code, with their numbers."""
    return ((number, line) for number, line, is_prose in marked_lines(text) if is_prose)


def markdown_links(text: str) -> list[Link]:
    """The links and pictures of a page, not those in code."""
    return [
        Link(match[1], number)
        for number, line in prose(text)
        for match in LINK.finditer(INLINE_CODE.sub("", line))
    ]


def slug(heading: str) -> str:
    """The anchor of a heading."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = unicodedata.normalize("NFC", re.sub(r"[`*]", "", text)).strip().lower()
    return SLUG_DROPS.sub("", text).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """All anchors of a page; of headings with the same words only the first has one."""
    names = set()
    for _, line in prose(text):
        names |= set(EXPLICIT.findall(line))
        if heading := HEADING.match(line):
            names.add(slug(heading[1]))
    return names


def broken_markdown_links(page: Path, root: Path) -> list[str]:
    """What is wrong with the links of a page, a line each.

    Args:
        page: the file.
        root: of the repository, which no link may leave.
    """
    wrong = []
    for link in markdown_links(page.read_text(encoding="utf-8")):
        if link.is_external:
            continue
        where = f"{page.relative_to(root)}, line {link.line}: {link.target}"
        target = (page.parent / link.path).resolve() if link.path else page
        if not target.is_relative_to(root):
            wrong.append(f"{where} leads out of the repository")
        elif not target.exists():
            wrong.append(f"{where} does not exist")
        elif (
            link.anchor
            and target.suffix == ".md"
            and link.anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            wrong.append(f"{where}: no such heading")
    return wrong


class _Page(HTMLParser):
    """Anchors, links and fetched addresses of a built page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.links: list[Link] = []
        self.fetched: list[Link] = []
        self.styles: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line = self.getpos()[0]
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "name" in values:
            self.anchors.add(values["name"])
        if "style" in values:
            self.styles.append(values["style"])
        if tag == "a" and "href" in values:
            self.links.append(Link(values["href"], line))
        if tag == "link" and FETCHED_RELATIONS & set(values.get("rel", "").split()):
            self.fetched.append(Link(values.get("href", ""), line))
        for name in ("src", "srcset", "href", "data"):
            if (tag, name) in FETCHED and name in values:
                for part in values[name].split(",") if name == "srcset" else [values[name]]:
                    self.fetched.append(Link(part.split()[0] if part.split() else "", line))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.styles.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def read_site(site: Path) -> dict[Path, _Page]:
    """All HTML pages of a built site."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        parser = _Page()
        parser.feed(path.read_text(encoding="utf-8"))
        pages[path] = parser
    return pages


def broken_site_links(site: Path) -> list[str]:
    """What is wrong with a built site, a line each: links, anchors, anything fetched from elsewhere."""
    site = site.resolve()
    pages = read_site(site)
    wrong = []
    for path, page in pages.items():
        for link in page.fetched:
            if link.is_external and not link.target.startswith("data:"):
                wrong.append(f"{path.relative_to(site)}, line {link.line}: fetches {link.target}")
        for text in page.styles:
            wrong += [f"{path.relative_to(site)}: fetches {a}" for a in CSS_ADDRESS.findall(text)]
        for link in (*page.links, *page.fetched):
            # the page for addresses that do not exist has absolute links: it may be shown anywhere
            if link.is_external or not link.target or path.name == "404.html":
                continue
            where = f"{path.relative_to(site)}, line {link.line}: {link.target}"
            target = (path.parent / link.path.partition("?")[0]).resolve() if link.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{where} does not exist")
            elif link.anchor and target in pages and link.anchor not in pages[target].anchors:
                wrong.append(f"{where}: no such anchor")
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        wrong += [f"{path.relative_to(site)}: fetches {a}" for a in CSS_ADDRESS.findall(text)]
    return wrong
