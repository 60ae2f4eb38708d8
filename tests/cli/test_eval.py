"""``treelax eval``: figures of a model on a file or on the run's own data; what it refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from listops_runs import options, result
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from treelax.cli import progress
from treelax.cli.main import app, main
from treelax.data.listops import generate_listops, read_listops, write_listops
from treelax.tasks.listops.evaluation import evaluate
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.models import load_model, model_file

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"
FIGURES = ("operator_accuracy", "token_accuracy", "attachment", "exact_trees")


def figures(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["eval", *map(str, arguments), "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.count("\n") == 1
    return dict(json.loads(output.out))


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["eval", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run that has ended."""
    folder = tmp_path_factory.mktemp("eval") / "run"
    arguments = ["--device", "cpu", "--out", str(folder), *options(train__epochs=2)]
    assert main(["train", "listops", *arguments]) == 0
    return folder


# ------------------------------------------------------------------ what it prints


def test_the_model_that_comes_with_treelax_is_right_on_the_sample() -> None:
    """In a process of its own: stdout is one JSON object and nothing else."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "treelax", "eval", "listops", "--device", "cpu"),
            *("--data", str(SAMPLE), "--max-length", "100", "--json"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    received = json.loads(done.stdout)
    assert {name: received[name] for name in FIGURES} == dict.fromkeys(FIGURES, 100.0)
    assert received["sentences"] == len(read_listops(SAMPLE))
    assert received["max_length"] == 100
    assert "error" not in done.stderr  # on a slow machine it says how far it is


def test_the_model_that_comes_with_treelax_is_small() -> None:
    assert model_file("listops").stat().st_size < 3_000_000


def test_json_holds_all_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    received = figures(capsys, run, "--data", SAMPLE, "--max-length", 10)
    expected = evaluate(load_model(run).model, read_listops(SAMPLE, max_length=10))
    assert received == {
        "model": str(run),
        "data": str(SAMPLE),
        "min_length": 1,
        "max_length": 10,
        **asdict(expected),
    }


def test_the_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(run), "--data", str(SAMPLE)]) == 0
    shown = capsys.readouterr().out
    expected = evaluate(load_model(run).model, read_listops(SAMPLE))
    assert f"{SAMPLE}: 12 expressions, 26 operators" in shown
    rows = {
        cells[0]: cells[1:]
        for line in shown.splitlines()
        if line.startswith("|")
        for cells in [[cell.strip() for cell in line[1:-1].split("|")]]
    }
    assert rows["attachment"][0] == f"{expected.attachment:.2f}"
    assert rows["tags of operators"] == [
        f"{expected.operator_accuracy:.2f}",
        f"{expected.soft_operator_accuracy:.2f}",
    ]
    assert rows["1–10"][0] == rows["11–20"][0] == "6"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


def test_a_row_of_lengths_says_what_is_in_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "long.tsv"
    write_listops(file, generate_listops(5, seed=0, min_length=30, max_length=45))
    assert main(["eval", str(run), "--data", str(file)]) == 0
    assert "| 21–50 |" in re.sub(" +", " ", capsys.readouterr().out)


def test_a_run_is_measured_on_its_own_test_set(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    received = figures(capsys, run)
    assert {key: received[key] for key in result(run)["test"]} == result(run)["test"]
    short = figures(capsys, run, "--max-length", 8, "--min-length", 6)
    assert 0 < short["sentences"] < 60
    assert (short["min_length"], short["max_length"]) == (6, 8)
    assert figures(capsys, run / "best" / "model.safetensors") == received | {
        "model": str(run / "best" / "model.safetensors")
    }


def test_json_holds_the_lengths_in_effect(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the run's own data, where they are narrower than the ones asked for."""

    def lengths(*arguments: object) -> tuple[int, int | None]:
        received = figures(capsys, *arguments)
        return received["min_length"], received["max_length"]

    assert lengths(run) == (1, 16)
    assert lengths(run, "--max-length", 99) == (1, 16)
    assert lengths(run, "--min-length", 5, "--max-length", 12) == (5, 12)
    assert lengths(run, "--data", SAMPLE) == (1, None)
    assert lengths(run, "--data", SAMPLE, "--min-length", 5) == (5, None)


