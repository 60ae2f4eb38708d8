"""``treelax data``: what it writes, what it prints, what it refuses."""

import errno
import gzip
import hashlib
import io
import json
import zipfile
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest
from serving import Served, serving
from typer.testing import CliRunner

import treelax
from treelax.__main__ import app, main
from treelax.apps.cli import data
from treelax.apps.data.listops import listops_statistics, read_listops, write_listops
from treelax.apps.data.text import download
from treelax.apps.data.text.readers_corpora import CORPORA
from treelax.apps.data.text.readers_table import read_table
from treelax.apps.tasks.listops.config import DataConfig, preset
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.tasks.text.config import DataConfig as TextData
from treelax.apps.tasks.text.sources import distribution

FILES = Path(__file__).parent.parent / "data"
SAMPLE, PAIRS = FILES / "listops_sample.tsv", FILES / "text" / "snli_sample.jsonl"
SIZES = {"train": 60, "dev": 20, "test": 30}
SETS = [f"{name}.tsv" for name in SIZES]
SMALL = [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]
TREES = {
    "train": "(3 (2 Not) (3 bad))\n(2 (2 A) (2 film))\n\n(0 Awful)\n",
    "dev": "(4 (2 So) (4 good))\n",
    "test": "(1 (2 So) (1 (1 bad) (2 .)))\n",
}


def succeed(*arguments):
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result


def fail(capsys, *arguments):
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["data", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    *before, line = output.err.splitlines()
    assert not output.out
    assert all(reply.startswith(("drawing:", "writing:", "fetching ")) for reply in before)
    assert line.startswith("treelax: error: ")
    return line.removeprefix("treelax: error: ")


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def table_of(text):
    """The rows of a printed Markdown table by their first cell."""
    rows = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows}


# ------------------------------------------------------------------ ListOps: writing


@pytest.mark.parametrize("variant", ["original", "paulus"])
def test_three_disjoint_files_and_how_they_were_made(tmp_path, variant):
    folder = tmp_path / "new" / "data"
    result = succeed("listops", "--out", folder, *SMALL, "--variant", variant, "--seed", 5)
    assert sorted(content(folder)) == sorted([*SETS, "info.json"])
    splits = {name: read_listops(folder / f"{name}.tsv") for name in SIZES}
    assert {name: len(split) for name, split in splits.items()} == SIZES
    assert len({e for split in splits.values() for e in split}) == sum(SIZES.values())
    if variant == "paulus":
        assert all(10 <= len(e) <= 50 for split in splits.values() for e in split)
    info = json.loads((folder / "info.json").read_text())
    assert info["made_by"] == f"treelax {treelax.__version__}"
    assert info["settings"] == SIZES | data.LENGTHS[variant] | {"variant": variant, "seed": 5}
    for file in SETS:
        assert info["sha256"][file] == hashlib.sha256((folder / file).read_bytes()).hexdigest()
    rows = table_of(result.stdout)
    assert rows["sentences"] == ["60", "20", "30"]
    statistics = listops_statistics(splits["dev"])
    assert rows["length, mean"][1] == f"{statistics['length_mean']:.2f}"
    assert rows["operator [MAX"][1] == str(statistics["operators"]["[MAX"])
    assert rows["attached to the token before, %"][1] == f"{statistics['attachment_previous']:.2f}"


@pytest.mark.parametrize(
    ("variant", "trained_on"), [("original", DataConfig()), ("paulus", preset("paulus").data)]
)
def test_the_expressions_of_training(tmp_path, variant, trained_on):
    defaults = {name: p.default for name, p in signature(data.listops).parameters.items()}
    generated = preset("balanced-mc").data
    for name in ("variant", "train", "dev", "test", "seed"):
        assert defaults[name] == getattr(generated, name)
    assert all(getattr(trained_on, key) == size for key, size in data.LENGTHS[variant].items())
    succeed("listops", "--out", tmp_path, *SMALL, "--variant", variant)
    for name, expressions in load_splits(replace(trained_on, **SIZES)).items():
        assert read_listops(tmp_path / f"{name}.tsv") == expressions


