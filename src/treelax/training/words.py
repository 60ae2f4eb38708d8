"""The words of a run: their vectors and the names of its labels, saved once beside its checkpoints."""

from __future__ import annotations

import os

from treelax.data.text.vectors import Vectors
from treelax.errors import CheckpointError
from treelax.training.checkpoint import load_checkpoint, save_checkpoint

KIND = "words"
FILE = "words.safetensors"


def save_words(
    path: str | os.PathLike[str],
    vectors: Vectors,
    labels: tuple[str, ...],
    *,
    lower: bool,
) -> None:
    """Save word vectors and label names as one file."""
    save_checkpoint(
        path,
        {"vectors": vectors.matrix},
        kind=KIND,
        state={
            "words": list(vectors.known),
            "rows": list(vectors.known.values()),
            "unknown": vectors.unknown,
            "labels": list(labels),
            "lower": lower,
        },
    )


def load_words(path: str | os.PathLike[str]) -> tuple[Vectors, tuple[str, ...], bool]:
    """Load what `save_words` saved."""
    saved = load_checkpoint(path, kind=KIND)
    state = saved.state
    try:
        words, rows, labels = state["words"], state["rows"], state["labels"]
        for name, values, kind in (
            ("words", words, str),
            ("rows", rows, int),
            ("labels", labels, str),
        ):
            if not isinstance(values, list) or not all(isinstance(v, kind) for v in values):
                raise TypeError(f"{name} are no list of {kind.__name__}")
        if len(words) != len(rows):
            raise ValueError(f"{len(words)} words with {len(rows)} rows")
        known = dict(zip(words, rows, strict=True))
        vectors = Vectors(saved.tensors["vectors"], known, unknown=state["unknown"])
        return vectors, tuple(labels), bool(state["lower"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"without {error}" if isinstance(error, KeyError) else error
        raise CheckpointError(
            f"{path}: its words are damaged ({what}); use another run or train again"
        ) from error
