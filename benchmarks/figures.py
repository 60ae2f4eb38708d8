"""Puts the figures of the newest results into the README and the pages of docs/, between markers.

    python benchmarks/figures.py            rewrite them
    python benchmarks/figures.py --check    exit 1 if one is not what the results say

What stands between the markers of a name is made by the template of that name in ``sections/``; no
figure there is typed by hand. Links in templates are relative to the repository.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from jinja2 import TemplateNotFound

from benchmarks import records, runs
from benchmarks.records import ROOT

SECTIONS = records.templates(**runs.FUNCTIONS)
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "results" / "listops" / "README.md",
)


def section(name: str, folder: Path) -> str:
    """A section, with links as a page in a folder has them."""
    text = records.markdown(SECTIONS.get_template(f"{name}.md").render())
    link = r"\]\(([^):#]+)(#[^)]*)?\)"
    return re.sub(link, lambda m: f"]({os.path.relpath(ROOT / m[1], folder)}{m[2] or ''})", text)


def filled(page: Path) -> str:
    """A page with every section made anew."""

    def fill(match: re.Match[str]) -> str:
        try:
            return f"{match[1]}{section(match[2], page.parent)}\n{match[3]}"
        except TemplateNotFound as error:
            sys.exit(f"{page.name}: no figures {match[2]!r}; expected {error} in sections/")

    pattern = r"(<!-- figures: (\S+) -->\n).*?(<!-- end figures: \2 -->)"
    return re.sub(pattern, fill, page.read_text(encoding="utf-8"), flags=re.DOTALL)


def main() -> int:
    """Rewrite or check."""
    parser = argparse.ArgumentParser(description="Write the figures of the results into the pages.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page is old"
    )
    check = parser.parse_args().check
    new = {page: filled(page) for page in PAGES}
    stale = [page for page in PAGES if new[page] != page.read_text(encoding="utf-8")]
    for page in stale:
        name = page.relative_to(ROOT)
        if check:
            print(f"{name} is not what the results say", file=sys.stderr)
        else:
            page.write_text(new[page], encoding="utf-8")
            print(f"written: {name}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
