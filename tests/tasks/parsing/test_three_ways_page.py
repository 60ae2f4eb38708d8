"""The code of docs/three-ways.md runs and comes to what the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from docs.tools.build import EXECUTED
from docs.tools.execute import executed

ROOT, PAGE = Path(__file__).resolve().parents[3], Path("docs", "three-ways.md")


def test_a_few_trees_and_a_task_do_better_than_either() -> None:
    assert PAGE in EXECUTED
    shown, _ = executed("three-ways", (ROOT / PAGE).read_text(encoding="utf-8"))
    results = re.findall(r"^```text\n(.*?)\n```$", shown, re.DOTALL | re.MULTILINE)
    lines = re.findall(r"^ *([^:\n]+): ([\d.]+)", "\n".join(results), re.MULTILINE)
    found = {what: float(figure) for what, figure in lines}
    assert found["100 trees"] > 99
    assert found["loss of a sentence"] < 0.1
    assert found["no trees"] < 80
    assert found["3 trees"] < found["3 trees and the task"] - 5
    assert results[-1].splitlines()[-1].split() == ["the", "old", "dogs", "see", "the", "dogs"]
