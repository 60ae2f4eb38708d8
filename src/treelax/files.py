"""Files that are read line by line, compressed or not, and written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import hashlib
import lzma
import os
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from treelax.errors import DataError

try:
    import fcntl
except ImportError:  # Windows goes without locks
    fcntl = None  # type: ignore[assignment]

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NO_LOCKS_HERE = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# a password is asked for, or a compression that Python does not know
REFUSED = (RuntimeError, NotImplementedError)
LONGEST_LINE = 1 << 24  # bytes

Line = tuple[int, str]  # number counted from 1, text without its end


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file that appears whole or not at all.

    It is written under a temporary name in the same folder, flushed to disk and renamed; an error
    before that leaves an older file untouched. A link is followed; a pipe or a device, such as
    ``/dev/null``, is written to directly.
    """
    file = Path(path)
    text = {"encoding": "utf-8", "newline": ""} if mode == "w" else {}
    with reraise_write_error(file):
        is_special = file.exists() and not (file.is_file() or file.is_dir())
    if is_special:
        with reraise_write_error(file), open(file, mode, **text) as out:  # type: ignore[call-overload]
            yield out
        return
    target = Path(os.path.realpath(file))
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with reraise_write_error(file), open(temporary, mode.replace("w", "x"), **text) as out:  # type: ignore[call-overload]
            yield out
            out.flush()
            os.fsync(out.fileno())
        with reraise_write_error(file):
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def reraise_write_error(file: Path) -> Iterator[None]:
    """Raise errors of the system as errors that name the file."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{file}: was not written: {error.strerror or error}") from error


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless another process has; true where there are no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS_HERE:
            raise
    return True


def compressed(
    raw: IO[bytes], path: str | os.PathLike[str], mode: Literal["rb", "wb"]
) -> AbstractContextManager[Any]:
    """See an open file through the compression that its name asks for."""
    match Path(path).suffix.lower():
        case ".gz":  # no time and no name inside, so that equal content gives equal bytes
            return gzip.GzipFile("", mode, fileobj=raw, mtime=0)
        case ".xz":
            return lzma.open(raw, mode)
        case ".bz2":
            return bz2.open(raw, mode)
        case ".zip" if mode == "wb":
            raise DataError(f"{path}: cannot write a .zip; expected .gz, .xz or .bz2")
        case _:
            return nullcontext(raw)


def decoded_lines(opened: AbstractContextManager[IO[bytes]], where: str) -> Iterator[Line]:
    """The lines of a file, split before they are decoded, to know where decoding fails."""
    number = 0
    try:
        with opened as data:
            for number, line in numbered_lines(data, where):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise _not_utf8(f"{where}, line {number}", error) from error
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(f"{where}, after line {number}: cannot be read: {error}") from error


def numbered_lines(data: IO[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file, counted from 1; one that is too long is not read to its end."""
    for number, line in enumerate(iter(partial(data.readline, LONGEST_LINE + 1), b""), 1):
        if len(line) > LONGEST_LINE:
            limit = f"longer than {LONGEST_LINE >> 20} MiB"
            raise DataError(f"{where}, line {number}: is {limit}; expected shorter lines")
        yield number, line


def _not_utf8(where: str, error: UnicodeDecodeError) -> DataError:
    what, encoding = f"not UTF-8 ({error.reason})", "latin1"
    if error.object.startswith(UTF_16):
        what, encoding = "UTF-16", "utf-16"
    advice = f"re-save it as UTF-8, or run iconv -f {encoding} -t utf-8"
    return DataError(f"{where}: is {what}; expected UTF-8: {advice}")


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 sum of a file's content, in hexadecimal."""
    with open(path, "rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
