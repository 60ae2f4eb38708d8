"""Encoded text kept in files."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import treelax.apps.data.text.cache as cache
from treelax.apps.data.text.cache import TextSource, cached_splits
from treelax.apps.data.text.encoding import EncodedText, encode_records
from treelax.apps.data.text.records import Record, Records
from treelax.apps.data.text.vocabulary import Vocabulary

TRAIN = "yes\tA dog barks\na dog\nno\tno dog\nA cat\n"
DEV = "no\ta bird\nA dog\n"


def read(path: Path) -> Records:
    """Two lines a record: label, tab, premise; hypothesis."""

    def records(report):
        lines = path.read_text(encoding="utf-8").splitlines()
        report.drop("no gold label", 99)
        for i in range(0, len(lines), 2):
            label, _, premise = lines[i].partition("\t")
            yield Record((premise, lines[i + 1]), label or None, i + 1, tokens=True)

    return Records(str(path), records)


class Counted:
    """Sources, and how often each was read."""

    def __init__(self, folder: Path, **texts: str) -> None:
        self.reads: list[str] = []
        self.sources: dict[str, TextSource] = {}
        for name, text in texts.items():
            path = folder / f"{name}.txt"
            path.write_text(text, encoding="utf-8")
            self.sources[name] = TextSource(
                [path], lambda n=name, p=path: self.read(n, p), "two", str(path)
            )

    def read(self, name: str, path: Path) -> Records:
        self.reads.append(name)
        return read(path)


@pytest.fixture
def data(tmp_path):
    return Counted(tmp_path, train=TRAIN, dev=DEV)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "somewhere" / "cache"


def contents(split: EncodedText) -> dict[str, object]:
    values = {part.name: getattr(split, part.name) for part in fields(split)}
    values["table"] = list(split.table), split.table.lower
    return {name: v.tolist() if isinstance(v, Tensor) else v for name, v in values.items()}


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# ------------------------------------------------------------------ what comes back


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
        assert splits["train"].table is splits["dev"].table
        assert list(splits["dev"].table) == list(vocabulary)
        assert splits["dev"].words(0, 1) == expected["dev"].words(0, 1)
    assert data.reads == ["train", "dev"] * 2  # above, and the first time
    splits = cached_splits(data.sources, lower=lower, folder=folder, labels=["yes", "maybe", "no"])
    assert splits["train"].labels.tolist() == [0, 2]
    assert splits["dev"].label_names == ("yes", "maybe", "no")


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.text(min_size=1).filter(lambda w: " " not in w), min_size=1), min_size=1)
)
def test_any_words_come_back(tmp_path_factory, sentences):
    folder = tmp_path_factory.mktemp("words")
    (folder / "data").write_text("")
    records = [Record((" ".join(words),), "x", 1, tokens=True) for words in sentences]
    source = TextSource([folder / "data"], lambda: records, "own", "data")
    for _ in range(2):
        split = cached_splits({"train": source}, folder=folder)["train"]
        assert [split.words(i) for i in range(len(split))] == sentences


# ------------------------------------------------------------------ when it is encoded anew


def test_another_content_reader_setting_or_version_is_another_file(
    data, folder, tmp_path, monkeypatch
):
    train = data.sources["train"]
    cached_splits({"train": train}, folder=folder)
    (tmp_path / "train.txt").write_text(TRAIN.replace("cat", "cow"))
    split = cached_splits({"train": train}, folder=folder)["train"]
    assert split.words(1, 1) == ["A", "cow"]
    other = replace(train, reader="another")
    cached_splits({"train": other}, folder=folder)
    cached_splits({"train": train}, lower=True, folder=folder)
    for name in ("VERSION", "TOKENIZER_VERSION"):
        monkeypatch.setattr(cache, name, "another")
        cached_splits({"train": train}, folder=folder)
    assert len(data.reads) == len(files(folder)) == 6


def flip(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-5],
        lambda content: b"",
        lambda content: b"something else entirely",
        lambda content: content.replace(b'"texts', b'"taxts'),
        flip,
    ],
)
def test_what_cannot_be_used_is_made_anew(data, folder, damage):
    train = {"train": data.sources["train"]}
    expected = contents(cached_splits(train, folder=folder)["train"])
    (file,) = files(folder)
    content = file.read_bytes()
    damaged = damage(content)
    assert damaged != content
    file.write_bytes(damaged)
    with pytest.warns(
        RuntimeWarning, match=f"{file.name} is damaged.*train.txt is encoded again"
    ) as w:
        split = cached_splits(train, folder=folder)["train"]
    assert len(w) == 1
    assert contents(split) == expected
    assert file.read_bytes() == content
    assert contents(cached_splits(train, folder=folder)["train"]) == expected
    assert len(data.reads) == 2


def test_a_cache_that_cannot_be_written_loses_nothing(data, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, no folder")
    with pytest.warns(
        RuntimeWarning, match="train.txt was encoded but not put into the cache"
    ) as w:
        split = cached_splits({"train": data.sources["train"]}, folder=blocked / "cache")["train"]
    assert len(w) == 1
    assert split.words(0) == ["A", "dog", "barks"]


# ------------------------------------------------------------------ files


def test_the_file_is_mapped_and_stays_as_it_is(data, folder):
    train = {"train": data.sources["train"]}
    cached_splits(train, folder=folder)
    (file,) = files(folder)
    content = file.read_bytes()
    split = cached_splits(train, folder=folder)["train"]
    if sys.platform == "linux":
        maps = Path("/proc/self/maps").read_text()
        assert str(file) in maps
    split.ids.fill_(7)
    assert file.read_bytes() == content
    file.unlink()
    assert split.offsets.tolist() == [0, 3, 5, 7, 9]


# ------------------------------------------------------------------ the rest


def test_several_may_write_at_once(data, folder):
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(cached_splits, data.sources, folder=folder) for _ in range(12)]
        results = [contents(run.result()["train"]) for run in runs]
    assert all(result == results[0] for result in results)
    assert [file.suffix for file in files(folder)] == [".safetensors"] * 2
