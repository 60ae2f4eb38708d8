"""``treelax analyse``: what it reads, shows and writes, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from analyse_commands import ask, fail, record
from sentence_runs import SIZES, sentences, train
from typer.testing import CliRunner

from treelax.cli.main import app, main
from treelax.data.conllu import Sentence, write_conllu
from treelax.data.listops import read_listops
from treelax.tasks.listops.evaluation import evaluate
from treelax.training.models import load_model
from treelax.tasks.text.pretrained import SentenceModel

REPOSITORY = Path(__file__).parent.parent.parent
SAMPLE = REPOSITORY / "tests" / "data" / "listops_sample.tsv"
TAGS = ("DET", "NOUN", "AUX", "ADJ", "PUNCT")
BANK = [
    Sentence(("The", "film", "was", "good", "."), (2, 4, 4, 0, 4), TAGS),
    Sentence(("A", "bad", "plot"), (3, 3, 0), ("DET", "ADJ", "NOUN")),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind, and a second one of classes; only to be looked at."""
    folder = tmp_path_factory.mktemp("runs")
    found = {kind: train(kind, folder / kind) for kind in ("classify", "pair", "tag")}
    found["again"] = train("classify", folder / "again", seed=1)
    return found


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    write_conllu(tmp_path / "bank.conllu", BANK)
    return tmp_path / "bank.conllu"


def saved(folder: Path, run: Path, name: str) -> Path:
    SentenceModel.from_run(run).save_pretrained(folder / name)
    return folder / name


# ------------------------------------------------------------------ ListOps


def test_the_model_in_the_box(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, "listops", "--data", SAMPLE, "--max-length", 30)
    expressions = read_listops(SAMPLE, max_length=30)
    figures = evaluate(load_model("listops").model, expressions)
    assert (found["sentences"], found["words"]) == (figures.sentences, figures.tokens)
    assert found["treebank"]["listops"]["uas"] == pytest.approx(figures.attachment)
    assert found["treebank"]["listops"]["exact_trees"] == pytest.approx(figures.exact_trees)
    baselines = {name: own["uas"] for name, own in found["treebank_baselines"].items()}
    assert baselines["left-to-right chain"] == pytest.approx(figures.baselines["previous token"])
    assert baselines["last operator"] == pytest.approx(figures.baselines["last operator"])
    assert found["labels"]["listops"]["accuracy"] == pytest.approx(figures.operator_accuracy)
    assert found["grammar"]["listops"]["left_to_right"] > 99
    assert 0 <= found["entropy"]["listops"]["relative"] < 100


