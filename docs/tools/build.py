"""Builds the site: gathers the pages, runs zensical, and looks whether everything it links to is there.

    python -m docs.tools.build

Pages of ``docs/`` link to files elsewhere in the repository: tables of results, the README of a
folder, examples. So all that they lead to is gathered in ``build/docs`` first, with links that fit
there; zensical makes ``site/`` of it. The code of some pages is run on the way. Any warning, broken
link or address on another machine ends the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from docs.tools.execute import executed
from docs.tools.links import (
    INLINE_CODE,
    LINK,
    Link,
    broken_site_links,
    markdown_links,
    marked_lines,
)

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / "build" / "docs"
SITE = ROOT / "site"
ASSETS = ("*.css", "*.js", "*.svg", "*.png", "fonts/*")
CODE = {".py": "python", ".toml": "toml"}
EXECUTED = (Path("docs/first-look.md"), Path("docs/three-ways.md"))
REPOSITORY = "<!-- repository -->"  # where a link to the repository goes, once its address is known
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^()\s]+)\.png\)")


def place(path: Path) -> Path:
    """Where a file of the repository stands on the site.

    Args:
        path: relative to the repository.
    """
    if path == Path("README.md"):
        return Path("index.md")
    if path.parts[0] == "docs":
        return Path(*path.parts[1:])
    if path.name == "README.md":  # under that name it would be taken for the start of a section
        return path.with_name("about.md")
    return path.with_suffix(".md") if path.suffix in CODE else path


def moved(page: Path, link: Link) -> str:
    """A link of a page as it must read on the site.

    Args:
        page: relative to the repository.
        link: of that page.
    """
    if link.is_external or not link.path:
        return link.target
    target = Path(os.path.normpath(page.parent / link.path))
    if not (ROOT / target).is_file():
        sys.exit(f"{page}, line {link.line}: {link.target} is no file of the repository")
    path = os.path.relpath(place(target), place(page).parent)
    return path + (f"#{link.anchor}" if link.anchor else "")


def rewritten(page: Path, text: str) -> str:
    """The page with its links moved; code is left alone."""
    lines = []
    for number, line, is_prose in marked_lines(text):
        if is_prose:
            line = _moved_in_line(page, line, number)
            line = IMAGE.sub(lambda match: _light_and_dark(page, match), line)
            if line.startswith("|"):  # a figure and its spread stay on one line
                line = line.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        lines.append(line)
    return "\n".join([*lines, ""])


def _light_and_dark(page: Path, image: re.Match[str]) -> str:
    """Both versions of a picture that has one for dark pages; the theme shows the one that fits."""
    text, stem = image.groups()
    if not (ROOT / page.parent / f"{stem}-dark.png").is_file():
        return image[0]
    return f"![{text}]({stem}.png#only-light) ![{text}]({stem}-dark.png#only-dark)"


def repository_link() -> str:
    """A button, if ``pyproject.toml`` names the repository among its addresses."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        address = tomllib.load(file)["project"].get("urls", {}).get("Repository")
    return f"[Repository]({address}){{ .md-button }}" if address else ""


def _moved_in_line(page: Path, line: str, number: int) -> str:
    code = [span.span() for span in INLINE_CODE.finditer(line)]

    def replace(match: re.Match[str]) -> str:
        if any(start < match.start() < end for start, end in code):
            return match[0]
        return match[0].replace(match[1], moved(page, Link(match[1], number)), 1)

    return LINK.sub(replace, line)


def staged(path: Path) -> str | bytes:
    """What stands on the site for a file of the repository, relative to it."""
    source = ROOT / path
    if path.suffix == ".md":
        text = source.read_text(encoding="utf-8").replace(REPOSITORY, repository_link())
        return rewritten(path, text)
    if path.suffix in CODE:
        text = source.read_text(encoding="utf-8")
        return f"# {path.as_posix()}\n\n```{CODE[path.suffix]}\n{text}```\n"
    return source.read_bytes()


def gathered() -> list[Path]:
    """The pages of ``docs/``, and all files that they lead to, relative to the repository."""
    docs = ROOT / "docs"
    waiting = [path.relative_to(ROOT) for path in sorted(docs.rglob("*.md"))]
    files = {path.relative_to(ROOT): None for glob in ASSETS for path in sorted(docs.rglob(glob))}
    while waiting:
        path = waiting.pop()
        # the start page stands in for the README
        if path in files or path == Path("README.md"):
            continue
        files[path] = None
        if path.suffix == ".md":
            for link in markdown_links((ROOT / path).read_text(encoding="utf-8")):
                if not link.is_external and link.path:
                    waiting.append(Path(os.path.normpath(path.parent / link.path)))
    return list(files)


def stage() -> None:
    """Fill ``build/docs``."""
    shutil.rmtree(STAGE, ignore_errors=True)
    for path in gathered():
        target = STAGE / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = staged(path)
        if path in EXECUTED and isinstance(content, str):
            content, pictures = executed(path.stem, content)
            for name, picture in pictures.items():
                (STAGE / name).write_text(picture, encoding="utf-8")
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def run_zensical() -> list[str]:
    """Make the site of what is staged; what was wrong, a line each."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode:
        return [output, "the site was not built"]
    # griffe, which reads the docstrings, only warns
    return [line for line in output.splitlines() if line.startswith("griffe:")]


def main() -> int:
    """Build and check."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    wrong = run_zensical() or broken_site_links(SITE)
    if not wrong:
        print(
            f"{SITE.relative_to(ROOT)}/index.html and {len(list(SITE.rglob('*.html'))) - 1} more pages"
        )
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
