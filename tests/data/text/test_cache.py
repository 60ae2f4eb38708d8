"""Encoded text kept in files."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import treelax.apps.data.text.cache as cache
from treelax.apps.data.text.cache import TextSource, cached_splits
from treelax.apps.data.text.encoding import encode_records
from treelax.apps.data.text.records import Record, Records
from treelax.apps.data.text.vocabulary import Vocabulary

TEXTS = {"train": "yes\tA dog barks\na dog\nno\tno dog\nÄ\x85 cat\n", "dev": "no\ta bird\nA dog\n"}


class Counted:
    """Sources with two lines a record (label, tab, premise; hypothesis), and how often each was read."""

    def __init__(self, folder: Path) -> None:
        self.reads: list[str] = []
        self.sources: dict[str, TextSource] = {}
        for name, text in TEXTS.items():
            path = folder / f"{name}.txt"
            path.write_text(text, encoding="utf-8")
            self.sources[name] = TextSource(
                [path], lambda n=name, p=path: self.read(n, p), "two", str(path)
            )
        self.train = {"train": self.sources["train"]}

    def read(self, name: str, path: Path) -> Records:
        self.reads.append(name)

        def records(report):
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            report.drop("no gold label", 99)
            for i in range(0, len(lines), 2):
                label, _, premise = lines[i].partition("\t")
                yield Record((premise, lines[i + 1]), label, i + 1, tokens=True)

        return Records(str(path), records)


@pytest.fixture
def data(tmp_path):
    return Counted(tmp_path)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "somewhere" / "cache"


def words(split):
    return [split.words(i, which) for i in range(len(split)) for which in (0, 1)]


@pytest.mark.parametrize("lower", [False, True])
def test_splits_are_as_if_encoded_with_one_vocabulary(data, folder, lower):
    vocabulary = Vocabulary(lower=lower)
    expected = {
        name: encode_records(source.read(), vocabulary).with_labels(["no", "yes"])
        for name, source in data.sources.items()
    }
    calls: list[tuple[str, int, int | None]] = []
    for _ in range(2):
        splits = cached_splits(
            data.sources, lower=lower, folder=folder, progress=lambda *call: calls.append(call)
        )
        assert calls == [("train", 2, 2), ("dev", 1, 1)]
        for name, split in splits.items():
            assert split.ids.tolist() == expected[name].ids.tolist()
            assert split.labels.tolist() == expected[name].labels.tolist()
            assert split.notes == expected[name].notes == ("1 line dropped: no gold label (99)",)
            assert split.label_names == ("no", "yes")
            assert words(split) == words(expected[name])
        assert splits["train"].table is splits["dev"].table
        assert list(splits["dev"].table) == list(vocabulary)
    assert data.reads == ["train", "dev"] * 2  # above, and the first time
    splits = cached_splits(data.sources, lower=lower, folder=folder, labels=["yes", "maybe", "no"])
    assert splits["train"].labels.tolist() == [0, 2]
    assert splits["dev"].label_names == ("yes", "maybe", "no")


def test_another_content_reader_setting_or_version_is_another_file(
    data, folder, tmp_path, monkeypatch
):
    train = data.sources["train"]
    cached_splits({"train": train}, folder=folder)
    (tmp_path / "train.txt").write_text(TEXTS["train"].replace("cat", "cow"))
    split = cached_splits({"train": train}, folder=folder)["train"]
    assert words(split)[-1][-1] == "cow"
    cached_splits({"train": replace(train, reader="another")}, folder=folder)
    cached_splits({"train": train}, lower=True, folder=folder)
    for name in ("VERSION", "TOKENIZER_VERSION"):
        monkeypatch.setattr(cache, name, "another")
        cached_splits({"train": train}, folder=folder)
    assert len(data.reads) == len(list(folder.iterdir())) == 6


def test_damaged_files_are_written_again(data, folder):
    expected = words(cached_splits(data.train, folder=folder)["train"])
    (file,) = folder.iterdir()
    content = file.read_bytes()
    flipped = bytes([content[-3] ^ 1])
    for damaged in (
        content[:-5],
        b"",
        b"something else entirely",
        content.replace(b'"texts', b'"taxts'),
        content[:-3] + flipped + content[-2:],
    ):
        file.write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match=f"{file.name} is damaged.*is encoded again") as w:
            split = cached_splits(data.train, folder=folder)["train"]
        assert len(w) == 1
        assert words(split) == expected
        assert file.read_bytes() == content


def test_a_cache_that_cannot_be_written_loses_nothing(data, tmp_path):
    (tmp_path / "blocked").write_text("a file, no folder")
    with pytest.warns(
        RuntimeWarning, match="train.txt was encoded but not put into the cache"
    ) as w:
        split = cached_splits(data.train, folder=tmp_path / "blocked" / "cache")["train"]
    assert len(w) == 1
    assert split.words(0) == ["A", "dog", "barks"]


def test_the_file_is_mapped_and_stays_as_it_is(data, folder):
    cached_splits(data.train, folder=folder)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    split = cached_splits(data.train, folder=folder)["train"]
    if sys.platform == "linux":
        assert str(file) in Path("/proc/self/maps").read_text()
    split.ids.fill_(7)
    assert file.read_bytes() == content
    file.unlink()
    assert split.offsets.tolist() == [0, 3, 5, 7, 9]


def test_several_may_write_at_once(data, folder):
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(cached_splits, data.sources, folder=folder) for _ in range(12)]
        results = [words(run.result()["train"]) for run in runs]
    assert all(result == results[0] for result in results)
    assert [file.suffix for file in folder.iterdir()] == [".safetensors"] * 2
