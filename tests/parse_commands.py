"""``treelax parse`` in this process, and models for it that were not trained."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from treelax.cli.main import main
from treelax.data.text.vectors import random_vectors
from treelax.tasks.text.model import ModelConfig
from treelax.tasks.text.pretrained import SentenceModel, SentenceSettings

WORDS = ["the", "film", "was", "a", "plot", "good", "bad", "."]
COLUMNS = {"classify": ("text",), "tag": ("text",), "pair": ("first", "second")}


def saved(folder: Path, kind: str = "classify", *, null: bool = False, **model: Any) -> Path:
    """The folder of a saved model with random weights."""
    sizes: dict[str, Any] = {"projection_size": 8, "scorer_size": 8, "gcn_size": 8}
    config = ModelConfig(**(sizes | {"output_size": 8, "learned_words": 3} | model))
    settings = SentenceSettings(kind, COLUMNS[kind], null=null, model=config)  # type: ignore[arg-type]
    torch.manual_seed(1)
    labels = ["D", "N", "V"] if kind == "tag" else ["no", "yes"]
    path = folder / f"{kind}-{config.trees}{'-null' * null}"
    SentenceModel(settings, random_vectors(WORDS, 8), labels).save_pretrained(path)
    return path


def parse(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the program prints."""
    capsys.readouterr()
    status = main(["parse", *map(str, arguments), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    return output.out


def records(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    said = parse(capsys, *arguments, "--format", "json")
    return [json.loads(line) for line in said.splitlines()]


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["parse", *map(str, arguments), "--device", "cpu"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


def typed(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
