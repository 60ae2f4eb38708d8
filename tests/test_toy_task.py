"""A new task is one folder and its registration: every command, the report and the page know it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
PROGRAM = """
import sys
from treelax.apps.tasks import LOADERS, TASKS

TASKS["toy"] = "toy_task.task:TOY"  # the registration
LOADERS["toy"] = "toy_task.task:load"

from treelax.__main__ import main

RUN = ["--device", "cpu"]
for arguments in (
    ["train", "toy", "--out", "run", *RUN],
    ["train", "toy", "--out", "run", "--resume", "--set", "train.epochs=5", *RUN],
    ["eval", "run", "--json", *RUN],
    ["parse", "run", "a b c", "--soft", "--gold", *RUN],
    ["parse", "run", "a b c", "--samples", "3", "--format", "json", *RUN],
    ["parse", "run", "a b c", "--out", "tree.svg", *RUN],
    ["predict", "run", "texts.txt", "--out", "said.jsonl", *RUN],
    ["analyse", "run", "--out", "study", *RUN],
    ["report", "run", *RUN],
):
    assert main(arguments) == 0, arguments
assert main(["parse", "run", "a z", *RUN]) == 2

from treelax.apps.demo.score_sources import load_sources

source = load_sources("run")["run"]  # of the web page
words = source.words("a b c")
tree = source.parser.tree.structure(source.scores(words, 0)).mode
assert source.answer([words], [tree]).tags == ["start", "a", "b"]
"""


def test_a_new_task_is_one_folder(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a b a\nc c b\n")
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "treelax: error: 'z' is no word; expected some of a, b, c" in done.stderr
    assert json.loads((tmp_path / "run" / "test.json").read_text())["accuracy"] > 95
    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    assert [own["tags"] for own in said] == [["start", "a", "b"], ["start", "c", "c"]]
    assert [own["heads"] for own in said] == [[0, 1, 2], [0, 1, 2]]
    assert (tmp_path / "tree.svg").read_text().startswith("<svg")
    assert "the word before" in (tmp_path / "run" / "report.html").read_text()
    assert (tmp_path / "study" / "treebank.csv").exists()
