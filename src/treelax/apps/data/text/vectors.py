"""Word vectors as one matrix: padding, NULL, unknown words, known words.

A word without a vector gets one of a hundred random ones, chosen by a hash of its letters, so that
it has the same one in every run and in every data set (Corro and Titov 2019, appendix A.2; Parikh
et al. 2016).
"""

from __future__ import annotations

import codecs
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor

from treelax.apps.data.input_files import PathLike, Source, one_file
from treelax.apps.data.tensor_files import require
from treelax.apps.data.text.ptb import plain_word
from treelax.errors import DataError, InputError, counted
from treelax.files import DAMAGE, REFUSED, numbered_lines

__all__ = ["FIRST_UNKNOWN", "NULL", "UNKNOWN", "Vectors", "load_vectors", "random_vectors"]

NULL = 1  # the row of the NULL token, whose vector a model learns
FIRST_UNKNOWN = 2
UNKNOWN = 100  # how many vectors the unknown words share
FIRST_KNOWN = FIRST_UNKNOWN + UNKNOWN
_WORD2VEC_HEADER = re.compile(rb"\s*\d{1,19}\s+(\d{1,19})\s*")  # numbers of words and of dimensions
# at the end of a line, after a word
_NUMBERS = re.compile(rb"(?<=\S)(?:\s+[-+]?(?:\d++\.?|\.\d)\d*+(?:[eE][-+]?\d++)?)+$")


class Vectors:
    """A matrix of word vectors and the row of every word.

    Row 0 of `matrix` ``(rows, dim)`` is padding and zero, row 1 the NULL token and zero, the next
    `unknown` rows are for unknown words, the others for known words, which may share one. A word has
    its row, or that of another spelling (its lower case, or a mark that the Penn Treebank writes
    differently), or by a hash of its letters one for unknown words.

    Example:
        >>> vectors = Vectors(torch.eye(5, 4), {"dog": 4}, unknown=2)
        >>> vectors.ids(["dog", "Dog", "bird"])
        [4, 4, 3]
        >>> "Dog" in vectors, "bird" in vectors, vectors.dim
        (True, False, 4)
    """

    def __init__(self, matrix: Tensor, known: Mapping[str, int], *, unknown: int = UNKNOWN) -> None:
        if unknown < 1 or matrix.dim() != 2 or len(matrix) < FIRST_UNKNOWN + unknown:
            raise InputError(
                f"matrix: received shape {tuple(matrix.shape)} for unknown={unknown}; expected (rows, "
                "dim): rows for padding, NULL and at least one for unknown words come first"
            )
        self.matrix = matrix
        self.known = dict(known)
        self.unknown = unknown

        self.dim: int = matrix.shape[1]

    def id(self, word: str) -> int:
        """The row of a word, 2 or more."""
        for spelling in spellings(word):
            if spelling in self.known:
                return self.known[spelling]
        # unlike Python's hash, the same in every process and on every machine
        letters = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return FIRST_UNKNOWN + int.from_bytes(letters, "big") % self.unknown

    def ids(self, words: Iterable[str], /) -> list[int]:
        """The rows of some words."""
        if isinstance(words, str):
            raise InputError(f"words: received the string {words!r}; expected several: [{words!r}]")
        known, other = self.known.get, self.id
        return [known(word) or other(word) for word in words]

    def __contains__(self, word: str) -> bool:
        """Whether the word, or another spelling of it, is known."""
        return any(spelling in self.known for spelling in spellings(word))

    def __repr__(self) -> str:
        return f"Vectors({len(self.known):,} known words, dim={self.dim}, unknown={self.unknown})"


