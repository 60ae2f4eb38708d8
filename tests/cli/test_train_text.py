"""``treelax train classify | pair | tag | …`` on one's own files."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest
from listops_runs import result
from sentence_runs import interrupted_after_an_epoch

from treelax.__main__ import main

SMALL = ["data.vector_size=8", "model.gcn_size=8", "model.scorer_size=8", "model.output_size=8"]
SMALL += ["model.encoder_size=8", "train.epochs=2", "train.batch_size=16", "train.threads=1"]
SETTINGS = [part for setting in SMALL for part in ("--set", setting)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


def sentence(rng):
    liked = rng.random() < 0.5
    words = [rng.choice(["the", "film", "was", "a", "plot"]) for _ in range(rng.randint(2, 6))]
    words.insert(
        rng.randrange(len(words)), rng.choice(["good", "fine"] if liked else ["bad", "sad"])
    )
    return words, "yes" if liked else "no"


@pytest.fixture
def files(tmp_path):
    rng = random.Random(0)
    for split, count in (("train", 64), ("dev", 16), ("test", 16)):
        ones = [sentence(rng) for _ in range(count)]
        Path(tmp_path, f"{split}.tsv").write_text(
            "review\tliked\n" + "".join(f"{' '.join(w)}\t{y}\n" for w, y in ones)
        )
    return tmp_path


def named(folder, suffix, *splits):
    return [part for s in splits for part in (f"--{s}", str(folder / f"{s}.{suffix}"))]


def classify(files, out, *more):
    columns = ["--text", "review", "--label", "liked", "--tokens"]
    data = named(files, "tsv", "train", "dev", "test")
    return main(["train", "classify", *data, *columns, "--out", str(out), *SETTINGS, *more])


def test_classify_ends_with_figures_and_resumes(files, capsys):
    out = files / "run"
    assert classify(files, out) == 0
    printed = capsys.readouterr().out
    assert "discrete trees" in printed
    assert str(out) in printed
    record = result(out)
    assert record["labels"] == ["no", "yes"]
    assert set(record["splits"]) == {"dev", "test"}
    assert record["splits"]["test"]["examples"] == 16
    assert (out / "words.safetensors").exists()
    # an ended run shows its figures again, also when it is named by its folder alone
    assert main(["train", "classify", "--out", str(out), "--resume"]) == 0
    assert "discrete trees" in capsys.readouterr().out


def test_an_interrupted_run_ends_as_an_uninterrupted_one(files):
    whole, broken = files / "whole", files / "broken"
    assert classify(files, whole) == 0
    with interrupted_after_an_epoch():
        assert classify(files, broken) == 130
    assert not (broken / "test.json").exists()
    assert main(["train", "classify", "--out", str(broken), "--resume"]) == 0
    assert result(broken) == result(whole)


def test_other_test_data_are_refused_on_resuming(files, capsys):
    """They have no part in training, but the figures at the end are theirs."""
    out, test, record = files / "run", files / "test.tsv", files / "run" / "data.json"
    with interrupted_after_an_epoch():
        assert classify(files, out) == 130
    resume, began = ["train", "classify", "--out", str(out), "--resume"], record.read_text()
    moved = shutil.copy(test, files / "moved.tsv")
    test.write_text("".join(test.read_text().splitlines(keepends=True)[:2]))
    capsys.readouterr()
    assert main(resume) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"treelax: error: {test}: is not the test data that the run began with")
    assert line.endswith("or give --test FILE\n")
    assert record.read_text() == began
    older = shutil.copytree(out, files / "older")
    (older / "data.json").unlink()
    assert main([*resume[:3], str(older), "--resume"]) == 0
    assert result(older)["splits"]["test"]["examples"] == 1
    assert main([*resume, "--test", str(moved)]) == 0
    assert result(out)["splits"]["test"]["examples"] == 16


def test_a_run_without_test_data_is_given_some_on_resuming(files, capsys):
    out, data = files / "run", named(files, "tsv", "train", "dev")
    columns = ["--text", "review", "--label", "liked", "--tokens"]
    with interrupted_after_an_epoch():
        assert main(["train", "classify", *data, *columns, "--out", str(out), *SETTINGS]) == 130
    resume = ["train", "classify", "--out", str(out), "--resume", "--test"]
    capsys.readouterr()
    assert main([*resume, str(files / "nope.tsv")]) == 2
    assert f"{files / 'nope.tsv'}: does not exist; expected" in capsys.readouterr().err
    assert main([*resume, str(files / "test.tsv")]) == 0
    assert set(result(out)["splits"]) == {"dev", "test"}


def test_a_corpus_that_is_not_there(tmp_path, capsys):
    corpus, out = tmp_path / "sst", tmp_path / "run"
    corpus.mkdir()
    for split in ("train", "dev"):
        trees = "(3 (2 Dogs) (2 bark))\n(1 (2 Cats) (2 sleep))\n"
        (corpus / f"{split}.txt").write_text(8 * trees)
    with interrupted_after_an_epoch():
        assert main(["train", "sst", "--from", str(corpus), "--out", str(out), *SETTINGS]) == 130
    nowhere = tmp_path / "nowhere"
    capsys.readouterr()
    assert main(["train", "sst", "--out", str(out), "--resume", "--from", str(nowhere)]) == 2
    line = capsys.readouterr().err
    assert line.startswith(
        f"treelax: error: {nowhere}: does not exist; expected the train data of "
    )
    assert str(corpus) in line
    assert line.endswith("give --from PATH\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "classify"], "data.train is none; expected a file: give --train FILE"),
        (["train", "snli"], "fetch it with treelax data snli, or give --from PATH"),
        (["train", "sst", "--preset", "sst-tres"], "Did you mean 'sst-tree'?"),
        (["train", "tag", "--set", "model.gcn=1"], "model.gcn"),
        (
            ["train", "snli", "--preset", "sst-tree"],
            "--preset is 'sst-tree'; expected one of 'snli-",
        ),
    ],
)
def test_what_is_missing_is_named_in_one_line(tmp_path, capsys, arguments, message):
    assert main([*arguments, "--out", str(tmp_path / "r")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert message in error[0]
    assert not (tmp_path / "r").exists()


def test_bad_data(files, capsys):
    dev = files / "dev.tsv"
    dev.write_text(dev.read_text() + "a fine plot\tperhaps\n")
    assert classify(files, files / "run") == 2
    error = capsys.readouterr().err
    assert "dev.tsv, line 18" in error
    assert "'perhaps'" in error
    missing = ["--text", "reviews", "--label", "liked"]
    data = named(files, "tsv", "train", "dev")
    assert main(["train", "classify", *data, *missing, "--out", str(files / "x")]) == 2
    assert "review" in capsys.readouterr().err


# ------------------------------------------------------------------ commands and their runs


def test_a_run_is_resumed_by_a_command_of_its_kind(files, capsys):
    out = files / "run"
    with interrupted_after_an_epoch():
        assert classify(files, out) == 130
    for command in (["pair"], ["sst"], ["snli", "--preset", "snli-none"]):
        capsys.readouterr()
        assert main(["train", *command, "--out", str(out), "--resume"]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"treelax: error: {out}: is a run of ")
        assert line.endswith("give another --out\n")
    assert main(["train", "classify", "--out", str(out), "--resume"]) == 0


def test_a_run_goes_on_though_its_files_have_moved(files, monkeypatch, capsys):
    whole, broken = files / "whole", files / "broken"
    assert classify(files, whole) == 0
    with interrupted_after_an_epoch():
        assert classify(files, broken) == 130
    moved = files / "moved"
    moved.mkdir()
    for split in ("train", "dev", "test"):
        (files / f"{split}.tsv").rename(moved / f"{split}.tsv")
    resume = ["train", "classify", "--out", str(broken), "--resume"]
    capsys.readouterr()
    assert main(resume) == 2
    assert "train.tsv: does not exist" in capsys.readouterr().err
    given = [*named(moved, "tsv", "train", "dev", "test")]
    other = (moved / "dev.tsv").read_text()
    (moved / "dev.tsv").write_text(other.replace("\tyes", "\tno", 1))
    assert main([*resume, *given]) == 2
    assert "are not those it was started with" in capsys.readouterr().err
    (moved / "dev.tsv").write_text(other)
    assert main([*resume, *given]) == 0
    assert result(broken) == result(whole)
    assert str(moved) in (broken / "config.toml").read_text()


def test_a_run_that_is_resumed_in_another_folder(files, monkeypatch, capsys):
    """It says which file is not there, where it was, and two ways to go on, which work."""
    whole, broken, other, away = (files / name for name in ("whole", "broken", "other", "away"))
    away.mkdir()
    assert classify(files, whole) == 0
    monkeypatch.chdir(files)
    with interrupted_after_an_epoch():
        assert classify(Path(), broken) == 130
    shutil.copytree(broken, other)
    train, resume = files / "train.tsv", ["train", "classify", "--resume", "--out"]

    def refused(run):
        capsys.readouterr()
        monkeypatch.chdir(away)
        assert main([*resume, str(run)]) == 2
        return capsys.readouterr().err.removeprefix("treelax: error: ")

    line = refused(broken)
    assert line.startswith(
        f"{away / 'train.tsv'}: does not exist; expected the train data of the run"
    )
    assert str(train) in line
    assert line.endswith("or give --train FILE\n")
    assert main([*resume, str(broken), *named(Path(".."), "tsv", "train", "dev", "test")]) == 0
    assert result(broken) == result(whole)
    kept = train.rename(files / "kept.tsv")
    assert refused(other).endswith("give --train FILE\n")
    assert main([*resume, str(broken)]) == 0  # it has ended and needs no files
    record = other / "data.json"
    record.write_text(record.read_text()[:40])
    assert refused(other).startswith(f"{record}: cannot be read as a record of files (")
    kept.rename(train)
    record.unlink()
    monkeypatch.chdir(files)
    assert main([*resume, str(other)]) == 0
    assert result(other) == result(whole)
    assert json.loads(record.read_text())["train"]["path"] == str(train)


@pytest.mark.parametrize("name", ["my, text", '"quoted"'])
def test_columns_of_any_name(files, name):
    cell = '"' + name.replace('"', '""') + '"'
    for split in ("train", "dev"):
        rows = (files / f"{split}.tsv").read_text().splitlines()[1:]
        lines = [cell + ',"a, label"', *(row.replace("\t", ",") for row in rows)]
        (files / f"{split}.csv").write_text("\n".join([*lines, ""]))
    command = ["train", "classify", *named(files, "csv", "train", "dev"), "--text", name]
    command += ["--label", "a, label", "--out", str(files / "run"), *SETTINGS]
    assert main(command) == 0


@pytest.mark.parametrize(
    "setting",
    [
        *("seed=99999999999999999999", "train.threads=99999", "train.batch_size=1000000000000"),
        "data.max_length=99999999999999999999",
    ],
)
def test_numbers_without_bound(files, setting, capsys):
    assert classify(files, files / "run", "--set", setting) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(rf"{setting.partition('=')[0]} is \d+; expected .*(to|at most) [\d,]+$", said)
    assert not (files / "run").exists()
