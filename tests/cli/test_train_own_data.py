"""What ``treelax train`` and ``treelax predict`` say of one's own files when something is amiss."""

import re
import shutil
import sys
import warnings
from pathlib import Path

import numpy
import pytest
from commands import fail
from sentence_runs import SMALL, write_files

from treelax.__main__ import main
from treelax.apps.tasks.text.presets import preset

SETTINGS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
ENDING = ["--device", "cpu", *SETTINGS]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


# ------------------------------------------------------------------ files


def test_warnings_are_notes_of_one_line(tmp_path, capsys, monkeypatch):
    """And how many words have a vector is printed."""
    options = write_files("classify", tmp_path)
    vectors = written(tmp_path, "v.txt", "the 1 2\nfilm 1 2\n")
    monkeypatch.setenv("TREELAX_CACHE", str(written(tmp_path, "file", "")))
    command = ["train", "classify", *options, "--vectors", str(vectors), *ENDING]

    def shown(message, category, file, line, *_):
        print(warnings.formatwarning(message, category, file, line), end="", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", shown)
        assert main([*command, "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().err.splitlines()
    notes = [line for line in lines if line.startswith("note: ")]
    assert notes[0].startswith(f"note: {tmp_path / 'train.tsv'} was encoded but not put into")
    assert notes[-1].startswith("note: fewer than half of the words have a vector")
    assert not any("Warning" in line for line in lines)
    assert "word vectors: 2 of 9 words of the data found (22.2 %), 7 unknown" in lines


# ------------------------------------------------------------------ columns, labels, vectors


def test_tags_from_any_column(tmp_path, capsys):
    """And predictions use the same columns."""
    write_files("tag", tmp_path)
    options = []
    for split in ("train", "dev", "test"):
        rows = (tmp_path / f"{split}.conll").read_text().splitlines()
        cells = [row.split("\t") for row in rows]
        text = "\n".join(f"X {item[0]} {item[1]} O" if item[0] else "" for item in cells)
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


def test_long_texts_are_left_out_and_the_setting_is_told(tmp_path, capsys):
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
    reply = capsys.readouterr().err
    assert (
        "train: 2 examples of more than 100 words left out; --set data.max_length=N keeps more\n"
    ) in reply
    shutil.rmtree(tmp_path / "run")
    assert main([*map(str, command), *ENDING, "--set", "data.max_length=101"]) == 0
    assert "left out" not in capsys.readouterr().err


def test_what_the_page_says_of_settings_and_archives(tmp_path, capsys):
    page = " ".join((ROOT / "docs" / "own-data.md").read_text(encoding="utf-8").split())
    direct = preset("classify")
    assert f"`train.batch_size` (default {direct.train.batch_size})" in page
    assert f"`train.epochs` (default {direct.train.epochs})" in page
    assert f"texts of more than {direct.data.max_length} words" in page
    (call,) = re.findall(r"`(numpy\.savez\(.+?\))`", page)
    place = tmp_path / "mine.npz"
    vec = numpy.ones((2, 3), dtype=numpy.float32)
    names = {"numpy": numpy, "words": numpy.array(["the", "film"]), "vec": vec}
    exec(call.replace("mine.npz", str(place)), names)
    options = [*write_files("classify", tmp_path), "--vectors", str(place)]
    assert main(["train", "classify", *options, *ENDING, "--out", str(tmp_path / "run")]) == 0
    assert "word vectors: 2 of 9 words" in capsys.readouterr().err


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("command", "fitting", "other"),
    [
        ("classify", ["classify"], "sst"),
        ("sst", ["sst-given", "sst-tuned-tree"], "snli"),
    ],
)
def test_the_list_has_fitting_presets_and_says_what_settings_are(capsys, command, fitting, other):
    assert main(["train", command, "--list"]) == 0
    presets, _, settings = capsys.readouterr().out.partition("\n\n")
    assert all(f"| {name} " in presets for name in fitting)
    assert f"| {other}" not in presets
    row = next(line for line in settings.splitlines() if line.startswith("| train.clip "))
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        *("train.clip", "5.0", "largest norm of the gradient"),
    ]
