"""``treelax predict`` on CoNLL-U files: names, lines and columns of sentences stay."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from pathlib import Path

import pytest
from parse_commands import saved
from predict_commands import ask, fail, records, written

from treelax.cli.main import main
from treelax.data.conllu import read_conllu
from treelax.tasks.text.pretrained import SentenceModel

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


def packed(folder: Path, name: str, text: str = TREEBANK) -> Path:
    """A treebank of that name, ``ud.zip: en/tb.conllu.gz`` say."""
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
    assert "\n12\t" in ask(capsys, model, treebank, "--format", "tsv")


@pytest.mark.parametrize("trees", ["latent", "given"])
@pytest.mark.parametrize(
    "name",
    [
        *("tb.CONLLU.gz", "tb.conllu.xz", "tb.conllu.bz2"),
        *("ud.zip: tb.conllu", "UD.ZIP: en/tb.CONLLU", "ud.zip: tb.conllu.gz"),
    ],
)
def test_a_packed_treebank_is_as_a_plain_one(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str], name: str, trees: str
) -> None:
    model, file = saved(tmp_path, trees=trees), packed(tmp_path, name)
    said = records(capsys, model, file)
    assert [each.get("sent_id") for each in said] == ["weblog-16", None]
    assert said == records(capsys, model, treebank)
    assert said == records(capsys, model, file, "--input", "conll")
    conllu = ask(capsys, model, file, "--format", "conllu")
    assert conllu == ask(capsys, model, treebank, "--format", "conllu")
    assert "# newdoc id = weblog" in conllu


@pytest.mark.parametrize("trees", ["latent", "given"])
def test_a_treebank_beside_a_readme_in_an_archive(
    tmp_path: Path, treebank: Path, capsys: pytest.CaptureFixture[str], trees: str
) -> None:
    model, file = saved(tmp_path, trees=trees), packed(tmp_path, "ud.zip: en/tb.conllu")
    with zipfile.ZipFile(file, "a") as out:
        out.writestr("en/README.txt", "no sentences")
        out.writestr("LICENSE", "free")
    said = records(capsys, model, file)
    assert said == records(capsys, model, treebank)
    assert said == records(capsys, model, file, "--input", "conll")
    if trees == "latent":
        assert main(["parse", str(model), "--file", str(file), "--gold", "--format", "json"]) == 0
        parsed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [each.get("sent_id") for each in parsed] == ["weblog-16", None]
    with zipfile.ZipFile(file, "a") as out:  # which may be what is meant
        out.writestr("en/texts.csv", "text\nthe film\n")
    assert "holds 2 files that fit (en/tb.conllu, en/texts.csv)" in fail(capsys, model, file)
    assert said == records(capsys, model, file, "--input", "conll")


def test_words_beside_a_readme_in_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = saved(tmp_path, "tag"), packed(tmp_path, "a.zip: a.bio", "the O\nfilm B\n")
    with zipfile.ZipFile(file, "a") as out:
        out.writestr("README.txt", "no words")
    for options in ([], ["--input", "conll"]):
        [said] = records(capsys, model, file, *options)
        assert said["words"] == ["the", "film"]


def test_faults_of_a_packed_treebank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path, trees="given")
    file = packed(tmp_path, "ud.zip: en/tb.conllu", TREEBANK.replace("\t2\tnsubj", "\t9\tnsubj"))
    assert fail(capsys, model, file).startswith(
        f"{file}: en/tb.conllu, line 4: received head 9; expected 0 to 4"
    )
    loop = TREEBANK.replace("\t0\troot\t0:root", "\t1\troot\t0:root")
    file = packed(tmp_path, "ud.zip: en/tb.conllu", loop)
    assert fail(capsys, model, file).startswith(f"{file}: en/tb.conllu, line 1: ")


def test_a_table_beside_other_files_in_an_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whose reader finds it: it is not looked for a second time."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as out:
        out.writestr("README.txt", "no table")
        out.writestr("all.tsv", "text\nthe film\n")
    [said] = records(capsys, saved(tmp_path), tmp_path / "all.zip", "--input", "tsv")
    assert said["words"] == ["the", "film"]


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
