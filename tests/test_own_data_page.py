"""What docs/own-data.md shows is what happens."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from treelax.__main__ import main
from treelax.apps.data.conllu import read_conllu
from treelax.apps.data.text.readers_table import read_table

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


GLUE = {  # the first lines of the training data
    "SST-2": "sentence label",
    "RTE, WNLI": "index sentence1 sentence2 label",
    "QNLI": "index question sentence label",
    "QQP": "id qid1 qid2 question1 question2 is_duplicate",
    "MRPC": "Quality #1_ID #2_ID #1_String #2_String",
    "MNLI": "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse "
    "sentence1_parse sentence2_parse sentence1 sentence2 label1 gold_label",
}


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
            for line in text.replace("\\\n", "").splitlines():
                command(line, monkeypatch)
        elif kind == "python":
            capsys.readouterr()
            exec(compile(text, "own-data.md", "exec"), names)
        else:
            outputs.append((text, capsys.readouterr().out))
    trained, predicted, tree, studied, drawn, refused = outputs
    assert [row.split("|")[1] for row in trained[0].splitlines()[:4]] == [
        row.split("|")[1] for row in trained[1].splitlines()[:4]
    ]
    shown, real = ([json.loads(line) for line in text.splitlines()] for text in predicted)
    for key in ("line", "label", "words"):
        assert [each[key] for each in shown] == [each[key] for each in real]
    assert [each.keys() for each in shown] == [each.keys() for each in real]
    first = next(read_conllu("trees.conllu"))
    assert f"# text = {first.text}\n# label = {first.metadata['label']}\n" in tree[0]
    misc = [
        [row.split("\t")[-1] for row in rows[4:]] for rows in (tree[0].splitlines(), first.lines)
    ]
    assert misc[0] == misc[1]
    titles, real = (
        {re.sub(r"\s+", " ", line) for line in text.splitlines() if not re.search(r"\d|---", line)}
        for text in studied
    )
    assert titles <= real
    assert re.findall(r"^\w+ \(", drawn[0], re.MULTILINE) == ["praise (", "blame ("]
    assert re.findall(r"^\w+ \(", drawn[1], re.MULTILINE) == ["praise (", "blame ("]
    assert main(["predict", "verdicts", "new.tsv", "--text", "revue"]) == 2
    assert capsys.readouterr().err == refused[0]


def test_tables_of_glue(tmp_path: Path) -> None:
    rows = re.findall(r"^\| ([\w, -]+) \| `treelax train (.+?)`", PAGE, re.MULTILINE)
    commands = {task: shlex.split(words) for task, words in rows if task in GLUE}
    assert commands.keys() == GLUE.keys()
    for task, (kind, *words) in commands.items():
        values = {name: [] for name in ("--text", "--label", "--set")}
        for name, value in pairwise(words):
            values.get(name, []).append(value)
        columns = [name.replace("_", " ") if "#" in name else name for name in GLUE[task].split()]
        file = tmp_path / "train.tsv"
        file.write_text("\t".join(columns) + "\n" + "\t".join("1" for _ in columns) + "\n")
        assert len(values["--text"]) == (2 if kind == "pair" else 1)
        (record,) = read_table(file, values["--text"], *values["--label"])
        assert record.label == "1"


def test_cola(tmp_path: Path) -> None:
    """With the line that the page puts in front."""
    (names,) = re.findall(r"printf '(.+?)'", PAGE)
    (tmp_path / "train.tsv").write_text(
        names.encode().decode("unicode_escape") + "gj04\t0\t*\tDo it.\n"
    )
    (record,) = read_table(tmp_path / "train.tsv", "sentence")
    assert (record.label, record.texts) == ("0", ("Do it.",))
