"""Files of word vectors: the text formats of GloVe and word2vec, and NumPy archives.

Only the rows of the words that are wanted are kept, and only their numbers are parsed: a file of
millions of words is read at about the speed at which it is decompressed. Words are compared as
bytes, so a word in the file that is not UTF-8 does no harm.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import zipfile
from array import array
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from treelax.data.sources import is_archive, listed, members_of, no_file
from treelax.data.text.delimited import MOST_DIGITS, counted
from treelax.errors import BackendError, DataError, InputError
from treelax.files import DAMAGE, REFUSED, compressed, numbered_lines

__all__ = ["BytesProgress", "read_vectors"]

BytesProgress = Callable[[int, int], None]  # bytes of the file that are read, and all of them

LINES_BETWEEN_REPORTS = 4096


def read_vectors(
    path: str | os.PathLike[str],
    wanted: Collection[str],
    *,
    member: str | None = None,
    own_only: bool = False,
    progress: BytesProgress | None = None,
) -> tuple[dict[str, int], Tensor]:
    """Read the vectors of some words.

    Text has a word and its numbers on each line, with spaces between, and may have word2vec's first
    line, the number of words and of dimensions. It may be compressed (``.gz``, ``.xz``, ``.bz2``,
    ``.zip``). A word may hold spaces, as some do in GloVe's largest file: the last numbers of a
    line are its vector. Where a word comes twice, the first counts.

    An archive (``.npz``) has ``words``, an array of strings or one string with a word a line, and
    ``vec``, their vectors. With ``rows``, word i has row ``rows[i]`` of ``vec``, so that words can
    share one; and ``own`` tells which words a shared row was made for.
    """
    file, wanted = Path(path), frozenset(wanted)
    if not file.is_file():
        raise no_file(file, "word vectors as text or .npz")
    if member is not None and not is_archive(file):
        raise InputError(f"member: received {member!r} for {file}; expected none but for a .zip")
    if file.suffix.lower() == ".npz":
        return _read_archive(file, wanted, own_only, progress)
    if ".bin" in [suffix.lower() for suffix in file.suffixes[-2:]]:
        raise DataError(f"{file}: is in word2vec's binary format; expected text: convert it first")
    return _TextReader(file, wanted).read(member, progress)


class _TextReader:
    """Reads one text file, line by line."""

    def __init__(self, file: Path, wanted: frozenset[str]) -> None:
        self.file = file
        self.wanted = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
        self.number = 0  # of the line
        self.dim = 0
        self.announced: int | None = None  # words, by word2vec's first line
        self.told = 0  # the line that told the number of dimensions
        self.words = 0
        self.found: dict[str, int] = {}
        self.lines: list[int] = []  # of the words found
        self.values = array("f")

    def read(
        self, member: str | None, progress: BytesProgress | None
    ) -> tuple[dict[str, int], Tensor]:
        where, size = str(self.file), self.file.stat().st_size
        try:
            with self.file.open("rb") as raw, _plain(raw, self.file, member) as data:
                for self.number, line in numbered_lines(data, where):
                    self._take(line.rstrip(b" \r\n"))
                    if progress is not None and self.number % LINES_BETWEEN_REPORTS == 0:
                        progress(raw.tell(), size)
        except DataError:
            raise
        except (*DAMAGE, *REFUSED) as error:
            raise DataError(
                f"{self.file}, after line {self.number}: cannot be read: {error}"
            ) from error
        if not self.words:
            raise DataError(f"{self.file}: is empty; expected lines of a word and its numbers")
        if self.announced is not None and self.words < self.announced:
            raise DataError(
                f"{self.file}: ends after {counted(self.words, 'word')}; its first line announces "
                f"{self.announced:,}: it is cut off, fetch it again"
            )
        matrix = torch.empty(0, self.dim)
        if self.found:
            matrix = torch.frombuffer(self.values, dtype=torch.float32).view(-1, self.dim)
        self._check_finite(matrix)
        if progress is not None:
            progress(size, size)
        return self.found, matrix

    def _take(self, line: bytes) -> None:
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line:
            return
        if not self.dim and not self._begin(line):
            return
        # numbers are cut apart only where they are needed, or where there are too many spaces
        word = line[: line.find(b" ")] if line.count(b" ") == self.dim else self._spaced_word(line)
        self.words += 1
        name = self.wanted.get(word)
        if name is None or name in self.found:
            return
        try:
            self.values.extend([float(value) for value in line.split()[-self.dim :]])
        except ValueError as error:
            raise DataError(
                f"{self.file}, line {self.number}: received {_shown(error)}; expected "
                f"{counted(self.dim, 'number')} behind the word {name!r}"
            ) from error
        self.found[name] = len(self.lines)
        self.lines.append(self.number)

    def _begin(self, line: bytes) -> bool:
        """Learn the number of dimensions from the first line; false if it holds no word."""
        fields = line.split()
        if self.number == 1 and len(fields) == 2 and all(map(_is_count, fields)):
            self.announced, self.dim = map(int, fields)
            self.told = 1
            if not self.dim:
                raise DataError(f"{self.file}, line 1: received 0 dimensions; expected 1 or more")
            return False
        self.dim = _numbers_at_end(fields)  # for the first word may hold spaces
        if not self.dim:
            raise DataError(
                f"{self.file}, line {self.number}: received {counted(len(fields), 'field')} and "
                "no number at the end; expected a word and its numbers, with spaces between"
            )
        self.told = self.number
        return True

    def _spaced_word(self, line: bytes) -> bytes:
        """The word of a line with more or fewer spaces than numbers are expected."""
        fields = line.split()
        word, more = fields[: -self.dim], fields[1 : -self.dim]
        # more fields are a word with spaces, unless they look like numbers too many
        too_many = more and all(map(_is_number, more))
        if not word or too_many:
            raise DataError(
                f"{self.file}, line {self.number}: received {counted(len(fields) - 1, 'number')} behind "
                f"a word; expected {self.dim}, as line {self.told} has it"
            )
        return b" ".join(word)

    def _check_finite(self, matrix: Tensor) -> None:
        bad = (~matrix.isfinite()).any(1).nonzero()
        if len(bad):
            raise DataError(
                f"{self.file}, line {self.lines[int(bad[0])]}: received a number that is not "
                "finite in single precision; expected finite ones"
            )


@contextmanager
def _plain(raw: IO[bytes], file: Path, member: str | None) -> Iterator[Any]:
    """The bytes of a file or of a file in a ``.zip``, decompressed."""
    if not is_archive(file):
        with compressed(raw, file, "rb") as data:
            yield data
        return
    with _opened_zip(raw, file) as archive:
        names = members_of(archive)
        if member is None and len(names) == 1:
            member = names[0]
        if member not in names:
            what = "does not say which file" if member is None else f"has no file {member!r}"
            raise DataError(
                f"{file}: {what}; it has {listed(names)}: unpack it and give the file itself, or in "
                "Python name it with member="
            )
        # read in blocks: the archive's own lines are slow
        with archive.open(member) as data, io.BufferedReader(data, 1 << 20) as lines:  # type: ignore[type-var]
            yield lines


def _opened_zip(raw: IO[bytes], file: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(
            f"{file}: cannot be read as a zip archive: {error}; expected a zip of one text file of "
            "vectors"
        ) from error


def _is_count(field: bytes) -> bool:
    return field.isdigit() and len(field) <= MOST_DIGITS


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _numbers_at_end(fields: list[bytes]) -> int:
    """How many numbers a line ends in; not counting its first field, for a word may be a number."""
    count = 0
    while count < len(fields) - 1 and _is_number(fields[-count - 1]):
        count += 1
    return count


def _shown(error: ValueError) -> str:
    """The field that is no number, from Python's message, which ends in it."""
    return str(error).rpartition(": ")[2].removeprefix("b")


