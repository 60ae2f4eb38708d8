"""``treelax parse`` with models of sentences: labels, pairs, tags, trees of all kinds."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from parse_commands import fail, parse, records, saved, typed
from sentence_runs import train
from svg_parts import texts

from treelax.data.conllu import Sentence, read_conllu, write_conllu
from treelax.pictures import draw_tree
from treelax.tasks.base import heads_without_null, weights_without_null
from treelax.tasks.text.pretrained import SentenceModel
from treelax.trees import heads_to_tree, is_projective, is_tree

TEXT = "The film was good."
WORDS = ["The", "film", "was", "good", "."]


# ------------------------------------------------------------------ kinds of models


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train("classify", tmp_path)
    [own] = SentenceModel.from_run(run).predict([TEXT])
    [said] = records(capsys, run, TEXT)
    assert said["words"] == WORDS
    assert said["heads"] == list((own.heads or ((),))[0])
    assert said["label"] == own.label
    assert said["probability"] == pytest.approx(own.probability, abs=1e-5)


def test_a_class_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path)
    [said] = records(capsys, model, TEXT)
    label = f"{said['label']} ({said['probability']:.2f})"
    tree = draw_tree(WORDS, said["heads"], width=60)
    assert parse(capsys, model, TEXT, "--width", 60) == f"{tree}\nlabel: {label}\n"
    assert texts(parse(capsys, model, TEXT, "--format", "svg"))[0] == label
    conllu = tmp_path / "one.conllu"
    parse(capsys, model, TEXT, "--out", conllu)
    [sentence] = read_conllu(conllu)
    assert sentence.metadata["label"] == said["label"]


def test_words_without_quotes_are_one_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path)
    assert records(capsys, model, *TEXT.split()) == records(capsys, model, TEXT)
    assert len(records(capsys, model, TEXT, "good")) == 2


def test_tags_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path, "tag")
    [said] = records(capsys, model, TEXT)
    assert len(said["tags"]) == 5
    told = ", ".join(f"{word} {tag}" for word, tag in zip(WORDS, said["tags"], strict=True))
    assert f"tags: {told}\n" in parse(capsys, model, TEXT)
    assert set(said["tags"]) <= set(texts(parse(capsys, model, TEXT, "--format", "svg")))
    file = tmp_path / "one.conllu"
    parse(capsys, model, TEXT, "--out", file)
    [sentence] = read_conllu(file)
    assert list(sentence.tags or ()) == said["tags"]


def test_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = saved(tmp_path, "pair")
    [said] = records(capsys, model, TEXT, "A plot")
    assert said["words"] == [WORDS, ["A", "plot"]]
    assert [len(heads) for heads in said["heads"]] == [5, 2]
    shown = parse(capsys, model, TEXT, "A plot", "--width", 60)
    first, second = (
        draw_tree(words, heads, width=60)
        for words, heads in zip(said["words"], said["heads"], strict=True)
    )
    assert shown.startswith(f"{first}\n\n{second}\nlabel: {said['label']} (")
    heads = parse(capsys, model, TEXT, "A plot", "--format", "heads")
    assert heads == "\t".join(" ".join(map(str, each)) for each in said["heads"]) + "\n"
    typed(monkeypatch, f"{TEXT}\tA plot\n")
    assert records(capsys, model, "-") == [said]
    file = tmp_path / "pairs.txt"
    file.write_text(f"{TEXT}\tA plot\nbad\tgood\n")
    assert records(capsys, model, "--file", file)[0] == said
    assert len(records(capsys, model, TEXT, "A plot", "bad", "good", "--soft")[1]["weights"]) == 2
    svg = parse(capsys, model, TEXT, "A plot", "--format", "svg")
    assert {*WORDS, "A", "plot"} <= set(texts(svg))
    out = tmp_path / "pair.conllu"
    parse(capsys, model, TEXT, "A plot", "--out", out)
    assert [sentence.id for sentence in read_conllu(out)] == ["1-1", "1-2"]


@pytest.mark.parametrize("trees", ["latent", "heads"])
@pytest.mark.parametrize("null", [False, True])
def test_weights_and_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trees: str, null: bool
) -> None:
    model = saved(tmp_path, trees=trees, null=null)
    [said] = records(capsys, model, TEXT, "--soft", "--samples", 60)
    weights = torch.tensor(said["weights"])
    assert weights.shape == (6, 6)
    assert torch.allclose(weights[:, 1:].sum(0), torch.ones(5), atol=1e-4)
    assert bool((weights.diagonal() == 0).all())
    assert sum(each["count"] for each in said["samples"]) == 60
    if trees == "latent":
        heads = torch.tensor([each["heads"] for each in said["samples"]])
        assert bool((is_tree(heads) & is_projective(heads)).all())
    assert records(capsys, model, TEXT)[0]["heads"] == said["heads"]


def test_weights_are_those_of_the_soft_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the network itself makes them when it predicts with soft trees."""
    folder = saved(tmp_path)
    model = SentenceModel.from_pretrained(folder)
    seen = []
    hook = model.network.encoder.register_forward_hook(lambda m, i, out: seen.append(out[1]))
    model.predict([TEXT], soft=True)
    hook.remove()
    [said] = records(capsys, folder, TEXT, "--soft")
    assert torch.allclose(torch.tensor(said["weights"]), seen[0][0], atol=1e-5)


