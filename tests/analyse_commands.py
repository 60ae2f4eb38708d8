"""``treelax analyse`` in tests: what it prints and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from treelax.cli.main import main


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the program prints on stdout."""
    capsys.readouterr()
    status = main(["analyse", *map(str, arguments), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    return output.out


def record(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    out = ask(capsys, *arguments, "--json")
    assert out.count("\n") == 1
    return dict(json.loads(out))


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    assert main(["analyse", *map(str, arguments), "--device", "cpu"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")
