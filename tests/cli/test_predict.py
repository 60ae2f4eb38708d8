"""``treelax predict``: what it reads and what it writes."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from predict_commands import KINDS, ask, fail, records, typed, written
from sentence_runs import SIZES, figures, sentences, train, write_files
from typer.testing import CliRunner

from treelax.cli.main import app, main
from treelax.cli.predict_output import Said, conllu_sentences
from treelax.data.conllu import read_conllu
from treelax.tasks.text.prediction import Prediction, SentenceSettings
from treelax.tasks.text.pretrained import SentenceModel
from treelax.trees import is_tree


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind; only to be looked at."""
    return {kind: train(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


# ------------------------------------------------------------------ what it reads


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_file_in_its_order(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """With the columns and the tokenising that the run was trained with."""
    files = write_files(kind, runs[kind].parent)
    test = files[files.index("--test") + 1]
    said = records(capsys, runs[kind], test, "--batch-size", 3)
    expected = [words for words, _ in sentences(2, SIZES["test"])]
    assert [each["words"][0] if kind == "pair" else each["words"] for each in said] == expected
    assert [each["line"] for each in said] == sorted(each["line"] for each in said)
    model = SentenceModel.from_run(runs[kind])
    texts: list[Any] = [each["words"] for each in said]
    for each, own in zip(said, model.predict(texts), strict=True):
        heads = [list(heads) for heads in own.heads or ()]
        assert each["heads"] == (heads if kind == "pair" else heads[0])
        if kind == "tag":
            assert each["tags"] == list(own.label or ())
            assert each["probabilities"] == pytest.approx(list(own.probability), abs=1e-5)  # type: ignore[arg-type]
        else:
            assert each["label"] == own.label
            assert each["probabilities"] == pytest.approx(own.probabilities, abs=1e-5)


def test_a_saved_model_as_its_run(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SentenceModel.from_run(runs["classify"]).save_pretrained(tmp_path / "saved")
    file = written(tmp_path, "review\nThe film was fine.\na zebra\n", "new.tsv")
    assert ask(capsys, tmp_path / "saved", file) == ask(capsys, runs["classify"], file)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("new.csv", 'text,stars\n"fine, film",5\nbad,1\n', ["--text", "text"]),
        ("new.tsv", "stars\treview\n5\tfine, film\n1\tbad\n", []),
        ("new.jsonl", '{"review": "fine, film"}\n{"review": "bad"}\n', []),
        ("new.txt", "fine, film\nbad\n", []),
        ("new", "fine, film\nbad\n", []),
        ("new.dat", "review\nfine, film\nbad\n", ["--input", "csv", "--text", "review"]),
        ("new.tsv", "fine, film\nbad\n", ["--input", "text"]),
        ("new.tsv", "review\nfine , film\nbad\n", ["--tokens"]),
        ("new.txt", "fine , film\nbad\n", ["--tokens"]),
        ("new.conll", "fine\n,\nfilm\n\nbad\n", ["--input", "conll"]),
    ],
)
def test_formats(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    options: list[str],
) -> None:
    if name == "new.dat":
        text = text.replace("fine, film", '"fine, film"')
    said = records(capsys, runs["classify"], written(tmp_path, text, name), *options)
    assert [each["words"] for each in said] == [["fine", ",", "film"], ["bad"]]
    zipped = written(tmp_path, gzip.compress(text.encode()), f"{name}.gz")
    assert records(capsys, runs["classify"], zipped, *options) == said


def test_standard_input(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "A fine film.\nbad")
    said = records(capsys, runs["classify"], "-")
    assert [each["words"] for each in said] == [["A", "fine", "film", "."], ["bad"]]
    typed(monkeypatch, "A fine film.\tfine\n")
    [pair] = records(capsys, runs["pair"], "-")
    assert pair["words"] == [["A", "fine", "film", "."], ["fine"]]
    assert [len(heads) for heads in pair["heads"]] == [4, 1]
    typed(monkeypatch, "A fine film.\n")
    [tags] = records(capsys, runs["tag"], "-")
    assert len(tags["tags"]) == len(tags["probabilities"]) == len(tags["heads"]) == 4


def test_a_pipe_of_processes(runs: dict[str, Path]) -> None:
    """Standard output holds the predictions and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "treelax", "predict", str(runs["classify"]), "-"],
        input="A fine film.\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["words"] == ["A", "fine", "film", "."]
    assert done.stderr == ""


def test_words_without_tags(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = "\t_" * 8
    text = f"# text = no tags\n1\tthe{nothing}\n2\tfilm{nothing}\n\n1\tbad{nothing}\n"
    said = records(capsys, runs["tag"], written(tmp_path, text, "new.conllu"))
    assert [each["words"] for each in said] == [["the", "film"], ["bad"]]
    assert [each["line"] for each in said] == [1, 5]
    bare = written(tmp_path, "the\nfilm\n\nbad\n", "new.txt")
    again = records(capsys, runs["tag"], bare, "--input", "conll")
    assert [each["tags"] for each in again] == [each["tags"] for each in said]


# ------------------------------------------------------------------ what it writes


def test_lines_without_words_keep_their_place(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "\nfine\n  \n\nbad\n\n", "new.txt")
    said = records(capsys, runs["classify"], file)
    assert [each["line"] for each in said] == [1, 2, 3, 4, 5, 6]
    assert [each["label"] is None for each in said] == [True, False, True, True, False, True]
    assert said[0] == {"line": 1, "label": None, "probabilities": None, "words": [], "heads": None}
    assert main(["predict", str(runs["classify"]), str(file), "--format", "tsv"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines()[1] == "1\t\t\t\t"
    assert output.err == f"{file}: 4 lines without a label: empty sentence (1, 3, 4, 6)\n"
    shown = ask(capsys, runs["classify"], file, "--format", "conllu")
    assert shown.count("# sent_id") == 2


def test_tsv(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, '{"q": ["a", "fine\\u2028", "film"], "a": ["x\\ty"]}\n', "new.jsonl")
    said = ask(capsys, runs["pair"], file, "--format", "tsv").split("\n")
    assert said[0].split("\t") == [
        *("line", "label", "probability"),
        *("words_1", "heads_1", "words_2", "heads_2"),
    ]
    line, label, probability, words, heads, second, head = said[1].split("\t")
    [expected] = SentenceModel.from_run(runs["pair"]).predict(
        [(["a", "fine\u2028", "film"], ["x\ty"])]
    )
    assert (line, label) == ("1", expected.label)
    assert float(probability) == pytest.approx(expected.probability, abs=1e-5)
    assert words == "a fine\u00a0 film"
    assert heads == " ".join(map(str, expected.heads[0]))  # type: ignore[index]
    assert (second, head) == ("x\u00a0y", "0")
    assert said[2:] == [""]
    tags = ask(capsys, runs["tag"], runs["tag"].parent / "dev.conll", "--format", "tsv")
    rows = [row.split("\t") for row in tags.splitlines()]
    assert rows[0] == ["line", "tags", "probabilities", "words", "heads"]
    assert len({len(cell.split(" ")) for cell in rows[1][1:]}) == 1


def test_conllu(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "trees.conllu"
    printed = ask(capsys, runs["pair"], runs["pair"].parent / "dev.jsonl", "--format", "conllu")
    ask(capsys, runs["pair"], runs["pair"].parent / "dev.jsonl", "--out", out)
    assert out.read_text() == printed
    trees = list(read_conllu(out))
    assert len(trees) == 2 * SIZES["dev"]
    said = records(capsys, runs["pair"], runs["pair"].parent / "dev.jsonl")
    assert [tree.id for tree in trees[:3]] == ["1-1", "1-2", "2-1"]
    for i, tree in enumerate(trees):
        each = said[i // 2]
        assert list(tree.words) == each["words"][i % 2]
        assert list(tree.heads or ()) == each["heads"][i % 2]
        assert is_tree(torch.tensor(tree.heads))
        assert tree.metadata["label"] == each["label"]
        share = each["probabilities"][each["label"]]
        assert float(tree.metadata["probability"]) == pytest.approx(share)
    ask(capsys, runs["tag"], runs["tag"].parent / "dev.conll", "--out", out)
    tagged = list(read_conllu(out))
    said = records(capsys, runs["tag"], runs["tag"].parent / "dev.conll")
    assert [list(tree.tags or ()) for tree in tagged] == [each["tags"] for each in said]
    assert [tree.id for tree in tagged] == [str(each["line"]) for each in said]


@pytest.mark.parametrize(
    ("column", "field"),
    [(None, "tags"), ("UPOS", "tags"), ("XPOS", "xpos"), ("DEPREL", "labels"), ("2", "tags")],
)
def test_tags_are_in_the_column_they_were_learned_from(column: str | None, field: str) -> None:
    said = Prediction((("Hi", "!"),), ("UH", "."), None, ((0, 1),))
    [sentence] = conllu_sentences([Said(1, said)], SentenceSettings(kind="tag", label=column))
    assert getattr(sentence, field) == ("UH", ".")
    assert sum(getattr(sentence, f) is None for f in ("tags", "xpos", "labels")) == 2


def test_the_name_of_the_file_says_the_format(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "a fine film\n", "new.txt")
    for name, start in (
        ("a.jsonl", '{"line": 1'),
        ("a.jsonl.gz", '{"line": 1'),
        ("a.tsv", "line\tlabel"),
        ("a.tsv.gz", "line\tlabel"),
        ("a.conllu", "# sent_id = 1"),
        ("a", '{"line": 1'),
    ):
        assert ask(capsys, runs["classify"], file, "--out", tmp_path / name) == ""
        data = (tmp_path / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
        assert text.startswith(start)
    ask(capsys, runs["classify"], file, "--out", tmp_path / "b.txt", "--format", "tsv")
    assert (tmp_path / "b.txt").read_text() == (tmp_path / "a.tsv").read_text()
    for name in ("c.xyz", "c.txt", "c.json.gz"):
        line = fail(capsys, runs["classify"], file, "--out", tmp_path / name)
        assert line.startswith(f"--out: received {tmp_path / name}, whose ending says no format;")
        assert "expected .jsonl, .tsv, .conllu, also compressed (.gz, .xz, .bz2)" in line


@pytest.mark.parametrize("form", [None, "jsonl", "tsv", "conllu"])
@pytest.mark.parametrize("name", ["new.txt", "new.conllu"])
def test_a_hyphen_is_standard_output(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str | None,
    name: str,
) -> None:
    text = "a fine film\n" if name == "new.txt" else "1\tfine" + 8 * "\t_" + "\n"
    file = written(tmp_path, text, name)
    monkeypatch.chdir(tmp_path)
    options = [] if form is None else ["--format", form]
    said = ask(capsys, runs["classify"], file, *options, "--out", "-")
    assert said == ask(capsys, runs["classify"], file, *options) != ""
    assert list(tmp_path.iterdir()) == [file]


def test_soft_trees(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "the film was a fine film with a plot\n", "new.txt")
    [hard] = records(capsys, runs["classify"], file)
    [soft] = records(capsys, runs["classify"], file, "--soft")
    [expected] = SentenceModel.from_run(runs["classify"]).predict([hard["words"]], soft=True)
    assert soft["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    assert soft["probabilities"] != hard["probabilities"]


def test_threads(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "fine\n", "new.txt")
    torch.set_num_threads(2)
    ask(capsys, runs["classify"], file)
    assert torch.get_num_threads() == 2
    ask(capsys, runs["classify"], file, "--threads", 1)
    assert torch.get_num_threads() == 1


def test_half_a_character(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, '{"review": "a \\ud800 film"}\n', "new.jsonl")
    ask(capsys, runs["classify"], file, "--out", tmp_path / "out.jsonl")
    [said] = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert said["words"] == ["a", "\ud800", "film"]


@pytest.mark.parametrize("kind", KINDS)
def test_accuracy_is_told_where_labels_are_known(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """As the run itself says of its test data."""
    files = write_files(kind, tmp_path)
    test = files[files.index("--test") + 1]
    assert main(["predict", str(runs[kind]), test, "--device", "cpu"]) == 0
    [line] = capsys.readouterr().err.splitlines()
    expected = figures(runs[kind])["test"]["accuracy"]
    count = SIZES["test"]
    unit = "texts"
    if kind == "tag":
        count, unit = sum(len(words) for words, _ in sentences(2, count)), "words"
    assert line == f"accuracy: {expected:.2f} % of {count} labelled {unit}"
    if kind == "classify":  # cells with spaces around their labels, as training reads them
        file = Path(test)
        file.write_text(file.read_text().replace("\tyes", "\t yes "))
        assert main(["predict", str(runs[kind]), test, "--device", "cpu"]) == 0
        assert capsys.readouterr().err.strip() == line


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            ["fine\tyes", "fine\tperhaps", "fine\t", "\tyes"],
            r"accuracy: \d+\.00 % of 2 labelled texts; 1 of them has a label that the model does not "
            r"know \('perhaps'\), counted as wrong",
        ),
        (
            [f"fine\t{50 * 'x'}", "bad\tno", "bad\t[red]"],
            r"accuracy: \d+\.\d\d % of 3 labelled texts; 2 of them have labels that the model does not "
            rf"know \(the first: '{40 * 'x'}…'\), counted as wrong",
        ),
        (["bad\tno", "bad\t"], r"accuracy: \d+\.00 % of 1 labelled text"),
        (
            ["fine\t?", "bad\t[b]"],
            r"no accuracy: all 2 labelled texts have labels that the model does not know \(the first: "
            r"'\?'\)",
        ),
        (
            ["fine\t[b]", "\t?"],
            r"no accuracy: 1 labelled text has a label that the model does not know \('\[b\]'\)",
        ),
        (["fine\t", "bad\t"], None),
    ],
)
def test_labels_that_are_unknown_or_missing(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[str],
    said: str | None,
) -> None:
    file = written(tmp_path, "\n".join(["review\tliked", *rows, ""]), "new.tsv")
    assert main(["predict", str(runs["classify"]), str(file), "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == len(rows)
    told = [line for line in output.err.splitlines() if "accuracy" in line]
    assert len(told) == (said is not None)
    assert all(re.fullmatch(said or "", line) for line in told)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "new.conll",
            "film\t?\nbad\tB\n",
            "1 of them has a label that the model does not know ('?')",
        ),
        ("new.conll", "film\t?\n", "no accuracy: 1 labelled word has a label that the model does"),
        ("new.conll", "film\tF\n", " of 1 labelled word\n"),
        ("new.conll", "film\nbad\n", ""),
        ("new.conllu", "1\tfilm" + 8 * "\t_" + "\n", ""),
    ],
)
def test_tags_that_are_unknown_or_missing(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    said: str,
) -> None:
    file = written(tmp_path, text, name)
    assert main(["predict", str(runs["tag"]), str(file), "--device", "cpu"]) == 0
    told = capsys.readouterr().err
    assert said in told
    assert ("label" in told) == bool(said)


def test_a_column_of_another_name_has_no_labels(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "review\tother\nfine\tyes\n", "new.tsv")
    assert main(["predict", str(runs["classify"]), str(file), "--device", "cpu"]) == 0
    assert capsys.readouterr().err == ""


def test_lists_of_words(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, '{"review": ["is", "n\'t", "fine."]}\n', "new.jsonl")
    [said] = records(capsys, runs["classify"], file)
    assert said["words"] == ["is", "n't", "fine."]


def test_a_long_file_with_a_bar(
    runs: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from treelax.cli import predict, progress

    monkeypatch.setattr(progress, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(predict, "COUNT_EVERY", 4)
    file = written(tmp_path, "a fine film\n" * 10, "new.txt")
    assert main(["predict", str(runs["classify"]), str(file), "--batch-size", "2"]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 10
    assert [line.partition(",")[0] for line in output.err.splitlines()] == [
        "predicting: 4/?",
        "predicting: 8/?",
    ]


def test_help_fits_and_has_examples() -> None:
    shown = CliRunner().invoke(app, ["predict", "--help"], prog_name="treelax").output
    assert "  treelax predict runs/stars new.tsv --text review --out stars.jsonl" in shown
    assert max(map(len, shown.splitlines())) <= 80
