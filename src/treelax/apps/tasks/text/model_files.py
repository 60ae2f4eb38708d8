"""The files of trained sentence models: those of runs, and folders to be passed on.

A saved model is a folder:

.. code-block:: text

    config.json         its settings and labels, for people and for the hub
    model.safetensors   weights
    words.safetensors   words, their vectors, labels
    transformer/        the transformer below the trees, if there is one

Nothing in it is pickled, and it needs none of the files that the model was trained on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

import treelax
from treelax.apps.data.text.vectors import Vectors
from treelax.apps.tasks import FORMAT, read_config
from treelax.apps.tasks.sentences.task import WORDS
from treelax.apps.tasks.sentences.transformer import COPY, copy_folder, with_own_copy
from treelax.apps.tasks.text.config import SentenceSettings, TextConfig
from treelax.apps.training.checkpoint import load_checkpoint, restoring, save_checkpoint
from treelax.apps.training.config import flatten, from_table
from treelax.apps.training.run import CONFIG as RUN_CONFIG
from treelax.apps.training.run import best_model
from treelax.errors import CheckpointError, DataError, InputError
from treelax.files import atomic_write, sha256

CONFIG, MODEL = "config.json", "model.safetensors"
KIND, WORDS_KIND = "sentences", "words"


class SavedSentences(NamedTuple):
    """What the files of a sentence model hold."""

    settings: SentenceSettings
    vectors: Vectors
    labels: tuple[str, ...]
    weights: Mapping[str, Tensor]
    file: Path


def load_folder(path: Path, task: str) -> SavedSentences:
    """The best model of a run of a task, or one that `save_folder` saved."""
    is_run = (path / RUN_CONFIG).is_file()
    file = best_model(path) if is_run else path / MODEL
    public = {} if is_run else read_config(path / CONFIG)
    saved = load_checkpoint(file, kind=task if is_run else KIND)
    vectors, labels = load_words(path / WORDS)
    with restoring(file):
        if is_run:
            config = from_table(TextConfig, saved.state.get("config"), "settings")  # type: ignore[arg-type]
            settings = SentenceSettings.of(config, rows=len(vectors.matrix))
        else:
            table = saved.state.get("settings", {})
            settings = from_table(SentenceSettings, table, "settings")
    if not is_run and (public.get("settings"), public.get("labels")) != (table, list(labels)):
        raise CheckpointError(
            f"{path / CONFIG}: contradicts {MODEL} and {WORDS}; restore it: the settings of a "
            "trained model cannot be changed"
        )
    if not is_run and saved.state.get("words") != sha256(path / WORDS):
        raise CheckpointError(
            f"{path / WORDS}: is not the file that {MODEL} was saved with; expected files of one "
            "model: save it again"
        )
    settings = replace(settings, model=with_own_copy(settings.model, path))
    return SavedSentences(settings, vectors, labels, saved.tensors, file)


def save_folder(
    path: Path,
    settings: SentenceSettings,
    vectors: Vectors,
    labels: tuple[str, ...],
    weights: Mapping[str, Tensor],
) -> None:
    """Save a model; a folder that was left half-written is refused when it is loaded."""
    is_run = (path / RUN_CONFIG).exists()
    if is_run or (path.exists() and not path.is_dir()):
        what = "holds a run; expected another" if is_run else "is a file; expected a"
        raise InputError(f"{path}: {what} folder for a saved model")
    if (path / CONFIG).exists():
        read_config(path / CONFIG)  # refuses to overwrite that of another program
    transformer, copy = settings.model.pretrained, path / COPY
    if transformer is not None:
        settings = replace(settings, model=replace(settings.model, pretrained=COPY))
    flat = flatten(settings)
    content = {"format": FORMAT, "treelax": treelax.__version__, "settings": flat, "labels": labels}
    try:
        path.mkdir(parents=True, exist_ok=True)
        if transformer is not None and not (copy.exists() and copy.samefile(transformer)):
            if copy.exists():
                (path / CONFIG).unlink(missing_ok=True)  # without which this is no model
                shutil.rmtree(copy)
            copy_folder(transformer, copy)
        save_words(path / WORDS, vectors, labels)
        state = {"settings": flat, "words": sha256(path / WORDS)}
        save_checkpoint(path / MODEL, weights, kind=KIND, state=state)
        with atomic_write(path / CONFIG, "w") as out:
            out.write(json.dumps(content, indent=1) + "\n")
    except (CheckpointError, DataError, OSError) as error:
        reason: BaseException = error
        while reason.__cause__ is not None:  # what they say themselves is for training runs
            reason = reason.__cause__
        raise CheckpointError(
            f"{path}: was not saved ({reason}); mend that and save again"
        ) from error


def save_words(path: Path, vectors: Vectors, labels: tuple[str, ...]) -> None:
    """Save word vectors and label names as one file."""
    state = {
        "words": list(vectors.known),
        "rows": list(vectors.known.values()),
        "unknown": vectors.unknown,
        "labels": list(labels),
    }
    save_checkpoint(path, {"vectors": vectors.matrix}, kind=WORDS_KIND, state=state)


def load_words(path: Path) -> tuple[Vectors, tuple[str, ...]]:
    """Load what `save_words` saved."""
    saved = load_checkpoint(path, kind=WORDS_KIND)
    state = saved.state
    try:
        known = dict(zip(state["words"], map(int, state["rows"]), strict=True))
        vectors = Vectors(saved.tensors["vectors"], known, unknown=state["unknown"])
        return vectors, tuple(map(str, state["labels"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: its words are damaged ({error!r}); use another run or train again"
        ) from error