def test_other_data_is_replaced_with_force_alone(tmp_path, capsys):
    """The same data may be written again, and is the same to the byte."""
    succeed("listops", "--out", tmp_path, *SMALL)
    before = content(tmp_path)
    (tmp_path / "dev.tsv").unlink()  # as if it had been stopped half-way
    succeed("listops", "--out", tmp_path, *SMALL)
    assert content(tmp_path) == before
    line = fail(capsys, "listops", "--out", tmp_path, *SMALL, "--seed", 1)
    assert line == (
        f"{tmp_path / 'dev.tsv'}: is there already with other content; give another --out, or "
        "--force to replace it"
    )
    assert content(tmp_path) == before
    succeed("listops", "--out", tmp_path, *SMALL, "--seed", 1, "--force")
    assert all(content(tmp_path)[file] != before[file] for file in before)
    for name in ("test.tsv", "info.json"):  # of unknown origin
        (folder := tmp_path / name.replace(".", "-")).mkdir()
        (folder / name).write_text("mine\n")
        line = fail(capsys, "listops", "--out", folder, *SMALL)
        assert line.startswith(f"{folder / name}: is there already with other content")
        assert content(folder) == {name: b"mine\n"}


def test_an_error_while_writing_leaves_nothing(tmp_path, capsys, monkeypatch):
    def full(path, expressions):
        if path.name == "test.tsv":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return write_listops(path, expressions)

    monkeypatch.setattr("treelax.apps.data.listops.write_listops", full)
    line = fail(capsys, "listops", "--out", tmp_path / "new", *SMALL)
    assert line.endswith("No space left on device")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    fail(capsys, "listops", "--out", tmp_path / "old", *SMALL)
    assert content(tmp_path / "old") == {}


# ------------------------------------------------------------------ ListOps: describing files


def test_statistics_of_files(tmp_path):
    short = tmp_path / "short.tsv"
    short.write_text("9\t[MAX 2 9 ]\n3\n[MIN 4 5 ]\n")
    result = succeed("listops", "--stats", SAMPLE, short)
    rows = table_of(result.stdout)
    assert rows[""] == [str(SAMPLE), str(short)]
    assert rows["sentences"] == ["12", "2"]
    assert rows["tokens"][1] == "8"
    assert rows["length, median"][1] == "4"
    assert "attached to ..." in result.stdout.splitlines()[-1]
    told = succeed("listops", "--stats", SAMPLE, "--json", "--max-length", 10).stdout
    expected = listops_statistics(read_listops(SAMPLE, max_length=10))
    assert json.loads(told) == {str(SAMPLE): json.loads(json.dumps(expected))}


# ------------------------------------------------------------------ corpora of text


def trees_archive():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        for split, text in TREES.items():
            out.writestr(f"trees/{split}.txt", text)
    return archive.getvalue()


@pytest.fixture
def sst(tmp_path):
    path = tmp_path / "trainDevTestTrees_PTB.zip"
    path.write_bytes(trees_archive())
    return path


def test_sst(sst):
    result = succeed("sst", "--from", sst)
    rows = table_of(result.stdout)
    assert rows[""] == ["train", "dev", "test"]
    assert rows["sentences"] == ["2", "1", "1"]
    assert rows["of the official split"] == ["0.0 % of 6,920", "0.1 % of 872", "0.1 % of 1,821"]
    assert rows["negative"] == ["1", "0", "1"]
    assert rows["positive"] == ["1", "1", "0"]
    assert rows["words, mean"] == ["1.50", "2.00", "3.00"]
    assert rows["words, most"] == ["2", "2", "3"]
    assert rows["dropped"] == ["2", "0", "0"]
    assert "train: 1 line dropped: neutral (2)\n" in result.stdout
    assert "SST, two classes" in result.stdout
    rows = table_of(succeed("sst", "--from", sst, "--classes", "five").stdout)
    assert [rows[name][0] for name in ("very negative", "neutral", "positive")] == ["1", "1", "1"]
    assert list(sst.parent.iterdir()) == [sst]
    described = json.loads(succeed("sst", "--from", sst, "--json").stdout)
    assert described["missing"] == []
    assert described["splits"]["train"] == {
        "source": f"{sst}: trees/train.txt",
        "records": 2,
        "labels": {"positive": 1, "negative": 1},
        "length_mean": [1.5],
        "length_max": [2],
        "official": 6920,
        "dropped": {"neutral": [2], "empty sentence": [3]},
        "dropped_summary": ["1 line dropped: neutral (2)", "1 line dropped: empty sentence (3)"],
    }


