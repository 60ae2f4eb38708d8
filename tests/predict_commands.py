"""``treelax predict`` in tests: what it prints, what it refuses, and files for it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from treelax.cli.main import main

KINDS = ["classify", "pair", "tag"]


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the program prints."""
    capsys.readouterr()
    status = main(["predict", *map(str, arguments), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    return output.out


def records(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ask(capsys, *arguments).splitlines()]


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["predict", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


def written(folder: Path, text: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def typed(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
