"""The parser that comes with treelax."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from commands import Output, fail, shown, typed

import treelax
from treelax.apps.tasks.base import TrainedParser


@pytest.fixture(scope="module")
def english() -> TrainedParser:
    return treelax.load("english")


@pytest.mark.parametrize(
    ("text", "heads", "labels"),
    [
        ("The dog barked.", (2, 3, 0, 3), "det nsubj root punct"),
        ("She gave him a book", (2, 0, 2, 5, 2), "nsubj root iobj det obj"),
        ("the old cat watched a small bird", (3, 3, 4, 0, 7, 7, 4), "det amod nsubj root det amod obj"),
        ("THE DOG BARKED .", (2, 3, 0, 3), "det nsubj root punct"),
        ("They live in a house.", (2, 0, 5, 5, 2, 2), "nsubj root case det obl punct"),
        ("He was born in 1987.", (3, 3, 0, 5, 3, 3), "nsubj:pass aux:pass root case obl punct"),
        ("“I don’t know”, she said.", None, "punct nsubj aux advmod ccomp punct punct nsubj root punct"),
    ],
)  # fmt: skip
def test_trees_beyond_doubt(
    english: TrainedParser, text: str, heads: tuple[int, ...] | None, labels: str
) -> None:
    [said] = english.predict([text])
    assert said.relations == (tuple(labels.split()),)
    if heads is not None:
        assert said.heads == (heads,)


def test_what_it_says_of_itself(english: TrainedParser) -> None:
    about = english.about
    assert about is not None
    assert about["treebank"] == "UD English-EWT"
    assert about["licence"] == about["treebank licence"] == "CC BY-SA 4.0"
    assert about["scores"]["test"]["las"] >= 82
    assert "CC BY-SA 4.0" in (files("treelax.apps") / "models" / "README.md").read_text()


def test_it_is_small() -> None:
    assert len((files("treelax.apps") / "models" / "english.safetensors").read_bytes()) <= 12e6


def test_a_text_without_a_model_is_english_unless_it_is_an_expression(capsys: Output) -> None:
    assert shown(capsys, "parse", "Dogs bark.", "--format", "heads") == "2 0 2\n"
    assert shown(capsys, "parse", "[MAX 2 9 ]", "--format", "heads") == "0 1 1 1\n"
    assert shown(capsys, "parse", "[Laughter] Dogs bark.", "--format", "heads").count(" ") == 5


def test_likewise_of_files(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, heads in (
        ("Dogs bark.\n", "2 0 2\n"),
        ("\n9\t( ( ( [MAX 2 ) 9 ) ] )\n", "0 1 1 1\n"),
    ):
        (tmp_path / "in.txt").write_text(text)
        assert shown(capsys, "parse", "--file", tmp_path / "in.txt", "--format", "heads") == heads
        typed(monkeypatch, text)
        assert shown(capsys, "parse", "-", "--format", "heads") == heads


def test_the_first_answer_loads_little() -> None:
    """Import time is most of the time to the first answer."""
    code = (
        "import sys, treelax; treelax.load('english').predict(['Dogs bark.']); "
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "matplotlib",
        "nltk",
        "tensorboard",
        "transformers",
        "tokenizers",
        "triton",
        "fastapi",
        "typer",
    }
    assert not heavy & set(done.stdout.split())


def test_words_as_they_are_written(english: TrainedParser) -> None:
    """Capitals throughout tell nothing, and a name in lower case has the vector of the name."""
    quiet, loud, empty = english.predict(["we saw texas in july .", "WE SAW TEXAS IN JULY .", " "])
    assert (quiet.heads, quiet.relations) == (loud.heads, loud.relations)
    assert loud.words == (("WE", "SAW", "TEXAS", "IN", "JULY", "."),)
    assert empty.heads is None
    assert [said.heads for said in english.predict(["", " "])] == [None, None]
    rows = english.lexicon.forms(["Mekong", "mekong", "xqzwv"]).vectors.tolist()  # type: ignore[attr-defined]
    assert rows[1] == rows[2] > 0
    assert rows[3] == 0


def test_a_report_asks_for_a_run(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = fail(capsys, "report", "english")
    assert "english: is a model that comes with treelax, without a run to report on" in told
    assert "treelax analyse english --data FILE" in told
