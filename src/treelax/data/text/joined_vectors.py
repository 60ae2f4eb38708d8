"""Word vectors from several files as one: what one file does not know of a word, another may."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import torch

from treelax.data.text.vectors import FIRST_UNKNOWN, Vectors, load_vectors
from treelax.errors import InputError

__all__ = ["join_vectors", "load_joined"]


def load_joined(
    files: Sequence[str | os.PathLike[str]],
    words: Iterable[str],
    *,
    normalise: bool = True,
    seed: int = 0,
) -> Vectors:
    """Load the vectors of some words from one file, or those of several files as one."""
    words = list(words)
    parts = [
        # another draw for each, or the parts of an unknown word's vector would be alike
        load_vectors(file, words, normalise=normalise, seed=seed + number)
        for number, file in enumerate(files)
    ]
    return parts[0] if len(parts) == 1 else join_vectors(parts, normalise=normalise)


def join_vectors(parts: Sequence[Vectors], *, normalise: bool = True) -> Vectors:
    """Put the vectors of every word behind each other."""
    if len({part.unknown for part in parts}) != 1:
        raise InputError(
            f"parts: received {[part.unknown for part in parts]} vectors for unknown words; expected "
            "the same number in each of one or more parts"
        )
    first = FIRST_UNKNOWN + parts[0].unknown
    known: dict[str, int] = {}
    # rows in the parts, 0 for zeros, to the row here: words that share all of them share it
    rows = {(number,) * len(parts): number for number in range(first)}
    for word in dict.fromkeys(word for part in parts for word in part.known):
        place = tuple(part.id(word) if word in part else 0 for part in parts)
        known[word] = rows.setdefault(place, len(rows))
    columns = zip(*rows, strict=True)
    matrix = torch.cat(
        [part.matrix[list(column)] for part, column in zip(parts, columns, strict=True)], 1
    )
    if normalise:  # zero vectors stay zero
        matrix = torch.nn.functional.normalize(matrix, eps=1e-30)
    return Vectors(matrix, known, unknown=parts[0].unknown)
