"""A parser as one small file, which needs neither its run nor its word vectors.

Vectors are stored as the parser's projection maps them, so that their size does not count. Every
tensor with more than one dimension is stored in 8 bits, with a scale for each place of its last
dimension: the weights that keep padding out of a BiLSTM have a separate place, and are far larger
than all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.text.vectors import Vectors
from treelax.apps.tasks.parsing.config import FILES, ParserConfig
from treelax.apps.tasks.parsing.lexicon import NAMES, Lexicon
from treelax.apps.tasks.parsing.model import ParserModel
from treelax.apps.training.checkpoint import load_checkpoint, restoring, save_checkpoint
from treelax.apps.training.config import flatten, from_table
from treelax.errors import InputError

LARGEST = 127  # of 8 bits
SCALE = ".scale"
VECTORS, ROWS = "vectors", "rows"
PROJECTION = "words.projection.weight"


def save_packed(
    path: Path,
    model: ParserModel,
    lexicon: Lexicon,
    config: ParserConfig,
    about: Mapping[str, Any],
    *,
    kind: str,
) -> None:
    """Write a parser as one file."""
    weights, known = dict(model.state_dict()), dict[str, int]()
    if lexicon.vectors is not None:
        matrix, known = lexicon.vectors.matrix, lexicon.vectors.known
        projection = weights[PROJECTION].cpu()
        # a model multiplies vectors by the root of their size
        weights[VECTORS] = matrix @ projection.T * (matrix.shape[1] / len(projection)) ** 0.5
        weights[PROJECTION] = torch.eye(len(projection))
    tensors = {ROWS: torch.tensor(list(known.values()), dtype=torch.int32)}
    for name, weight in weights.items():
        tensors |= _in_8_bits(name, weight) if weight.dim() > 1 else {name: weight}
    state = {
        "config": {k: v for k, v in flatten(config).items() if k not in FILES},
        "lexicon": {name: getattr(lexicon, name) for name in NAMES},
        "known": "\n".join(known),
        "about": dict(about),
    }
    save_checkpoint(path, tensors, kind=kind, state=state)


def load_packed(
    path: Path, *, kind: str
) -> tuple[ParserModel, Lexicon, ParserConfig, Mapping[str, Any]]:
    """Read what `save_packed` wrote."""
    saved = load_checkpoint(path, kind=kind)
    if "about" not in saved.state:
        raise InputError(f"{path}: lacks the words of its run; expected the folder of the run")
    with restoring(path):
        tensors = {name: t for name, t in saved.tensors.items() if not name.endswith(SCALE)}
        for name in [name for name in saved.tensors if name + SCALE in saved.tensors]:
            tensors[name] = tensors[name] * saved.tensors[name + SCALE]
        rows, matrix = tensors.pop(ROWS).tolist(), tensors.pop(VECTORS, None)
        known = dict(zip(saved.state["known"].split("\n"), rows, strict=False))
        vectors = None if matrix is None else Vectors(matrix, known)
        names = {name: tuple(values) for name, values in saved.state["lexicon"].items()}
        lexicon = Lexicon(**names, vectors=vectors)
        config = from_table(ParserConfig, saved.state["config"], "config")
        model = ParserModel(config.model, lexicon)
        model.load_state_dict(tensors)
    return model, lexicon, config, saved.state["about"]


def _in_8_bits(name: str, weight: Tensor) -> dict[str, Tensor]:
    scale = weight.abs().flatten(0, -2).amax(0).clamp(min=1e-12) / LARGEST
    return {name: (weight / scale).round().to(torch.int8), name + SCALE: scale}
