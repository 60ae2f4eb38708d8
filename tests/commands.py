"""Commands in this process, untrained models for them, and a terminal that is none."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from rich.console import Console

import treelax.apps.cli.console
import treelax.apps.cli.progress
from treelax.__main__ import main
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.text.config import ModelConfig, SentenceSettings
from treelax.apps.tasks.text.pretrained import SentenceModel

Output = pytest.CaptureFixture[str]
WORDS = ["the", "film", "was", "a", "plot", "good", "bad", "."]
TREEBANK = """\
# newdoc id = weblog
# sent_id = weblog-16
# text = Él vino del mar.
1\tÉl\tél\tPRON\tP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2\tvino\tvenir\tVERB\tV\t_\t0\troot\t0:root\tGloss=came|PredictedTag=old
3-4\tdel\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\tE\t_\t4\tcase\t4:case\t_
4\tmar\tmar\tNOUN\tS\t_\t2\tobl\t2:obl\tSpaceAfter=No
4.1\tayer\tayer\tADV\t_\t_\t_\t_\t2:advmod\t_
5\t.\t.\tPUNCT\tF\t_\t2\tpunct\t2:punct\t_

# label = gold
1\tYa\tya\tADV\t_\t_\t0\troot\t_\t_

"""
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


def ask(capsys: Output, *arguments: object) -> tuple[str, str]:
    """What a command prints on stdout and on stderr."""
    capsys.readouterr()
    status = main([*map(str, arguments), "--device", "cpu"])
    output = capsys.readouterr()
    assert status == 0, output.err
    return output.out, output.err


def shown(capsys: Output, *arguments: object) -> str:
    """What a command prints on stdout."""
    return ask(capsys, *arguments)[0]


def told(capsys: Output, *arguments: object) -> str:
    """What a command prints on stderr."""
    return ask(capsys, *arguments)[1]


def records(capsys: Output, *arguments: object) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    return [json.loads(line) for line in shown(capsys, *arguments).splitlines()]


def fail(capsys: Output, *arguments: object, device: bool = True) -> str:
    """The one line that a command says as it refuses; some commands have no ``--device``."""
    capsys.readouterr()
    cpu = ["--device", "cpu"] if device and "--device" not in arguments else []
    never = {"LEAST_SECONDS": math.inf, "MOST_SECONDS": math.inf}  # on a slow machine too
    with mock.patch.multiple(treelax.apps.cli.progress, **never):
        assert main([*map(str, arguments), *cpu]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


def written(folder: Path, text: str | bytes, name: str) -> Path:
    """A file with that text."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def typed(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    """Put a text on standard input."""
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


class Terminal(io.StringIO):
    """A file that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_of_80(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns on stdout and stderr."""
    file = Terminal()
    console = Console(
        file=file, force_terminal=True, width=80, markup=False, highlight=False, soft_wrap=True
    )
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(treelax.apps.cli.console, "console", console)
    for module in (treelax.apps.cli.console, treelax.apps.cli.progress):
        monkeypatch.setattr(module, "error_console", console)
    monkeypatch.setattr("sys.stdout", file)
    return file


def bare(text: str) -> str:
    """Without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
