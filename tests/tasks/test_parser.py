"""Dependency parsers: what they learn, the treebanks they refuse, new sentences, their figures."""

from __future__ import annotations

import math
import random
from io import StringIO
from pathlib import Path

import pytest
import torch
from commands import TREEBANK, Output, fail, records, shown, told, written
from listops_runs import metrics, result
from treebank_runs import train, treebank

import treelax
from treelax.apps.data.conllu import Sentence, read_conllu, write_conllu
from treelax.apps.tasks.parsing.evaluation import ParsingFigures, align, surface_tokens
from treelax.errors import InputError
from treelax.trees import heads_to_tree

FEW = ("--set", "train.epochs=2")
TEXT = "the cats see dogs ."
ROWS = (("the", "2", "det"), ("cats", "3", "nsubj"), ("see", "0", "root"), ("dogs", "3", "obj"))


def conllu(*rows: tuple[str, str, str]) -> str:
    """Words with their heads and labels as CoNLL-U."""
    lines = [
        "\t".join([str(m), word, *"____", head, label, "_", "_"])
        for m, (word, head, label) in enumerate(rows, 1)
    ]
    return "\n".join(lines) + "\n\n"


# ------------------------------------------------------------------ training


def test_a_toy_treebank_is_learned(run: Path, capsys: Output) -> None:
    dev = result(run)["splits"]["dev"]
    assert dev["las"] == dev["uas"] == 100
    data = ["eval", run, "--data", run.parent / "dev.conllu"]
    [figures] = records(capsys, *data, "--json")
    assert (figures["sentences"], figures["las"]) == (20, 100)
    assert figures.keys() >= {"uas", "words", "without_punctuation", "by_label", "by_arc"}
    tables = shown(capsys, *data)
    assert "without punctuation" in tables
    assert "nsubj" in tables


def test_what_is_reported_of_treebanks(files: Path, capsys: Output) -> None:
    """Crossing trees, long sentences, new labels, several roots, word vectors."""
    (files / "v.txt").write_text("cats 1 0 0\ndogs 0 1 0\nwolves 0 1 0.1\n")
    crossing = (("a", "3", "obj"), ("b", "0", "root"), ("c", "2", "obj"), ("d", "1", "obj"))
    two_roots = (("a", "0", "root"), ("b", "0", "root"))
    with (files / "train.conllu").open("a") as file:
        file.write(conllu(*crossing) + conllu(*two_roots))
    text = (files / "dev.conllu").read_text()
    text = text.replace("\tobj\t", "\tiobj\t", 1).replace("\tobj\t", "\tobj:new\t", 1)
    (files / "dev.conllu").write_text(text)
    changes = ["data.max_length=6", "model.single_root=false", "model.structure=projective"]
    settings = [part for change in changes for part in ("--set", change)]
    assert train(files, "--vectors", str(files / "v.txt"), *FEW, *settings) == 0
    error = capsys.readouterr().err
    for message in (
        "train: 1 tree with crossing arcs",
        "of more than 6 words left out",
        "dev: 1 word with a label that training never saw, counted as wrong (iobj)",
        "word vectors: 2 of",
    ):
        assert message in error
    lengths = [len(sentence) for sentence in read_conllu(files / "train.conllu")]
    assert result(files / "run")["training_sentences"] == sum(n <= 6 for n in lengths)
    # new words are looked up
    assert treelax.load(files / "run").unknown_words({"wolves", "CATS"}) == (
        "note: 1 of 2 different words are unknown to the model and have no vector; look them up with "
        "--vectors v.txt, as in training"
    )
    parser = treelax.load(files / "run", vectors=files / "v.txt")
    parser.predict(["wolves see dogs"])
    assert "wolves" in parser.lexicon.vectors
    with pytest.raises(InputError, match="expected the folder of the run"):
        treelax.load(files / "run" / "best" / "model.safetensors")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad.conllu: received nothing"),
        ("\n\n", "bad.conllu: received nothing"),
        (treebank(1, 8) + "1\ta\t_\t_\t0\troot\n\n", "columns; expected 10"),
        (conllu(("a", "2", "dep"), ("b", "1", "dep")), "line 1: the heads go round in a circle"),
        (
            "# x\n" + conllu(("a", "0", "root"), ("b", "0", "root")),
            "line 3: received head 0 for a second word; expected one root",
        ),
        (conllu(("a", "7", "dep")), "line 1: received head 7; expected 0 to 1"),
        (conllu(("a", "_", "_")), "line 1: received no head (_)"),
        (conllu(("a", "0", "_")), "line 1: received no label (_)"),
    ],
)
def test_bad_treebanks_are_refused_in_one_line(
    files: Path, capsys: Output, text: str, message: str
) -> None:
    (files / "bad.conllu").write_text(text)
    assert train(files, train="bad.conllu") == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "bad.conllu" in line
    assert message in line


