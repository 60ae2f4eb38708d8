"""What the README and the pages show is what happens."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
]


def test_the_example_prints_what_it_says():
    page = (ROOT / "README.md").read_text()
    match = re.search(r"```python\n(.*?)```\n+```\n(.*?)```", page, re.DOTALL)
    assert match, "the README has no example with its output"
    code, expected = match.groups()
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == expected


def test_the_code_of_the_relaxation_page_runs():
    page = (ROOT / "docs" / "relaxations.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    names = {"scores": torch.zeros(2, 4, 4), "lengths": torch.tensor([3, 2])}
    for block in blocks:
        exec(compile(block, "relaxations.md", "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_pictures_exist(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_make_targets_named_in_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        for target in re.findall(r"^make (\S+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"


def test_the_variable_that_shows_tracebacks_is_named():
    assert "TREELAX_DEBUG" in (ROOT / "src/treelax/cli/main.py").read_text()
    for page in ("README.md", "CONTRIBUTING.md"):
        assert "`TREELAX_DEBUG=1" in (ROOT / page).read_text()


def test_figures_are_those_on_record():
    """Every figure of the README is made from a file under benchmarks/results."""
    done = subprocess.run(
        [sys.executable, "benchmarks/figures.py", "--check"], cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode() or "run python benchmarks/figures.py"
