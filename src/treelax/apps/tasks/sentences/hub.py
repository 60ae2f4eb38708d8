"""Models on the Hugging Face hub, through its library, which is loaded when it is needed.

``PyTorchModelHubMixin`` is not used: it falls back to pickled weights and lets weights be missing.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from treelax.errors import BackendError, InputError

FILES = tuple(f"*{end}" for end in (".json", ".safetensors", ".txt", ".model"))
NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def looks_like_hub_name(name: str) -> bool:
    """Whether a name could be that of a repository: an owner and a model."""
    return NAME.fullmatch(name) is not None and not name.startswith(".")


def fetch_folder(name: str, *, revision: str | None = None) -> Path:
    """Download the files of a model that are not here already; none of them is pickled."""
    library = _library(f"{name}: is no folder here, and to look for it on the Hugging Face hub")
    try:
        folder = library.snapshot_download(name, revision=revision, allow_patterns=list(FILES))
    except Exception as error:  # the library raises those of several others
        raise InputError(
            f"{name}: is no folder here and could not be fetched from the Hugging Face hub "
            f"({first_line(error)}); expected the folder of a run or of a model, or a model on the hub"
        ) from error
    return Path(folder)


def publish_folder(name: str, folder: Path, *, private: bool, message: str) -> str:
    """Upload the files of a folder to a repository, which is created if it does not exist."""
    library = _library("publishing a model")
    try:
        made = library.create_repo(name, private=private, exist_ok=True)
        commit = library.upload_folder(
            repo_id=made.repo_id, folder_path=folder, commit_message=message
        )
    except Exception as error:
        raise InputError(
            f"{name}: could not be published on the Hugging Face hub ({first_line(error)}); log in "
            "with `hf auth login` and give OWNER/NAME"
        ) from error
    return str(commit)


def _library(what: str) -> Any:
    try:
        return import_module("huggingface_hub")
    except ImportError as error:
        raise BackendError(
            f"{what} needs the huggingface_hub library, which is not installed: "
            "pip install huggingface_hub"
        ) from error


def first_line(error: Exception) -> str:
    """The first line of another library's message."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0].strip().removesuffix(".")