def _read_archive(
    file: Path, wanted: frozenset[str], own_only: bool, progress: BytesProgress | None
) -> tuple[dict[str, int], Tensor]:
    try:
        import numpy
    except ImportError as error:
        raise BackendError(
            f"{file}: .npz needs NumPy, which is not installed: "
            'pip install "treelax[data]", or give the vectors as text'
        ) from error
    try:
        with numpy.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except REFUSED as error:
        raise DataError(
            f"{file}: cannot be read: {error}; expected an archive as numpy.savez writes it"
        ) from error
    except (*DAMAGE, ValueError, TypeError) as error:
        # not with the library's words: they tell how to load pickled files, which may hold code
        raise DataError(
            f"{file}: cannot be read as .npz, an archive of NumPy with plain arrays; expected words "
            "and vec in it, or vectors as text in .txt"
        ) from error
    names, vectors = (arrays.get(name, numpy.empty(0)) for name in ("words", "vec"))
    words = str(names).split("\n") if names.ndim == 0 else names.tolist()
    rows = arrays.get("rows", numpy.arange(sum(vectors.shape[:1])))
    own = arrays.get("own", numpy.ones(len(words), bool))
    if not (
        names.dtype.kind == "U"
        and names.ndim < 2
        and vectors.dtype.kind == "f"
        and vectors.ndim == 2
        and rows.dtype.kind in "iu"
        and own.dtype.kind == "b"
        and rows.shape == own.shape == (len(words),)
        and (not len(words) or 0 <= int(rows.min()) <= int(rows.max()) < len(vectors))
    ):
        found = ", ".join(f"{k}: {v.dtype} {v.shape}" for k, v in arrays.items())
        raise DataError(
            f"{file}: received the arrays {found or 'none'}; expected words, strings; vec, floating "
            "point, (rows, dimensions); and for each word a row of vec, or its number in rows"
        )
    found_words: dict[str, int] = {}
    for word, row, is_own in zip(words, rows.tolist(), own.tolist(), strict=True):
        if word in wanted and (is_own or not own_only):
            found_words.setdefault(word, row)
    needed = sorted(set(found_words.values()))
    matrix = torch.from_numpy(vectors[needed].astype(numpy.float32))
    if not bool(matrix.isfinite().all()):
        raise DataError(f"{file}: vec has a number that is not finite; expected finite ones")
    if progress is not None:
        progress(file.stat().st_size, file.stat().st_size)
    place = {row: i for i, row in enumerate(needed)}
    return {word: place[row] for word, row in found_words.items()}, matrix
