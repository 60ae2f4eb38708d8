"""The record of the files that a run was trained with."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from treelax.apps.tasks.sentences import origins
from treelax.apps.tasks.sentences.origins import Origin, read_origins, trees_of
from treelax.apps.tasks.text.config import DataConfig, SentenceSettings, TextConfig
from treelax.apps.tasks.text.sources import own_examples, training_files
from treelax.errors import DataError, InputError
from treelax.files import sha256

TREES = {
    "train": "(3 (2 Dogs) (2 bark))\n(1 (2 Cats) (2 sleep))\n",
    "dev": "(3 (2 Birds) (2 sing))\n",
}


def origins_of(config):
    return origins.origins_of(training_files(config))


def write_origins(folder, config):
    origins.write_origins(folder, training_files(config))


def refuse_other_data(folder, config):
    origins.refuse_other_data(folder, training_files(config))


def written(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def found_again(data, origin):
    config = TextConfig(kind="classify", data=data)
    return own_examples(config, SentenceSettings(), "dev", {"dev": origin}).name


def test_a_table_and_its_trees(tmp_path, monkeypatch):
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


def test_the_archive_and_the_folder_of_a_corpus(tmp_path, monkeypatch):
    """A folder of the same name is only taken if the split in it is what it was."""
    home, here = written(tmp_path / "home" / "sst", **TREES), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(home.parent)
    config = DataConfig(format="sst", path="sst")
    origin = origins_of(config)["dev"]
    assert origin == Origin(str(home), sha256(home / "dev.txt"))
    monkeypatch.chdir(here)
    written(Path("sst"), train=TREES["train"])  # a folder without the split
    assert found_again(config, origin) == str(home / "dev.txt")
    written(Path("sst"), dev=TREES["train"])
    assert found_again(config, origin) == str(home / "dev.txt")
    shutil.rmtree(home)
    with pytest.raises(InputError, match=f"^{here / 'sst'}: is not the dev data"):
        found_again(config, origin)
    written(Path("sst"), **TREES)
    assert found_again(config, origin) == "sst/dev.txt"
    # a corpus that treelax data had fetched, of which the config says nothing
    assert found_again(DataConfig(format="sst"), Origin(str(here / "sst"), origin.sha256))
    with zipfile.ZipFile("trees.zip", "w") as archive:
        for split, text in TREES.items():
            archive.writestr(f"trees/{split}.txt", text)
    found = origins_of(DataConfig(format="sst", path="trees.zip"))
    assert set(found.values()) == {Origin(str(here / "trees.zip"), sha256("trees.zip"))}


DAMAGED = ['{\n "dev": {', "", b"\xff{}", "[]", '{"dev": null}', '{"dev": {"path": "a"}}']


@pytest.mark.parametrize("text", [*DAMAGED, '{"dev": {"path": 1, "sha256": "2"}}', 100_000 * "["])
def test_a_damaged_record(tmp_path, text):
    file = tmp_path / "data.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=f"^{file}: cannot be read as a record .* or remove it"):
        read_origins(tmp_path)


# ------------------------------------------------------------------ resuming a run


def refused(folder, config):
    with pytest.raises((DataError, InputError)) as caught:
        refuse_other_data(folder, config)
    return str(caught.value)


def test_files_that_are_not_there(tmp_path, monkeypatch):
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    corpus = written(home / "data" / "sst", **TREES)
    monkeypatch.chdir(home)
    config = DataConfig(format="sst", path="./data/sst")
    write_origins(tmp_path, config)
    monkeypatch.chdir(here)
    assert refused(tmp_path, config) == (
        f"{here / 'data' / 'sst'}: does not exist; expected the train data of the run, which was "
        f"{corpus}: restore it, or give --from PATH"
    )
    files = {"train": str(corpus / "train.txt"), "dev": str(corpus / "dev.txt")}
    for changes, what, option in (
        ({"mix": "snli", "text": ("a", "b")}, "data mixed in", "--set data.mix=PATH"),
        ({"trees": "{split}.conllu"}, "file of train trees", "--set data.trees=FILES"),
        ({"vectors": "v.txt"}, "word vectors", "--vectors FILE"),
    ):
        message = f"does not exist; expected the {what} of the run: restore it, or give {option}"
        assert message in refused(here, DataConfig(**files | changes))


def test_other_test_data_and_trees(tmp_path):
    corpus = written(tmp_path / "sst", **TREES)
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conllu").write_text(f"1\t{split}\t_\t_\t_\t_\t0\t_\t_\t_\n")
    trees = str(tmp_path / "{split}.conllu")
    config = DataConfig(format="sst", path=str(corpus), trees=trees)
    refuse_other_data(tmp_path, config)  # a run without a record
    write_origins(tmp_path, config)
    written(corpus, test=TREES["dev"])
    refuse_other_data(tmp_path, config)  # the run began without test data
    write_origins(tmp_path, config)
    written(corpus, train=TREES["dev"])  # which the checkpoint notices
    refuse_other_data(tmp_path, config)
    (tmp_path / "test.conllu").write_text("")
    assert refused(tmp_path, config).startswith(
        f"{tmp_path / 'test.conllu'}: is not the file of test trees that the run began with"
    )
    config = DataConfig(format="sst", path=str(corpus))
    written(corpus, test=TREES["train"])
    message = refused(tmp_path, config)
    assert message.startswith(
        f"{corpus / 'test.txt'}: is not the test data that the run began with"
    )
    assert message.endswith("or give --from PATH")
    (corpus / "test.txt").unlink()
    assert "is not the test data" in refused(tmp_path, config)
