"""``treelax analyse`` without ``--data``: the files that runs were trained with, and no others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from analyse_commands import fail, record
from sentence_runs import SIZES, sentences, train, write_files

from treelax.cli.main import main
from treelax.data.conllu import Sentence, write_conllu
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.origins import write_origins
from treelax.training.run import Run


def test_runs_with_other_dev_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = train("classify", tmp_path / "one", train__epochs=1)
    other = train("classify", tmp_path / "other", train__epochs=1)
    dev = tmp_path / "other" / "dev.tsv"
    names, *rows = dev.read_text().splitlines()
    dev.write_text("\n".join([names, "a new one\tyes", *rows, ""]))
    changed = fail(capsys, one, other)
    assert changed == (
        f"{dev}: is not the dev data that the run was trained with (it has changed since); expected "
        "the same content: restore it, or name the file to study with --data FILE"
    )
    assert record(capsys, other, "--data", dev)["sentences"] == SIZES["dev"] + 1
    write_origins(other, Run.open(other).config(TextConfig).data)  # now it was trained with these
    said = fail(capsys, one, other)
    assert said.startswith(f"{dev}: sentence 1 is 'a new one' and that of ")
    assert said.endswith("expected the same sentences for all runs: give --data FILE")
    dev.unlink()
    assert fail(capsys, other) == (
        f"{dev}: does not exist; expected the dev data of the run: give --data FILE"
    )


# ------------------------------------------------------------------ files with relative names


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A run that was trained in its folder, and the folder of others, in which we are now."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
        monkeypatch.chdir(folder)
        write_files("classify", Path())
    dev = here / "dev.tsv"
    dev.write_text("review\tliked\nsomething else\tyes\n")
    monkeypatch.chdir(home)
    run = train("classify", Path(), train__epochs=1)
    monkeypatch.chdir(here)
    return home / run, dev


def test_the_file_of_the_run_is_found_from_elsewhere(
    away: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Not another of that name, and where it is not to be had that is told."""
    run, dev = away
    own = run.parent / "dev.tsv"
    assert 'dev = "dev.tsv"' in (run / "config.toml").read_text()
    found = record(capsys, run)
    assert (found["data"], found["sentences"]) == (str(own), SIZES["dev"])
    kept = own.rename(run.parent / "kept.tsv")
    assert fail(capsys, run) == (
        f"{dev}: is not the dev data that the run was trained with (that was {own}); expected the "
        "same content: restore it, or name the file to study with --data FILE"
    )
    shutil.copy(kept, dev)  # moved together with the run, say
    assert record(capsys, run)["data"] == "dev.tsv"
    dev.unlink()
    assert fail(capsys, run) == (
        f"{dev}: does not exist, nor does {own}, where it was; expected the dev data of the run: give "
        "--data FILE"
    )


def test_a_run_of_before_files_were_recorded(
    away: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run, dev = away
    (run / "data.json").unlink()
    assert main(["analyse", str(run), "--json", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["sentences"] == 1
    assert output.err == (
        f"run: is an older run, which does not tell what its data were; {dev} is taken unchecked\n"
    )
    dev.unlink()
    assert fail(capsys, run) == (
        f"{dev}: does not exist; expected the dev data of the run, which was perhaps trained in "
        "another folder: go there, or give --data FILE"
    )
    (run / "data.json").write_text('{"dev": 3}')
    assert fail(capsys, run).startswith(f"{run / 'data.json'}: cannot be read as a record of files")


def test_given_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trees that came with the texts are studied, so they are what must not change."""
    monkeypatch.chdir(tmp_path)
    for seed, (split, count) in enumerate(SIZES.items()):
        ones = [Sentence(tuple(w), tuple(range(len(w)))) for w, _ in sentences(seed, count)]
        write_conllu(f"{split}.conllu", ones)
    given = {"model__trees": "given", "data__trees": "{split}.conllu", "train__epochs": 1}
    run = train("classify", Path("given"), **given).absolute()
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    trees = tmp_path / "dev.conllu"
    assert record(capsys, run)["data"] == str(trees)
    write_conllu(trees, [Sentence(("another", "one"), (2, 0))])
    assert fail(capsys, run).startswith(
        f"{trees}: is not the file of dev trees that the run was trained with (it has changed since)"
    )
