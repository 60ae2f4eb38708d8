"""The old place of `treelax.tasks.text.pretrained.SentenceModel`."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("treelax.tasks.text.pretrained"), name)
