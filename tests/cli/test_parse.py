"""``treelax parse`` on ListOps: where texts come from, how trees are written, what is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from listops_commands import QUICK
from listops_runs import options
from parse_commands import fail, parse, records, typed
from svg_parts import texts
from typer.testing import CliRunner, Result

from treelax import ProjectiveTrees
from treelax.cli.main import app, main
from treelax.data.conllu import read_conllu
from treelax.data.listops import encode_listops, parse_expression
from treelax.pictures import draw_tree
from treelax.tasks.listops.evaluation import parse_all
from treelax.training.models import load_model
from treelax.trees import is_tree

TEXT = "[MAX 2 [MIN 4 7 ] 0 ]"
EXPRESSION = parse_expression(TEXT)
SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"


@pytest.fixture
def run(finished: tuple[Path, Result]) -> Path:
    """A tiny run, whose trees are often wrong."""
    return finished[0]


# ------------------------------------------------------------------ the model and the texts


def test_the_model_that_comes_with_treelax(capsys: pytest.CaptureFixture[str]) -> None:
    shown = parse(capsys, TEXT, "--width", 60)
    tree = draw_tree(EXPRESSION.tokens, EXPRESSION.heads, width=60)
    assert shown == f"{tree}\ntags: [MAX 3, [MIN 2\n"
    assert parse(capsys, "listops", TEXT, "--width", 60) == shown
    assert parse(capsys, *TEXT.split(), "--width", 60) == shown  # without quotes


def test_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [said] = parse_all(load_model(run).model, [EXPRESSION])
    [record] = records(capsys, run, TEXT)
    assert record == {
        "line": 1,
        "tags": list(said.tags),
        "words": list(EXPRESSION.tokens),
        "heads": list(said.heads),
    }
    [file] = run.glob("best/*.safetensors")
    assert records(capsys, file, TEXT) == [record]


def test_several_texts(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = records(capsys, run, TEXT, "[SM 1 2 ]")
    assert [record["line"] for record in both] == [1, 2]
    assert [" ".join(record["words"]) for record in both] == [TEXT, "[SM 1 2 ]"]


def test_a_text_with_the_name_of_a_folder(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first argument alone may be a model."""
    (tmp_path / "7").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "TEXT: received none beside RUN, 7;" in fail(capsys, "7")
    assert records(capsys, run, "7")[0]["words"] == ["7"]


def test_a_file(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With values in front of the expressions, as ListOps has them."""
    lines = SAMPLE.read_text().splitlines()
    said = records(capsys, run, "--file", SAMPLE)
    assert [record["line"] for record in said] == list(range(1, len(lines) + 1))
    written = [parse_expression(line.split("\t")[1]) for line in lines]
    assert [tuple(record["words"]) for record in said] == [e.tokens for e in written]


def test_standard_input(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, f"{TEXT}\n\n3\t[MAX 2 3 ]\n")
    assert main(["parse", str(run), "-", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert "line 1\n" in output.out
    assert "line 3\n" in output.out
    assert output.err == "standard input: 1 line dropped: empty sentence (2)\n"


def test_in_a_process(run: Path) -> None:
    """Standard output holds what was asked for and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "treelax", "parse", str(run), "-", "--format", "heads"],
        input=f"{TEXT}\n".encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert len(done.stdout.split()) == len(EXPRESSION)
    assert done.stderr == b""


# ------------------------------------------------------------------ how trees are written


