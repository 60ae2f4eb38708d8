"""Puts the figures of the newest results into the README and the pages of docs/, between markers.

    python benchmarks/figures.py            rewrite them
    python benchmarks/figures.py --check    exit 1 if one is not what the results say

No figure between markers is typed by hand.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.figures_docs import MORE_SECTIONS
from benchmarks.figures_estimators import ESTIMATOR_SECTIONS
from benchmarks.figures_gradients import GRADIENT_SECTIONS
from benchmarks.figures_readme import README_SECTIONS
from benchmarks.figures_records import LISTOPS, RECORD_SECTIONS, ROOT
from benchmarks.figures_text import TEXT_SECTIONS
from benchmarks.figures_trials import TRIAL_SECTIONS

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), LISTOPS / "README.md")


def sections() -> dict[str, Callable[[], str]]:
    """What makes each section, by the name in its markers; links are relative to the repository."""
    return {
        **RECORD_SECTIONS,
        **MORE_SECTIONS,
        **ESTIMATOR_SECTIONS,
        **GRADIENT_SECTIONS,
        **README_SECTIONS,
        **TEXT_SECTIONS,
        **TRIAL_SECTIONS,
    }


def seen_from(folder: Path, text: str) -> str:
    """Links that are relative to the repository, as a page in a folder must write them."""
    return re.sub(r"\]\(([^):#]+)\)", lambda m: f"]({os.path.relpath(ROOT / m[1], folder)})", text)


def filled(page: Path) -> str:
    """A page with every section made anew."""
    text = page.read_text(encoding="utf-8")
    make = sections()

    def section(match: re.Match[str]) -> str:
        name = match[2]
        if name not in make:
            sys.exit(f"{page.name}: no figures {name!r}; expected one of {', '.join(make)}")
        return f"{match[1]}{seen_from(page.parent, make[name]())}\n{match[3]}"

    pattern = r"(<!-- figures: (\S+) -->\n).*?(<!-- end figures: \2 -->)"
    return re.sub(pattern, section, text, flags=re.DOTALL)


def main() -> int:
    """Rewrite or check."""
    parser = argparse.ArgumentParser(description="Write the figures of the results into the pages.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page is old"
    )
    check = parser.parse_args().check
    new = {page: filled(page) for page in PAGES}
    stale = [page for page in PAGES if new[page] != page.read_text(encoding="utf-8")]
    if check:
        for page in stale:
            print(f"{page.relative_to(ROOT)} is not what the results say", file=sys.stderr)
        return int(bool(stale))
    for page in stale:
        page.write_text(new[page], encoding="utf-8")
        print(f"written: {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
