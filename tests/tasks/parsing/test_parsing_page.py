"""The commands of docs/parsing.md run, on a tiny treebank."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tiny_treebank import SETTINGS, treebank

from treelax.__main__ import main

PAGE = (Path(__file__).parents[3] / "docs" / "parsing.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)[1:]
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, split in enumerate(("train", "dev", "test", "new", "partial")):
        Path(f"{split}.conllu").write_text(treebank(seed, 12))
    Path("new.txt").write_text("the cats see dogs .\n")
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    assert COMMANDS[0][:2] == ["train", "parser"]
    for command in COMMANDS:
        few = [*settings, "--set", "train.epochs=1"] if command[0] == "train" else []
        assert main([*command, *few, "--device", "cpu"]) == 0, command
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(code, "parsing.md", "exec"), {})
