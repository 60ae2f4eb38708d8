"""What the pages show is what happens: code, shapes, options, figures."""

import contextlib
import inspect
import io
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
import torch
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import treelax as tx
from benchmarks import figures
from treelax.__main__ import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def run(blocks: list[str], **names: object) -> dict[str, object]:
    torch.manual_seed(0)
    for block in blocks:
        exec(compile(block, "page", "exec"), names)
    return names


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/how-it-works.md"])
def test_code_prints_what_the_page_shows(name):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", read(name), re.DOTALL | re.MULTILINE)
    blocks = [block for block in blocks if block[0] in ("python", "")]
    assert len(blocks) > 1
    names: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, name, "exec"), names)
            printed = out.getvalue()
        else:
            assert printed == text


def test_the_readmes_example_is_short_and_on_the_start_page():
    [example] = python_blocks(read("README.md"))
    assert len([line for line in example.splitlines() if line and "import" not in line]) <= 6
    assert example in read("docs/index.md")
    assert len(read("README.md").splitlines()) <= 150


def test_the_readmes_sentence_has_the_tree_that_parse_prints():
    """The English parser comes with treelax, so every reader sees the same."""
    [command] = re.findall(r'^treelax parse ("[^"]+")', read("README.md"), re.MULTILINE)
    [shown] = re.findall(r"^```text\n(.*?)^```$", read("README.md"), re.DOTALL | re.MULTILINE)
    printed = CliRunner().invoke(app, ["parse", command.strip('"')]).stdout
    assert shown.rstrip() in printed


def test_badges_say_what_the_package_says():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    badges = unquote(" ".join(re.findall(r"img\.shields\.io/badge/(\S+?)\)", read("README.md"))))
    assert f"Python-{project['requires-python'].replace('>=', '≥ ')}-" in badges
    [torch_version] = [name for name in project["dependencies"] if name.startswith("torch")]
    assert f"PyTorch-≥ {torch_version.removeprefix('torch>=')}-" in badges
    assert f"licence-{project['license']}-" in badges
    assert "typing-strict" in badges
    assert tomllib.loads(read("pyproject.toml"))["tool"]["mypy"]["strict"]


def test_figures_against_peers_say_what_is_compared_and_where_peers_are_faster():
    """The peers' times are of marginals, also beside our relaxed trees."""
    for name, marker in (("README.md", "speed"), ("docs/benchmarks.md", "cpu")):
        section = read(name).partition(f"<!-- figures: {marker} -->")[2].partition("<!-- end")[0]
        assert re.search(
            r"torch-struct 0\.5 takes? for marginals|marginals of torch-struct", section
        )
    [fast] = re.findall(r"^- \*\*It is fast\.\*\*.*", read("README.md"), re.MULTILINE)
    assert "marginals in torch-struct" in fast
    for name in ("README.md", "docs/benchmarks.md"):
        assert re.search(r"torch-struct takes *\| +0\.\d+×", read(name)), f"{name}: nothing is lost"


def test_the_feature_table_is_that_of_the_comparison():
    table = re.compile(r"^\| trees \| treelax \| torch-struct.*?(?=\n\n)", re.DOTALL | re.MULTILINE)
    found = table.search(read("README.md"))
    assert found is not None
    assert found[0] in read("docs/comparison.md")


@pytest.mark.parametrize("library", ["treelax", "torch_struct", "supar"])
@pytest.mark.filterwarnings("ignore")  # peers use what torch has deprecated
def test_the_evidence_of_the_comparison(library):
    """Ours always, that of a peer where it is installed."""
    pytest.importorskip(library)
    page = read("docs/comparison.md")
    heading = f"## {library.replace('_', '-')}\n"
    section = page.partition(heading)[2].partition("\n## ")[0]
    code, shown = re.findall(r"^```\w*\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run([code], torch=torch)
    assert out.getvalue() == shown


def test_the_code_of_the_relaxation_page_runs():
    assert run(python_blocks(read("docs/relaxations.md")))


def test_make_targets_and_variables_named_in_the_pages_exist():
    makefile = read("Makefile")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"^make (\S+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"
    assert "TREELAX_DEBUG" in read("src/treelax/apps/cli/main.py")
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "`TREELAX_DEBUG=1" in read(name)


def test_make_listops_installs_what_the_readme_advises():
    """The next command of the README, treelax parse, needs nltk for "can't"."""
    ready = read("Makefile").partition("/.ready:")[2].partition("\n\n")[0]
    [installed] = re.findall(r'--editable "(.*)"', ready)
    assert f'pip install "{installed}"  # in a checkout' in read("README.md")


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_measured_figures_are_those_on_record(page):
    """Every one is made from a file under benchmarks/results: run python benchmarks/figures.py."""
    assert figures.filled(page) == page.read_text(encoding="utf-8")


# ------------------------------------------------------------------ docs/layers.md

LAYERS = read("docs/layers.md")


def test_the_code_of_layers_runs_and_has_the_shapes_of_its_comments():
    blocks = python_blocks(LAYERS)
    assert len([line for line in blocks[0].splitlines() if line]) <= 15
    names = run(blocks)
    assert tx.trees.is_tree(names["heads"], names["lengths"]).all()
    for layer in ("embedding", "encoder", "root", "latent", "gcn"):
        assert all(p.grad is not None for p in names[layer].parameters()), layer
    shapes = {
        name: tuple(map(int, re.findall(r"\d+", shape)))
        for block in blocks
        for name, shape in re.findall(r"^(\w+) = .*#\s*(\([\d, ]+\)):", block, re.MULTILINE)
    }
    assert set(shapes) == {"vectors", "tree", "output", "heads"}
    assert {name: tuple(names[name].shape) for name in shapes} == shapes


def test_the_code_of_structures_runs():
    names = run(python_blocks(read("docs/structures.md")))
    assert names["sentence"].shape == (2, 16)


def test_every_layer_and_option_is_on_its_page():
    assert sorted(re.findall(r"^\| `(\w+)\(", LAYERS, re.MULTILINE)) == sorted(tx.nn.__all__)
    section = LAYERS[LAYERS.index("## Options") : LAYERS.index("## Speed")]
    written = re.findall(r"`(\w+)=([^`.]\S*?)`", section)
    scorer = tx.nn.ArcScorer(2, 2)
    for name, value in written:
        tx.nn.LatentTree(scorer, **{name: eval(value)})
    parameters = inspect.signature(tx.nn.LatentTree).parameters
    assert {name for name, _ in written} == set(parameters) - {"scorer"}
