"""Tasks by name, and trained models of any of them.

A new task is a folder with a `treelax.apps.tasks.task.Task` in it, a module ``commands`` with its
commands (see `treelax.apps.tasks.commands`), a line in `TASKS` and one in `LOADERS`. ``treelax.lab``
adds more to `TASKS`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelax.errors import CheckpointError, InputError

if TYPE_CHECKING:
    import torch

    from treelax.apps.tasks.base import TrainedParser
    from treelax.apps.tasks.task import Task

__all__ = ["BUILT_IN", "TASKS", "load", "task_named"]

# models that come with treelax, with their tasks
BUILT_IN = {"english": "parser", "listops": "listops"}
FORMAT = "treelax sentence model"  # in the config of a saved model

# where the `Task` of each name is; imported when it is asked for
TASKS: dict[str, str] = {
    "classify": "treelax.apps.tasks.text.task:CLASSIFY",
    "pair": "treelax.apps.tasks.text.task:PAIR",
    "tag": "treelax.apps.tasks.text.task:TAG",
    "parser": "treelax.apps.tasks.parsing.task:PARSER",
}
# where the function is that loads a trained model of each task
LOADERS: dict[str, str] = {
    "listops": "treelax.apps.tasks.listops.parser:load",
    "classify": "treelax.apps.tasks.text.pretrained:load",
    "pair": "treelax.apps.tasks.text.pretrained:load",
    "tag": "treelax.apps.tasks.text.pretrained:load",
    "parser": "treelax.apps.tasks.parsing.parser:load",
}


def task_named(name: str) -> Task:
    """The task of a name.

    >>> task_named("parser").preset("small").model.structure
    'nonprojective'
    """
    task: Task = _at(TASKS, name)
    return task


def _at(places: Mapping[str, str], task: str) -> Any:
    """What a task has at its place, ``module:attribute``."""
    if task not in places:
        raise InputError(f"task is {task!r}; expected one of {', '.join(places)}")
    module, _, attribute = places[task].partition(":")
    return getattr(import_module(module), attribute)


def command_modules() -> list[Any]:
    """The modules with the commands of all tasks, ``TRAIN``; without torch."""
    folders = dict.fromkeys(place.partition(":")[0].rpartition(".")[0] for place in TASKS.values())
    return [import_module(f"{folder}.commands") for folder in folders]


def load(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    vectors: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    revision: str | None = None,
    called: str | None = None,
) -> TrainedParser:
    """Load a trained model of any task.

    Args:
        name: the folder of a run or of a saved model, a file ``model.safetensors`` of a ListOps run,
            a parser in one file, "english" or "listops" for a model that comes with treelax, or
            OWNER/NAME on the Hugging Face hub.
        device: device of the model.
        vectors: the word vector files used in training, in the same order, to look up words that
            were not in the training data.
        revision: on the hub, a branch, tag or commit; the newest by default.
        called: name of the model in messages; ``name`` by default.

    Returns:
        The model, in evaluation mode. No random number is drawn.

    Raises:
        InputError: the model does not exist, or was trained without word vectors.
        CheckpointError: a file is missing, damaged or of another version.
        DataError: a file of word vectors does not exist.
        BackendError: the model is on the hub and huggingface_hub is not installed.

    Example:
        >>> parser = load("english")
        >>> [found] = parser.parse(["The old cat watched a small bird."])
        >>> found.heads[0], found.scores[0].shape
        ((3, 3, 4, 0, 7, 7, 4, 4), torch.Size([9, 9]))
        >>> parser.about["treebank"]
        'UD English-EWT'
    """
    from treelax.apps.tasks.sentences.hub import fetch_folder, looks_like_hub_name

    path = Path(name)
    if str(name) in BUILT_IN:
        task = BUILT_IN[str(name)]
        path = Path(str(files("treelax.apps") / "models" / f"{name}.safetensors"))
    else:
        if not path.exists() and looks_like_hub_name(str(name)):
            path = fetch_folder(str(name), revision=revision)
        task = task_of(path)
    given = [vectors] if isinstance(vectors, str | os.PathLike) else vectors
    model: TrainedParser = _at(LOADERS, task)(
        path,
        name=str(name) if called is None else called,
        device=device,
        vectors=None if given is None else [Path(file) for file in given],
    )
    return model


def task_of(path: Path) -> str:
    """The task of the model in a folder or file; no weights are read."""
    from treelax.apps.training.checkpoint import read_checkpoint_header
    from treelax.apps.training.run import CONFIG, Run

    if path.is_file():
        return read_checkpoint_header(path)[0]
    if (path / CONFIG).is_file():
        return Run.open(path).task
    saved = path / "config.json"
    if not saved.is_file():
        what = f"holds neither {CONFIG} nor {saved.name}" if path.exists() else "does not exist"
        raise InputError(
            f"{path}: {what}; expected the folder of a run or of a saved model, a model.safetensors, "
            f"or {' or '.join(BUILT_IN)} for a model that comes with treelax"
        )
    try:
        return str(read_config(saved)["settings"]["kind"])
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{saved}: has no settings.kind; restore it") from error


def read_config(file: Path) -> dict[str, Any]:
    """The config of a saved model."""
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{file}: cannot be read as JSON ({error})") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(
            f"{file}: is of another program; expected the config of a sentence model which treelax saved"
        )
    return config