def test_a_very_long_expression_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With gold trees, for any others would take the time that is warned of."""
    run = tmp_path / "gold"
    arguments = ["--preset", "gold", *options(train__epochs=1, train__updates=1)]
    assert main(["train", "listops", "--device", "cpu", "--out", str(run), *arguments]) == 0
    depth = 333
    texts = ["[MAX 1 " * depth + "2" + " ]" * depth, "[MAX 1 2 2 " + "[MIN 1 " * depth]
    texts[1] += "2" + " ]" * (depth + 1)
    assert [len(text.split()) for text in texts] == [1000, 1005]
    file = tmp_path / "long.tsv"
    file.write_text("\n".join(["[MAX 2 5 ]", *texts]))
    capsys.readouterr()
    assert main(["eval", str(run), "--data", str(file), "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["tokens"] == 2009
    assert output.err == (
        f"{file}: the longest expression ([MAX 1 2 2 [MIN ...) has 1,005 tokens, which may take "
        "long; --max-length 1000 leaves out such\n"
    )
    assert figures(capsys, run, "--data", file, "--max-length", 1000)["sentences"] == 2


def test_progress_is_counted_in_tokens(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LEAST_SECONDS", 0)
    capsys.readouterr()
    assert main(["eval", str(run), "--data", str(SAMPLE)]) == 0
    tokens = sum(map(len, read_listops(SAMPLE)))
    assert f"evaluating: {tokens}/{tokens} (100 %), " in capsys.readouterr().err


def test_help_fits_and_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["eval", "--help"], prog_name="treelax").output
    assert "  treelax eval listops --data data/listops/test.tsv --max-length 40 --json" in shown
    assert max(map(len, shown.splitlines())) <= 80


# ------------------------------------------------------------------ what it refuses


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "5\t[MAX 2 5 ]\n5\t[MAX 2 5\n",
            "data.tsv, line 2, token 4: received the end while a list",
        ),
        (
            "5\t[MAX 2 5 ]\n\n5\t[MIX 2 5 ]\n",
            "data.tsv, line 3, token 1: received '[MIX'; expected",
        ),
        ("5\t[MAX 2 x ]\n", "data.tsv, line 1, token 3: received 'x'; expected one of [MIN"),
        ("3\t[MAX 2 5 ]\n", "data.tsv, line 1: received the value 3; expected 5"),
        ("", "data.tsv: is empty; expected lines of value, tab, expression"),
        ("\n\n", "data.tsv: is empty"),
    ],
)
def test_bad_data_name_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = tmp_path / "data.tsv"
    file.write_text(text)
    assert fail(capsys, "listops", "--data", file).startswith(f"{tmp_path}/{said}")


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = fail(capsys, "listops", "--data", tmp_path / "nowhere.tsv")
    assert line == f"{tmp_path / 'nowhere.tsv'}: does not exist; expected a ListOps file"


def test_lengths_that_leave_nothing(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = fail(capsys, "listops", "--data", SAMPLE, "--max-length", 2)
    assert line.startswith(f"{SAMPLE}: its 12 expressions have 4 to ")
    line = fail(capsys, run, "--max-length", 2)
    assert line.startswith("--min-length and --max-length: received 1 and 2; expected to keep some")
    assert fail(capsys, run, "--min-length", 90).endswith("tokens")
    line = fail(capsys, "listops", "--data", SAMPLE, "--min-length", 9, "--max-length", 8)
    assert line.startswith("min_length and max_length: received 9 and 8")
    assert "--max-length" in fail(capsys, "listops", "--data", SAMPLE, "--max-length", 0)


def test_runs_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = fail(capsys, tmp_path / "nowhere", "--data", SAMPLE)
    assert line.startswith(f"{tmp_path / 'nowhere'}: does not exist; expected the folder of a run")
    assert "holds no config.toml" in fail(capsys, tmp_path, "--data", SAMPLE)
    assert "or no checkpoint" in fail(capsys, SAMPLE, "--data", SAMPLE)


def test_a_model_that_cannot_be_used(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = load_checkpoint(run / "best" / "model.safetensors")
    file = tmp_path / "model.safetensors"

    save_checkpoint(file, saved.tensors, kind="sst", state=saved.state)
    assert fail(capsys, file, "--data", SAMPLE).startswith(
        f"{file}: holds a checkpoint of 'sst'; expected one of 'listops'"
    )
    header = {"format": "treelax", "version": "99", "kind": "listops", "state": "{}"}
    save_file(load_file(file), file, header)
    assert fail(capsys, file, "--data", SAMPLE).startswith(
        f"{file}: is a checkpoint of version 99; expected 1"
    )
    save_checkpoint(file, saved.tensors, kind="listops", state=saved.state)
    os.truncate(file, file.stat().st_size - 10)
    assert fail(capsys, file, "--data", SAMPLE).startswith(f"{file}: is cut off or damaged")
    line = fail(capsys, run / "checkpoint" / "last.safetensors", "--data", SAMPLE)
    assert "holds a checkpoint of 'listops training'; expected one of 'listops'" in line


def test_cuda_without_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    line = fail(capsys, "listops", "--data", SAMPLE, "--device", "cuda")
    assert line == "device is 'cuda' but 0 GPUs are here; expected cpu or auto"