def test_the_dev_set_of_a_listops_run(
    finished: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And two runs that have the same one, told apart by their folders."""
    run, _ = finished
    copy = tmp_path / "copy" / run.name
    shutil.copytree(run, copy)
    found = record(capsys, run, copy, "--limit", 5)
    assert (found["sentences"], found["data"]) == (5, f"dev set of new/{run.name}")
    assert found["runs"] == [f"new/{run.name}", f"copy/{run.name}"]
    assert found["agreement"]["mean"] == 100
    assert record(capsys, run, "--split", "test")["sentences"] == 60


# ------------------------------------------------------------------ sentences


def test_two_runs_on_their_dev_set(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = record(capsys, runs["classify"], runs["again"])
    assert found["runs"] == ["classify/run", "again/run"]
    texts = [words for words, _ in sentences(1, SIZES["dev"])]
    assert (found["sentences"], found["words"]) == (len(texts), sum(map(len, texts)))
    trees = [
        [each.heads[0] for each in SentenceModel.from_run(run).predict(texts) if each.heads]
        for run in (runs["classify"], runs["again"])
    ]
    same = [a == b for x, y in zip(*trees, strict=True) for a, b in zip(x, y, strict=True)]
    assert found["agreement"]["mean"] == pytest.approx(100 * sum(same) / len(same))
    assert found["treebank"] is None
    for run, name in ((runs["classify"], "classify/run"), (runs["again"], "again/run")):
        told = json.loads((run / "test.json").read_text())["splits"]["dev"]
        assert found["labels"][name]["accuracy"] == pytest.approx(told["accuracy"])
        assert found["labels"][name]["soft_accuracy"] == pytest.approx(told["soft_accuracy"])


@pytest.mark.parametrize("kind", ["pair", "tag"])
def test_other_kinds_on_their_dev_set(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    found = record(capsys, runs[kind])
    told = json.loads((runs[kind] / "test.json").read_text())["splits"]["dev"]
    assert found["labels"]["run"]["accuracy"] == pytest.approx(told["accuracy"])
    assert found["sentences"] == SIZES["dev"] * (2 if kind == "pair" else 1)
    assert (found["tags"] is None) == (kind == "pair")
    assert record(capsys, runs[kind], "--split", "test", "--limit", 3)["sentences"] in (3, 6)


def test_a_treebank(runs: dict[str, Path], bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs of all kinds on the same sentences, words as they stand in the file."""
    found = record(capsys, *runs.values(), "--data", bank)
    assert found["runs"] == ["classify/run", "pair/run", "tag/run", "again/run"]
    assert (found["sentences"], found["words"]) == (2, 8)
    [own] = SentenceModel.from_run(runs["tag"]).predict([BANK[1].words])
    assert own.heads is not None
    right = sum(a == b for a, b in zip(own.heads[0], BANK[1].heads or (), strict=True))
    last = record(capsys, runs["tag"], "--data", bank, "--max-length", 3)
    assert last["treebank"]["run"]["uas"] == pytest.approx(100 * right / 3)
    chains = found["treebank_baselines"]
    assert chains["right-to-left chain"]["uas"] == pytest.approx(100 * 4 / 8)
    assert chains["right-to-left chain"]["uas_without_punctuation"] == pytest.approx(100 * 4 / 7)
    assert chains["random trees"]["uas_by_tag"].keys() == set(TAGS)
    # only a tagger could know the tags, and this one knows others
    assert {run["accuracy"] for run in found["labels"].values()} == {None}
    assert "pair/run" not in found["labels"]


def test_a_treebank_in_an_archive(
    runs: dict[str, Path], bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "ud.zip", "w") as archive:
        archive.write(bank, "en/bank.conllu")
        archive.writestr("en/README.txt", "not a treebank")
    zipped, plain = (
        record(capsys, runs["tag"], "--data", file) for file in (archive.filename, bank)
    )
    assert zipped | {"data": None} == plain | {"data": None}


def test_trees_that_the_run_itself_has_written(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, trees = tmp_path / "new.txt", tmp_path / "trees.conllu"
    text.write_text("The film was good.\nA bad, sad plot.\n")
    assert main(["predict", str(runs["classify"]), str(text), "--out", str(trees)]) == 0
    found = record(capsys, runs["classify"], "--data", trees)
    assert found["treebank"]["run"]["uas"] == 100
    plain = record(capsys, runs["classify"], "--data", text)
    assert plain["grammar"] == found["grammar"]


def test_forms_of_files(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table gives labels where it has the column of training, or the one that is named."""
    rows = [("good film", "yes"), ("bad plot", "no"), ("a film", "yes")]
    labelled, other, plain = (tmp_path / name for name in ("a.tsv", "b.csv", "c.jsonl"))
    labelled.write_text("\n".join(["review\tliked", *("\t".join(row) for row in rows), ""]))
    other.write_text("\n".join(["words,verdict", *(",".join(row) for row in rows), ""]))
    plain.write_text("".join(json.dumps({"review": text}) + "\n" for text, _ in rows))
    run = runs["classify"]
    first = record(capsys, run, "--data", labelled)
    second = record(
        capsys, run, "--data", other, "--text", "words", "--label", "verdict", "--tokens"
    )
    third = record(capsys, run, "--data", plain)
    assert first["labels"]["run"]["accuracy"] is not None
    assert first["labels"] == second["labels"]
    assert third["labels"]["run"]["accuracy"] is None
    assert first["grammar"] == second["grammar"] == third["grammar"]
    tags = tmp_path / "new.conll"
    tags.write_text("good\tG\nfilm\tF\n\nbad\tB\n")
    assert record(capsys, runs["tag"], "--data", tags)["labels"]["run"]["accuracy"] is not None
    both = tmp_path / "pairs.txt"
    both.write_text("good film\tbad\n")
    assert record(capsys, runs["pair"], "--data", both)["sentences"] == 2
    strange = shutil.copy(tmp_path / "pairs.txt", tmp_path / "pairs.xyz")
    assert record(capsys, runs["classify"], "--data", strange, "--input", "text")["words"] == 3


def test_standard_input(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"A good film.\n\nBad.\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    found = record(capsys, runs["classify"], runs["again"], "--data", "-")
    assert (found["sentences"], found["words"]) == (2, 6)


def test_saved_models_and_models_without_latent_trees(
    runs: dict[str, Path], tmp_path: Path, bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = saved(tmp_path, runs["classify"], "saved")
    found = record(capsys, own, runs["classify"], "--data", bank)
    assert found["runs"] == ["saved", "run"]
    assert found["agreement"]["mean"] == 100
    assert "has no data of its own; expected --data FILE" in fail(capsys, own)


def test_chains_heads_given_trees_and_none(
    tmp_path: Path, bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = train("classify", tmp_path / "chain", model__trees="chain", train__epochs=1)
    found = record(capsys, chain)
    assert found["agreement"]["baselines"]["run"]["left-to-right chain"] == 100
    assert found["entropy"] == {}
    heads = train("classify", tmp_path / "heads", model__trees="heads", train__epochs=1)
    assert record(capsys, heads)["grammar"]["run"]["projective"] <= 100
    none = train("classify", tmp_path / "none", model__trees="none", train__epochs=1)
    assert fail(capsys, chain, none) == (
        "none/run: has no trees (model.trees is 'none'); expected runs with latent, heads or chain"
    )
    for split in SIZES:
        texts = [words for words, _ in sentences(list(SIZES).index(split), SIZES[split])]
        trees = [Sentence(tuple(words), tuple(range(len(words)))) for words in texts]
        write_conllu(tmp_path / f"{split}.conllu", trees)
    given = train(
        "classify",
        tmp_path / "given",
        model__trees="given",
        data__trees=tmp_path / "{split}.conllu",
        train__epochs=1,
    )
    own = record(capsys, given)
    assert own["treebank"]["run"]["uas"] == own["grammar"]["run"]["left_to_right"] == 100
    assert record(capsys, given, chain, "--data", bank)["treebank"]["given/run"]["uas"] == 100
    text = tmp_path / "new.txt"
    text.write_text("good\n")
    assert "given trees (model.trees is 'given')" in fail(capsys, given, "--data", text)


def test_a_tagger_of_a_treebank_is_compared_with_it(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run on CoNLL-U has heads in its dev set, and tags that can be right."""
    for split in SIZES:
        write_conllu(tmp_path / f"{split}.conllu", BANK)
    with zipfile.ZipFile(tmp_path / "dev.zip", "w") as archive:
        archive.write(tmp_path / "dev.conllu", "en/dev.conllu")
        archive.writestr("en/README.txt", "not a treebank")
    files = {split: tmp_path / f"{split}.conllu" for split in SIZES} | {"dev": tmp_path / "dev.zip"}
    options = [part for split, file in files.items() for part in (f"--{split}", str(file))]
    sizes = ["--set", "model.encoder_size=6", "--set", "train.epochs=1"]
    run = tmp_path / "run"
    assert main(["train", "tag", *options, *sizes, "--device", "cpu", "--out", str(run)]) == 0
    found = record(capsys, run)
    assert found["treebank"]["run"]["uas"] is not None
    assert found["labels"]["run"]["accuracy"] is not None
    assert {role["name"] for role in found["tags"]["run"]} == set(TAGS)


# ------------------------------------------------------------------ what it shows and writes


def test_the_tables_on_the_screen(
    runs: dict[str, Path], bank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ask(capsys, *runs.values(), "--data", bank).splitlines()
    assert lines[0] == f"{bank}: 2 sentences, 8 words"
    assert max(map(len, lines[1:])) <= 80
    for title in ("Arcs", "Branching and spans", "UAS by tag of the modifier, %"):
        assert title in lines
    assert any(line.startswith("6 pairs of runs: ") for line in lines)
    assert any(line.startswith("| mean of 4 runs") for line in lines)


def test_all_files_are_written(
    runs: dict[str, Path], bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "analysis"
    out = ask(capsys, runs["classify"], runs["again"], "--data", bank, "--out", folder)
    assert out.endswith(f"\nwritten: {folder}\n")
    names = {file.name for file in folder.iterdir()}
    tables = "grammar distributions words tags pairs baselines treebank treebank_tags entropy"
    drawn = "distributions agreement treebank treebank_tags entropy"
    assert names == {
        *(f"{name}.csv" for name in (*tables.split(), "sentences", "labels")),
        *(f"{name}.svg" for name in drawn.split()),
    }
    with (folder / "treebank.csv").open() as lines:
        rows = {row["trees"]: float(row["uas"]) for row in csv.DictReader(lines)}
    found = record(capsys, runs["classify"], runs["again"], "--data", bank, "--out", folder)
    told = {**found["treebank"], **found["treebank_baselines"]}
    assert rows == {name: pytest.approx(own["uas"], rel=1e-4) for name, own in told.items()}


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The table that it shows is what its command prints, and its Python runs."""
    page = (REPOSITORY / "docs" / "analysis.md").read_text()
    [shown] = re.findall(r"```\n(\| trees .*?)\n```", page, re.DOTALL)
    assert shown in ask(capsys, "listops", "--data", SAMPLE, "--max-length", 100)
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(code, {})
    first, head, *_ = capsys.readouterr().out.splitlines()
    assert [float(figure) > 95 for figure in first.split()] == [True, True]
    assert head == "run,baseline,uas,uuas,exact_trees"


def test_it_is_in_the_help() -> None:
    result = CliRunner().invoke(app, ["analyse", "--help"])
    assert result.exit_code == 0
    for option in ("--data", "--split", "--out", "--limit", "--max-length", "--json", "--device"):
        assert option in result.output
    assert "analyse" in CliRunner().invoke(app, ["--help"]).output


def test_in_a_pipe_of_ascii(runs: dict[str, Path], bank: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "treelax", "analyse", runs["classify"], "--data", bank],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
    )
    assert b"6-10" in done.stdout
    # how far it is, if it takes long, and nothing else
    assert all(b" gone" in line for line in done.stderr.splitlines())


# ------------------------------------------------------------------ what it refuses


def test_files_and_options_that_are_refused(
    runs: dict[str, Path], bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs["classify"]
    missing = tmp_path / "none.conllu"
    assert fail(capsys, run, "--data", missing).startswith(f"{missing}: does not exist; expected")
    assert "expected the folder of a run" in fail(capsys, tmp_path / "nowhere")
    assert fail(capsys, run, run) == f"RUN: received {run} twice; expected different runs"
    assert "of ListOps, and" in fail(capsys, run, "listops")
    assert "'--split': " in fail(capsys, run, "--split", "valid")
    assert "'--input': " in fail(capsys, run, "--data", bank, "--input", "xml")
    assert "--text: received it for" in fail(capsys, run, "--data", bank, "--text", "a")
    assert "--label: received it without --data" in fail(capsys, run, "--label", "a")
    assert "--tokens: received it for runs of ListOps" in fail(
        capsys, "listops", "--data", SAMPLE, "--tokens"
    )
    assert fail(capsys, run, "--data", bank, "--max-length", 2).startswith(
        f"{bank}: received 2 as the most words; expected at least 3"
    )
    assert "is a file" in fail(capsys, run, "--data", bank, "--out", bank)
    assert "--limit" in fail(capsys, run, "--limit", 0)
    text = tmp_path / "a.txt"
    text.write_text("good\n")
    assert "is no table with a class" in fail(capsys, run, "--data", text, "--label", "x")
    table = tmp_path / "a.tsv"
    table.write_text("review\ngood\n")
    assert "'x'" in fail(capsys, run, "--data", table, "--label", "x")
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tHi\n\n")
    assert f"{broken}, line 1: received 2 columns" in fail(capsys, run, "--data", broken)
