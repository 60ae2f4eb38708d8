"""Vectors of words that training never saw, from the files of training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

import torch
from torch import Tensor

from treelax.apps.data.text.vectors import Vectors, load_joined
from treelax.errors import DataError, InputError
from treelax.nn.embeddings import WordEmbedding

VectorFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
THE_MODEL = "the model"  # one without a name, in messages
GROWING = RLock()  # tables of words or sub-words, which several threads may extend
SAME = 1e-5  # relative difference of two readings of a file, also on another machine
MANY = 10  # one in so many words may be unknown without a message


@dataclass(eq=False)
class WordVectors:
    """The word vectors of a trained model, and the files of training, to look up more words."""

    vectors: Vectors  # of the known words, which grow
    embedding: WordEmbedding  # the layer that has them
    names: Sequence[str]  # of the files of training; none if there were none
    normalise: bool = True
    learned: int = 0  # rows of the matrix that training changed
    origin: str = "learned its word vectors from random ones"  # if they are from no files
    model: str = THE_MODEL
    files: tuple[Path, ...] = ()  # where unknown words are looked up
    not_found: set[str] = field(default_factory=set)

    def use_files(self, given: VectorFiles | None) -> None:
        """Look up unknown words in some files, which are not read yet."""
        if given is None:
            return
        files = tuple(map(Path, [given] if isinstance(given, str | os.PathLike) else given))
        if files and not self.names:
            raise InputError(
                f"vectors: received {_listed(files)}, and {self.model} {self.origin}; expected none"
            )
        for file in files:
            if not file.is_file():
                raise DataError(f"{file}: is no file; expected word vectors")
        if files and len(files) != len(self.names):
            raise InputError(
                f"vectors: received {_listed(files)} for {self.model}; expected as in training "
                f"{_listed(self.names)}"
            )
        self.files = files

    def add(self, words: Iterable[str]) -> tuple[int, int]:
        """Look up unknown words and keep their vectors; how many were looked for, and found."""
        if not self.files:
            return 0, 0
        with GROWING, torch.inference_mode(False):
            known, missing = self.vectors.known, self.not_found
            new = [w for w in dict.fromkeys(words) if w not in known and w not in missing]
            if not new:
                return 0, 0
            rows, added = self._look_up(new)
            # words come last: other threads may ask for the rows of known words meanwhile
            self.embedding.append(added)
            self.vectors.matrix = torch.cat([self.vectors.matrix, added])
            known.update(rows)
            missing.update(word for word in new if word not in rows)
        return len(new), len(rows)

    def note(self, unknown: int, words: int, consequence: str) -> str | None:
        """A sentence for people if many of different words are unknown."""
        if not self.names or self.files or MANY * unknown <= words:
            return None
        options = " ".join(f"--vectors {name}" for name in self.names)
        return (
            f"note: {unknown:,} of {words:,} different words are unknown to the model and "
            f"{consequence}; look them up with {options}, as in training"
        )

    def _look_up(self, words: Sequence[str]) -> tuple[dict[str, int], Tensor]:
        """Look up words as training would have done: their rows, and the rows to add.

        Known words are looked up too, to check that the files are those of training: with others of
        the same size, labels of new words would be random.
        """
        vectors, files, names = self.vectors, _listed(self.files), _listed(self.names)
        loaded = load_joined(self.files, [*vectors.known, *words], normalise=self.normalise)
        if loaded.dim != vectors.dim:
            raise InputError(
                f"vectors: received {loaded.dim} dimensions in {files}; expected {vectors.dim}, "
                f"which {self.model} has: give {names}, as in training"
            )
        fixed = {w: row for w, row in vectors.known.items() if row > self.learned}
        other = next((word for word in vectors.known if word not in loaded.known), None)
        if other is None and fixed:
            saved = vectors.matrix[list(fixed.values())]
            again = loaded.matrix[[loaded.known[word] for word in fixed]]
            differ = ((saved - again).abs() > SAME * saved.abs().amax()).any(1).nonzero()
            other = list(fixed)[int(differ[0])] if len(differ) else None
        if other is not None:
            raise InputError(
                f"vectors: {files} has not the vector that {self.model} has for {other!r}; expected "
                f"the same as in training, {names}"
            )
        # words with one vector in the files share a row, so a new one may have that of a known one
        rows = {loaded.known[word]: row for word, row in vectors.known.items()}
        old, first = len(rows), len(vectors.matrix)
        new = {}
        for word in words:
            if word in loaded.known:
                new[word] = rows.setdefault(loaded.known[word], first + len(rows) - old)
        return new, loaded.matrix[list(rows)[old:]]


def coverage_notes(found: int, words: int) -> list[str]:
    """What to say of the words of the data that have a vector in the files."""
    notes = [
        f"word vectors: {found:,} of {words:,} words of the data found "
        f"({100 * found / words:.1f} %), {words - found:,} unknown"
    ]
    if 2 * found < words:
        notes.append(
            "note: fewer than half of the words have a vector; are the vectors of the language of the "
            "texts?"
        )
    return notes


def _listed(files: Iterable[str | Path]) -> str:
    return ", ".join(map(str, files))
