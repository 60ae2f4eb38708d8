"""The examples of classifier, pair model and tagger run as they are and end with right answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from treelax.apps.data.conllu import read_conllu
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.trees import is_projective, is_tree

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def last_lines(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], count: int
) -> list[str]:
    load(name).example(folder)
    return capsys.readouterr().out.splitlines()[-count:]


def test_classify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = last_lines("classify", tmp_path, capsys, 4)
    assert lines[0].startswith("praise (")
    assert lines[0].endswith("): The cast is funny .")
    assert lines[2].startswith("blame (")
    assert lines[1].startswith("  heads: (")
    assert SentenceModel.from_pretrained(tmp_path / "verdicts").labels == ("blame", "praise")


def test_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = last_lines("pair", tmp_path, capsys, 4)
    assert lines[0].startswith("right (")
    assert lines[0].endswith("): Cleo is by the sea . – Somebody is by the sea .")
    assert lines[2].startswith("wrong (")
    assert SentenceModel.from_pretrained(tmp_path / "claims").settings.kind == "pair"


def test_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = last_lines("tag", tmp_path, capsys, 8)
    assert lines[0] == "the/DET old/ADJ saw/NOUN saw/VERB a/DET watch/NOUN"
    [tree] = read_conllu(tmp_path / "trees.conllu")
    assert "\n".join(lines[1:]).strip() == (tmp_path / "trees.conllu").read_text().strip()
    assert tree.tags == ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN")
    heads = torch.tensor(tree.heads)
    assert is_tree(heads, single_root=True)
    assert is_projective(heads)
