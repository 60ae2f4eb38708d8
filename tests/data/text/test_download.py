"""Fetching files: whole or not at all, taken up again where they were cut."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Served, serving

from treelax.apps.data.text.download import Archive, cache_folder, download
from treelax.errors import DataError
from treelax.files import try_lock

DATA = random.Random(0).randbytes(300_000)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Served(DATA)) as server:
        yield server


def fetch(archive: Archive, folder: Path, **options: Any) -> Path:
    return download(archive, folder, timeout=120, **options)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_fetched_once(tmp_path: Path, served: Served) -> None:
    counts: list[int] = []
    file = fetch(served.archive(), tmp_path / "new" / "cache", progress=counts.append)
    assert file == tmp_path / "new" / "cache" / "a.zip"
    assert file.read_bytes() == DATA
    assert names(file.parent) == ["a.zip"]
    assert counts[0] == 0
    assert counts[-1] == len(DATA)
    assert counts == sorted(counts)
    assert fetch(served.archive(), file.parent) == file
    assert served.asked == [None]


@pytest.mark.parametrize(("lengths", "ranges"), [(True, True), (False, False)])
def test_a_cut_connection_is_taken_up_again(
    tmp_path: Path, served: Served, lengths: bool, ranges: bool
) -> None:
    served.cut, served.lengths, served.ranges = [100_000, None], lengths, ranges
    with pytest.raises(DataError, match=r"cannot be fetched \(.*run this again to go on, or get"):
        fetch(served.archive(), tmp_path)
    assert names(tmp_path) == ["a.zip.part"]
    assert fetch(served.archive(), tmp_path).read_bytes() == DATA
    assert served.asked == [None, "bytes=100000-"]
    assert names(tmp_path) == ["a.zip"]


def test_a_wrong_checksum(tmp_path: Path, served: Served) -> None:
    wrong = hashlib.sha256(DATA).hexdigest()
    right = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(DataError) as caught:
        fetch(served.archive(b"other"), tmp_path)
    assert f"received a file with the SHA-256 {wrong}; expected {right}: " in str(caught.value)
    assert "pass it with --from" in str(caught.value)
    assert names(tmp_path) == []
    (tmp_path / "a.zip").write_bytes(DATA)
    with pytest.raises(DataError, match=rf"a.zip: has the SHA-256 {wrong}; expected {right}: rem"):
        fetch(served.archive(b"other"), tmp_path)
    assert (tmp_path / "a.zip").read_bytes() == DATA


@pytest.mark.parametrize(("status", "part"), [(404, b""), (503, DATA[:1000])])
def test_a_server_that_refuses(tmp_path: Path, served: Served, status: int, part: bytes) -> None:
    if part:
        (tmp_path / "a.zip.part").write_bytes(part)
    served.statuses = [status]
    with pytest.raises(
        DataError, match=rf"a.zip: cannot be fetched \(HTTP Error {status}.*--from$"
    ):
        fetch(served.archive(), tmp_path)
    assert names(tmp_path) == (["a.zip.part"] if part else [])


def test_where_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home"))
    for platform, variable, expected in (
        ("linux", "", "/home/.cache/treelax"),
        ("linux", "XDG_CACHE_HOME", "/there/treelax"),
        ("linux", "TREELAX_CACHE", "/there"),
        ("darwin", "", "/home/Library/Caches/treelax"),
        ("win32", "LOCALAPPDATA", "/there/treelax"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "TREELAX_CACHE"):
            monkeypatch.setenv(name, "/there" if name == variable else "")
        assert cache_folder() == Path(expected)


def test_two_do_not_fetch_the_same_at_once(tmp_path: Path, served: Served) -> None:
    part = tmp_path / "a.zip.part"
    with part.open("ab") as theirs:
        assert try_lock(theirs.fileno())
        with pytest.raises(DataError, match=r"a.zip.part: another process is fetching it; run"):
            fetch(served.archive(), tmp_path)
        assert part.exists()  # it is theirs, though there is nothing in it yet
        assert served.asked == []
    assert fetch(served.archive(), tmp_path).read_bytes() == DATA
    assert names(tmp_path) == ["a.zip"]
