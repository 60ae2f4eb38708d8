"""``treelax data listops``: what it writes, what it prints, what it refuses."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import treelax
from treelax.cli.main import app, main
from treelax.data.listops import listops_statistics, read_listops, write_listops

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"
SIZES = {"train": 60, "dev": 20, "test": 30}
FILES = [f"{name}.tsv" for name in SIZES]
SMALL = [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", "listops", *map(str, arguments)])


def succeed(*arguments: object) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["data", "listops", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    *before, line = output.err.splitlines()
    assert not output.out
    assert all(said.startswith(("drawing:", "writing:")) for said in before)
    assert line.startswith("treelax: error: ")
    return line.removeprefix("treelax: error: ")


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def table_of(text: str) -> dict[str, list[str]]:
    """The rows of a printed Markdown table by their first cell."""
    rows = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows}


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize("variant", ["original", "paulus"])
def test_three_disjoint_files_and_how_they_were_made(tmp_path: Path, variant: str) -> None:
    folder = tmp_path / "new" / "data"
    result = succeed("--out", folder, *SMALL, "--variant", variant, "--seed", 5)
    assert sorted(content(folder)) == sorted([*FILES, "info.json"])
    splits = {name: read_listops(folder / f"{name}.tsv") for name in SIZES}
    assert {name: len(split) for name, split in splits.items()} == SIZES
    assert len({e for split in splits.values() for e in split}) == sum(SIZES.values())
    if variant == "paulus":
        assert all(10 <= len(e) <= 50 for split in splits.values() for e in split)

    info = json.loads((folder / "info.json").read_text())
    assert info["made_by"] == f"treelax {treelax.__version__}"
    assert info["settings"] == SIZES | {
        "variant": variant,
        "seed": 5,
        "min_length": 10 if variant == "paulus" else 1,
        "max_length": 50 if variant == "paulus" else 100,
    }
    for file in FILES:
        assert info["sha256"][file] == hashlib.sha256((folder / file).read_bytes()).hexdigest()

    rows = table_of(result.stdout)
    assert rows["sentences"] == ["60", "20", "30"]
    statistics = listops_statistics(splits["dev"])
    assert rows["length, mean"][1] == f"{statistics['length_mean']:.2f}"
    assert rows["operator [MAX"][1] == str(statistics["operators"]["[MAX"])
    assert rows["attached to the token before, %"][1] == f"{statistics['attachment_previous']:.2f}"


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "other"))
    succeed("--out", one, *SMALL, "--seed", 3)
    succeed("--out", two, *SMALL, "--seed", 3)
    succeed("--out", other, *SMALL, "--seed", 4)
    assert content(one) == content(two)
    assert all(content(one)[file] != content(other)[file] for file in FILES)


def test_limits_of_the_lengths(tmp_path: Path) -> None:
    succeed("--out", tmp_path, *SMALL, "--min-length", 5, "--max-length", 30)
    lengths = [len(e) for file in FILES for e in read_listops(tmp_path / file)]
    assert min(lengths) >= 5
    assert max(lengths) <= 30


def test_json_of_what_was_written(tmp_path: Path) -> None:
    result = succeed("--out", tmp_path, *SMALL, "--json")
    described = json.loads(result.stdout)
    assert {name: figures["sentences"] for name, figures in described.items()} == SIZES


# ------------------------------------------------------------------ what is there already


def test_the_same_data_may_be_written_again(tmp_path: Path) -> None:
    succeed("--out", tmp_path, *SMALL)
    before = content(tmp_path)
    again = succeed("--out", tmp_path, *SMALL)
    assert "the same files were there already" in again.stderr
    assert content(tmp_path) == before
    (tmp_path / "dev.tsv").unlink()  # as if it had been stopped half-way
    succeed("--out", tmp_path, *SMALL)
    assert content(tmp_path) == before


def test_other_data_is_replaced_with_force_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    succeed("--out", tmp_path, *SMALL)
    before = content(tmp_path)
    assert fail(capsys, "--out", tmp_path, *SMALL, "--seed", 1) == (
        f"{tmp_path}: holds data made with --seed 0, received --seed 1; give another --out, or "
        "--force to replace it"
    )
    assert "with --max-length 100, received --max-length 50;" in fail(
        capsys, "--out", tmp_path, *SMALL, "--max-length", 50
    )
    assert content(tmp_path) == before
    succeed("--out", tmp_path, *SMALL, "--seed", 1, "--force")
    assert all(content(tmp_path)[file] != before[file] for file in before)


def test_a_file_of_unknown_origin_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.tsv").write_text("mine\n")
    assert fail(capsys, "--out", tmp_path, *SMALL).startswith(
        f"{tmp_path / 'test.tsv'}: is there already with other content"
    )
    assert content(tmp_path) == {"test.tsv": b"mine\n"}
    succeed("--out", tmp_path, *SMALL, "--force")
    assert len(read_listops(tmp_path / "test.tsv")) == SIZES["test"]


@pytest.mark.parametrize("text", ["mine", "[]", "{}", '{"settings": {"seed": 0}}'])
def test_an_info_file_of_unknown_origin_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "info.json").write_text(text)
    assert "info.json: was not written by treelax data" in fail(capsys, "--out", tmp_path, *SMALL)
    assert content(tmp_path) == {"info.json": text.encode()}


def test_an_error_while_writing_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, expressions: Any) -> int:
        if path.name == "test.tsv":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write_listops(path, expressions)

    monkeypatch.setattr("treelax.data.listops.write_listops", full)
    assert fail(capsys, "--out", tmp_path / "new", *SMALL).endswith("No space left on device")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    fail(capsys, "--out", tmp_path / "old", *SMALL)
    assert content(tmp_path / "old") == {}


# ------------------------------------------------------------------ describing files


def test_statistics_of_files(tmp_path: Path) -> None:
    short = tmp_path / "short.tsv"
    short.write_text("9\t[MAX 2 9 ]\n3\n[MIN 4 5 ]\n")
    result = succeed("--stats", SAMPLE, short)
    rows = table_of(result.stdout)
    assert rows[""] == [str(SAMPLE), str(short)]
    assert rows["sentences"] == ["12", "2"]
    assert rows["tokens"][1] == "8"
    assert rows["length, median"][1] == "4"
    assert "attached to ..." in result.stdout.splitlines()[-1]


def test_statistics_as_json() -> None:
    described = json.loads(succeed("--stats", SAMPLE, "--json", "--max-length", 10).stdout)
    expected = listops_statistics(read_listops(SAMPLE, max_length=10))
    assert described == {str(SAMPLE): json.loads(json.dumps(expected))}


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9\t[MAX 2 9 ]\n3\t[MAX 2 9\n", "file.tsv, line 2"),
        ("9\t[MAX 2 9 ]\n\n3\t[MAX 2 9 ]\n", "file.tsv, line 3"),
        ("x\t[MAX 2 9 ]\n", "file.tsv, line 1"),
        ("", "file.tsv: is empty"),
        (b"9\t[MAX 2 9 ]\n\xff\n", "file.tsv, line 2: is not UTF-8"),
        (None, "file.tsv: does not exist"),
    ],
)
def test_bad_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes | None, said: str
) -> None:
    file = tmp_path / "file.tsv"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert fail(capsys, "--stats", SAMPLE, file).startswith(str(tmp_path / said))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--out: received none"),
        (["--stats"], "--stats: received no file"),
        ([SAMPLE], "received a file without --stats"),
        (["--out", "FOLDER", SAMPLE], "received a file without --stats"),
        (["--stats", SAMPLE, "--out", "FOLDER"], "--out: is for writing"),
        (["--stats", SAMPLE, "--seed", "0"], "--seed: is for writing"),
        (["--stats", SAMPLE, "--max-length", "1"], "expected some of 1 to 1 tokens"),
        (["--stats", SAMPLE, "--min-length", "9", "--max-length", "8"], "9 to 8 tokens"),
        (["--out", "FOLDER", "--variant", "new"], "'new' is not one of"),
        (
            ["--out", "FOLDER", "--train", "0"],
            "Invalid value for '--train': ",
        ),
        (
            ["--out", "FOLDER", "--seed", "-1"],
            "Invalid value for '--seed': ",
        ),
        (["--out", "FOLDER", "--max-length", "3"], "max_length"),
        (["--out", "FOLDER", "--train", "5000", "--max-length", "4"], "ask for fewer"),
        (["--out", SAMPLE, *SMALL], "is a file"),
        (["--out", SAMPLE / "inside", *SMALL], "Not a directory"),
    ],
)
def test_what_cannot_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[Any], said: str
) -> None:
    folder = tmp_path / "folder"
    given = [folder if word == "FOLDER" else word for word in arguments]
    assert said in fail(capsys, *given)
    assert not folder.exists()


# ------------------------------------------------------------------ true processes


def start(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "treelax", "data", "listops", *map(str, arguments)],
        text=True,
        check=False,
        **options,
    )


def test_a_process_in_a_pipe_prints_clean_text(tmp_path: Path) -> None:
    env = os.environ | {"FORCE_COLOR": "1", "COLUMNS": "20"}
    done = start("--out", tmp_path / "data", *SMALL, capture_output=True, env=env)
    assert done.returncode == 0, done.stderr
    assert not [c for c in done.stdout + done.stderr if not c.isprintable() and c != "\n"]
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["drawing", "writing"]
    assert table_of(done.stdout)["sentences"] == ["60", "20", "30"]


def test_a_process_refuses_in_one_line(tmp_path: Path) -> None:
    done = start("--stats", tmp_path / "none.tsv", capture_output=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"treelax: error: {tmp_path / 'none.tsv'}: does not exist; expected a ListOps file\n"
    )


def test_a_process_on_a_terminal_without_colours() -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    ours, theirs = pty.openpty()
    env = os.environ | {"NO_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "80"}
    try:
        done = start("--stats", SAMPLE, stdout=theirs, stderr=theirs, env=env)
        screen = os.read(ours, 100_000).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 0
    assert "reading" in screen  # the bar
    assert "─" in screen  # the table is drawn
    assert "\x1b[3" not in screen.replace("\x1b[3m", "")  # italics are no colour
