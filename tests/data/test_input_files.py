"""Where lines come from: files, folders, archives, and what is said if they are not there."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from treelax.apps.data.input_files import NoSuchSplitError, Source, find_split, listed, one_file
from treelax.errors import DataError, InputError
from treelax.files import LONGEST_LINE


def archive_of(path: Path, members: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return path


def find(path: Path, split: str | None = "dev") -> Source:
    patterns = [rf"{split}\.jsonl", rf"{split}\.tsv"]
    return find_split(path, split, ("dev", "test"), "set.zip", patterns)


COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_lines_of_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    data = COMPRESS[suffix]("\ufeffone\r\ndeux é\n\nlast".encode())
    name = f"a.tsv{suffix}"
    (tmp_path / name).write_bytes(data)
    archive = archive_of(tmp_path / "a.zip", {f"in/{name}": data})
    for path, shown in ((tmp_path / name, name), (archive, f"a.zip: in/{name}")):
        source = one_file(path)
        assert (source.name, source.suffix) == (f"{tmp_path}/{shown}", ".tsv")
        assert list(source.lines()) == [(1, "one"), (2, "deux é"), (3, ""), (4, "last")]


def test_a_line_of_gigabytes_is_not_read_to_its_end(tmp_path: Path) -> None:
    long = tmp_path / "a.txt.gz"
    with gzip.open(long, "wb", compresslevel=1) as out:
        out.write(b"one 1\n")
        for _ in range(8):
            out.write(bytes(LONGEST_LINE // 4))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"a.txt.gz, line 2: is longer than 16 MiB"):
        list(one_file(long).lines())
    assert tracemalloc.get_traced_memory()[1] < 3 * LONGEST_LINE
    tracemalloc.stop()


def test_which_file_of_an_archive(tmp_path: Path) -> None:
    members: dict[str, str | bytes] = {
        "in/one.TSV": "1",
        "in/two.csv": "2",
        "in/three.csv.gz": b"",
        "__MACOSX/in/._one.tsv": "resource",
        "in/.DS_Store": "x",
    }
    path = archive_of(tmp_path / "a.zip", members)
    assert one_file(path, preferred=[".tsv"]).member == "in/one.TSV"
    with pytest.raises(DataError, match=r"holds 2 files that fit \(in/two.csv, in/three.csv.gz\)"):
        one_file(path, preferred=[".csv"])
    with pytest.raises(DataError, match=r"holds 3 files that fit \(in/one.TSV, "):
        one_file(path, preferred=[".jsonl"])


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut.zip").write_bytes(b"PK")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, message in {
        "nowhere.tsv": "nowhere.tsv: does not exist; expected a table",
        "link": "link: does not exist; expected a table",
        "": "is a folder; expected a table",
        "pipe": "pipe: is not a regular file; expected a table",
        "cut.zip": "cut.zip: cannot be read as a zip archive",
    }.items():
        with pytest.raises(DataError, match=message):
            one_file(tmp_path / name, expected="a table")


def test_names_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    evil = "a\x1b[31m\n\u202eb.tsv"
    assert listed([evil]) == r"a\x1b[31m\n\u202eb.tsv"
    assert Source(tmp_path, evil).name == rf"{tmp_path}: a\x1b[31m\n\u202eb.tsv"
    assert Source(tmp_path, "in/été 雪.tsv").name == f"{tmp_path}: in/été 雪.tsv"


def test_a_split_in_a_folder_or_an_archive(tmp_path: Path) -> None:
    for folder in ("set", "zip"):
        (tmp_path / folder).mkdir()
    (tmp_path / "set" / "dev.tsv.xz").write_bytes(b"")
    (tmp_path / ".dev.jsonl").write_bytes(b"")
    assert find(tmp_path).file == tmp_path / "set" / "dev.tsv.xz"
    (tmp_path / "dev.jsonl").write_bytes(b"")  # the better format wins
    assert find(tmp_path).file == tmp_path / "dev.jsonl"
    (tmp_path / "dev.jsonl.gz").write_bytes(b"")
    message = r"holds several files for dev: dev.jsonl, dev.jsonl.gz; expected one"
    with pytest.raises(DataError, match=message):
        find(tmp_path)
    with pytest.raises(
        NoSuchSplitError, match=r"holds dev.jsonl, .*; expected test.jsonl for test"
    ):
        find(tmp_path, "test")
    with pytest.raises(InputError, match="split is None"):
        find(tmp_path, None)
    zipped = archive_of(
        tmp_path / "zip" / "set.zip",
        {"set/dev.tsv": "x", "__MACOSX/set/._dev.tsv": "y", "a.pdf": ""},
    )
    assert find(zipped) == find(zipped.parent) == Source(zipped, "set/dev.tsv")
    with pytest.raises(NoSuchSplitError, match=r"set.zip: holds dev.tsv, a.pdf; expected test"):
        find(zipped, "test")
