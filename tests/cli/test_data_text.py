"""``treelax data snli``, ``multinli`` and ``sst``: figures, files and refusals."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest
from serving import Served, serving
from typer.testing import CliRunner, Result

from treelax.cli.main import app, main
from treelax.data.text import download
from treelax.data.text.readers_corpora import CORPORA, read_multinli, read_snli
from treelax.data.text.readers_table import read_table
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.sources import distribution

SAMPLE = Path(__file__).parent.parent / "data" / "text" / "snli_sample.jsonl"
TREES = {
    "train": "(3 (2 Not) (3 bad))\n(2 (2 A) (2 film))\n\n(0 Awful)\n",
    "dev": "(4 (2 So) (4 good))\n",
    "test": "(1 (2 So) (1 (1 bad) (2 .)))\n",
}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def succeed(*arguments: object) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["data", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    *before, line = output.err.splitlines()
    assert not output.out
    assert all(said.startswith("fetching ") for said in before)
    assert line.startswith("treelax: error: ")
    return line.removeprefix("treelax: error: ")


def table_of(text: str) -> dict[str, list[str]]:
    """The rows of a printed Markdown table by their first cell."""
    rows = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows}


def trees_archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for split, text in TREES.items():
            out.writestr(f"trees/{split}.txt", text)
    return data.getvalue()


@pytest.fixture
def sst(tmp_path: Path) -> Path:
    path = tmp_path / "trainDevTestTrees_PTB.zip"
    path.write_bytes(trees_archive())
    return path


# ------------------------------------------------------------------ figures


def test_sst(sst: Path) -> None:
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
    assert "train: 1 line dropped: empty sentence (3)\n" in result.stdout
    assert "SST, two classes" in result.stdout
    rows = table_of(succeed("sst", "--from", sst, "--classes", "five").stdout)
    assert [rows[name][0] for name in ("very negative", "neutral", "positive")] == ["1", "1", "1"]
    assert list(sst.parent.iterdir()) == [sst]


def test_snli_from_a_file() -> None:
    result = succeed("snli", "--from", SAMPLE)
    rows = table_of(result.stdout)
    assert rows[""] == ["snli_sample.jsonl"]
    assert rows["pairs"] == ["4"]
    assert rows["entailment"] == ["2"]
    assert rows["of the official split"] == ["–"]
    assert rows["premise: words, most"] == ["19"]
    assert "snli_sample.jsonl: 1 line dropped: no gold label (2)" in result.stdout
    assert "is not there" not in result.stdout


def test_splits_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dev_matched.tsv").write_text("neutral\ta b\tc\tfiction\n")
    result = succeed("multinli", "--from", tmp_path)
    assert table_of(result.stdout)[""] == ["dev_matched"]
    assert "train: is not there\ndev_mismatched: is not there\n" in result.stdout
    described = json.loads(succeed("multinli", "--from", tmp_path, "--json").stdout)
    assert described["missing"] == ["train", "dev_mismatched"]
    line = fail(capsys, "snli", "--from", tmp_path)
    assert line == f"{tmp_path}: holds dev_matched.tsv; expected snli_1.0_train.jsonl for train"


@pytest.mark.parametrize("corpus", ["snli", "multinli"])
def test_unusable_lines_are_refused_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], corpus: str
) -> None:
    words = "w " * 10_001
    (tmp_path / "train.tsv").write_text(f"neutral\ta b\tc\nneutral\ta\nneutral\t{words}\tc\n")
    line = fail(capsys, corpus, "--from", tmp_path)
    assert "train.tsv, line 2: received 2 columns; expected 3 or 4" in line
    assert "treelax data --unusable drop" in line
    result = succeed(corpus, "--from", tmp_path, "--unusable", "drop")
    assert table_of(result.stdout)["pairs"] == ["1"]
    assert "train: 1 line dropped: wrong number of columns (2)" in result.stdout
    assert "train: 1 line dropped: too many words (3)" in result.stdout


def test_a_whole_split_is_called_whole(tmp_path: Path) -> None:
    count = CORPORA["snli"].official["test"]
    (tmp_path / "test.tsv").write_text("neutral\ta b\tc\n" * count)
    rows = table_of(succeed("snli", "--from", tmp_path).stdout)
    assert rows["pairs"] == [f"{count:,}"]
    assert rows["of the official split"] == ["100 %"]


def test_json(sst: Path) -> None:
    described = json.loads(succeed("sst", "--from", sst, "--json").stdout)
    assert described["missing"] == []
    train = described["splits"]["train"]
    assert train == {
        "source": f"{sst}: trees/train.txt",
        "records": 2,
        "labels": {"positive": 1, "negative": 1},
        "length_mean": [1.5],
        "length_max": [2],
        "official": 6920,
        "dropped": {"neutral": [2], "empty sentence": [3]},
        "dropped_summary": [
            "1 line dropped: neutral (2)",
            "1 line dropped: empty sentence (3)",
        ],
    }


# ------------------------------------------------------------------ writing


def test_written_tables_are_read_again(tmp_path: Path, sst: Path) -> None:
    out = tmp_path / "new" / "out"
    succeed("sst", "--from", sst, "--out", out)
    assert sorted(file.name for file in out.iterdir()) == [f"{s}.tsv.gz" for s in sorted(TREES)]
    text = gzip.decompress((out / "train.tsv.gz").read_bytes()).decode()
    assert text == "label\tsentence\npositive\tNot bad\nnegative\tAwful\n"
    assert [r.label for r in read_table(out / "train.tsv.gz")] == ["positive", "negative"]


def test_written_tables_of_sst_go_round(
    tmp_path: Path, sst: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for classes in ("binary", "five"):
        out = tmp_path / classes
        succeed("sst", "--from", sst, "--out", out, "--classes", classes)
        rows = table_of(succeed("sst", "--from", out).stdout)
        assert rows["sentences"] == ["2", "1", "1"]
        assert rows["negative"] == ["1", "0", "1"]
    line = fail(capsys, "sst", "--from", tmp_path / "binary", "--classes", "five")
    assert line.startswith(
        f"{tmp_path / 'binary' / 'train.tsv.gz'}: received negative and positive"
    )


def test_pairs_are_written_with_their_genre(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "train.tsv").write_text("neutral\ta b\tc\tfiction\nentailment\ta -LRB-\tb\t-\n")
    (source / "test_matched.tsv").write_text("-\ta b\tc\ttravel\n")
    succeed("multinli", "--from", source, "--out", out)
    assert sorted(file.name for file in out.iterdir()) == ["test_matched.tsv.gz", "train.tsv.gz"]
    for split in ("train", "test_matched"):
        before = [(r.texts, r.label, r.extra) for r in read_multinli(source, split)]
        assert [(r.texts, r.label, r.extra) for r in read_multinli(out, split)] == before
    assert succeed("multinli", "--from", out).exit_code == 0


def test_other_content_stays_unless_forced(
    tmp_path: Path, sst: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    succeed("sst", "--from", sst, "--out", out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    succeed("sst", "--from", sst, "--out", out)
    line = fail(capsys, "sst", "--from", sst, "--out", out, "--classes", "five")
    assert line.startswith(f"{out / 'dev.tsv.gz'}: is there already with other content; give ano")
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    succeed("sst", "--from", sst, "--out", out, "--classes", "five", "--force")
    assert [r.label for r in read_table(out / "dev.tsv.gz")] == ["very positive"]


def test_an_error_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "train.txt").write_text(TREES["train"])
    (source / "dev.txt").write_text("(3 (2 Not) (3 bad)\n")
    line = fail(capsys, "sst", "--from", source, "--out", out)
    assert line.startswith(f"{source / 'dev.txt'}, line 1: ")
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "{sst}", "--cache", "x"], "--cache: is for fetching"),
        (["--from", "{sst}", "--force"], "--force: is for writing"),
        (["--from", "{sst}", "--out", "{sst}"], "is a file"),
        (["--from", "{sample}", "--out", "x"], "{sample}: is one file; expected an archive"),
        (["--from", "nowhere"], "nowhere: does not exist; expected trainDevTestTrees_PTB.zip"),
        (["--classes", "two"], "'two' is not one of"),
    ],
)
def test_what_is_refused(
    sst: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    names = {"sst": str(sst), "sample": str(SAMPLE)}
    line = fail(capsys, "sst", *(word.format(**names) for word in arguments))
    assert message.format(**names) in line


# ------------------------------------------------------------------ fetching


def test_without_from_the_archive_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Served(trees_archive())) as served:
        archive = served.archive(name="trainDevTestTrees_PTB.zip")
        monkeypatch.setattr(download, "ARCHIVES", {"sst": archive})
        result = succeed("sst", "--cache", tmp_path)
        assert table_of(result.stdout)["sentences"] == ["2", "1", "1"]
        assert "fetching trainDevTestTrees_PTB.zip: 1/1 (100 %)" in result.stderr
        there = tmp_path / archive.name
        monkeypatch.setenv("TREELAX_CACHE", str(tmp_path))
        assert distribution(DataConfig(format="sst")) == str(there)
        monkeypatch.delenv("TREELAX_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        again = succeed("sst", "--cache", tmp_path)
        assert "fetching" not in again.stderr
        assert served.asked == [None]
    assert [file.name for file in tmp_path.iterdir()] == [archive.name]


def test_the_usual_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "treelax")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        out.writestr("snli_1.0/snli_1.0_dev.jsonl", SAMPLE.read_text())
    with serving(Served(data.getvalue())) as served:
        monkeypatch.setattr(download, "ARCHIVES", {"snli": served.archive(name="snli_1.0.zip")})
        result = succeed("snli")
    assert table_of(result.stdout)["pairs"] == ["4"]
    labels = [r.label for r in read_snli(tmp_path / "treelax", "dev")]
    assert len(labels) == 4


def test_a_file_that_cannot_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Served(b"x", statuses=[404])) as served:
        archive = served.archive(name="snli_1.0.zip")
        monkeypatch.setattr(download, "ARCHIVES", {"snli": archive})
        line = fail(capsys, "snli", "--cache", tmp_path)
    assert line == (
        f"{archive.url}: cannot be fetched (HTTP Error 404: Not Found): get snli_1.0.zip elsewhere and "
        "pass it with --from"
    )
    assert list(tmp_path.iterdir()) == []
