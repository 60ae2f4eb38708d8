"""``treelax predict``: lines in quotes, unusable ones and those without words."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
from predict_commands import fail, records, typed, written
from sentence_runs import SIZES, SMALL, figures, train, write_files

from treelax.cli.main import main
from treelax.data.conllu import Sentence, write_conllu
from treelax.tasks.text.pretrained import SentenceModel

RAGGED = '"one cell too many"\t"yes"\t"x"\n'


def quoted_files(folder: Path) -> list[str]:
    """Tables as pandas and spreadsheets write them, and the options that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    options = write_files("classify", folder)
    for file in folder.glob("*.tsv"):
        rows = [row.split("\t") for row in file.read_text().splitlines()]
        file.write_text("".join(f'"{text}"\t"{label}"\n' for text, label in rows))
    return options


@pytest.fixture(scope="module")
def quoted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on tables in quotes that leaves out unusable lines; ``dev.tsv`` has one on line 15."""
    folder = tmp_path_factory.mktemp("quoted")
    options = quoted_files(folder)
    with (folder / "dev.tsv").open("a") as file:
        file.write(RAGGED)
    for key, value in (SMALL | {"data.quoted": "true", "data.unusable": "drop"}).items():
        options += ["--set", f"{key}={value}"]
    run = folder / "run"
    with mock.patch.dict(os.environ, TREELAX_CACHE=str(folder / "cache")):
        assert main(["train", "classify", *options, "--device", "cpu", "--out", str(run)]) == 0
    return run


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of pairs that refuses unusable lines."""
    return train("pair", tmp_path_factory.mktemp("pair"), train__epochs=1)


@pytest.mark.parametrize("saved", [False, True])
def test_a_model_reads_the_tables_that_it_was_trained_on(
    quoted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], saved: bool
) -> None:
    """Cells in quotes, and without the lines that training left out."""
    model = quoted
    if saved:
        model = tmp_path / "saved"
        SentenceModel.from_run(quoted).save_pretrained(model)
    capsys.readouterr()
    dev = quoted.parent / "dev.tsv"
    assert main(["predict", str(model), str(dev), "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == SIZES["dev"]
    assert output.err.splitlines() == [
        f"{dev}: 1 line dropped: wrong number of columns (15)",
        f"accuracy: {figures(quoted)['dev']['accuracy']:.2f} % of {SIZES['dev']} labelled texts",
    ]
    some = written(tmp_path, 'review\tliked\n"a ""fine"" film"\tyes\nbad\tno\n', "some.tsv")
    assert [each["words"] for each in records(capsys, model, some)] == [
        ["a", "``", "fine", "''", "film"],
        ["bad"],
    ]
    line = fail(capsys, model, dev, "--unusable", "error")
    assert line.startswith(f"{dev}, line 15: received 3 columns; expected 2")
    assert line.endswith("; to go on without it: --unusable drop")


def test_trees_of_tables_in_quotes(quoted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`parse` and `analyse` read them as `predict` does, and name no option that they have not."""
    dev = quoted.parent / "dev.tsv"
    for arguments in (
        ["parse", str(quoted), "--file", str(dev), "--format", "heads"],
        ["analyse", str(quoted), "--data", str(dev)],
    ):
        assert main([*arguments, "--device", "cpu"]) == 0
        assert f"{dev}: 1 line dropped: wrong number of columns (15)" in capsys.readouterr().err


def test_a_header_in_quotes_names_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = quoted_files(tmp_path)
    assert main(["train", "classify", *options, "--out", str(tmp_path / "run")]) == 2
    line = capsys.readouterr().err
    assert "train.tsv, line 1: no column 'review'; did you mean '\"review\"', in quotes?" in line
    assert "--set data.quoted=true" in line


def test_unusable_lines_of_pairs(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = "w " * 33_000
    file = written(tmp_path, f"q\ta\na\tb\nalone\nc\t{long}\nd\te\n", "new.tsv")
    line = fail(capsys, pairs, file)
    assert line.startswith(f"{file}, line 3: received 1 column; expected 2: mend it or take it out")
    assert line.endswith("; to go on without it: --unusable drop")
    assert main(["predict", str(pairs), str(file), "--unusable", "drop", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert output.out.count("\n") == 2
    assert output.err.splitlines() == [
        f"{file}: 1 line dropped: wrong number of columns (3)",
        f"{file}: 1 line dropped: too many words (4)",
    ]
    typed(monkeypatch, "a\tb\nalone\n\tc\n")
    said = records(capsys, pairs, "-", "--unusable", "drop")
    assert [each["line"] for each in said] == [1, 3]
    typed(monkeypatch, "alone\n")
    assert fail(capsys, pairs, "-").endswith(
        "with a tab between; to go on without it: --unusable drop"
    )


def test_a_pair_with_one_empty_text_keeps_the_other(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{"q": "", "a": "a film"}\n{"q": "a film", "a": null}\n\n{"q": "x", "a": "y"}\n'
    said = records(capsys, pairs, written(tmp_path, text, "new.jsonl"))
    assert [each["words"] for each in said] == [
        [[], ["a", "film"]],
        [["a", "film"], []],
        [[], []],
        [["x"], ["y"]],
    ]
    assert [each["label"] is None for each in said] == [True, True, True, False]


@pytest.mark.parametrize(
    ("name", "text", "first"), [("a.txt", "\n \n", 1), ("a.tsv", "q\ta\n\n\t\n", 2)]
)
def test_blank_lines_alone_keep_their_place(
    pairs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    first: int,
) -> None:
    file = written(tmp_path, text, name)
    assert [each["line"] for each in records(capsys, pairs, file)] == [first, first + 1]
    assert main(["predict", str(pairs), str(file), "--format", "tsv", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[1:] == [f"{first}\t\t\t\t\t\t", f"{first + 1}\t\t\t\t\t\t"]
    assert output.err == f"{file}: 2 lines without a label: empty sentence ({first}, {first + 1})\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'q,a\n"a\nline\tof words","b\u2028c"\n'),
        ("a.jsonl", '{"q": "a\\nline\\tof words", "a": "b\\u2028c"}\n'),
        ("a.txt", "a line of  words\tb\u2028c\n"),
    ],
)
def test_any_white_space_parts_tokens(
    pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    [said] = records(capsys, pairs, written(tmp_path, text, name), "--tokens")
    assert said["words"] == [["a", "line", "of", "words"], ["b", "c"]]


def test_given_trees_are_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from treelax.data.text.vectors import random_vectors
    from treelax.tasks.text.model_config import ModelConfig
    from treelax.tasks.text.pretrained import SentenceSettings

    settings = SentenceSettings(model=ModelConfig(trees="given"))
    model = SentenceModel(settings, random_vectors(["New\u00a0York"], 4), ["x", "y"])
    model.save_pretrained(tmp_path / "saved")
    file = tmp_path / "a.conllu"
    sentence = Sentence(("in", "New York"), (0, 1))
    write_conllu(file, [sentence])
    line = fail(capsys, tmp_path / "saved", file, "--unusable", "drop")
    assert line.startswith("--unusable: received drop, and the model takes given trees")
    [said] = records(capsys, tmp_path / "saved", file)  # as in Python
    [expected] = model.eval().predict([sentence])
    assert said["words"] == ["in", "New\u00a0York"] == list(expected.words[0])
    assert said["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
