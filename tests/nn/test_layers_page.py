"""What docs/layers.md shows runs, and its tables tell the truth."""

import inspect
import re
from pathlib import Path

import torch

import treelax as tx

PAGE = Path(__file__).parents[2] / "docs" / "layers.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def run_page() -> dict[str, object]:
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, PAGE.name, "exec"), names)
    return names


def test_the_code_runs_and_is_short():
    assert BLOCKS
    assert len([line for line in BLOCKS[0].splitlines() if line]) <= 15
    names = run_page()
    heads, lengths = names["heads"], names["lengths"]
    assert tx.trees.is_tree(heads, lengths).all()
    for layer in ("embedding", "encoder", "root", "latent", "gcn"):
        assert all(p.grad is not None for p in names[layer].parameters()), layer


def test_shapes_in_the_comments():
    """Every result has the shape that the comment beside it says."""
    seen = {}
    for block in BLOCKS:
        for name, shape in re.findall(r"^(\w+) = .*#\s*(\([\d, ]+\)):", block, re.MULTILINE):
            seen[name] = tuple(map(int, re.findall(r"\d+", shape)))
    assert set(seen) == {"vectors", "tree", "output", "heads"}
    names = run_page()
    assert {name: tuple(names[name].shape) for name in seen} == seen


def test_every_layer_is_in_the_table():
    table = re.findall(r"^\| `(\w+)\(", TEXT, re.MULTILINE)
    assert sorted(table) == sorted(tx.nn.__all__)


def test_every_option_exists_and_is_explained():
    parameters = inspect.signature(tx.nn.LatentTree).parameters
    section = TEXT[TEXT.index("## Options") : TEXT.index("## Speed")]
    written = re.findall(r"`(\w+)=([^`.]\S*?)`", section)
    scorer = tx.nn.ArcScorer(2, 2)
    for name, value in written:
        tx.nn.LatentTree(scorer, **{name: eval(value)})
    assert {name for name, _ in written} == set(parameters) - {"scorer"}
