"""The commands and the code of docs/few-labels.md run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tiny_treebank import SETTINGS, treebank

from treelax.__main__ import main

PAGE = (Path(__file__).parents[3] / "docs" / "few-labels.md").read_text(encoding="utf-8")


def test_commands_and_code_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "dev", "more")):
        Path(f"{name}.conllu").write_text(treebank(seed, 8))
    Path("more.txt").write_text("the cats see dogs .\n")
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    commands = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
    for line in commands.splitlines():
        command = shlex.split(line)[1:]
        few = []
        if command[0] == "train":
            few = [*settings, "--set", "train.epochs=1", "--set", "unlabelled.warm_up=0"]
        assert main([*command, *few, "--device", "cpu"]) == 0, command
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(code, "few-labels.md", "exec"), {})
