"""``treelax predict`` on CoNLL-U files: names, lines and columns of sentences stay."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from functools import partial
from pathlib import Path

import pytest
from commands import TREEBANK, Output, fail, saved, shown, written

from treelax.apps.tasks.text.pretrained import SentenceModel


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    return written(tmp_path, TREEBANK, "tb.conllu")


def packed(folder: Path, name: str, text: str = TREEBANK) -> Path:
    """A treebank of that name, for example ``ud.zip: en/tb.conllu.gz``."""
    archive, _, member = name.rpartition(": ")
    compress = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
    data = compress.get(Path(name).suffix, bytes)(text.encode())
    if not archive:
        return written(folder, data, member)
    with zipfile.ZipFile(folder / archive, "w") as out:
        out.writestr(member, data)
    return folder / archive


def rows(text: str) -> list[list[str]]:
    """The cells of all words, multiword tokens and empty nodes."""
    return [line.split("\t") for line in text.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize(
    ("trees", "name"),
    [
        *(("latent", name) for name in ("tb.CONLLU.gz", "tb.conllu.xz", "UD.ZIP: en/tb.CONLLU")),
        *(("given", name) for name in ("tb.conllu.bz2", "ud.zip: tb.conllu.gz")),
    ],
)
def test_a_packed_treebank_is_as_a_plain_one(
    tmp_path: Path, treebank: Path, capsys: Output, name: str, trees: str
) -> None:
    file = packed(tmp_path, name)
    asked = partial(shown, capsys, "predict", saved(tmp_path, trees=trees))
    if file.suffix.lower() == ".zip":
        with zipfile.ZipFile(file, "a") as out:
            out.writestr("en/README.txt", "no sentences")
    said = asked(file)
    assert [json.loads(line).get("sent_id") for line in said.splitlines()] == ["weblog-16", None]
    assert said == asked(treebank) == asked(file, "--input", "conll")
    conllu = asked(file, "--format", "conllu")
    assert conllu == asked(treebank, "--format", "conllu")
    assert "# newdoc id = weblog" in conllu


@pytest.mark.parametrize(("column", "place"), [(None, 3), ("XPOS", 4), ("DEPREL", 7), ("FEATS", 9)])
def test_tags_are_in_the_column_they_were_learned_from(
    tmp_path: Path, treebank: Path, capsys: Output, column: str | None, place: int
) -> None:
    """Or in MISC, where they hide nothing; all other columns stay."""
    folder = saved(tmp_path, "tag")
    model = SentenceModel.from_pretrained(folder)
    object.__setattr__(model.settings, "label", column)
    model.save_pretrained(folder)
    asked = partial(shown, capsys, "predict", folder, treebank)
    said = [tag for line in asked().splitlines() for tag in json.loads(line)["tags"]]
    new, old = rows(asked("--format", "conllu")), rows(TREEBANK)
    words = [i for i, cells in enumerate(old) if cells[0].isdigit()]
    assert [new[i][place].rpartition("PredictedTag=")[2] for i in words] == said
    assert new[1][9] == f"Gloss=came|PredictedTag={said[1] if place == 9 else 'old'}"
    for after, before in zip(new, old, strict=True):
        kept = set(range(10)) - {6, 7, place}
        assert [after[i] for i in kept] == [before[i] for i in kept]


@pytest.mark.parametrize("trees", ["none", "given"])
def test_trees_of_the_file_stay_where_the_model_makes_none(
    tmp_path: Path, treebank: Path, capsys: Output, trees: str
) -> None:
    model = saved(tmp_path, "tag", trees=trees)
    lines = rows(shown(capsys, "predict", model, treebank, "--format", "conllu"))
    assert [cells[6:8] for cells in lines] == [cells[6:8] for cells in rows(TREEBANK)]


def test_the_file_as_an_option(capsys: Output, treebank: Path) -> None:
    ask = ("predict", "english", "--format", "conllu")
    assert shown(capsys, *ask, "--file", treebank) == shown(capsys, *ask, treebank)
    assert "received FILE and --file; expected one" in fail(capsys, *ask, treebank, "--file", "x")
    assert "received no FILE; expected one" in fail(capsys, *ask)
