"""The pages hold together: links, anchors, figures, formulas, commands, pictures, and their site."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
import typer.main
from drawings import SVG, root_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs import make_animation, make_explanations, make_picture, make_structures
from docs.tools import build, links
from docs.tools import commands as commands_page
from docs.tools.docstrings import to_markdown
from docs.tools.execute import executed
from docs.tools.mathml import mathml
from treelax.__main__ import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
]
PICTURES = sorted([*(ROOT / "docs" / "images").glob("*.svg"), *(ROOT / "results").rglob("*.svg")])


def test_links_and_anchors_of_the_sources():
    assert [fault for page in PAGES for fault in links.broken_markdown_links(page, ROOT)] == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `head`: what\n\n```\n# not a heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#a-head-what) ![b](b.svg) [c](other.md#not-a-heading) `[d](d.md)`\n"
        "```\n[e](e.md)\n```\n"
        "[f](../f.md) [g](#g) [h](https://example.org/h) [i](other.md)\n"
    )
    assert links.broken_markdown_links(page, tmp_path) == [
        "page.md, line 1: b.svg does not exist",
        "page.md, line 1: other.md#not-a-heading: no such heading",
        "page.md, line 5: ../f.md leads out of the repository",
        "page.md, line 5: #g: no such heading",
    ]


def test_faults_of_a_site_are_found(tmp_path):
    (tmp_path / "style.css").write_text("@import 'https://fonts.example.org/a.css';")
    (tmp_path / "index.html").write_text(
        '<script src="//example.org/a.js"></script><a href="https://example.org">out</a>\n'
        '<style>p { background: url("http://example.org/b.png") }</style><p id="here">\n'
        '<a href="#here">z</a><a href="sub.html#there">z</a><img src="gone.png">\n'
    )
    (tmp_path / "sub.html").write_text('<a href="index.html#here">x</a>')
    assert links.broken_site_links(tmp_path) == [
        "index.html, line 1: fetches //example.org/a.js",
        "index.html: fetches http://example.org/b.png",
        "index.html, line 3: sub.html#there: no such anchor",
        "index.html, line 3: gone.png does not exist",
        "style.css: fetches https://fonts.example.org/a.css",
    ]


def test_the_executed_page_shows_what_its_code_does():
    """And its last picture is a tree in which the man has the telescope."""
    page = (ROOT / "docs" / "first-look.md").read_text(encoding="utf-8")
    shown, pictures = executed("first-look", page)
    results = re.findall(r"^```text\n(.*?)\n```$", shown, re.DOTALL | re.MULTILINE)
    assert results[0] == "8 words, (9, 9)"
    assert " ".join(results[1].splitlines()[-1].split()) == "She saw the man with a telescope ."
    shares = [float(line.rpartition(" ")[2]) for line in results[3].splitlines()]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < shares[-1]
    [(path, svg)] = pictures.items()
    assert f"]({path})" in shown
    weight = re.search(r"telescope \(7\): man \(4\) weighs ([\d.]+), saw", svg)
    assert weight is not None
    assert float(weight[1]) == pytest.approx(shares[-1], abs=0.05)


def test_the_page_of_commands_is_current():
    """It is made from the help of the commands; python -m docs.tools.commands writes it anew."""
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page()


def entries(menu) -> dict[str, str]:
    """The pages of the menu, each with what the menu calls it."""
    found: dict[str, str] = {}
    for entry in menu:
        for name, value in ({"": entry} if isinstance(entry, str) else entry).items():
            inner = {value: name} if isinstance(value, str) else entries(value)
            assert not found.keys() & inner.keys()
            found |= inner
    return found


def test_every_page_is_in_the_menu_under_its_title():
    with (ROOT / "zensical.toml").open("rb") as file:
        menu = entries(tomllib.load(file)["project"]["nav"])
    assert set(menu) <= {build.place(path).as_posix() for path in build.gathered()}
    pages = [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")]
    assert {build.place(path).as_posix() for path in pages} <= set(menu)
    for page in sorted((ROOT / "docs").glob("*.md")):
        heading = page.read_text(encoding="utf-8").partition("\n")[0]
        assert heading == f"# {menu[page.name]}" or page.name == "index.md"


# a figure with a spread, or with a decimal
SPREAD = re.compile(r"\d+\.\d+ ± \d+\.\d+")
DECIMAL = re.compile(r"(?<![\w.±-])\d+\.\d+(?![\w.])")


@pytest.mark.parametrize(
    "name", ["relaxations.md", "reproduction.md", "how-it-works.md", "index.md"]
)
def test_figures_in_the_text_are_on_record(name):
    """A figure outside the sections that benchmarks/figures.py makes stands in a table of results."""
    tables = [path.read_text(encoding="utf-8") for path in (ROOT / "results").rglob("table.md")]
    record = "\n".join(tables)
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    page = re.sub(r"<!-- figures: (\S+) -->.*?<!-- end figures: \1 -->", "", page, flags=re.DOTALL)
    text = "\n".join(line for _, line in links.prose(page))
    text = " ".join(links.INLINE_CODE.sub("", text).split())
    for figure in SPREAD.findall(text):
        assert figure in record
    known = set(DECIMAL.findall(re.sub(r"[/,]", " ", record)))
    versions = {"2.6", "3.11"}
    assert set(DECIMAL.findall(SPREAD.sub("", text))) <= known | versions


def commands() -> list[tuple[str, str]]:
    """Every command ``treelax …`` of the pages, in blocks of a shell and within lines."""
    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
        lines += re.findall(r"`(treelax [^`]+)`", "\n".join(line for _, line in links.prose(text)))
        for line in lines:
            line = line.partition(" # ")[0].strip()
            # with … or | or capitals it is no command but the form of one
            if line.startswith("treelax ") and not re.search(
                r"…|\.\.\.| \| |\b[A-Z]{3,}\b(?!\])", line
            ):
                found.append((page.name, line))
    return found


def unknown_to(program, line: str) -> list[str]:
    """The words of a command line that the program has no command or option for."""
    command, words = program, shlex.split(line)[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        return words[:1]
    options = {name for option in command.params for name in option.opts} | {"--help", "-h"}
    return [word for word in words if word.startswith("--") and word not in options]


def test_commands_exist_with_their_options():
    program = typer.main.get_command(app)
    assert unknown_to(program, "treelax table snly") == ["snly"]
    assert unknown_to(program, "treelax train snli --form x --list") == ["--form"]
    checked = commands()
    assert len(checked) > 30
    assert [(page, line) for page, line in checked if unknown_to(program, line)] == []


def test_formulas_become_mathml():
    assert mathml("x_i") == (
        '<math display="inline" alttext="x_i"><mrow><msub><mi>x</mi><mi>i</mi></msub></mrow></math>'
    )
    assert '<mi>log</mi><mspace width="0.167em"></mspace><mi>p</mi>' in mathml(r"\log p")
    assert "<munder><mo>∑</mo><mi>k</mi></munder>" in mathml(r"\sum_k b_k", "block")
    lines = mathml(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block")
    assert lines.count("<mtr>") == 2
    assert mathml(r"a &= b \\ c &= d", "block").count("<mtr>") == 2
    with pytest.raises(ValueError, match=re.escape(r"\softmaxx in the formula")):
        mathml(r"\softmaxx(s)")


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        (".. math:: a &= b \\\\\n    c &= d\n", "```math\na &= b \\\\\nc &= d\n```\n"),
        ("With :math:`x` in it.\n", "With $x$ in it.\n"),
        ("=====  ==\n`one`  a\n=====  ==\n", "|  |  |\n| --- | --- |\n| `one` | a |\n"),
        ("Args:\n    x: it.\n", "Args:\n    x: it.\n"),
        ("Shape:\n    vectors ``(n)``\n    to more.\n", "**Shape.** vectors ``(n)`` to more.\n"),
        ("Example:\n    >>> 1\n    1\n", "Examples:\n    >>> 1\n    1\n"),
    ],
)
def test_docstrings_become_markdown(docstring, markdown):
    assert to_markdown(f"Does it.\n\n{docstring}") == f"Does it.\n\n{markdown}"
    assert to_markdown(f"Does it.\n\n{markdown}") == f"Does it.\n\n{markdown}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_follow_light_and_dark_and_tell_what_they_show(path):
    root = root_of(path.read_text(encoding="utf-8"))
    assert root.get("role") == "img"
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    told = [by_id[name] for name in (root.get("aria-labelledby") or "").split()]
    assert [element.tag for element in told] == [f"{SVG}title", f"{SVG}desc"]
    assert all(element.text for element in told)
    styles = [element.text or "" for element in root.iter(f"{SVG}style")]
    assert any("(prefers-color-scheme:dark)" in style for style in styles)
    assert not list(root.iter(f"{SVG}script"))


def test_pictures_are_what_the_scripts_draw():
    """Of trees in words, to a hundredth: another machine may round the last digit otherwise."""
    images = ROOT / "docs" / "images"
    drawings = {name: make_explanations.PICTURES[name] for name in ("pipeline", "eisner-items")}
    drawings |= {
        name.replace(" ", "-"): partial(make_structures.draw, name)
        for name in make_structures.PICTURES
    }
    for name, draw in drawings.items():
        assert (images / f"{name}.svg").read_text(encoding="utf-8") == draw().svg()
    for name, draw in (
        ("soft-trees", make_picture.soft_trees),
        ("perturbed-trees", make_explanations.perturbed_trees),
    ):
        root = root_of((images / f"{name}.svg").read_text(encoding="utf-8"))
        assert root.find(f"{SVG}desc").text == draw().description
    svg = (images / "temperature.svg").read_text(encoding="utf-8")
    trees = make_animation.soft_trees()[1]
    frames = re.findall(
        r"@keyframes arc-(\d)-(\d)\{0%\{opacity:([\d.]+)}.*?100%\{opacity:([\d.]+)}", svg
    )
    assert sum(float(last) > 0.5 for *_, last in frames) == trees.shape[-1] - 1
    for head, modifier, *shown in frames:
        weights = trees[[0, -1], int(head), int(modifier)].tolist()
        expected = [make_animation.strength(weight) for weight in weights]
        assert [*map(float, shown)] == pytest.approx(expected, abs=0.02)
    assert "prefers-reduced-motion:no-preference" in svg