def test_words_under_null() -> None:
    """They hang off what NULL hangs off, whether trees are discrete or soft."""
    assert heads_without_null([0, 1, 4, 2, 1]) == (0, 3, 1, 0)
    assert heads_without_null([3, 1, 0]) == (2, 0)
    assert heads_without_null([2, 1]) == (0,)  # no word is its own head
    for heads in ([0, 1, 4, 2, 1], [3, 1, 0], [0, 3, 1]):
        folded = weights_without_null(heads_to_tree(torch.tensor(heads)))
        expected = heads_to_tree(torch.tensor(heads_without_null(heads)))
        assert torch.equal(folded, expected)


def test_a_chain_has_trees_and_no_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = saved(tmp_path, trees="chain")
    assert records(capsys, model, TEXT)[0]["heads"] == [0, 1, 2, 3, 4]
    assert "model.trees is 'chain'" in fail(capsys, model, TEXT, "--soft")


# ------------------------------------------------------------------ files


def test_a_file_of_trees_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, file = saved(tmp_path, "tag"), tmp_path / "gold.conllu.gz"
    write_conllu(file, [Sentence(("Dogs", "bark"), (2, 0)), Sentence(("a b", "c"), (0, 1))])
    said = records(capsys, model, "--file", file, "--gold")
    assert [each["gold"] for each in said] == [[2, 0], [0, 1]]
    assert [each["words"] for each in said] == [["Dogs", "bark"], ["a\u00a0b", "c"]]
    assert parse(capsys, model, "--file", file, "--gold").count("of 2 arcs right") == 2
    with zipfile.ZipFile(tmp_path / "ud.zip", "w") as archive:
        archive.write(file, f"en/{file.name}")
    assert records(capsys, model, "--file", tmp_path / "ud.zip", "--gold") == said
    bare = tmp_path / "bare.conllu"
    write_conllu(bare, [Sentence(("Dogs", "bark"))])
    assert len(records(capsys, model, "--file", bare)) == 1
    assert "bare.conllu, line 1: received no head" in fail(capsys, model, "--file", bare, "--gold")


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


def test_a_treebank_keeps_its_lines_and_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = saved(tmp_path), tmp_path / "tb.conllu"
    file.write_text(TREEBANK, encoding="utf-8")
    said = records(capsys, model, "--file", file)
    assert [each["line"] for each in said] == [1, 12]
    assert [each.get("sent_id", "none") for each in said] == ["weblog-16", "none"]
    drawn = parse(capsys, model, "--file", file).splitlines()
    assert [line for line in drawn if line.startswith("line ")] == ["line 1: weblog-16", "line 12"]


