"""Vectors of words that training never saw, from the files of training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

from treelax.apps.data.text.vectors import Vectors, load_joined
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.errors import DataError, InputError
from treelax.nn.embeddings import WordEmbedding

VectorFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
THE_MODEL = "the model"  # one without a name, in messages
GROWING = Lock()  # word vectors, which several threads may ask for
SAME = 1e-5  # relative difference of two readings of a file, also on another machine


def vector_files(
    given: VectorFiles | None, settings: SentenceSettings, model: str = THE_MODEL
) -> tuple[Path, ...]:
    """Files of word vectors for a model; they are not read yet."""
    if given is None:
        return ()
    files = tuple(map(Path, [given] if isinstance(given, str | os.PathLike) else given))
    if files and not settings.vectors:
        what = "learned its word vectors from random ones (or is too old to tell its files)"
        if settings.model.pretrained is not None:
            what = "has a transformer, which makes its word vectors"
        raise InputError(f"vectors: received {_listed(files)}, and {model} {what}; expected none")
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: is no file; expected word vectors")
    if files and len(files) != len(settings.vectors):
        raise InputError(
            f"vectors: received {_listed(files)} for {model}; expected as in training "
            f"{_listed(settings.vectors)}"
        )
    return files


def add_words(
    words: Iterable[str],
    vectors: Vectors,
    embedding: WordEmbedding,
    not_found: set[str],
    files: Sequence[Path],
    settings: SentenceSettings,
    model: str = THE_MODEL,
) -> tuple[int, int]:
    """Look up unknown words and keep their vectors; how many were looked for, and found."""
    with GROWING, torch.inference_mode(False):
        new = [w for w in dict.fromkeys(words) if w not in vectors.known and w not in not_found]
        if not new:
            return 0, 0
        rows, added = look_up(vectors, files, new, settings, model)
        # words come last: other threads may ask for the rows of known words meanwhile
        embedding.append(added)
        vectors.matrix = torch.cat([vectors.matrix, added])
        vectors.known.update(rows)
        not_found.update(word for word in new if word not in rows)
    return len(new), len(rows)


def look_up(
    vectors: Vectors,
    files: Sequence[Path],
    words: Sequence[str],
    settings: SentenceSettings,
    model: str = THE_MODEL,
) -> tuple[dict[str, int], Tensor]:
    """Look up words that a model does not know, as training would have done.

    Known words are looked up too, to check that the files are those of training: with others of the
    same size, labels of new words would be random.
    """
    loaded = load_joined(files, [*vectors.known, *words], normalise=settings.normalise)
    if loaded.dim != vectors.dim:
        raise InputError(
            f"vectors: received {loaded.dim} dimensions in {_listed(files)}; expected {vectors.dim}, "
            f"which {model} has: give {_listed(settings.vectors)}, as in training"
        )
    fixed = {w: row for w, row in vectors.known.items() if row > settings.model.learned_words}
    other = next((word for word in vectors.known if word not in loaded.known), None)
    if other is None and fixed:
        saved = vectors.matrix[list(fixed.values())]
        again = loaded.matrix[[loaded.known[word] for word in fixed]]
        differ = ((saved - again).abs() > SAME * saved.abs().amax()).any(1).nonzero()
        other = list(fixed)[int(differ[0])] if len(differ) else None
    if other is not None:
        raise InputError(
            f"vectors: {_listed(files)} has not the vector that {model} has for {other!r}; expected "
            f"the same as in training, {_listed(settings.vectors)}"
        )
    # words with one vector in the files share a row, so a new one may have that of a known one
    rows = {loaded.known[word]: row for word, row in vectors.known.items()}
    old, first = len(rows), len(vectors.matrix)
    new = {}
    for word in words:
        if word in loaded.known:
            new[word] = rows.setdefault(loaded.known[word], first + len(rows) - old)
    return new, loaded.matrix[list(rows)[old:]]


def _listed(files: Iterable[str | Path]) -> str:
    return ", ".join(map(str, files))