def test_the_figures_that_choose_an_epoch_are_the_final_ones(files: Path) -> None:
    """The words of the dev set are read as in prediction, here in lower case."""
    lines = [line.split("\t") for line in (files / "dev.conllu").read_text().splitlines()]
    shouted = ("\t".join([*row[:1], *map(str.upper, row[1:2]), *row[2:]]) for row in lines)
    (files / "dev.conllu").write_text("\n".join(shouted) + "\n\n")
    # no word has a vector, so that its characters tell all
    assert train(files, "--set", "data.min_count=1000", "--set", "train.epochs=5") == 0
    final = result(files / "run")
    [best] = [row["dev"] for row in metrics(files / "run") if row["epoch"] == final["best_epoch"]]
    assert best["las"] == pytest.approx(final["splits"]["dev"]["las"])
    assert best["las"] > 80


def test_a_parser_with_tags_needs_them(files: Path, capsys: Output) -> None:
    assert train(files, "--set", "data.tags=upos", "--set", "train.epochs=1") == 0
    run, dev = files / "run", files / "dev.conllu"
    assert len(shown(capsys, "predict", run, dev).splitlines()) == 20
    assert "words without UPOS" in fail(capsys, "parse", run, TEXT)
    for option in (["--marginals"], ["--samples", "2"]):
        assert "cats" in shown(capsys, "parse", run, "--file", dev, *option)
    shown(capsys, "report", run, "--data", dev, "--out", files / "report.html")


# ------------------------------------------------------------------ new sentences


def test_heads_and_labels_in_python(run: Path) -> None:
    parser = treelax.load(run)
    texts = [TEXT, "", ["old", "birds", "hear", "."]]
    first, empty, second = parser.predict(texts)
    assert first.heads == ((2, 3, 0, 3, 3),)
    assert first.relations == (("det", "nsubj", "root", "obj", "punct"),)
    assert (empty.words, empty.heads, empty.relations) == (((),), None, None)
    assert second.heads == ((2, 3, 0, 3),)
    # the same for one sentence as among others, with its scores
    [alone] = parser.parse(["old birds hear ."])
    assert alone.heads == second.heads
    assert parser.tree.structure.argmax(alone.scores[0])[0, 3] == 1
    with pytest.raises(InputError, match="received 'the cats'; expected a list of texts"):
        parser.predict("the cats")