def load_vectors(
    path: PathLike, words: Iterable[str], *, normalise: bool = True, seed: int = 0
) -> Vectors:
    """Load the vectors of some words, and draw a hundred random ones for unknown words.

    The file is text as GloVe or word2vec write it, a word and its numbers on each line, which may be
    compressed (``.gz``, ``.xz``, ``.bz2``, ``.zip``); or a NumPy archive (``.npz``) with ``words``,
    an array of strings or one string with a word a line, their vectors ``vec``, and perhaps ``rows``:
    then word i has row ``rows[i]`` of ``vec``. Each word is looked for as it is, then in lower case,
    then as people write the marks of the Penn Treebank (``(`` for ``-LRB-``).

    Args:
        path: the file.
        words: those needed, a `Vocabulary` for example; others are not kept.
        normalise: give every vector length 1.
        seed: of the random vectors.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "tiny.txt")
        ...     count = path.write_text("the 3 4\\ndog 0 2\\n")
        ...     vectors = load_vectors(path, ["A", "dog", "The"])
        >>> vectors.known, vectors.matrix[102:]
        ({'dog': 102, 'The': 103}, tensor([[0.0000, 1.0000],
                [0.6000, 0.8000]]))
    """
    words = list(words)
    wanted = {spelling for word in words for spelling in spellings(word)}
    source = one_file(path, expected="word vectors as text or .npz")
    file = source.file
    if ".bin" in [suffix.lower() for suffix in file.suffixes[-2:]]:
        raise DataError(f"{file}: is in word2vec's binary format; expected text: convert it first")
    is_archive = file.suffix.lower() == ".npz"
    row_of, vectors = _read_archive(file, wanted) if is_archive else _read_text(source, wanted)
    finite = vectors.isfinite().all(1)
    if not finite.all():
        word = next(word for word, row in row_of.items() if not finite[row])
        raise DataError(f"{file}: the vector of {word!r} is not finite in single precision")
    if words and not row_of:
        raise DataError(
            f"{path}: has none of the {len(words):,} words, such as {words[0]!r}; expected vectors "
            "of the same language"
        )
    known: dict[str, int] = {}
    order: dict[int, int] = {}  # from the row as read to the row in order of first use
    for word in words:
        spelling = next(filter(row_of.__contains__, spellings(word)), None)
        if spelling is not None:
            known[word] = FIRST_KNOWN + order.setdefault(row_of[spelling], len(order))
    return _assembled(vectors[list(order)], known, normalise, torch.Generator().manual_seed(seed))


def random_vectors(
    words: Iterable[str], dim: int, *, normalise: bool = False, seed: int = 0
) -> Vectors:
    """Draw a vector from the normal distribution for each word, to be learned where none are given.

    The words are those to be known: those of the training data, not of the others.

    Example:
        >>> random_vectors(["a", "dog"], 8)
        Vectors(2 known words, dim=8, unknown=100)
    """
    if dim < 1:
        raise InputError(f"dim: received {dim}; expected 1 or more")
    known = {word: row for row, word in enumerate(dict.fromkeys(words), FIRST_KNOWN)}
    generator = torch.Generator().manual_seed(seed)
    return _assembled(
        torch.randn(len(known), dim, generator=generator), known, normalise, generator
    )


def load_joined(
    files: Sequence[PathLike], words: Iterable[str], *, normalise: bool = True, seed: int = 0
) -> Vectors:
    """Load the vectors of some words from one file, or those of several files side by side."""
    words = list(words)
    parts = [
        # another draw for each, or the parts of an unknown word's vector would be alike
        load_vectors(file, words, normalise=normalise, seed=seed + number)
        for number, file in enumerate(files)
    ]
    if len(parts) == 1:
        return parts[0]
    known: dict[str, int] = {}
    # rows in the parts, 0 for zeros, to the row here: words that share all of them share it
    rows = {(number,) * len(parts): number for number in range(FIRST_KNOWN)}
    for word in dict.fromkeys(word for part in parts for word in part.known):
        place = tuple(part.id(word) if word in part else 0 for part in parts)
        known[word] = rows.setdefault(place, len(rows))
    places = torch.tensor(list(rows))
    matrix = torch.cat([part.matrix[places[:, i]] for i, part in enumerate(parts)], 1)
    return Vectors(_normalised(matrix) if normalise else matrix, known)


def spellings(word: str) -> Iterator[str]:
    """How a word may be written in a file of vectors, in the order to try them."""
    yield word
    yield word.lower()
    plain = plain_word(word)
    if plain != word:
        yield plain
        yield plain.lower()


