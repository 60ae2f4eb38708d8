"""What ``treelax train`` and ``treelax predict`` say of one's own files when something is amiss."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
from commands import fail
from sentence_runs import SMALL, write_files

from treelax.__main__ import main
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.text.config import TextConfig
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import flatten
from treelax.apps.training.settings import descriptions

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
ENDING = ["--device", "cpu", *SETTINGS]
ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ------------------------------------------------------------------ files


def test_errors_of_files_say_what_a_command_can_do(tmp_path: Path, capsys: Capture) -> None:
    def refused(file: Path) -> str:
        out = ["--out", tmp_path / "run"]
        return fail(capsys, "train", "classify", "--train", file, "--dev", file, *out)

    long = written(tmp_path, "a.tsv", f"text\tlabel\nfine\tyes\n{'w ' * 33_000}\tno\n")
    assert "line 3: received 33,000 words; expected at most 10,000: split it or remove it" in (
        refused(long)
    )
    ragged = written(tmp_path, "b.tsv", "text\tlabel\nfine\tyes\tno\n")
    assert "line 2: received 3 columns; expected 2: fix it or remove it" in refused(ragged)
    named = written(tmp_path, "c.txt", "text\tlabel\nfine\tyes\n")
    assert "expected .tsv, .tab, .csv, .jsonl, .ndjson: rename it" in refused(named)
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("one.tsv", "text\tlabel\nfine\tyes\n")
        archive.writestr("two.tsv", "text\tlabel\nfine\tyes\n")
    assert "expected one: unpack it and give the file itself" in refused(tmp_path / "d.zip")


def test_warnings_are_notes_of_one_line(tmp_path: Path) -> None:
    options = write_files("classify", tmp_path)
    no_folder = written(tmp_path, "file", "")
    options += ["--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "treelax", "train", "classify", *options, *ENDING],
        env={**os.environ, "TREELAX_CACHE": str(no_folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 3
    assert notes[0].startswith(f"note: {tmp_path / 'train.tsv'} was encoded but not put into")
    assert "Warning" not in done.stderr
    assert "cached_splits" not in done.stderr


# ------------------------------------------------------------------ columns, labels, vectors


def test_tags_from_any_column(tmp_path: Path, capsys: Capture) -> None:
    """And predictions use the same columns."""
    write_files("tag", tmp_path)
    options = []
    for split in ("train", "dev", "test"):
        rows = (tmp_path / f"{split}.conll").read_text().splitlines()
        cells = [row.split("\t") for row in rows]
        text = "\n".join(f"X {each[0]} {each[1]} O" if each[0] else "" for each in cells)
        options += [f"--{split}", str(written(tmp_path, f"{split}.txt", text + "\n"))]
    run = tmp_path / "run"
    columns = ["--text", "2", "--label", "3"]
    assert main(["train", "tag", *options, *columns, *ENDING, "--out", str(run)]) == 0
    capsys.readouterr()
    command = ["predict", str(run), str(tmp_path / "test.txt"), "--input", "conll"]
    assert main([*command, "--format", "tsv"]) == 0
    output = capsys.readouterr()
    assert "labelled words" in output.err
    words = [line.split("\t")[3] for line in output.out.splitlines()[1:]]
    first = (tmp_path / "test.conll").read_text().partition("\n\n")[0]
    assert words[0].split() == [row.partition("\t")[0] for row in first.splitlines()]
    # words alone, which have no such column, are told by --text
    bare = written(tmp_path, "bare.txt", "fine x\nfilm y\n")
    assert main(["predict", str(run), str(bare), "--input", "conll", "--text", "1"]) == 0
    assert '"words": ["fine", "film"]' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (
            "tag",
            ["--text", "1", "--label", "1"],
            "data: the column '1' is named twice",
        ),
        ("classify", ["--text", "x", "--label", "x"], "data: the column 'x' is named twice"),
        ("pair", ["--text", "x", "--text", "x"], "data: the column 'x' is named twice"),
        ("snli", ["--set", "preset=snli-none"], "preset: received the setting preset=snli-none; "),
    ],
)
def test_options_that_contradict(capsys: Capture, kind: str, options: list[str], said: str) -> None:
    assert fail(capsys, "train", kind, *options).startswith(said)


def test_long_texts_are_left_out_and_the_setting_is_told(tmp_path: Path, capsys: Capture) -> None:
    long = " ".join(["good"] * 101)
    rows = ["text\tlabel", *["bad film\tneg"] * 3, *[f"{long}\tpos"] * 2]
    file = written(tmp_path, "a.tsv", "\n".join([*rows, ""]))
    command = ["train", "classify", "--train", file, "--dev", file, "--out", tmp_path / "run"]
    line = fail(capsys, *command)
    assert line.startswith(
        f"{file}: received one label, 'neg', for all examples (2 examples of more"
    )
    assert "--set data.max_length=N" in line
    written(tmp_path, "a.tsv", "\n".join([*rows, "fine\tpos", ""]))
    assert main([*map(str, command), *ENDING]) == 0
    said = capsys.readouterr().err
    assert (
        "train: 2 examples of more than 100 words left out; --set data.max_length=N keeps more\n"
    ) in said
    shutil.rmtree(tmp_path / "run")
    assert main([*map(str, command), *ENDING, "--set", "data.max_length=101"]) == 0
    assert "left out" not in capsys.readouterr().err


def test_columns_that_no_option_names(tmp_path: Path, capsys: Capture) -> None:
    file = written(tmp_path, "a.tsv", "premise\thypothesis\tlabel\nfine\tgood\tyes\n")
    files = ["--train", file, "--dev", file, "--out", tmp_path / "run"]
    columns = {"pair": [], "classify": ["--text", "premise", "--label", "kind"]}
    for kind, named in columns.items():
        line = fail(capsys, "train", kind, *files, *named)
        missing = "'kind'" if named else "'first'"
        assert line.startswith(f"{file}, line 1: no column {missing}; it has: premise, hypothesis")
        assert "--text and --label name the columns" in line


def test_what_the_page_says_of_settings_and_archives(tmp_path: Path, capsys: Capture) -> None:
    page = " ".join((ROOT / "docs" / "own-data.md").read_text(encoding="utf-8").split())
    own = preset("classify")
    assert f"`train.batch_size` (default {own.train.batch_size})" in page
    assert f"`train.epochs` (default {own.train.epochs})" in page
    assert f"texts of more than {own.data.max_length} words" in page
    (call,) = re.findall(r"`(numpy\.savez\(.+?\))`", page)
    place = tmp_path / "mine.npz"
    vec = numpy.ones((2, 3), dtype=numpy.float32)
    names = {"numpy": numpy, "words": numpy.array(["the", "film"]), "vec": vec}
    exec(call.replace("mine.npz", str(place)), names)
    options = [*write_files("classify", tmp_path), "--vectors", str(place)]
    assert main(["train", "classify", *options, *ENDING, "--out", str(tmp_path / "run")]) == 0
    assert "word vectors: 2 of 9 words" in capsys.readouterr().err


@pytest.mark.parametrize("few", [False, True])
def test_how_many_words_have_a_vector_is_told(tmp_path: Path, capsys: Capture, few: bool) -> None:
    options = write_files("classify", tmp_path)
    known = ["the", "film"] if few else ["the", "film", "was", "a", "plot", "good", "bad", "sad"]
    vectors = written(tmp_path, "v.txt", "".join(f"{word} 1 2\n" for word in known))
    command = ["train", "classify", *options, "--vectors", str(vectors), *ENDING]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    count, share, unknown = (2, "22.2", 7) if few else (8, "88.9", 1)
    assert (
        f"word vectors: {count} of 9 words of the data found ({share} %), {unknown} unknown\n"
        in said
    )
    assert ("note: fewer than half of the words have a vector" in said) == few


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("command", "fitting", "other"),
    [
        ("classify", ["classify"], "sst"),
        ("snli", ["snli-tree-1", "snli-tuned-none"], "multinli"),
        ("sst", ["sst-given", "sst-tuned-tree"], "snli"),
    ],
)
def test_the_list_has_fitting_presets_and_says_what_settings_are(
    capsys: Capture, command: str, fitting: list[str], other: str
) -> None:
    assert main(["train", command, "--list"]) == 0
    presets, _, settings = capsys.readouterr().out.partition("\n\n")
    for name in fitting:
        assert f"| {name} " in presets
    assert f"| {other}" not in presets
    row = next(line for line in settings.splitlines() if line.startswith("| train.clip "))
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        *("train.clip", "5.0", "largest norm of the gradient"),
    ]


@pytest.mark.parametrize("kind", [TextConfig, ListOpsConfig])
def test_every_setting_is_described(kind: type) -> None:
    told = descriptions(kind)
    assert list(told) == list(flatten(kind()))
    assert all(told.values())
    assert "`" not in "".join(told.values())
