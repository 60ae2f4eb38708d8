"""Files: written whole or not at all, read line by line through any compression."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
from functools import partial

import pytest

from treelax.apps.data.input_files import one_file
from treelax.errors import DataError
from treelax.files import atomic_write, compressed


def test_bytes_and_text(tmp_path):
    path = tmp_path / "file"
    with atomic_write(path) as out:
        out.write(b"\x00bytes")
    assert path.read_bytes() == b"\x00bytes"
    with atomic_write(str(path), "w") as text:
        text.write("Él\r\nvino\n")
        text.flush()
        assert path.read_bytes() == b"\x00bytes"  # the older file stays until the end
    assert path.read_bytes() == "Él\r\nvino\n".encode()
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / "usual").touch()  # permissions are as those of any file
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_is_kept(tmp_path):
    """Also one to another folder, or to a file that is not there yet."""
    (tmp_path / "there").mkdir()
    link, path = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to(path)
    for text in ("first", "second"):
        with atomic_write(link, "w") as out:
            out.write(text)
        assert link.is_symlink()
        assert path.read_text() == text
    assert os.listdir(tmp_path / "there") == ["file"]


def test_a_pipe_is_written_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(pipe, "w") as out:
        out.write("through")
    assert os.read(read, 100) == b"through"
    os.close(read)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, DataError])
def test_an_error_passes_and_leaves_the_older_file_alone(tmp_path, kind):
    def half_written():
        with atomic_write(path, "w") as out:
            out.write("half of the ne")
            raise kind("stop")

    path = tmp_path / "file"
    path.write_text("older")
    with pytest.raises(kind, match=r"^stop$"):
        half_written()
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_written_is_told_with_the_name_of_the_file(tmp_path, monkeypatch):
    def broken(_):
        raise OSError("the disk is gone")

    def write(path):
        with atomic_write(path) as out:
            out.write(b"x")

    (tmp_path / "folder").mkdir()
    for name in ("folder", "nowhere/file"):
        with pytest.raises(DataError, match=rf"{name}: was not written"):
            write(tmp_path / name)
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(DataError, match="file: was not written: the disk is gone"):
        write(tmp_path / "file")
    assert os.listdir(tmp_path) == ["folder"]


# without the time, so that workers name the cases alike
COMPRESSIONS = {
    ".gz": partial(gzip.compress, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".txt": bytes,
}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_equal_content_gives_equal_bytes(tmp_path, suffix, monkeypatch):
    for name in ("first", "second"):
        path = tmp_path / (name + suffix.upper())
        with atomic_write(path) as raw, compressed(raw, path, "wb") as out:
            out.write(b"line\n" * 9)
        assert [text for _, text in one_file(path).lines()] == ["line"] * 9
        monkeypatch.setattr("time.time", lambda: 2e9)
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == second
    assert (first == b"line\n" * 9) == (suffix == ".txt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(
            (f"file{suffix}", content, r"after line \d: cannot be read: .")
            for suffix, compress in list(COMPRESSIONS.items())[:3]
            for content in (compress(b"one\ntwo\n")[:-9], b"plain text")
        ),
        ("file", b"one\ntw\xff\n", "line 2: is not UTF-8 .*: re-save it as UTF-8"),
        ("file", "\ufeffone".encode("utf-16-le"), "line 1: is UTF-16; expected UTF-8: .*iconv"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}, {message}"):
        list(one_file(path).lines())