def test_gold_marks_what_is_wrong(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [record] = records(capsys, run, TEXT, "--gold")
    assert record["gold"] == list(EXPRESSION.heads)
    assert record["heads"] != record["gold"]  # so that there is something to mark
    tree = draw_tree(record["words"], record["heads"], gold=record["gold"], width=70)
    assert parse(capsys, run, TEXT, "--gold", "--width", 70).startswith(tree)
    right = sum(a == b for a, b in zip(record["heads"], record["gold"], strict=True))
    svg = parse(capsys, run, TEXT, "--gold", "--format", "svg")
    assert {f"{right} of 8 arcs right", "wrong", "missed"} <= set(texts(svg))


def test_weights(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [record] = records(capsys, run, TEXT, "--soft")
    n = len(EXPRESSION)
    assert [len(row) for row in record["weights"]] == [n + 1] * (n + 1)
    for m in range(1, n + 1):
        assert sum(row[m] for row in record["weights"]) == pytest.approx(1, abs=1e-4)
    assert any(0.01 < weight < 0.99 for row in record["weights"] for weight in row)
    shown = parse(capsys, run, TEXT, "--soft", "--width", 70).splitlines()
    assert shown[shown.index("weights of heads:") :][1:][0].startswith("1 [MAX  ")
    assert len(shown[shown.index("weights of heads:") :]) == n + 1
    assert "weight" in texts(parse(capsys, run, TEXT, "--soft", "--format", "svg"))


def test_samples(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [record] = records(capsys, run, TEXT, "--samples", 300)
    samples = record["samples"]
    assert sum(each["count"] for each in samples) == 300
    assert len(samples) > 3
    assert [e["count"] for e in samples] == sorted((e["count"] for e in samples), reverse=True)
    for each in samples:
        assert is_tree(torch.tensor(each["heads"]))
    assert records(capsys, run, TEXT, "--samples", 300) == [record]
    [other] = records(capsys, run, TEXT, "--samples", 300, "--seed", 1)
    assert other["samples"] != samples
    # those of a text do not depend on what stands before it
    assert records(capsys, run, "[MAX 1 2 ]", TEXT, "--samples", 300)[1]["samples"] == samples


def test_samples_follow_the_distribution(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How often an arc is sampled is near its marginal probability."""
    model = load_model(run).model
    expression = parse_expression("[MAX 2 9 ]")
    assert model.parser is not None
    batch = encode_listops([expression])
    with torch.no_grad():
        scores = model.parser.scores(batch.tokens, batch.lengths)
    marginals = ProjectiveTrees(scores).marginals[0]
    count = 20_000
    [record] = records(capsys, run, str(expression), "--samples", count)
    frequency = torch.zeros(5, 5)
    for each in record["samples"]:
        for m, head in enumerate(each["heads"], 1):
            frequency[head, m] += each["count"] / count
    assert torch.allclose(frequency, marginals, atol=0.02)


def test_drawn_samples(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = parse(capsys, run, TEXT, "--samples", 50, "--width", 60)
    [record] = records(capsys, run, TEXT, "--samples", 50)
    different = len(record["samples"])
    assert f"50 exact samples (seed 0): {different} different trees\n" in shown
    most = record["samples"][0]
    tree = draw_tree(record["words"], most["heads"], width=60)
    assert f"{most['count']} of 50:\n{tree}\n" in shown
    assert f"{different - 5} others (all with --format json)" in shown
    svg = parse(capsys, run, TEXT, "--samples", 50, "--format", "svg")
    assert sum(text.startswith("sampled ") for text in texts(svg)) == 5
    [rest] = [
        line for line in shown.splitlines() if line.endswith("others (all with --format json)")
    ]
    assert rest in texts(svg)
    assert f"50 exact samples (seed 0): {different} different trees" in texts(svg)
    heads = parse(capsys, run, TEXT, "--samples", 50, "--format", "heads").splitlines()
    assert heads[0] == f"{most['count']}\t{' '.join(map(str, most['heads']))}"
    assert len(heads) == different


def test_heads_and_heat_maps(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [record] = records(capsys, run, TEXT)
    assert parse(capsys, run, TEXT, "--format", "heads").split() == list(map(str, record["heads"]))
    svg = parse(capsys, run, TEXT, "--format", "heatmap")
    assert "rows: heads, columns: modifiers" in texts(svg)


def test_files_by_their_names(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    [record] = records(capsys, run, TEXT)
    for name in ("one.svg", "one.json", "one.conllu", "one.conllu.gz", "one.txt"):
        assert parse(capsys, run, TEXT, "--out", tmp_path / name, "--width", 60) == ""
    assert "2" in texts((tmp_path / "one.svg").read_text())
    assert json.loads((tmp_path / "one.json").read_text()) == record
    for name in ("one.conllu", "one.conllu.gz"):
        [sentence] = read_conllu(tmp_path / name)
        assert list(sentence.heads or ()) == record["heads"]
        assert sentence.words == EXPRESSION.tokens
    assert (tmp_path / "one.txt").read_text() == parse(capsys, run, TEXT, "--width", 60)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_format_that_was_named_goes_into_any_file(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "one.heads"
    parse(capsys, run, TEXT, "--format", "heads", "--out", out)
    assert out.read_text() == parse(capsys, run, TEXT, "--format", "heads")


@pytest.mark.parametrize("form", ["tree", "json", "conllu", "svg"])
def test_a_hyphen_is_standard_output(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = parse(capsys, run, TEXT, "--format", form, "--out", "-")
    assert said == parse(capsys, run, TEXT, "--format", form)
    assert not list(tmp_path.iterdir())


def test_conllu_on_standard_output(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "samples.conllu"
    file.write_text(parse(capsys, run, TEXT, "--samples", 40, "--format", "conllu"))
    sentences = list(read_conllu(file))
    assert sum(int(sentence.metadata["count"]) for sentence in sentences) == 40
    assert sentences[0].id == "1-sample-1"


def test_an_output_in_ascii(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["parse", str(run), TEXT, "--gold", "--soft", "--device", "cpu"]) == 0
    sys.stdout.flush()
    shown = raw.getvalue().decode("ascii")
    assert "arcs right" in shown
    assert "\\" not in shown


def test_a_file_is_whole_or_not_there(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, out = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text(f"{TEXT}\n[MAX 2\n")
    out.write_text("before")
    said = fail(capsys, run, "--file", file, "--out", out)
    assert said == f"{file}, line 2, token 3: received the end while a list is open; expected ]"
    assert out.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.txt", "out.txt"]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TEXT: received none; expected one of: texts as arguments, --file FILE, or -"),
        (["listops"], "TEXT: received none"),
        ([""], "TEXT 1 is empty; expected words"),
        (["listops", TEXT, " "], "TEXT 2 is empty"),
        (["listops", "Dogs bark."], "TEXT, token 1: received 'Dogs'; expected one of [MIN"),
        (["listops", "[MAX ]"], "TEXT, token 2: received ] right after [MAX"),
        (["Dogs bark."], "(no RUN was named, so the ListOps model that comes with treelax reads"),
        (
            ["runs/none", TEXT],
            "RUN: received 'runs/none', which does not exist; expected the folder",
        ),
        (["runs/none", "A", "film"], "RUN: received 'runs/none', which does not exist"),
        (["runs/none", "--file", "a.txt"], "RUN: received 'runs/none', which does not exist"),
        (["runs/none"], "RUN: received 'runs/none', which does not exist"),
        ([__file__, TEXT], ", which is a file; expected the folder"),
        (["and / or"], "TEXT, token 1: received 'and'"),
        (["nowhere.safetensors", TEXT], "nowhere.safetensors: does not exist"),
        ([TEXT, "--file", "a.txt"], "TEXT: received both '[MAX 2 [MIN 4 7 ] 0 ]' and a.txt"),
        (["--file", "nowhere.txt"], "nowhere.txt"),
        ([TEXT, "-"], "TEXT: received - beside other texts"),
        ([TEXT, "--format", "pdf"], "--format"),
        ([TEXT, "--soft", "--format", "heads"], "--soft: received it with the format heads"),
        ([TEXT, "--soft", "--out", "one.conllu"], "--soft: received it with the format conllu"),
        ([TEXT, "--samples", "-1"], "--samples"),
        (
            [TEXT, "--format", "svg", "--out", "one.txt"],
            "--out: received one.txt with --format svg; expected .svg or .png or .pdf, or --format",
        ),
        (
            [TEXT, "--format", "json", "--out", "one.svg"],
            "one.svg with --format json; expected .txt or .json or .jsonl, or --format svg or heat",
        ),
        (
            [TEXT, "--format", "tree", "--out", "a.json.gz"],
            "a.json.gz with --format tree; expected",
        ),
        (
            [TEXT, "--out", "x.foo"],
            "--out: received x.foo, whose ending does not say what to write; expected one in .txt, "
            ".svg, .png, .pdf, .json, .jsonl, .conllu, or --format besides",
        ),
        ([TEXT, "--out", "trees"], "--out: received trees, whose ending does not say"),
        ([TEXT, "--out", "a.gz"], "--out: received a.gz, whose ending does not say"),
        ([TEXT, "--out", "a.svg.gz"], "--out: received a.svg.gz for a picture; expected a name in"),
        ([TEXT, "--format", "svg", "--out", "a.foo"], "--out: received a.foo for a picture"),
        (
            [TEXT, "--out", "nowhere/one.svg"],
            "nowhere/one.svg: there is no folder nowhere; expected one: make it or give another",
        ),
        ([TEXT, "--out", ".", "--format", "tree"], ".: is a folder; expected a file"),
        (["x\udcff"], "TEXT 1 is not UTF-8"),
    ],
)
def test_what_is_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fail(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_standard_input_that_is_no_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, b"[MAX 2 \xff ]\n")
    assert fail(capsys, "-").startswith(
        "standard input, line 1: is not UTF-8 (invalid start byte);"
    )
    typed(monkeypatch, b"\n  \n")
    assert fail(capsys, "-").startswith("standard input: received nothing left")
    typed(monkeypatch, b"")
    assert fail(capsys, "-").startswith("standard input: received nothing;")


def test_the_file_that_is_read_is_not_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_text(f"{TEXT}\n")
    assert "the file that is read" in fail(capsys, "--file", file, "--out", file)
    assert file.read_text() == f"{TEXT}\n"


def test_given_trees_have_no_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "chain"
    short = [*QUICK, *options(train__epochs=1)]
    assert main(["train", "listops", "--device", "cpu", "--out", str(folder), *short]) == 0
    assert records(capsys, folder, "[MAX 2 9 ]")[0]["heads"] == [0, 1, 2, 3]
    for option in (["--soft"], ["--samples", "3"], ["--format", "heatmap"]):
        assert "model.trees is 'chain'" in fail(capsys, folder, TEXT, *option)


def test_help_says_what_is_a_run() -> None:
    result = CliRunner().invoke(app, ["parse", "--help"], prog_name="treelax")
    assert result.exit_code == 0
    assert "argument is RUN if it is listops, a folder that exists" in result.output
    assert "Samples are exact ones" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
