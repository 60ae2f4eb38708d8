"""``--vectors`` of ``treelax predict | parse | analyse``: words that training never saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
from predict_commands import ask, fail, records, typed, written
from vector_runs import train_with, write_vectors

from treelax.analysis import parses
from treelax.cli.main import main
from treelax.tasks.text.pretrained import SentenceModel


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
def lower(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """In lower case, with all vectors of unknown words learned."""
    return runs_in(tmp_path_factory.mktemp("low"), 1, "data.lower=true", "model.learned_words=101")


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the program says beside the labels."""
    capsys.readouterr()
    assert main(["predict", *map(str, arguments), "--device", "cpu"]) == 0
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["runs", "joined", "lower"])
def test_as_a_run_that_knows_the_words(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The same numbers as if the file had been the test set, and others than without the files."""
    one: Runs = request.getfixturevalue(name)
    expected = records(capsys, one.seen, one.test)
    assert records(capsys, one.new, one.test, *one.vectors) == expected
    assert records(capsys, one.new, one.test) != expected


def test_python_says_the_same(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    said = records(capsys, runs.new, runs.test, *runs.vectors)
    model = SentenceModel.from_run(runs.new, vectors=runs.vectors[1])
    own = model.predict([each["words"] for each in said])
    assert [each.label for each in own] == [each["label"] for each in said]
    for one, other in zip(own, said, strict=True):
        assert other["probabilities"] == pytest.approx(one.probabilities, abs=1e-6)
        assert other["heads"] == list((one.heads or [()])[0])


def test_standard_input(
    runs: Runs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Which cannot be read twice."""
    text = "the superb Film\nzzyzx awful\n"
    typed(monkeypatch, text)
    said = ask(capsys, runs.new, "-", *runs.vectors)
    assert said == ask(capsys, runs.seen, written(tmp_path, text, "new.txt"))


def test_words_without_a_vector_share_a_hundred(
    runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = written(tmp_path, "zzyzx\nqwxq was here\n", "new.txt")
    assert ask(capsys, runs.new, file, *runs.vectors) == ask(capsys, runs.new, file)
    assert told(capsys, runs.new, file, *runs.vectors) == (
        "word vectors: 0 of 3 words that are new to the model found\n"
    )


def test_many_unknown_words_are_told(
    runs: Runs, joined: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = written(tmp_path, "the superb plot was awful\nthe zzyzx was\n", "new.txt")
    many = "note: 3 of 6 different words are unknown to the model and share a hundred vectors; "
    assert told(capsys, runs.new, file) == (
        f"{many}--vectors big.txt, the file of its training, looks them up\n"
    )
    assert told(capsys, joined.new, file) == (
        f"{many}--vectors big.txt --vectors more.txt, the files of its training, looks them up\n"
    )
    assert told(capsys, runs.new, file, *runs.vectors) == (
        "word vectors: 2 of 3 words that are new to the model found\n"
    )
    few = written(tmp_path, "the film was a plot good fine bad sad THE superb\n", "few.txt")
    assert told(capsys, runs.new, few) == ""


def test_a_saved_model_takes_them_too(
    runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    SentenceModel.from_run(runs.new).save_pretrained(tmp_path / "saved")
    expected = ask(capsys, runs.seen, runs.test)
    assert ask(capsys, tmp_path / "saved", runs.test, *runs.vectors) == expected
    assert "--vectors big.txt" in told(capsys, tmp_path / "saved", runs.test)


# ------------------------------------------------------------------ parse and analyse


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    capsys.readouterr()
    status = main([*map(str, arguments), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    return [json.loads(line) for line in output.out.splitlines()]


def test_parse(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """With weights of arcs, which tell more than heads."""
    asked = ["awful Film zzyzx superb", "--format", "json", "--soft"]
    expected = shown(capsys, "parse", runs.seen, *asked)
    assert shown(capsys, "parse", runs.new, *asked, *runs.vectors) == expected
    assert shown(capsys, "parse", runs.new, *asked) != expected


def test_analyse(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    def study(run: Path, *more: str) -> str:
        found = shown(capsys, "analyse", run, "--data", runs.test, "--json", *more)
        return json.dumps(found).replace(f'"{run.name}"', '"run"')

    expected = study(runs.seen)
    assert study(runs.new, *runs.vectors) == expected
    assert study(runs.new) != expected


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has no use for files."""
    return train_with(tmp_path_factory.mktemp("random"), [], test=False)


def test_analyse_gives_them_to_the_runs_that_have_a_use_for_them(
    runs: Runs, random: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run is as it is alone, in any order, and the one that goes without is told."""

    def study(*arguments: object) -> Any:
        [found] = shown(capsys, "analyse", *arguments, "--data", runs.test, "--json")
        return found["entropy"]

    [with_files] = study(runs.new, *runs.vectors).values()
    [without] = study(random).values()
    assert [with_files] != list(study(runs.new).values())
    assert list(study(random, runs.new, *runs.vectors).values()) == [without, with_files]
    assert list(study(runs.new, random, *runs.vectors).values()) == [with_files, without]
    data = ["--data", str(runs.test), "--device", "cpu"]
    assert main(["analyse", str(runs.new), str(random), *runs.vectors, *data]) == 0
    told = f"{random}: has no word vectors from files, so --vectors are for the other runs alone"
    assert capsys.readouterr().err.splitlines() == [told]


# ------------------------------------------------------------------ what is refused


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The last line that analyse says, which must not have parsed anything before."""
    with mock.patch.object(parses, "parse_corpus", side_effect=AssertionError):
        assert main(["analyse", *map(str, arguments), "--device", "cpu"]) == 2
    return capsys.readouterr().err.splitlines()[-1].removeprefix("treelax: error: ")


def test_analyse_names_the_run_that_refuses(
    runs: Runs, joined: Runs, random: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data, file = ["--data", runs.test], runs.vectors[1]
    assert refused(capsys, runs.new, joined.new, *runs.vectors, *data) == (
        f"vectors: received {file} for {joined.new}; expected as in training big.txt, more.txt"
    )
    SentenceModel.from_run(random).save_pretrained(tmp_path / "saved")
    assert refused(capsys, tmp_path / "saved", random, *runs.vectors, *data).startswith(
        f"vectors: received {file}, and {tmp_path / 'saved'} learned its word vectors from random ones"
    )
    assert refused(capsys, runs.new, random, "--vectors", "nowhere.txt", *data) == (
        "nowhere.txt: does not exist; expected word vectors"
    )
    small = written(tmp_path, "the 1 2\nsuperb 3 4\n", "small.txt")
    assert main(["analyse", *map(str, [random, runs.new, "--vectors", small, *data])]) == 2
    assert f"expected 5, which {runs.new} has: give big.txt" in capsys.readouterr().err


def test_other_dimensions(runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = written(tmp_path, "the 1 2\nsuperb 3 4\n", "small.txt")
    assert fail(capsys, runs.new, runs.test, "--vectors", file) == (
        f"vectors: received 2 dimensions in {file}; expected 5, which {runs.new} has: give big.txt, "
        "as in training"
    )


def test_other_vectors(runs: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of the same size: labels would be chance."""
    lines = Path(runs.vectors[1]).read_text().splitlines()
    for changed, word in ((lines[1:], "the"), ([*lines[:2], "was 1 2 3 4 5", *lines[3:]], "was")):
        file = written(tmp_path, "\n".join(changed), "other.txt")
        assert fail(capsys, runs.new, runs.test, "--vectors", file) == (
            f"vectors: {file} has not the vector that {runs.new} has for {word!r}; expected the same "
            "as in training, big.txt"
        )


def test_other_order_and_number_of_files(joined: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = joined.vectors[1::2]
    assert fail(capsys, joined.new, joined.test, "--vectors", first) == (
        f"vectors: received {first} for {joined.new}; expected as in training big.txt, more.txt"
    )
    swapped = fail(capsys, joined.new, joined.test, "--vectors", second, "--vectors", first)
    assert swapped.endswith("expected the same as in training, big.txt, more.txt")


def test_files_that_are_not_there(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(capsys, runs.new, runs.test, "--vectors", "nowhere.txt") == (
        "nowhere.txt: does not exist; expected word vectors"
    )


def test_random_vectors(runs: Runs, random: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = runs.vectors[1]
    assert fail(capsys, random, runs.test, *runs.vectors) == (
        f"vectors: received {file}, and {random} learned its word vectors from random ones (or is too "
        "old to tell its files); expected none"
    )
    assert "unknown" not in told(capsys, random, runs.test)


@pytest.mark.parametrize("command", ["parse", "analyse"])
def test_listops(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["[MAX 2 9 ]"] if command == "parse" else []
    assert main([command, "listops", *more, "--vectors", "glove.txt"]) == 2
    assert "glove.txt, and listops is a model of ListOps" in capsys.readouterr().err