def test_only_head_and_label_of_a_treebank_change(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    file, out = written(tmp_path, TREEBANK, "tb.conllu"), tmp_path / "out.conllu"
    shown(capsys, "predict", run, file, "--out", out)

    def others(text: str) -> list[list[str]]:
        rows = [line.split("\t") for line in text.splitlines()]
        return [row[:6] + row[8:] if row[0].isdigit() else row for row in rows]

    assert others(out.read_text()) == others(TREEBANK)
    for sentence in read_conllu(out):
        assert sentence.heads.count(0) == 1
        assert set(sentence.labels) <= {"det", "amod", "nsubj", "root", "obj", "punct"}


def test_known_heads_and_labels_are_kept(run: Path, tmp_path: Path, capsys: Output) -> None:
    known = [("the", "4", "odd"), ("cats", "_", "_"), ("see", "4", "_"), ("dogs", "_", "_")]
    file = written(tmp_path, conllu(*known), "known.conllu")
    out = shown(capsys, "predict", run, file, "--keep", "--format", "conllu")
    rows = [line.split("\t") for line in out.splitlines() if line]
    heads, labels = ([row[column] for row in rows] for column in (6, 7))
    assert (heads[0], heads[2], labels[0]) == ("4", "4", "odd")
    assert "_" not in labels
    assert records(capsys, "predict", run, file)[0]["heads"] == [2, 3, 0, 3]
    shown(capsys, "predict", run, file, "--input", "text")  # as texts, they are not heads
    parser, sentence = treelax.load(run), Sentence(("cats", "see", "dogs"), (0, 1, 2))
    for soft in (False, True):
        [prediction] = parser.predict([sentence], keep=True, soft=soft)
        assert prediction.heads == ((0, 1, 2),)
    [prediction] = parser.predict([sentence])
    assert prediction.heads == ((2, 0, 2),)
    # in all of the best few trees, too
    partial = conllu(("cats", "2", "odd"), ("see", "_", "_"), ("dogs", "_", "_"))
    file = written(tmp_path, partial, "x.conllu")
    best = records(capsys, "predict", run, file, "--best", 9, "--keep")
    assert {(r["heads"][0], r["relations"][0]) for r in best} == {(2, "odd")}
    assert len(best) == 3  # see ← 0, dogs ← see or cats; see ← dogs ← 0


def test_what_is_refused(run: Path, tmp_path: Path, capsys: Output) -> None:
    circle = conllu(*ROWS) + conllu(("a", "2", "_"), ("b", "1", "_"), ("c", "_", "_"))
    file, text = written(tmp_path, circle, "k.conllu"), written(tmp_path, TEXT, "x.txt")
    expressions = written(tmp_path, "[MAX 1 2 ]\n", "y.txt")
    none = written(tmp_path, "1\ta" + "\t_" * 8 + "\n\n", "x.conllu")
    message = f"{file}, line 6: the heads given from here on leave no tree with a single root"
    for arguments, expected in (
        (("predict", run, file, "--keep"), message),
        (("predict", run, text, "--keep"), "--keep"),
        (("predict", "listops", file, "--keep"), "expected a dependency parser"),
        (("predict", "listops", expressions, "--best", 2), "received listops; expected a dep"),
        (("predict", run, text, "--best", 2, "--soft"), "--soft too"),
        (("eval", run, "--data", none), "x.conllu, line 1: received no head (_)"),
        (("eval", run), "the run was trained without test data; expected --data FILE"),
        (("eval", "listops", "--data", file, "--raw"), "listops, which learned from no treebank"),
    ):
        assert expected in fail(capsys, *arguments)


def test_sentences_too_long_are_refused_or_skipped(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    rows = [("a", str(m), "dep") for m in range(10_001)]
    file = written(tmp_path, conllu(*rows) + conllu(rows[0]), "x.conllu")
    out = tmp_path / "y.conllu"
    for command, option in (
        (["eval", run, "--data", file], ["--max-length", "9"]),
        (["predict", run, file, "--out", out], ["--unusable", "drop"]),
    ):
        message = fail(capsys, *command)
        assert "x.conllu, line 1: received 10,001 words" in message
        assert option[0] in message
        assert "1 line dropped: too many words (1)" in told(capsys, *command, *option)
    assert len(out.read_text().splitlines()) == 2


def test_probabilities_of_heads(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = written(tmp_path, conllu(*ROWS), "x.conllu")
    command = ["predict", run, file, "--probabilities"]
    [record] = records(capsys, *command)
    assert record["heads"] == [2, 3, 0, 3]
    assert all(0.5 < share <= 1 for share in record["head_probabilities"])
    lines = filter(None, shown(capsys, *command, "--format", "conllu").splitlines())
    assert all(line.split("\t")[-1].startswith("HeadProbability=") for line in lines)


def test_trees_are_drawn_with_their_labels(run: Path, tmp_path: Path, capsys: Output) -> None:
    drawn = shown(capsys, "parse", run, TEXT)
    assert drawn.splitlines()[-1].split() == ["det", "nsubj", "root", "obj", "punct"]
    assert "cats  nsubj" in shown(capsys, "parse", run, TEXT, "--width", "16")
    [record] = records(capsys, "parse", run, "cats see dogs", "--format", "json")
    assert record["relations"] == ["nsubj", "root", "obj"]
    shown(capsys, "parse", run, "cats see dogs", "--out", tmp_path / "tree.svg")
    assert "nsubj" in (tmp_path / "tree.svg").read_text()


def test_the_page_and_the_analysis_know_the_parser(
    run: Path, tmp_path: Path, capsys: Output
) -> None:
    from treelax.apps.demo.score_sources import load_sources

    source = load_sources(run)["run"]
    words = source.words(TEXT)
    tree = source.parser.tree.structure(source.scores(words, 0)).mode
    assert source.answer([words], [tree]).tags == ["det", "nsubj", "root", "obj", "punct"]
    shown(capsys, "analyse", run, "--split", "dev", "--out", tmp_path / "study")
    shown(capsys, "report", run, "--split", "dev")
    report = (run / "report.html").read_text()
    for part in ("dependency parsing", "dev: LAS, %", 'class="label">nsubj</text>'):
        assert part in report


def test_the_most_probable_trees_come_first(run: Path, tmp_path: Path, capsys: Output) -> None:
    parser = treelax.load(run)
    [prediction] = parser.parse([TEXT])
    best = parser.best_trees(prediction.words[0], prediction, 4)
    assert (best[0].heads, best[0].relations) == (prediction.heads, prediction.relations)
    assert len({tree.heads for tree in best}) == 4
    trees = parser.tree.structure(prediction.scores[0])
    expected = [trees.log_prob(heads_to_tree(torch.tensor(t.heads[0]))).item() for t in best]
    assert [tree.log_prob for tree in best] == pytest.approx(expected, abs=1e-4)
    assert expected == sorted(expected, reverse=True)
    # of two words there are two trees with one root
    [short] = parser.parse(["cats see"])
    both = parser.best_trees(short.words[0], short, 4)
    assert sum(math.exp(tree.log_prob) for tree in both) == pytest.approx(1, abs=1e-5)
    assert len(both) == 2
    # predict writes a line or a sentence for each
    file, out = written(tmp_path, f"{TEXT}\n\nold birds hear .\n", "x.txt"), tmp_path / "out.conllu"
    rows = records(capsys, "predict", run, file, "--best", 3)
    assert [(r["line"], r.get("rank")) for r in rows] == [
        *((1, 1), (1, 2), (1, 3), (2, None), (3, 1), (3, 2), (3, 3))
    ]
    shown(capsys, "predict", run, file, "--best", 3, "--out", out)
    sentences = list(read_conllu(out))
    assert [s.id for s in sentences][:4] == ["1-best-1", "1-best-2", "1-best-3", "3-best-1"]
    assert [s.metadata["rank"] for s in sentences] == ["1", "2", "3"] * 2
    assert float(sentences[1].metadata["log_prob"]) == rows[1]["log_prob"] < rows[0]["log_prob"]
    assert list(sentences[1].heads or ()) == rows[1]["heads"]
    table = shown(capsys, "predict", run, file, "--best", 2, "--format", "tsv").splitlines()
    assert [row.split("\t")[4] for row in table] == ["rank", "1", "2", "1", "1", "2"]


# ------------------------------------------------------------------ figures

LABELS = ("nsubj", "nsubj:pass", "obj", "root", "punct")
TOKENS = (("don't", "do", "n't"), ("its", "it", "'s"), ("dogs",), ("well",), ("-",), ("known",))
TOKENS += (("a b",), (".",), ("Cannot", "can", "not"))


def test_counted_by_hand() -> None:
    labels = ("nsubj:pass", "aux:pass", "root", "punct")
    gold = [
        Sentence(("Dogs", "were", "seen", "."), (3, 3, 0, 3), labels=labels),
        Sentence(("Hi", "!"), (0, 1), labels=("root", "punct")),
    ]
    predicted = [
        ((3, 3, 0, 2), ("nsubj", "aux:pass", "root", "punct")),  # a subtype and a head are wrong
        ((0, 1), ("root", "obj")),  # a label is wrong
    ]
    pairs = zip(gold, predicted, strict=True)
    figures = ParsingFigures.of(gold, [(sentence.words, *tree) for sentence, tree in pairs])
    assert (figures.sentences, figures.words) == (2, 6)
    assert figures.uas == pytest.approx(100 * 5 / 6)
    assert figures.las == pytest.approx(100 * 4 / 6)
    assert figures.exact_las == pytest.approx(100 * 3 / 6)
    assert figures.exact_trees == 50
    assert figures.without_punctuation == {"words": 4, "uas": 100, "las": 100, "exact_las": 75}
    assert figures.by_label["punct"] == {"words": 2, "uas": 50, "las": 0, "exact_las": 0}
    assert list(figures.by_label) == ["punct", "root", "aux", "nsubj"]
    assert {key: row["words"] for key, row in figures.by_arc.items()} == {"1": 3, "2": 1, "root": 2}
    assert list(figures.by_length) == ["1-10"]


def sentence(*tokens: tuple[str, ...], seed: int = 0) -> Sentence:
    """A sentence of tokens, which may be of several words, with a random tree."""
    lines, words = [], list[str]()
    for form, *parts in tokens:
        if parts:
            lines.append(f"{len(words) + 1}-{len(words) + len(parts)}\t{form}" + "\t_" * 8)
        for word in parts or [form]:
            words.append(word)
            lines.append(f"{len(words)}\t{word}" + "\t_" * 8)
    heads, labels = random_tree(len(words), random.Random(seed))
    bare = Sentence(tuple(words), heads, labels=labels, lines=tuple(lines))
    filled = bare.with_tree(heads, columns={"DEPREL": labels})
    return Sentence(bare.words, heads, labels=labels, lines=tuple(filled))


def random_tree(n: int, rng: random.Random) -> tuple[tuple[int, ...], tuple[str, ...]]:
    order = rng.sample(range(1, n + 1), n)
    heads = [0] * n
    for i, word in enumerate(order[1:], 1):
        heads[word - 1] = rng.choice(order[:i])
    return tuple(heads), tuple(rng.choice(LABELS) if head else "root" for head in heads)


@pytest.mark.parametrize(
    ("tokens", "words", "expected"),
    [
        ([("dogs",), ("bark",)], ("dogs", "bark"), {1: 1, 2: 2}),
        ([("dogs",), ("bark",)], ("dogsbark",), {}),
        ([("well",), ("-",), ("known",), (".",)], ("well-known", "."), {2: 4}),
        ([("I",), ("don't", "do", "n't")], ("I", "do", "n't"), {1: 1, 2: 2, 3: 3}),
        ([("I",), ("don't", "do", "n't")], ("I", "don't"), {1: 1}),
        ([("Cannot", "can", "not")], ("Can", "not"), {1: 1, 2: 2}),
        ([("don't", "do", "n't"), (".",)], ("do", "n't."), {1: 1}),
        ([("a b",), ("c",)], ("a\u00a0b", "c"), {1: 1, 2: 2}),
    ],
)
def test_words_are_aligned_by_characters(
    tokens: list[tuple[str, ...]], words: tuple[str, ...], expected: dict[int, int]
) -> None:
    assert align(sentence(*tokens), words) == expected


def test_figures_of_words_that_were_cut_otherwise() -> None:
    gold = Sentence(("well", "-", "known", "."), (3, 3, 0, 3), labels=("a", "b", "root", "punct"))
    figures = ParsingFigures.of([gold], [(("well-known", "."), (0, 1), ("root", "punct"))])
    assert figures.word_f1 == pytest.approx(200 / 6)  # the stop is found, of 4 words and of 2
    assert figures.uas == 0  # its head is no gold word
    assert figures.exact_trees == 0
    assert figures.without_punctuation["words"] == 2


def test_the_official_evaluator_agrees(tmp_path: Path) -> None:
    udeval = pytest.importorskip("udtools.udeval")
    rng, gold, predicted = random.Random(0), [], []
    for seed in range(200):
        right = sentence(*(rng.choice(TOKENS) for _ in range(rng.randint(1, 9))), seed=seed)
        words = []
        for form, _ in surface_tokens(right):  # some are cut, some are joined
            text, place = form.replace(" ", ""), rng.randint(1, 2 * len(form))
            words += [part for part in (text[:place], text[place:]) if part]
        if rng.random() < 0.5 and len(words) > 1:
            place = rng.randrange(len(words) - 1)
            words[place : place + 2] = ["".join(words[place : place + 2])]
        gold.append(right)
        predicted.append((tuple(words), *random_tree(len(words), rng)))

    def read(name: str, sentences: list[Sentence]) -> object:
        write_conllu(tmp_path / name, sentences)
        return udeval.load_conllu(StringIO((tmp_path / name).read_text()), name, {})

    others = [Sentence(words, heads, labels=labels) for words, heads, labels in predicted]
    theirs = udeval.evaluate(read("gold.conllu", gold), read("predicted.conllu", others))
    ours = ParsingFigures.of(gold, predicted)
    assert 30 < ours.word_f1 < 95
    for key, figure in (("Words", ours.word_f1), ("UAS", ours.uas), ("LAS", ours.las)):
        assert 100 * theirs[key].f1 == pytest.approx(figure), key


def test_eval_cuts_the_texts_of_a_treebank(run: Path, tmp_path: Path, capsys: Output) -> None:
    rows = list(read_conllu(run.parent / "dev.conllu"))[:5]

    def commented(text: str | None) -> Path:
        blocks = []
        for row in rows:
            comment = " ".join(row.words[:-1]) + row.words[-1] if text is None else text
            blocks += [*row.with_tree(None, comments={"text": comment}), ""]
        return written(tmp_path, "\n".join([*blocks, ""]), "texts.conllu")

    [figures] = records(capsys, "eval", run, "--data", commented(None), "--raw", "--json")
    assert (figures["word_f1"], figures["las"]) == (100, 100)
    message = fail(capsys, "eval", run, "--data", commented("other words"), "--raw")
    assert "texts.conllu, line 1: received the text 'other words'; expected a comment" in message
    file = written(tmp_path, 'The “cats” don’t see "dogs".\n', "x.txt")
    assert records(capsys, "predict", run, file)[0]["words"] == [
        *("The", "“", "cats", "”", "do", "n’t", "see", '"', "dogs", '"', ".")
    ]