def test_a_treebank_with_other_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Heads of words are those of the model, labels of arcs go, and all else stays."""
    model, file, out = saved(tmp_path), tmp_path / "tb.conllu", tmp_path / "out.conllu"
    file.write_text(TREEBANK, encoding="utf-8")
    said = records(capsys, model, "--file", file)
    parse(capsys, model, "--file", file, "--out", out)
    expected = []
    for each, block in zip(said, TREEBANK.split("\n\n")[:2], strict=True):
        lines = block.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        expected += [*comments, f"# predicted_label = {each['label']}"]
        expected.append(f"# predicted_probability = {each['probability']:.6f}")
        for line in lines[len(comments) :]:
            cells = line.split("\t")
            if cells[0].isdigit():
                cells[6:8] = str(each["heads"][int(cells[0]) - 1]), "_"
            expected.append("\t".join(cells))
        expected.append("")
    assert out.read_text(encoding="utf-8").splitlines() == expected
    assert parse(capsys, model, "--file", file, "--format", "conllu").splitlines() == expected
    again = tmp_path / "again.conllu"
    parse(capsys, model, "--file", out, "--out", again)
    assert again.read_text() == out.read_text()


def test_a_treebank_with_tags_and_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tags of the file stay; those of the model are beside them."""
    model, file, out = saved(tmp_path, "tag"), tmp_path / "tb.conllu", tmp_path / "out.conllu"
    file.write_text(TREEBANK, encoding="utf-8")
    first, second = records(capsys, model, "--file", file, "--samples", 30)
    parse(capsys, model, "--file", file, "--samples", 30, "--out", out)
    found = list(read_conllu(out))
    assert len(found) == len(first["samples"]) + len(second["samples"])
    assert sum(int(each.metadata["count"]) for each in found) == 60
    assert found[0].id == "weblog-16-sample-1"
    assert found[-1].id == f"12-sample-{len(second['samples'])}"
    assert found[0].metadata["newdoc id"] == "weblog"
    assert found[0].tags == ("PRON", "VERB", "ADP", "NOUN", "PUNCT")
    misc = [line.split("\t")[9] for line in out.read_text().splitlines() if line[:1].isdigit()]
    tags = first["tags"]
    assert misc[1] == f"Gloss=came|PredictedTag={tags[1]}"
    assert misc[2] == "_"  # that of the multiword token
    assert misc[4] == f"SpaceAfter=No|PredictedTag={tags[3]}"


def test_tables_and_blank_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path)
    table = tmp_path / "new.tsv"
    table.write_text("text\tstars\nA good film.\t5\n\t1\nbad\t1\n")
    said = records(capsys, model, "--file", table)
    assert [each["line"] for each in said] == [2, 4]
    lines = tmp_path / "new.txt"
    lines.write_text("ca n't\n")
    [tokens] = records(capsys, model, "--file", lines, "--tokens")
    assert tokens["words"] == ["ca", "n't"]
    assert records(capsys, model, "ca n't .", "--tokens")[0]["words"] == ["ca", "n't", "."]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("trees", ["none", "intra"])
def test_a_model_without_trees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trees: str
) -> None:
    model = saved(tmp_path, trees=trees)
    assert f"the model has no trees (model.trees is {trees!r})" in fail(capsys, model, TEXT)


def test_a_model_that_takes_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, treebank = saved(tmp_path, trees="given"), tmp_path / "trees.conllu"
    treebank.write_text("1\tDogs\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    for source in ((TEXT,), ("--file", treebank)):
        assert "takes given trees and finds none (model.trees is 'given')" in fail(
            capsys, model, *source
        )


def test_texts_that_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, one = saved(tmp_path, "pair"), saved(tmp_path)
    assert "TEXT: received 1; expected two for each example" in fail(capsys, pair, TEXT)
    assert "TEXT: received 3; expected two" in fail(capsys, pair, "a", "b", "c")
    assert "TEXT 1 is empty" in fail(capsys, one, "")
    assert "--gold: the right trees of these texts are not known" in fail(
        capsys, one, TEXT, "--gold"
    )
    typed(monkeypatch, b"caf\xe9\n")
    assert fail(capsys, one, "-").startswith(
        "standard input, line 1: is not UTF-8 (invalid continuation byte);"
    )
    typed(monkeypatch, "one text\n")
    assert "standard input, line 1: received 1 text" in fail(capsys, pair, "-")
    assert "nowhere.txt" in fail(capsys, one, "--file", tmp_path / "nowhere.txt")


def test_a_folder_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds neither config.toml of a run nor" in fail(capsys, tmp_path, TEXT)
