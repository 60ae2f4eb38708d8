"""Vectors of words that training never saw, from the files of training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from treelax.data.text.vectors import Vectors, load_joined
from treelax.errors import DataError, InputError
from treelax.tasks.text.sentence_settings import SentenceSettings

__all__ = ["VectorFiles", "look_up", "refuse_vectors", "vector_files"]

VectorFiles = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
THE_MODEL = "the model"  # one without a name, in messages
SAME = 1e-5  # what readings of a file differ by at most, also on another machine


def vector_files(
    given: VectorFiles | None, settings: SentenceSettings, model: str = THE_MODEL
) -> tuple[Path, ...]:
    """Files of word vectors for a model; they are not yet read.

    Args:
        given: one or several, or None.
        settings: of the model.
        model: what messages call it.

    Returns:
        The files, in their order.

    Raises:
        InputError: the model has no use for them, or took another number of files in training.
        DataError: there is no such file.

    Example:
        >>> vector_files("glove.txt", SentenceSettings(), "runs/a")
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: vectors: received glove.txt, and runs/a learned its word vectors \
from random ones (or is too old to tell its files); expected none
    """
    if given is None:
        return ()
    files = _paths(given)
    if files and not settings.vectors:
        what = "learned its word vectors from random ones (or is too old to tell its files)"
        if settings.model.pretrained is not None:
            what = "has a transformer, which makes its word vectors"
        raise InputError(f"vectors: received {_listed(files)}, and {model} {what}; expected none")
    for file in files:
        if not file.is_file():
            there = "is a folder" if file.is_dir() else "does not exist"
            raise DataError(f"{file}: {there}; expected word vectors")
    if files and len(files) != len(settings.vectors):
        raise InputError(
            f"vectors: received {_listed(files)} for {model}; expected as in training "
            f"{_listed(settings.vectors)}"
        )
    return files


def refuse_vectors(given: VectorFiles | None, model: str) -> None:
    """Refuse files of word vectors for a model that is not of sentences.

    Args:
        given: one or several, or None.
        model: its name.

    Raises:
        InputError: there are some.

    Example:
        >>> refuse_vectors(["glove.txt"], "listops")
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: vectors: received glove.txt, and listops is a model of ListOps, \
whose words are all known; expected none
    """
    if given is not None and (files := _paths(given)):
        raise InputError(
            f"vectors: received {_listed(files)}, and {model} is a model of ListOps, whose words are "
            "all known; expected none"
        )


def _paths(given: Any) -> tuple[Path, ...]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    try:
        return tuple(map(Path, several))
    except TypeError:
        raise InputError(f"vectors: received {given!r}; expected a file or several") from None


def look_up(
    vectors: Vectors,
    files: Sequence[Path],
    words: Sequence[str],
    settings: SentenceSettings,
    model: str = THE_MODEL,
) -> tuple[dict[str, int], Tensor]:
    """Look up words that a model does not know, as training would have done.

    The words that it knows are looked up too, to see that the files are those of training: with
    others of the same size it would label new words by chance.

    Args:
        vectors: of the model, which stay as they are.
        files: of training, in the same order.
        words: that the model does not know, as it spells them.
        settings: of the model.
        model: what messages call it.

    Returns:
        The rows of the words that were found, and new rows, which go behind those of the model.

    Raises:
        DataError: a file cannot be read.
        BackendError: a file needs NumPy and it is not installed.
        InputError: the files have another number of dimensions, or are not those of training.
    """
    found = load_joined(files, [*vectors.known, *words], normalise=settings.normalise)
    if found.dim != vectors.dim:
        raise InputError(
            f"vectors: received {found.dim} dimensions in {_listed(files)}; expected {vectors.dim}, "
            f"which {model} has: give {_listed(settings.vectors)}, as in training"
        )
    _check_same(vectors, found, files, settings, model)
    # words with one vector in the files share a row, so a new one may have that of a known one
    rows = {found.known[word]: row for word, row in vectors.known.items()}
    old, first = len(rows), len(vectors.matrix)
    new = {}
    for word in words:
        if word in found.known:
            new[word] = rows.setdefault(found.known[word], first + len(rows) - old)
    return new, found.matrix[list(rows)[old:]]


def _check_same(
    vectors: Vectors,
    found: Vectors,
    files: Sequence[Path],
    settings: SentenceSettings,
    model: str,
) -> None:
    """Refuse files that have not the vectors of the known words."""
    fixed = {w: row for w, row in vectors.known.items() if row > settings.model.learned_words}
    other = next((word for word in vectors.known if word not in found.known), None)
    if other is None and fixed:
        own = vectors.matrix[list(fixed.values())]
        again = found.matrix[[found.known[word] for word in fixed]]
        differ = ((own - again).abs() > SAME * own.abs().amax()).any(1).nonzero()
        other = list(fixed)[int(differ[0])] if len(differ) else None
    if other is not None:
        raise InputError(
            f"vectors: {_listed(files)} has not the vector that {model} has for {other!r}; expected "
            f"the same as in training, {_listed(settings.vectors)}"
        )


def _listed(files: Iterable[str | Path]) -> str:
    return ", ".join(map(str, files))
