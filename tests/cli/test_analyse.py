"""``treelax analyse``: what it reads, shows and writes."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import records, saved, shown, typed, written
from sentence_runs import SIZES

import treelax
from treelax.apps.data.conllu import Sentence, write_conllu
from treelax.apps.data.listops import read_listops
from treelax.apps.tasks.base import Source
from treelax.apps.tasks.text.pretrained import SentenceModel

REPOSITORY = Path(__file__).parent.parent.parent
SAMPLE = REPOSITORY / "tests" / "data" / "listops_sample.tsv"
TAGS = ("DET", "NOUN", "AUX", "ADJ", "PUNCT")
BANK = [
    Sentence(("The", "film", "was", "good", "."), (2, 4, 4, 0, 4), TAGS),
    Sentence(("A", "bad", "plot"), (3, 3, 0), ("DET", "ADJ", "NOUN")),
]


@pytest.fixture(scope="module")
def runs(sentence_runs):
    return sentence_runs


@pytest.fixture
def bank(tmp_path):
    write_conllu(tmp_path / "bank.conllu", BANK)
    return tmp_path / "bank.conllu"


def record(capsys, *arguments):
    [outcome] = records(capsys, "analyse", *arguments, "--json")
    return outcome


# ------------------------------------------------------------------ ListOps


def test_the_model_in_the_box(capsys):
    outcome = record(capsys, "listops", "--data", SAMPLE, "--max-length", 30)
    parser = treelax.load("listops")
    short = {expression.tokens for expression in read_listops(SAMPLE, max_length=30)}
    examples = [item for item in parser.read(Source(file=str(SAMPLE))) if item.words[0] in short]
    figures: Any = parser.evaluate(examples)
    assert (outcome["sentences"], outcome["words"]) == (figures.sentences, figures.tokens)
    assert outcome["treebank"]["listops"]["uas"] == pytest.approx(figures.attachment)
    assert outcome["treebank"]["listops"]["exact_trees"] == pytest.approx(figures.exact_trees)
    baselines = {name: direct["uas"] for name, direct in outcome["treebank_baselines"].items()}
    assert baselines["left-to-right chain"] == pytest.approx(figures.baselines["previous token"])
    assert baselines["last operator"] == pytest.approx(figures.baselines["last operator"])
    assert outcome["labels"]["listops"]["accuracy"] == pytest.approx(figures.operator_accuracy)
    assert outcome["grammar"]["listops"]["left_to_right"] > 99
    assert 0 <= outcome["entropy"]["listops"]["relative"] < 100


def test_the_dev_set_of_a_listops_run(finished, tmp_path, capsys):
    """And two runs that have the same one, told apart by their folders."""
    run, _ = finished
    copy = tmp_path / "copy" / run.name
    shutil.copytree(run, copy)
    outcome = record(capsys, run, copy, "--limit", 5)
    assert (outcome["sentences"], outcome["data"]) == (5, f"dev set of new/{run.name}")
    assert outcome["runs"] == [f"new/{run.name}", f"copy/{run.name}"]
    assert outcome["agreement"]["mean"] == 100
    assert record(capsys, run, "--split", "test")["sentences"] == 60


# ------------------------------------------------------------------ sentences


@pytest.mark.parametrize("kind", ["classify", "pair", "tag"])
def test_labels_on_the_dev_set(runs, capsys, kind):
    outcome = record(capsys, runs[kind])
    direct = json.loads((runs[kind] / "test.json").read_text())["splits"]["dev"]
    for figure in ("accuracy", "soft_accuracy"):
        assert outcome["labels"]["run"][figure] == pytest.approx(direct[figure])
    assert outcome["sentences"] == SIZES["dev"] * (2 if kind == "pair" else 1)
    assert (outcome["tags"] is None) == (kind != "tag")
    assert record(capsys, runs[kind], "--split", "test", "--limit", 3)["sentences"] in (3, 6)


def test_a_treebank(runs, bank, capsys):
    """Runs of all kinds on the same sentences, words as they stand in the file."""
    outcome = record(capsys, *runs.values(), "--data", bank)
    assert outcome["runs"] == ["classify/run", "pair/run", "tag/run", "again/run"]
    assert (outcome["sentences"], outcome["words"]) == (2, 8)
    [direct] = SentenceModel.from_run(runs["tag"]).predict([BANK[1].words])
    right = sum(a == b for a, b in zip((direct.heads or [()])[0], BANK[1].heads or (), strict=True))
    last = record(capsys, runs["tag"], "--data", bank, "--max-length", 3)
    assert last["treebank"]["run"]["uas"] == pytest.approx(100 * right / 3)
    chains = outcome["treebank_baselines"]
    assert chains["right-to-left chain"]["uas"] == pytest.approx(100 * 4 / 8)
    assert chains["right-to-left chain"]["uas_without_punctuation"] == pytest.approx(100 * 4 / 7)
    assert chains["random trees"]["uas_by_tag"].keys() == set(TAGS)
    # only a tagger could know the tags, and this one knows others
    assert {run["accuracy"] for run in outcome["labels"].values()} == {None}
    assert "pair/run" not in outcome["labels"]


def test_labels_of_a_file(runs, tmp_path, capsys, monkeypatch):
    """A table gives labels where it has the column of training, or the one that is named."""
    rows = [("good film", "yes"), ("bad plot", "no"), ("a film", "yes")]
    labelled = "\n".join(["review\tliked", *("\t".join(row) for row in rows), ""])
    other = "\n".join(["words,verdict", *(",".join(row) for row in rows), ""])
    named = ["--text", "words", "--label", "verdict", "--tokens"]
    first = record(capsys, runs["classify"], "--data", written(tmp_path, labelled, "a.tsv"))
    second = record(capsys, runs["classify"], "--data", written(tmp_path, other, "b.csv"), *named)
    assert first["labels"]["run"]["accuracy"] is not None
    assert first["labels"] == second["labels"]
    both = written(tmp_path, "good film\tbad\n", "pairs.xyz")
    assert record(capsys, runs["pair"], "--data", both, "--input", "text")["sentences"] == 2
    typed(monkeypatch, "A good film.\n\nBad.\n")
    outcome = record(capsys, runs["classify"], runs["again"], "--data", "-")
    assert (outcome["sentences"], outcome["words"]) == (2, 6)


def test_chains_heads_and_given_trees(tmp_path, bank, capsys):
    """All of them saved models, which have no data of their own."""
    models = {trees: saved(tmp_path, trees=trees) for trees in ("chain", "heads", "given")}
    outcome = record(capsys, models["chain"], "--data", bank)
    direct = outcome["agreement"]["baselines"][models["chain"].name]
    assert direct["left-to-right chain"] == 100
    assert outcome["entropy"] == {}
    grammar = record(capsys, models["heads"], "--data", bank)["grammar"]
    assert grammar[models["heads"].name]["projective"] <= 100
    outcome = record(capsys, models["given"], models["chain"], "--data", bank)
    assert outcome["treebank"][models["given"].name]["uas"] == 100


# ------------------------------------------------------------------ what it shows and writes


def test_all_files_are_written(runs, bank, tmp_path, capsys):
    folder = tmp_path / "new" / "analysis"
    asked = ["analyse", runs["classify"], runs["again"], "--data", bank, "--out", folder]
    assert shown(capsys, *asked).endswith(f"\nwritten: {folder}\n")
    names = {file.name for file in folder.iterdir()}
    tables = "grammar distributions words tags pairs baselines treebank treebank_tags entropy"
    drawn = "distributions agreement treebank treebank_tags entropy"
    assert names == {
        *(f"{name}.csv" for name in (*tables.split(), "sentences", "labels")),
        *(f"{name}.svg" for name in drawn.split()),
    }
    with (folder / "treebank.csv").open() as lines:
        rows = {row["trees"]: float(row["uas"]) for row in csv.DictReader(lines)}
    outcome = record(capsys, *asked[1:])
    both = {**outcome["treebank"], **outcome["treebank_baselines"]}
    assert rows == {name: pytest.approx(direct["uas"], rel=1e-4) for name, direct in both.items()}


def test_the_page(capsys):
    """The table that it shows is what its command prints, and its Python runs."""
    page = (REPOSITORY / "docs" / "analysis.md").read_text()
    [table] = re.findall(r"```\n(\| trees .*?)\n```", page, re.DOTALL)
    output = shown(capsys, "analyse", "listops", "--data", SAMPLE, "--max-length", 100)
    assert table in output
    [learned] = re.findall(r"```\n(On 12 sentences.*?)\n```", page, re.DOTALL)
    assert " ".join(learned.split()) in " ".join(output.split())
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    first, head, *_ = capsys.readouterr().out.splitlines()
    assert [float(figure) > 95 for figure in first.split()] == [True, True]
    assert head == "run,baseline,uas,uuas,exact_trees"
