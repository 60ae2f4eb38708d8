"""``treelax predict`` on CoNLL-U files: names, lines and columns of sentences stay."""

import bz2
import gzip
import json
import lzma
import zipfile
from functools import partial
from pathlib import Path

import pytest
from commands import TREEBANK, saved, shown, written

from treelax.apps.tasks.text.pretrained import SentenceModel


@pytest.fixture
def treebank(tmp_path):
    return written(tmp_path, TREEBANK, "tb.conllu")


def packed(folder, name, text=TREEBANK):
    """A treebank of that name, for example ``ud.zip: en/tb.conllu.gz``."""
    archive, _, member = name.rpartition(": ")
    compress = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
    data = compress.get(Path(name).suffix, bytes)(text.encode())
    if not archive:
        return written(folder, data, member)
    with zipfile.ZipFile(folder / archive, "w") as out:
        out.writestr(member, data)
    return folder / archive


def rows(text):
    """The cells of all words, multiword tokens and empty nodes."""
    return [line.split("\t") for line in text.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize(
    ("trees", "name"),
    [("latent", "tb.CONLLU.gz"), ("latent", "UD.ZIP: en/tb.CONLLU"), ("given", "tb.conllu.bz2")],
)
def test_a_packed_treebank_is_as_a_plain_one(tmp_path, treebank, capsys, name, trees):
    file = packed(tmp_path, name)
    asked = partial(shown, capsys, "predict", saved(tmp_path, trees=trees))
    lines = asked(file)
    assert [json.loads(line).get("sent_id") for line in lines.splitlines()] == ["weblog-16", None]
    assert lines == asked("--file", treebank) == asked(file, "--input", "conll")
    conllu = asked(file, "--format", "conllu")
    assert conllu == asked(treebank, "--format", "conllu")
    assert "# newdoc id = weblog" in conllu


@pytest.mark.parametrize(("column", "place"), [(None, 3), ("XPOS", 4), ("DEPREL", 7), ("FEATS", 9)])
def test_tags_are_in_the_column_they_were_learned_from(tmp_path, treebank, capsys, column, place):
    """Or in MISC, where they hide nothing; all other columns stay."""
    folder = saved(tmp_path, "tag")
    model = SentenceModel.from_pretrained(folder)
    object.__setattr__(model.settings, "label", column)
    model.save_pretrained(folder)
    asked = partial(shown, capsys, "predict", folder, treebank)
    reply = [tag for line in asked().splitlines() for tag in json.loads(line)["tags"]]
    new, old = rows(asked("--format", "conllu")), rows(TREEBANK)
    words = [i for i, cells in enumerate(old) if cells[0].isdigit()]
    assert [new[i][place].rpartition("PredictedTag=")[2] for i in words] == reply
    assert new[1][9] == f"Gloss=came|PredictedTag={reply[1] if place == 9 else 'old'}"
    for after, before in zip(new, old, strict=True):
        unchanged_cells = set(range(10)) - {6, 7, place}
        assert [after[i] for i in unchanged_cells] == [before[i] for i in unchanged_cells]


@pytest.mark.parametrize("trees", ["none", "given"])
def test_trees_of_the_file_stay_where_the_model_makes_none(tmp_path, treebank, capsys, trees):
    model = saved(tmp_path, "tag", trees=trees)
    lines = rows(shown(capsys, "predict", model, treebank, "--format", "conllu"))
    assert [cells[6:8] for cells in lines] == [cells[6:8] for cells in rows(TREEBANK)]
