"""``--vectors`` of ``treelax predict | parse | analyse``: words that training never saw."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import fail, records, shown, told, typed, written
from sentence_runs import train_with, write_vectors

from treelax.apps.tasks.sentences.origins import Origin, trained_with
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.sources import training_files


class Runs(NamedTuple):
    """Two runs of the same weights: one has seen the words of the test set; and their files."""

    seen: Path
    new: Path
    test: Path
    vectors: list[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """With two files, whose vectors are left as they are; read-only."""
    folder = tmp_path_factory.mktemp("two")
    vectors = write_vectors(folder)
    seen, new = (
        train_with(folder, vectors, "data.normalise=false", test=test) for test in (True, False)
    )
    options = [part for file in vectors for part in ("--vectors", str(file))]
    return Runs(seen, new, folder / "test.tsv", options)


@pytest.fixture(scope="module")
def random(tmp_path_factory):
    """A run that has no use for files."""
    return train_with(tmp_path_factory.mktemp("random"), [], test=False)


def test_as_a_run_that_knows_the_words(runs, capsys, monkeypatch):
    """The same numbers as if a file had been the test set, and others than without the files."""
    text = ["awful Film zzyzx superb", "--format", "json", "--soft"]
    for command, asked in (("predict", [runs.test]), ("parse", text)):
        expected = records(capsys, command, runs.seen, *asked)
        assert records(capsys, command, runs.new, *asked, *runs.vectors) == expected
        assert records(capsys, command, runs.new, *asked) != expected
    reply = []
    for arguments in ([runs.new, "-", *runs.vectors], [runs.seen, "-"]):
        typed(monkeypatch, "the superb Film\nzzyzx awful\n")  # which cannot be read twice
        reply.append(shown(capsys, "predict", *arguments))
    assert reply[0] == reply[1]


def test_unknown_words_are_told(runs, random, capsys, tmp_path):
    file = written(tmp_path, "the superb plot was awful\nthe zzyzx was\n", "new.txt")
    assert told(capsys, "predict", runs.new, file) == (
        "note: 3 of 6 different words are unknown to the model and share a hundred vectors; look "
        "them up with --vectors big.txt --vectors more.txt, as in training\n"
    )
    assert told(capsys, "predict", runs.new, file, *runs.vectors) == (
        "word vectors: 2 of 3 words new to the model found\n"
    )
    few = written(tmp_path, "the film was a plot good fine bad sad THE superb\n", "few.txt")
    assert told(capsys, "predict", runs.new, few) == told(capsys, "predict", random, file) == ""


def test_analyse(runs, random, capsys):
    """Runs that were trained without files go without, in any order."""

    def study(*arguments):
        [outcome] = records(capsys, "analyse", *arguments, "--data", runs.test, "--json")
        return list(outcome["entropy"].values())

    [with_files], [without] = study(runs.new, *runs.vectors), study(random)
    assert study(runs.seen) == [with_files] != study(runs.new)
    assert study(random, runs.new, *runs.vectors) == [without, with_files]
    data = ["--data", runs.test]
    note = told(capsys, "analyse", runs.new, random, *runs.vectors, *data)
    assert note == f"{random}: takes no files of word vectors; the other runs do\n"


def test_what_is_refused(runs, random, capsys, tmp_path):
    """Vectors of another size, other ones, in another order, or that are replaced by the output."""
    first, second = runs.vectors[1::2]
    predict = partial(fail, capsys, "predict", runs.new, runs.test, "--vectors")
    small = written(tmp_path, "the 1 2\nsuperb 3 4\n", "small.txt")
    assert predict(small, "--vectors", second) == (
        f"vectors: received 5 dimensions in {small}, {second}; expected 8, which {runs.new} has: give "
        "big.txt, more.txt, as in training"
    )
    other = written(tmp_path, "\n".join(Path(first).read_text().splitlines()[1:]), "other.txt")
    line = predict(other, "--vectors", second)
    assert f"has not the vector that {runs.new} has for 'the'; expected the same" in line
    assert predict(first) == (
        f"vectors: received {first} for {runs.new}; expected as in training big.txt, more.txt"
    )
    swapped = predict(second, "--vectors", first)
    assert swapped.endswith("expected the same as in training, big.txt, more.txt")
    assert predict("nowhere.txt", "--vectors", second).startswith("nowhere.txt: ")
    assert predict(first, "--vectors", second, "--out", second, "--format", "tsv") == (
        f"--out: received {second}, the file that is read; expected another"
    )
    line = fail(capsys, "predict", random, runs.test, *runs.vectors)
    assert "learned its word vectors from random ones" in line
    line = fail(capsys, "parse", "listops", "[MAX 2 9 ]", "--vectors", "glove.txt")
    assert "glove.txt, and listops is a model of ListOps" in line


# ------------------------------------------------------------------ files of the run


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize(
    ("name", "what"), [("train.tsv", "train data"), ("more.txt", "word vectors")]
)
def test_files_of_the_run_are_not_replaced(runs, tmp_path, capsys, name, what):
    run, new = runs.seen, written(tmp_path, "a fine film\n", "new.txt")
    out, before = run.parent / name, contents(run.parent)
    link = tmp_path / "link.tsv"
    link.symlink_to(out)
    predict = ["predict", run, new, "--format", "tsv"]
    parse = ["parse", run, "a fine film", "--format", "heads"]
    for command, file in ((predict, out), (predict, link), (parse, out)):
        line = fail(capsys, *command, "--out", file)
        assert line == f"--out: received {file}, the {what} of {run}; expected another file"
    assert contents(run.parent) == before
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["train.tsv", "test.tsv", "trees-dev.conllu", "words.txt"])
def test_names_are_seen_from_here_too(tmp_path, monkeypatch, name):
    """Of a run that was moved together with its files, or that is older than the record."""
    files = {name: f"{name}.tsv" for name in ("train", "dev", "test")}
    config = DataConfig(**files, vectors="words.txt", trees="trees-{split}.conllu")  # type: ignore[arg-type]
    monkeypatch.chdir(tmp_path)
    file = written(Path(), "x", name)
    for origins in ({}, {"train": Origin("/moved/train.tsv", "")}):
        assert trained_with(file, origins, training_files(config)) is not None
        other = written(Path(), "x", "new.tsv")
        assert trained_with(other, origins, training_files(config)) is None
