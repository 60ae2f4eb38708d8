"""Files of word vectors: the text formats of GloVe and word2vec, and NumPy archives.

Only the rows of the words that are wanted are kept, and only their numbers are parsed: a file of
millions of words is read at about the speed at which it is decompressed. Words are compared as
bytes, so a word in the file that is not UTF-8 does no harm.
"""

from __future__ import annotations

import codecs
import math
import os
from array import array
from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor

from treelax.data.input_files import Source, one_file
from treelax.data.text.rows import MOST_DIGITS
from treelax.errors import BackendError, DataError, counted
from treelax.files import DAMAGE, REFUSED, numbered_lines

__all__ = ["read_vectors"]


def read_vectors(
    path: str | os.PathLike[str], wanted: Collection[str]
) -> tuple[dict[str, int], Tensor]:
    """The row of each wanted word that the file has, and the matrix of these rows.

    Text may have word2vec's first line, the number of words and of dimensions. A word may hold
    spaces, as some do in GloVe's largest file. Where a word comes twice, the first counts.

    An archive (``.npz``) has ``words``, an array of strings or one string with a word a line, and
    ``vec``, their vectors. With ``rows``, word i has row ``rows[i]`` of ``vec``.
    """
    source = one_file(path, expected="word vectors as text or .npz")
    file = source.file
    if ".bin" in [suffix.lower() for suffix in file.suffixes[-2:]]:
        raise DataError(f"{file}: is in word2vec's binary format; expected text: convert it first")
    if file.suffix.lower() == ".npz":
        found, matrix = _read_archive(file, wanted)
    else:
        found, matrix = _read_text(source, wanted)
    for row in (~matrix.isfinite()).any(1).nonzero().flatten().tolist():
        word = next(word for word in found if found[word] == row)
        raise DataError(
            f"{file}: the vector of {word!r} has a number that is not finite in single precision; "
            "expected finite ones"
        )
    return found, matrix


def _read_text(source: Source, wanted: Collection[str]) -> tuple[dict[str, int], Tensor]:
    file = source.name
    names = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
    found: dict[str, int] = {}
    values = array("f")
    number = words = dim = 0
    try:
        with source.opened() as data:
            for number, line in numbered_lines(data, file):
                line = line.rstrip(b" \r\n")
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                    if _is_word2vec_header(line.split()):
                        dim = int(line.split()[1])
                        continue
                if not line:
                    continue
                where = f"{file}, line {number}"
                dim = dim or _dimensions(line.split(), where)
                # numbers are cut apart only where they are needed, or the spaces are too many
                is_usual = line.count(b" ") == dim
                word = line[: line.find(b" ")] if is_usual else _spaced_word(line, dim, where)
                words += 1
                name = names.get(word)
                if name is None or name in found:
                    continue
                try:
                    values.extend([float(value) for value in line.split()[-dim:]])
                except ValueError as error:
                    raise DataError(
                        f"{where}: {error}; expected {counted(dim, 'number')} after the word {name!r}"
                    ) from error
                found[name] = len(found)
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(f"{file}, after line {number}: cannot be read: {error}") from error
    if not words:
        raise DataError(f"{file}: is empty; expected lines of a word and its numbers")
    if not found:
        return found, torch.empty(0, dim)
    return found, torch.frombuffer(values, dtype=torch.float32).view(-1, dim)


def _is_word2vec_header(fields: list[bytes]) -> bool:
    """Whether these are the numbers of words and of dimensions."""
    return len(fields) == 2 and all(f.isdigit() and len(f) <= MOST_DIGITS for f in fields)


def _dimensions(fields: list[bytes], where: str) -> int:
    """How many numbers a line ends in; not counting its first field, for a word may be a number."""
    count = 0
    while count < len(fields) - 1 and _is_number(fields[-count - 1]):
        count += 1
    if not count:
        raise DataError(
            f"{where}: received {counted(len(fields), 'field')} and no number at the end; expected a "
            "word and its numbers, with spaces between"
        )
    return count


def _spaced_word(line: bytes, dim: int, where: str) -> bytes:
    """The word of a line with more or fewer spaces than numbers are expected."""
    fields = line.split()
    word, more = fields[:-dim], fields[1:-dim]
    # more fields are a word with spaces, unless they look like numbers too many
    if not word or (more and all(map(_is_number, more))):
        raise DataError(
            f"{where}: received {counted(len(fields) - 1, 'number')} after a word; expected {dim}, as "
            "on the lines before"
        )
    return b" ".join(word)


def _is_number(field: bytes) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


def _read_archive(file: Path, wanted: Collection[str]) -> tuple[dict[str, int], Tensor]:
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
    except (*DAMAGE, *REFUSED, ValueError, TypeError) as error:
        # not with the library's words: they tell how to load pickled files, which may hold code
        raise DataError(
            f"{file}: cannot be read as .npz, an archive of NumPy with plain arrays; expected words "
            "and vec in it, or vectors as text in .txt"
        ) from error
    names, vectors = (arrays.get(name, numpy.empty(0)) for name in ("words", "vec"))
    words = str(names).split("\n") if names.ndim == 0 else names.tolist()
    rows = arrays.get("rows", numpy.arange(sum(vectors.shape[:1])))
    if not (
        names.dtype.kind == "U"
        and names.ndim < 2
        and vectors.dtype.kind == "f"
        and vectors.ndim == 2
        and rows.dtype.kind in "iu"
        and rows.shape == (len(words),)
        and (not len(words) or 0 <= int(rows.min()) <= int(rows.max()) < len(vectors))
    ):
        arrays_found = ", ".join(f"{k}: {v.dtype} {v.shape}" for k, v in arrays.items())
        raise DataError(
            f"{file}: received the arrays {arrays_found or 'none'}; expected words, strings; vec, "
            "floating point, (rows, dimensions); and for each word a row of vec, or its number in rows"
        )
    found: dict[str, int] = {}
    for word, row in zip(words, rows.tolist(), strict=True):
        if word in wanted:
            found.setdefault(word, row)
    needed = sorted(set(found.values()))
    place = {row: i for i, row in enumerate(needed)}
    matrix = torch.from_numpy(vectors[needed].astype(numpy.float32))
    return {word: place[row] for word, row in found.items()}, matrix
