"""What docs/own-data.md shows is what happens."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from treelax.cli.main import main
from treelax.data.conllu import read_conllu

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a line of a shell."""
    said, pipe, program = line.rpartition(" | ")
    words = shlex.split(program)
    if words[0] == "python":
        assert (ROOT / words[1]).is_file()  # tests of the examples run it
        return
    assert words[0] == "treelax"
    if pipe:
        text = " ".join(shlex.split(said.removeprefix("echo "))) + "\n"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(words[1:]) == 0


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All commands and all code, in their order; figures may differ from machine to machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    names: dict[str, object] = {}
    outputs = []  # of each block, with what the page shows below it
    for kind, text in BLOCKS:
        if kind == "sh":
            capsys.readouterr()
            for line in text.splitlines():
                command(line, monkeypatch)
        elif kind == "python":
            capsys.readouterr()
            exec(compile(text, "own-data.md", "exec"), names)
        else:
            outputs.append((text, capsys.readouterr().out))
    trained, predicted, tree, drawn, refused = outputs
    assert [row.split("|")[1] for row in trained[0].splitlines()[:4]] == [
        row.split("|")[1] for row in trained[1].splitlines()[:4]
    ]
    shown, real = ([json.loads(line) for line in text.splitlines()] for text in predicted)
    for key in ("line", "label", "words"):
        assert [each[key] for each in shown] == [each[key] for each in real]
    assert [each.keys() for each in shown] == [each.keys() for each in real]
    first = next(read_conllu("trees.conllu"))
    assert f"# text = {first.text}\n# label = {first.metadata['label']}\n" in tree[0]
    assert len(tree[0].splitlines()) == 4 + len(first)
    assert re.findall(r"^\w+ \(", drawn[0], re.MULTILINE) == ["praise (", "blame ("]
    assert re.findall(r"^\w+ \(", drawn[1], re.MULTILINE) == ["praise (", "blame ("]
    assert main(["predict", "verdicts", "new.tsv", "--text", "revue"]) == 2
    assert capsys.readouterr().err == refused[0]
