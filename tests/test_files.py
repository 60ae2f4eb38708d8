"""Files: written whole or not at all, read line by line through any compression."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat

import pytest

from treelax.data.input_files import one_file
from treelax.errors import DataError
from treelax.files import atomic_write, compressed

COMPRESSIONS = [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]


# ------------------------------------------------------------------ writing


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


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, DataError])
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


def test_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    with atomic_write(tmp_path / "file"):
        pass
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".txt"])
def test_equal_content_gives_equal_bytes(tmp_path, suffix, monkeypatch):
    for name in ("first", "second"):
        path = tmp_path / (name + suffix)
        with atomic_write(path) as raw, compressed(raw, path, "wb") as out:
            out.write(b"line\n" * 9)
        monkeypatch.setattr("time.time", lambda: 2e9)
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == second
    assert (first == b"line\n" * 9) == (suffix == ".txt")


# ------------------------------------------------------------------ reading


def test_lines_and_their_numbers(tmp_path):
    path = tmp_path / "file"
    path.write_bytes("\ufeffÉl \r\n\nvino\u2028del\n mar".encode())
    assert list(one_file(path).lines()) == [(1, "Él "), (2, ""), (3, "vino\u2028del"), (4, " mar")]
    path.write_bytes(b"")
    assert list(one_file(str(path)).lines()) == []


@pytest.mark.parametrize(("suffix", "compress"), COMPRESSIONS)
def test_compressed_files(tmp_path, suffix, compress):
    for ending in (suffix, suffix.upper()):
        path = tmp_path / f"file.txt{ending}"
        path.write_bytes(compress(b"one\ntwo\n"))
        assert list(one_file(path).lines()) == [(1, "one"), (2, "two")]
        with path.open("wb") as raw, compressed(raw, path, "wb") as out:
            out.write(b"three")
        assert path.read_bytes() != b"three"
        assert list(one_file(path).lines()) == [(1, "three")]
        for content in (compress(b"one\ntwo\n")[:-9], b"plain text"):
            path.write_bytes(content)
            with pytest.raises(DataError, match=r"file\.\S+, after line \d: cannot be read: ."):
                list(one_file(path).lines())


def test_the_line_that_is_not_utf8(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\ntw\xff\n")
    lines = one_file(path).lines()
    assert next(lines) == (1, "one")
    with pytest.raises(
        DataError, match=r"file, line 2: is not UTF-8 .*; expected UTF-8: re-save it as UTF-8"
    ):
        next(lines)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_known_by_its_mark(tmp_path, encoding):
    path = tmp_path / "file"
    path.write_bytes("\ufeffone\ntwo\n".encode(encoding))
    message = r"file, line 1: is UTF-16; expected UTF-8: .*, or run iconv -f utf-16 -t utf-8"
    with pytest.raises(DataError, match=message):
        list(one_file(path).lines())
