"""The commands and the code of the pages on parsing run, on a tiny treebank."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from treebank_runs import SETTINGS, treebank

from treelax.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs.tools.build import EXECUTED  # noqa: E402
from docs.tools.execute import executed  # noqa: E402


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "settings"),
    [("parsing.md", {}), ("few-labels.md", {"unlabelled.warm_up": 0})],
)
def test_commands_and_code_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, settings: dict[str, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "dev", "test", "more", "new", "partial")):
        Path(f"{name}.conllu").write_text(treebank(seed, 12))
        Path(f"{name}.txt").write_text("the cats see dogs .\n")
    every = SETTINGS | {"train.epochs": 1} | settings
    few = [part for key, value in every.items() for part in ("--set", f"{key}={value}")]
    for line in "".join(blocks(page, "sh")).splitlines():
        command = shlex.split(line)[1:]
        more = few if command[0] == "train" else []
        assert main([*command, *more, "--device", "cpu"]) == 0, command
    [code] = blocks(page, "python")
    exec(compile(code, page, "exec"), {})


def test_a_few_trees_and_a_task_do_better_than_either() -> None:
    page = Path("docs", "three-ways.md")
    assert page in EXECUTED
    shown, _ = executed("three-ways", (ROOT / page).read_text(encoding="utf-8"))
    results = re.findall(r"^```text\n(.*?)\n```$", shown, re.DOTALL | re.MULTILINE)
    lines = re.findall(r"^ *([^:\n]+): ([\d.]+)", "\n".join(results), re.MULTILINE)
    figures = {what: float(figure) for what, figure in lines}
    assert figures["100 trees"] > 99
    assert figures["loss of a sentence"] < 0.1
    assert figures["no trees"] < 80
    assert figures["3 trees"] < figures["3 trees and the task"] - 5
    assert results[-1].splitlines()[-1].split() == ["the", "old", "dogs", "see", "the", "dogs"]
