"""What the pages show is what happens: code, shapes, options, figures."""

import inspect
import json
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from drawings import texts
from pages import BLOCK, run_page
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import treelax as tx
from benchmarks import figures
from treelax.__main__ import app, main
from treelax.apps.data.conllu import read_conllu
from treelax.apps.data.text.readers_table import read_table

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    ["README", *(f"docs/{n}" for n in ("index", "how-it-works", "relaxations", "structures"))],
)
def test_code_prints_what_the_page_shows(name):
    torch.manual_seed(0)
    for shown, printed in run_page(read(f"{name}.md")):
        assert printed == shown


def test_the_readmes_example_is_short_and_on_the_start_page():
    [example] = [code for kind, code in BLOCK.findall(read("README.md")) if kind == "python"]
    assert len([line for line in example.splitlines() if line and "import" not in line]) <= 6
    assert example in read("docs/index.md")
    assert len(read("README.md").splitlines()) <= 150


def test_the_readmes_sentence_has_the_tree_that_parse_prints():
    """The English parser comes with treelax, so every reader sees the same."""
    [command] = re.findall(r'^treelax parse ("[^"]+")', read("README.md"), re.MULTILINE)
    [shown] = re.findall(r"^```text\n(.*?)^```$", read("README.md"), re.DOTALL | re.MULTILINE)
    printed = CliRunner().invoke(app, ["parse", command.strip('"')]).stdout
    assert shown.rstrip() in printed


def test_the_feature_table_is_that_of_the_comparison():
    table = re.compile(r"^\| trees \| treelax \| torch-struct.*?(?=\n\n)", re.DOTALL | re.MULTILINE)
    assert table.search(read("README.md"))[0] in read("docs/comparison.md")


@pytest.mark.parametrize("library", ["treelax", "torch_struct", "supar"])
@pytest.mark.filterwarnings("ignore")  # peers use what torch has deprecated
def test_the_evidence_of_the_comparison(library):
    """Ours always, that of a peer where it is installed."""
    pytest.importorskip(library)
    page = read("docs/comparison.md")
    heading = f"## {library.replace('_', '-')}\n"
    section = page.partition(heading)[2].partition("\n## ")[0]
    [(shown, printed)] = run_page(section, torch=torch)
    assert printed == shown


def test_make_targets_named_in_the_pages_exist():
    makefile = read("Makefile")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"^make (\S+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_measured_figures_are_those_on_record(page):
    """Every one is made from a file under benchmarks/results: run python benchmarks/figures.py."""
    assert figures.filled(page) == page.read_text(encoding="utf-8")


LAYERS = read("docs/layers.md")


def test_the_code_of_layers_runs_and_has_the_shapes_of_its_comments():
    blocks = [code for kind, code in BLOCK.findall(LAYERS) if kind == "python"]
    assert len([line for line in blocks[0].splitlines() if line]) <= 15
    names: dict[str, object] = {}
    torch.manual_seed(0)
    for block in blocks:
        exec(compile(block, "layers.md", "exec"), names)
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


def test_every_layer_and_option_is_on_its_page():
    assert sorted(re.findall(r"^\| `(\w+)\(", LAYERS, re.MULTILINE)) == sorted(tx.nn.__all__)
    section = LAYERS[LAYERS.index("## Options") : LAYERS.index("## Speed")]
    written = re.findall(r"`(\w+)=([^`.]\S*?)`", section)
    scorer = tx.nn.ArcScorer(2, 2)
    for name, value in written:
        tx.nn.LatentTree(scorer, **{name: eval(value)})
    parameters = inspect.signature(tx.nn.LatentTree).parameters
    assert {name for name, _ in written} == set(parameters) - {"scorer"}


