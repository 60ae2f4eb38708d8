"""``--vectors`` of ``treelax predict | parse | analyse``: words that training never saw."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Output, fail, records, shown, told, typed, written
from sentence_runs import train_with, write_vectors

from treelax.apps.tasks.text.pretrained import SentenceModel


class Runs(NamedTuple):
    """Two runs of the same weights: one has seen the words of the test set; and their files."""

    seen: Path
    new: Path
    test: Path
    vectors: list[str]


def runs_in(folder: Path, files: int, *settings: str) -> Runs:
    vectors = write_vectors(folder)[:files]
    seen, new = (train_with(folder, vectors, *settings, test=test) for test in (True, False))
    options = [part for file in vectors for part in ("--vectors", str(file))]
    return Runs(seen, new, folder / "test.tsv", options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """With one file; only to be looked at."""
    return runs_in(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """With two files, whose vectors are left as they are."""
    return runs_in(tmp_path_factory.mktemp("two"), 2, "data.normalise=false")


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has no use for files."""
    return train_with(tmp_path_factory.mktemp("random"), [], test=False)


@pytest.mark.parametrize("name", ["runs", "joined"])
def test_as_a_run_that_knows_the_words(
    request: pytest.FixtureRequest, capsys: Output, name: str
) -> None:
    """The same numbers as if the file had been the test set, and others than without the files."""
    one: Runs = request.getfixturevalue(name)
    expected = records(capsys, "predict", one.seen, one.test)
    assert records(capsys, "predict", one.new, one.test, *one.vectors) == expected
    assert records(capsys, "predict", one.new, one.test) != expected


def test_standard_input(
    runs: Runs, capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Which cannot be read twice; and what Python says, and a saved model."""
    text = "the superb Film\nzzyzx awful\n"
    typed(monkeypatch, text)
    said = shown(capsys, "predict", runs.new, "-", *runs.vectors)
    file = written(tmp_path, text, "new.txt")
    assert said == shown(capsys, "predict", runs.seen, file)
    own = SentenceModel.from_run(runs.new, vectors=runs.vectors[1]).predict(text.splitlines())
    assert [each.label for each in own] == [json.loads(line)["label"] for line in said.splitlines()]
    SentenceModel.from_run(runs.new).save_pretrained(tmp_path / "saved")
    assert shown(capsys, "predict", tmp_path / "saved", file, *runs.vectors) == said


def test_unknown_words_are_told(
    runs: Runs, joined: Runs, random: Path, capsys: Output, tmp_path: Path
) -> None:
    file = written(tmp_path, "the superb plot was awful\nthe zzyzx was\n", "new.txt")
    many = "note: 3 of 6 different words are unknown to the model and share a hundred vectors; "
    assert told(capsys, "predict", runs.new, file) == (
        f"{many}look them up with --vectors big.txt, as in training\n"
    )
    assert told(capsys, "predict", joined.new, file).endswith(
        "with --vectors big.txt --vectors more.txt, as in training\n"
    )
    assert told(capsys, "predict", runs.new, file, *runs.vectors) == (
        "word vectors: 2 of 3 words new to the model found\n"
    )
    few = written(tmp_path, "the film was a plot good fine bad sad THE superb\n", "few.txt")
    assert told(capsys, "predict", runs.new, few) == told(capsys, "predict", random, file) == ""


def test_parse(runs: Runs, capsys: Output) -> None:
    """With weights of arcs, which tell more than heads."""
    asked = ["awful Film zzyzx superb", "--format", "json", "--soft"]
    expected = records(capsys, "parse", runs.seen, *asked)
    assert records(capsys, "parse", runs.new, *asked, *runs.vectors) == expected
    assert records(capsys, "parse", runs.new, *asked) != expected


def test_analyse(runs: Runs, random: Path, capsys: Output) -> None:
    """Runs that were trained without files go without, in any order."""

    def study(*arguments: object) -> list[Any]:
        [found] = records(capsys, "analyse", *arguments, "--data", runs.test, "--json")
        return list(found["entropy"].values())

    [with_files], [without] = study(runs.new, *runs.vectors), study(random)
    assert study(runs.seen) == [with_files] != study(runs.new)
    assert study(random, runs.new, *runs.vectors) == [without, with_files]
    assert study(runs.new, random, *runs.vectors) == [with_files, without]
    data = ["--data", runs.test]
    said = told(capsys, "analyse", runs.new, random, *runs.vectors, *data)
    assert said == f"{random}: takes no files of word vectors; the other runs do\n"


# ------------------------------------------------------------------ what is refused


def test_other_vectors(runs: Runs, capsys: Output, tmp_path: Path) -> None:
    """Of another size, or of the same: labels would be chance."""
    refused = partial(fail, capsys, "predict", runs.new, runs.test, "--vectors")
    file = written(tmp_path, "the 1 2\nsuperb 3 4\n", "small.txt")
    assert refused(file) == (
        f"vectors: received 2 dimensions in {file}; expected 5, which {runs.new} has: give big.txt, "
        "as in training"
    )
    lines = Path(runs.vectors[1]).read_text().splitlines()
    for changed, word in ((lines[1:], "the"), ([*lines[:2], "was 1 2 3 4 5", *lines[3:]], "was")):
        file = written(tmp_path, "\n".join(changed), "other.txt")
        assert refused(file).startswith(
            f"vectors: {file} has not the vector that {runs.new} has for {word!r}; expected the same"
        )
    assert refused("nowhere.txt").startswith("nowhere.txt: ")


def test_other_order_and_number_of_files(
    runs: Runs, joined: Runs, random: Path, capsys: Output
) -> None:
    first, second = joined.vectors[1::2]
    refused = partial(fail, capsys, "predict", joined.new, joined.test, "--vectors")
    assert refused(first) == (
        f"vectors: received {first} for {joined.new}; expected as in training big.txt, more.txt"
    )
    swapped = refused(second, "--vectors", first)
    assert swapped.endswith("expected the same as in training, big.txt, more.txt")
    data = ["--data", runs.test, *runs.vectors]
    assert fail(capsys, "analyse", joined.new, *data).endswith("in training big.txt, more.txt")
    for command in (["predict", random, runs.test, *runs.vectors], ["analyse", random, *data]):
        assert "learned its word vectors from random ones" in fail(capsys, *command)


@pytest.mark.parametrize("command", [["parse"], ["predict"], ["analyse"]])
def test_listops(command: list[str], capsys: Output) -> None:
    more = {"parse": ["[MAX 2 9 ]"], "predict": ["a.txt"], "analyse": []}[command[0]]
    line = fail(capsys, *command, "listops", *more, "--vectors", "glove.txt")
    assert "glove.txt, and listops is a model of ListOps" in line
