"""The record of the files that a run was trained with."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from treelax.analysis.corpus_readers import split_records
from treelax.errors import DataError, InputError
from treelax.files import sha256
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.origins import (
    Origin,
    find_again,
    origins_of,
    read_origins,
    trees_of,
    write_origins,
)

TREES = {
    "train": "(3 (2 Dogs) (2 bark))\n(1 (2 Cats) (2 sleep))\n",
    "dev": "(3 (2 Birds) (2 sing))\n",
}


def written(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_a_table_and_its_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are absolute, whatever the config has, and what is written is read again."""
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev"):
        Path(f"{split}.tsv").write_text(f"text\tlabel\n{split}\tx\n")
        Path(f"{split}.conllu").write_text(f"1\t{split}\t_\t_\t_\t_\t0\t_\t_\t_\n")
    config = DataConfig(train="train.tsv", dev="dev.tsv", trees="{split}.conllu")
    found = origins_of(config)
    assert list(found) == ["train", trees_of("train"), "dev", trees_of("dev")]
    assert found["dev"] == Origin(str(tmp_path / "dev.tsv"), sha256("dev.tsv"))
    assert found[trees_of("dev")].path == str(tmp_path / "dev.conllu")
    write_origins(tmp_path, config)
    assert read_origins(tmp_path) == found


def test_the_archive_and_the_folder_of_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of the same name is only taken if the split in it is what it was."""
    home, here = written(tmp_path / "home" / "sst", **TREES), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(home.parent)
    config = DataConfig(format="sst", path="sst")
    origin = origins_of(config)["dev"]
    assert origin == Origin(str(home), sha256(home / "dev.txt"))
    monkeypatch.chdir(here)
    written(Path("sst"), train=TREES["train"])  # a folder without the split
    assert split_records(config, "dev", origin).file == home / "dev.txt"
    written(Path("sst"), dev=TREES["train"])
    assert split_records(config, "dev", origin).file == home / "dev.txt"
    shutil.rmtree(home)
    with pytest.raises(InputError, match=f"^{here / 'sst'}: is not the dev data"):
        split_records(config, "dev", origin)
    written(Path("sst"), **TREES)
    assert split_records(config, "dev", origin).file == Path("sst", "dev.txt")
    # a corpus that treelax data had fetched, of which the config says nothing
    assert split_records(DataConfig(format="sst"), "dev", Origin(str(here / "sst"), origin.sha256))
    with zipfile.ZipFile("trees.zip", "w") as archive:
        for split, text in TREES.items():
            archive.writestr(f"trees/{split}.txt", text)
    found = origins_of(DataConfig(format="sst", path="trees.zip"))
    assert set(found.values()) == {Origin(str(here / "trees.zip"), sha256("trees.zip"))}


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"^{tmp_path}: cannot be read: Is a directory"):
        find_again(str(tmp_path), Origin(str(tmp_path), ""), "dev data")


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"dev": {"path": "a"}}', '{"dev": {"path": 1, "sha256": 2}}']
)
def test_a_damaged_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(
        DataError, match=r"data\.json: cannot be read as a record of files \(.*remove"
    ):
        read_origins(tmp_path)