def test_pairs(tmp_path, capsys):
    """From a file, a whole split, and a folder in which splits are missing."""
    result = succeed("snli", "--from", PAIRS)
    rows = table_of(result.stdout)
    assert (rows[""], rows["pairs"], rows["entailment"]) == (["snli_sample.jsonl"], ["4"], ["2"])
    assert rows["of the official split"] == ["–"]
    assert rows["premise: words, most"] == ["19"]
    assert "snli_sample.jsonl: 1 line dropped: no gold label (2)" in result.stdout
    assert "is not there" not in result.stdout
    count = CORPORA["snli"].official["test"]
    (tmp_path / "test.tsv").write_text("neutral\ta b\tc\n" * count)
    rows = table_of(succeed("snli", "--from", tmp_path).stdout)
    assert (rows["pairs"], rows["of the official split"]) == ([f"{count:,}"], ["100 %"])
    (tmp_path / "test.tsv").unlink()
    (tmp_path / "dev_matched.tsv").write_text("neutral\ta b\tc\tfiction\n")
    result = succeed("multinli", "--from", tmp_path)
    assert table_of(result.stdout)[""] == ["dev_matched"]
    assert "train: is not there\ndev_mismatched: is not there\n" in result.stdout
    line = fail(capsys, "snli", "--from", tmp_path)
    assert line.startswith(f"{tmp_path}: holds dev_matched.tsv; expected snli_1.0_train.jsonl")


def test_written_tables_go_round(tmp_path, sst, capsys):
    for classes in ("binary", "five"):
        out = tmp_path / "new" / classes
        succeed("sst", "--from", sst, "--out", out, "--classes", classes)
        assert sorted(content(out)) == [f"{split}.tsv.gz" for split in sorted(TREES)]
        assert table_of(succeed("sst", "--from", out).stdout)["negative"] == ["1", "0", "1"]
    out = tmp_path / "new" / "binary"
    text = gzip.decompress((out / "train.tsv.gz").read_bytes()).decode()
    assert text == "label\tsentence\npositive\tNot bad\nnegative\tAwful\n"
    line = fail(capsys, "sst", "--from", out, "--classes", "five")
    assert line.startswith(f"{out / 'train.tsv.gz'}: received negative and positive")
    before = content(out)
    again = ["sst", "--from", sst, "--out", out, "--classes", "five"]
    line = fail(capsys, *again)
    assert line.startswith(f"{out / 'dev.tsv.gz'}: is there already with other content; give ano")
    assert content(out) == before
    succeed(*again, "--force")
    assert [r.label for r in read_table(out / "dev.tsv.gz")] == ["very positive"]


# ------------------------------------------------------------------ fetching


def test_without_from_the_archive_is_fetched_once(tmp_path, monkeypatch):
    with serving(Served(trees_archive())) as served:
        archive = served.archive(name="trainDevTestTrees_PTB.zip")
        monkeypatch.setattr(download, "ARCHIVES", {"sst": archive})
        result = succeed("sst", "--cache", tmp_path)
        assert table_of(result.stdout)["sentences"] == ["2", "1", "1"]
        assert "fetching trainDevTestTrees_PTB.zip: 1/1 (100 %)" in result.stderr
        monkeypatch.setenv("TREELAX_CACHE", str(tmp_path))
        assert distribution(TextData(format="sst")) == str(tmp_path / archive.name)
        assert "fetching" not in succeed("sst", "--cache", tmp_path).stderr
        assert served.asked == [None]
    assert [file.name for file in tmp_path.iterdir()] == [archive.name]
