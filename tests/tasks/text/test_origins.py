"""The record of the files that a run was trained with."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from treelax.errors import DataError, InputError
from treelax.files import sha256
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.inputs import split_records
from treelax.tasks.text.origins import (
    Origin,
    find_again,
    origins_of,
    read_origins,
    refuse_missing,
    refuse_other_test,
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
    ("text", "wrong"),
    [
        ('{\n "dev": {', "it is no JSON from line 2 on, perhaps cut off"),
        ("", "it is no JSON from line 1 on, perhaps cut off"),
        (b"\xff{}", "it is no JSON in UTF-8"),
        ('{"dev": ' + 5000 * "1" + "}", "it is no JSON in UTF-8"),  # Python has a limit of its own
        (100_000 * "[", "it is nested too deeply"),
        ("[]", "it is []; expected an object of files by name"),
        ('{"dev": null}', "dev is null; expected an object of path and sha256"),
        ('{"dev": {"path": "a"}}', "dev has no sha256"),
        ('{"dev": {"path": 1, "sha256": "2"}}', "path of dev is 1; expected a text"),
        (
            '{"dev": {"path": "a", "sha256": [' + 99 * "true, " + "1]}}",
            "sha256 of dev is [true, true, true, true, true, true, tru…; expected a text",
        ),
    ],
)
def test_a_damaged_record(tmp_path: Path, text: str | bytes, wrong: str) -> None:
    file = tmp_path / "data.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        read_origins(tmp_path)
    assert str(caught.value) == (
        f"{file}: cannot be read as a record of files ({wrong}); restore it, or remove it to go on "
        "without its check of the run's files"
    )


def test_a_record_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data.json").mkdir()
    with pytest.raises(DataError, match=r"record of files \(Is a directory\); restore it"):
        read_origins(tmp_path)


# ------------------------------------------------------------------ files that are not there


def refused(folder: Path, config: DataConfig, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        refuse_missing(folder, config, **options)
    return str(caught.value)


def test_a_missing_corpus_and_what_is_mixed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    written(home / "data" / "sst", **TREES)
    monkeypatch.chdir(home)
    config = DataConfig(format="sst", path="./data/sst")
    refuse_missing(tmp_path, config)
    write_origins(tmp_path, config)
    monkeypatch.chdir(here)
    corpus = home / "data" / "sst"
    began = f"does not exist; expected the train data of the run, which began with {corpus}: "
    assert refused(tmp_path, config) == (
        f"{here / 'data' / 'sst'}: {began}go back to {home}, or give --set data.path=PATH"
    )
    assert refused(tmp_path, config, corpus="--from PATH").endswith(f"{home}, or give --from PATH")
    # of a name from which the folder cannot be told, only the other thing can be done
    assert refused(tmp_path, DataConfig(format="sst", path="../data/sst")) == (
        f"{tmp_path / 'data' / 'sst'}: {began}give --set data.path=PATH"
    )
    pairs = DataConfig(
        train=str(corpus / "train.txt"), dev=str(corpus / "dev.txt"), text=("a", "b"), mix="snli"
    )
    assert refused(tmp_path, pairs) == (  # which the run did not begin with
        f"{here / 'snli'}: does not exist; expected an existing file: give --set data.mix=PATH"
    )
    (tmp_path / "data.json").unlink()
    assert refused(tmp_path, pairs) == (
        f"{here / 'snli'}: does not exist; expected the data mixed in of the run, which was perhaps "
        "trained in another folder: go there, or give --set data.mix=PATH"
    )


def test_missing_trees_and_word_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "dev"):
        Path(f"{split}.tsv").write_text(f"text\tlabel\n{split}\tx\n")
        Path(f"{split}.conllu").write_text(f"1\t{split}\t_\t_\t_\t_\t0\t_\t_\t_\n")
    config = DataConfig(train="train.tsv", dev="dev.tsv", trees="{split}.conllu")
    write_origins(tmp_path, config)
    refuse_missing(tmp_path, config)
    Path("dev.conllu").rename("kept.conllu")
    assert refused(tmp_path, config) == (
        f"{tmp_path / 'dev.conllu'}: does not exist; expected the file of dev trees of the run: give "
        "--set data.trees=FILES"
    )
    files = {"train": "train.tsv", "dev": "dev.tsv"}
    one = refused(tmp_path, DataConfig(**files, vectors="/nowhere/v.txt"))
    assert one == (
        "/nowhere/v.txt: does not exist; expected the word vectors of the run: give --vectors FILE"
    )
    Path("v.txt").touch()
    two = refused(tmp_path, DataConfig(**files, vectors="v.txt", more_vectors=("w.txt",)))
    assert two.startswith(
        f"{tmp_path / 'w.txt'}: does not exist; expected the word vectors of the run"
    )
    assert two.endswith("go there, or give --vectors FILE for each file of them")


# ------------------------------------------------------------------ other test data


def refused_test(folder: Path, config: DataConfig, **options: str) -> str:
    with pytest.raises(InputError) as caught:
        refuse_other_test(folder, config, **options)
    return str(caught.value)


def test_other_test_data_and_trees(tmp_path: Path) -> None:
    names = {split: str(tmp_path / f"{split}.tsv") for split in ("train", "dev", "test")}
    for split, name in names.items():
        Path(name).write_text(f"text\tlabel\n{split}\tx\n")
        (tmp_path / f"{split}.conllu").write_text(f"1\t{split}\t_\t_\t_\t_\t0\t_\t_\t_\n")
    trees = str(tmp_path / "{split}.conllu")
    config = DataConfig(**names, trees=trees)
    refuse_other_test(tmp_path, config)  # an older run
    write_origins(tmp_path, config)
    Path(names["train"]).write_text("text\tlabel\nother\tx\n")  # which the checkpoint tells
    refuse_other_test(tmp_path, config)
    (tmp_path / "test.conllu").write_text("")
    assert refused_test(tmp_path, config) == (
        f"{tmp_path / 'test.conllu'}: is not the file of test trees that the run began with (data.json "
        "has another sum); expected the same content: restore it, or give --set data.trees=FILES"
    )
    moved = shutil.copy(names["test"], tmp_path / "moved.tsv")
    refuse_other_test(tmp_path, DataConfig(**names | {"test": str(moved)}))
    Path(moved).write_text("text\tlabel\n")
    assert refused_test(tmp_path, DataConfig(**names | {"test": str(moved)})) == (
        f"{moved}: is not the test data that the run began with, {names['test']} (data.json has another "
        "sum); expected the same content: restore it, or give --test FILE"
    )
    assert refused_test(tmp_path, DataConfig(**names | {"test": None})) == (
        f"{names['test']}: the run began with the test data there, and now has none; expected the same "
        "content: restore it, or give --test FILE"
    )


def test_test_data_that_are_gone_from_a_corpus(tmp_path: Path) -> None:
    corpus, line = tmp_path / "corpus", "neutral\tA dog barks.\tA cat sleeps.\n"
    corpus.mkdir()
    for split in ("train", "dev", "test"):
        (corpus / f"snli_1.0_{split}.txt").write_text(f"gold_label\tsentence1\tsentence2\n{line}")
    config = DataConfig(format="snli", path=str(corpus))
    write_origins(tmp_path, config)
    refuse_other_test(tmp_path, config)
    (corpus / "snli_1.0_test.txt").unlink()
    assert refused_test(tmp_path, config, corpus="--from PATH") == (
        f"{corpus}: the run began with the test data there, and now has none; expected the same "
        "content: restore it, or give --from PATH"
    )


def test_other_test_data_of_a_corpus(tmp_path: Path) -> None:
    corpus = written(tmp_path / "sst", **TREES)
    config = DataConfig(format="sst", path=str(corpus))
    write_origins(tmp_path, config)
    written(corpus, test=TREES["dev"])
    refuse_other_test(tmp_path, config)  # the run began without
    write_origins(tmp_path, config)
    written(corpus, test=TREES["train"])
    assert refused_test(tmp_path, config, corpus="--from PATH") == (
        f"{corpus / 'test.txt'}: is not the test data that the run began with (data.json has another "
        "sum); expected the same content: restore it, or give --from PATH"
    )
