"""``treelax predict`` on CoNLL-U files: names, lines and columns of sentences stay."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from parse_commands import saved
from predict_commands import ask, records, written

from treelax.cli.main import main
from treelax.data.conllu import read_conllu
from treelax.training.pretrained import SentenceModel

TREEBANK = """\
# newdoc id = weblog
# sent_id = weblog-16
# label = gold
1\tÉl\tél\tPRON\tP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2\tvino\tvenir\tVERB\tV\t_\t0\troot\t0:root\tGloss=came
3-4\tdel\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\tE\t_\t4\tcase\t4:case\t_
4\tmar\tmar\tNOUN\tS\t_\t2\tobl\t2:obl\tSpaceAfter=No
4.1\tayer\tayer\tADV\t_\t_\t_\t_\t2:advmod\t_


# no name
1\tYa\tya\tADV\t_\t_\t0\troot\t_\t_
"""


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    return written(tmp_path, TREEBANK, "tb.conllu")


def rows(text: str) -> list[list[str]]:
    """The cells of all words, multiword tokens and empty nodes."""
    return [line.split("\t") for line in text.splitlines() if line[:1].isdigit()]


def test_sentences_are_numbered_and_named_as_by_parse(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path)
    said = records(capsys, model, treebank)
    assert [each["line"] for each in said] == [1, 12]
    assert [each.get("sent_id") for each in said] == ["weblog-16", None]
    assert main(["parse", str(model), "--file", str(treebank), "--format", "json"]) == 0
    parsed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for name in ("line", "sent_id", "words", "heads", "label"):
        assert [each.get(name) for each in said] == [each.get(name) for each in parsed]
    packed = written(tmp_path, gzip.compress(TREEBANK.encode()), "tb.CONLLU.gz")
    assert records(capsys, model, packed) == said
    assert "\n12\t" in ask(capsys, model, treebank, "--format", "tsv")


def test_the_file_keeps_its_lines(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Heads and labels of the model are put into them, as treelax parse does."""
    model, out = saved(tmp_path), tmp_path / "out.conllu"
    shown = ask(capsys, model, treebank, "--format", "conllu")
    assert main(["parse", str(model), "--file", str(treebank), "--format", "conllu"]) == 0
    assert capsys.readouterr().out == shown
    ask(capsys, model, treebank, "--out", out)
    assert out.read_text() == shown
    first, second = read_conllu(out)
    assert (first.id, first.metadata["label"]) == ("weblog-16", "gold")
    heads = [each["heads"] for each in records(capsys, model, treebank)]
    assert [list(each.heads or ()) for each in (first, second)] == heads
    for new, old in zip(rows(shown), rows(TREEBANK), strict=True):
        assert new[:6] + new[8:] == old[:6] + old[8:]
        assert new[7] == "_"


@pytest.mark.parametrize(("column", "place"), [(None, 3), ("XPOS", 4), ("DEPREL", 7), ("FEATS", 9)])
def test_tags_are_in_the_column_they_were_learned_from(
    tmp_path: Path,
    treebank: Path,
    capsys: pytest.CaptureFixture[str],
    column: str | None,
    place: int,
) -> None:
    """Or in MISC, where they hide nothing; all other columns stay."""
    folder = saved(tmp_path, "tag")
    model = SentenceModel.from_pretrained(folder)
    object.__setattr__(model.settings, "label", column)
    model.save_pretrained(folder)
    said = [tag for each in records(capsys, folder, treebank) for tag in each["tags"]]
    shown, old = (
        rows(text) for text in (ask(capsys, folder, treebank, "--format", "conllu"), TREEBANK)
    )
    words = [i for i, cells in enumerate(old) if cells[0].isdigit()]
    ends = [shown[i][place].rpartition("PredictedTag=")[2] for i in words]
    assert ends == said
    assert shown[1][9] == "Gloss=came" + (f"|PredictedTag={said[1]}" if place == 9 else "")
    for new, before in zip(shown, old, strict=True):
        kept = set(range(10)) - {6, 7, place}
        assert [new[i] for i in kept] == [before[i] for i in kept]


@pytest.mark.parametrize("trees", ["none", "given"])
def test_trees_of_the_file_stay_where_the_model_makes_none(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str], trees: str
) -> None:
    model = saved(tmp_path, "tag", trees=trees)
    shown = rows(ask(capsys, model, treebank, "--format", "conllu"))
    assert [cells[6:8] for cells in shown] == [cells[6:8] for cells in rows(TREEBANK)]
    assert records(capsys, model, treebank)[0]["sent_id"] == "weblog-16"


def test_other_columns_and_other_forms(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CoNLL-U Plus, into which no tree can be put, and files that are told to be something else."""
    model = saved(tmp_path)
    plus = "# global.columns = ID FORM\n# sent_id = a\n1\tHi\n\n1\tYa\n"
    file = written(tmp_path, plus, "plus.conllu")
    assert [each["line"] for each in records(capsys, model, file)] == [3, 5]
    written(tmp_path, ask(capsys, model, file, "--format", "conllu"), "new.conllu")
    assert [each.id for each in read_conllu(tmp_path / "new.conllu")] == ["3", "5"]
    lines = records(capsys, model, treebank, "--input", "text")
    assert len(lines) == len(TREEBANK.splitlines())
    assert "sent_id" not in lines[0]