def _assembled(
    rows: Tensor, known: dict[str, int], normalise: bool, generator: torch.Generator
) -> Vectors:
    drawn = torch.randn(UNKNOWN, rows.shape[1], generator=generator)
    matrix = torch.cat([rows.new_zeros(FIRST_UNKNOWN, rows.shape[1]), drawn, rows])
    return Vectors(_normalised(matrix) if normalise else matrix, known)


def _normalised(matrix: Tensor) -> Tensor:
    return torch.nn.functional.normalize(matrix, eps=1e-30)  # zero vectors stay zero


def _read_text(source: Source, wanted: Collection[str]) -> tuple[dict[str, int], Tensor]:
    """The first row of each wanted word. Words are compared as bytes: some files are not UTF-8."""
    file = source.name
    names = {word.encode("utf-8", "surrogatepass"): word for word in wanted}
    rows: dict[str, int] = {}
    values = array("f")
    number = dim = 0
    try:
        with source.opened() as data:
            for number, line in numbered_lines(data, file):
                line = line.rstrip(b" \r\n")
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                    if header := _WORD2VEC_HEADER.fullmatch(line):
                        dim = int(header[1])
                        continue
                if not line:
                    continue
                where = f"{file}, line {number}"
                if not dim:
                    if not (numbers := _NUMBERS.search(line)):
                        raise DataError(f"{where}: received no number; expected a word and numbers")
                    dim = len(numbers[0].split())
                word = line.partition(b" ")[0]
                if line.count(b" ") != dim:  # a word with spaces, for example; splitting takes time
                    word, *cells = b" ".join(line.split()).rsplit(b" ", dim)
                    if len(cells) < dim:
                        received = f"received {counted(len(cells), 'number')} after a word"
                        raise DataError(f"{where}: {received}; expected {dim}, as on other lines")
                name = names.get(word)
                if name is None or name in rows:
                    continue
                try:
                    values.extend(map(float, line.split()[-dim:]))
                except ValueError as error:
                    expected = f"expected {counted(dim, 'number')} after the word {name!r}"
                    raise DataError(f"{where}: {error}; {expected}") from error
                rows[name] = len(rows)
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(f"{file}, after line {number}: cannot be read: {error}") from error
    if not dim:
        raise DataError(f"{file}: is empty; expected lines of a word and its numbers")
    if not rows:
        return rows, torch.empty(0, dim)
    return rows, torch.frombuffer(values, dtype=torch.float32).view(-1, dim)


def _read_archive(file: Path, wanted: Collection[str]) -> tuple[dict[str, int], Tensor]:
    require("numpy")
    import numpy

    try:
        with numpy.load(file, allow_pickle=False) as archive:
            names, vectors = archive["words"], archive["vec"]
            words = str(names).split("\n") if names.ndim == 0 else names.tolist()
            rows = archive["rows"] if "rows" in archive else numpy.arange(len(vectors))
        if names.dtype.kind != "U" or vectors.dtype.kind != "f" or rows.dtype.kind not in "iu":
            raise TypeError
        row_of: dict[str, int] = {}
        for word, row in zip(words, rows.tolist(), strict=True):
            if word in wanted:
                row_of.setdefault(word, row)
        needed = sorted(set(row_of.values()))
        matrix = torch.from_numpy(vectors[needed].astype(numpy.float32))
        if matrix.dim() != 2 or len(vectors) <= int(rows.max()) or int(rows.min()) < 0:
            raise ValueError
    except (*DAMAGE, *REFUSED, LookupError, ValueError, TypeError) as error:
        # not with the library's words: they tell how to load pickled files, which may hold code
        raise DataError(
            f"{file}: cannot be read as .npz; expected words, strings; vec, floating point, (rows, "
            "dimensions); and for each word a row of vec, or its number in rows"
        ) from error
    place = {row: i for i, row in enumerate(needed)}
    return {word: place[row] for word, row in row_of.items()}, matrix