def test_the_pictures_and_their_commands(tmp_path, monkeypatch):
    """What the page shows is what its commands and its code print and save."""
    page = read("docs/pictures.md")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    outputs = run_page(page, commands="runs/")
    assert len(outputs) == 4
    assert all(shown == printed for shown, printed in outputs)
    saved = {file.name: file for file in tmp_path.iterdir()}
    shown = {name: DOCS / "images" / name for name in saved if f"](images/{name})" in page}
    assert sorted(shown) == [
        *("brackets.svg", "heat-map.svg", "listops-tree.svg", "relaxation.svg"),
        *("right-and-wrong.svg", "span-marginals.svg"),
    ]
    for name, file in shown.items():
        if name == "relaxation.svg":  # the last digits of its surfaces depend on the machine
            assert texts(file.read_text("utf-8")) == texts(saved[name].read_text("utf-8"))
        else:
            assert file.read_bytes() == saved[name].read_bytes(), name
    for name in ("accuracy.svg", "both.svg"):
        assert "latent trees" in saved[name].read_text(encoding="utf-8")


OWN_DATA = read("docs/own-data.md")
GLUE = {  # the first lines of the training data
    "SST-2": "sentence label",
    "RTE, WNLI": "index sentence1 sentence2 label",
    "QNLI": "index question sentence label",
    "QQP": "id qid1 qid2 question1 question2 is_duplicate",
    "MRPC": "Quality #1_ID #2_ID #1_String #2_String",
    "MNLI": "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse "
    "sentence1_parse sentence2_parse sentence1 sentence2 label1 gold_label",
}


def test_own_data(tmp_path, monkeypatch, capsys):
    """All commands and all code, in their order; figures may differ from machine to machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    *outputs, refused = run_page(OWN_DATA, commands="revue")
    trained, predicted, tree, studied, drawn = outputs
    assert [row.split("|")[1] for row in trained[0].splitlines()[:4]] == [
        row.split("|")[1] for row in trained[1].splitlines()[:4]
    ]
    shown, real = ([json.loads(line) for line in text.splitlines()] for text in predicted)
    for key in ("line", "label", "words"):
        assert [row[key] for row in shown] == [row[key] for row in real]
    assert [row.keys() for row in shown] == [row.keys() for row in real]
    first = next(read_conllu("trees.conllu"))
    assert f"# text = {first.text}\n# label = {first.metadata['label']}\n" in tree[0]
    misc = [
        [row.split("\t")[-1] for row in rows[4:]] for rows in (tree[0].splitlines(), first.lines)
    ]
    assert misc[0] == misc[1]
    titles, real = (
        {re.sub(r"\s+", " ", line) for line in text.splitlines() if not re.search(r"\d|---", line)}
        for text in studied
    )
    assert titles <= real
    for text in drawn:
        assert re.findall(r"^\w+ \(", text, re.MULTILINE) == ["praise (", "blame ("]
    capsys.readouterr()
    assert main(["predict", "verdicts", "new.tsv", "--text", "revue"]) == 2
    assert capsys.readouterr().err == refused[0]


def test_tables_of_glue(tmp_path):
    """Their first lines, and that of CoLA, which the page puts in front."""
    file = tmp_path / "train.tsv"
    (names,) = re.findall(r"printf '(.+?)'", OWN_DATA)
    file.write_text(names.encode().decode("unicode_escape") + "gj04\t0\t*\tDo it.\n")
    (record,) = read_table(file, "sentence")
    assert (record.label, record.texts) == ("0", ("Do it.",))
    rows = re.findall(r"^\| ([\w, -]+) \| `treelax train (.+?)`", OWN_DATA, re.MULTILINE)
    commands = {task: shlex.split(words) for task, words in rows if task in GLUE}
    assert commands.keys() == GLUE.keys()
    for task, (kind, *words) in commands.items():
        values = {name: [] for name in ("--text", "--label", "--set")}
        for name, value in pairwise(words):
            values.get(name, []).append(value)
        columns = [name.replace("_", " ") if "#" in name else name for name in GLUE[task].split()]
        file.write_text("\t".join(columns) + "\n" + "\t".join("1" for _ in columns) + "\n")
        assert len(values["--text"]) == (2 if kind == "pair" else 1)
        (record,) = read_table(file, values["--text"], *values["--label"])
        assert record.label == "1"
