"""Predictions of sentence models: in order whatever the batches, trees over words alone, any texts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
import torch
from commands import WORDS, fail, records, saved, shown
from sentence_runs import figures, train

import treelax
from treelax import Binary
from treelax.apps.data.conllu import Sentence
from treelax.apps.pictures import draw_binary_tree
from treelax.apps.tasks.base import Prediction, spans_without_null
from treelax.brackets import read_brackets, spans_to_tensor
from treelax.errors import DataError, InputError
from treelax.trees import is_projective, is_tree

KINDS = ["classify", "pair", "tag"]
every_kind = pytest.mark.parametrize("kind", KINDS)
with_and_without_null = pytest.mark.parametrize("null", [False, True])


def model(folder, kind="classify", **settings):
    return treelax.load(saved(folder, kind, **settings))


def drawn(kind, count, seed=0):
    """Random texts, or pairs of them."""
    generator = torch.Generator().manual_seed(seed)

    def text():
        length = int(torch.randint(1, 9, (), generator=generator))
        return [WORDS[i] for i in torch.randint(len(WORDS), (length,), generator=generator)]

    return [(text(), text()) if kind == "pair" else text() for _ in range(count)]


# ------------------------------------------------------------------ order and batches


@every_kind
@with_and_without_null
@pytest.mark.parametrize("structure", ["projective", "binary"])
def test_an_example_is_predicted_as_if_it_were_alone(tmp_path, kind, null, structure):
    parser = model(tmp_path, kind, null=null, structure=structure, encoder="bilstm")
    examples = drawn(kind, 12)
    alone = [parser.predict([example])[0] for example in examples]
    together = parser.predict(examples, batch_size=5)
    for one, other, example in zip(together, alone, examples, strict=True):
        assert (one.words, one.label, one.trees) == (other.words, other.label, other.trees)
        # up to rounding: batches are padded otherwise
        assert one.probability == pytest.approx(other.probability, abs=1e-5)
        assert list(one.words) == list(map(tuple, example if kind == "pair" else [example]))
        if kind != "tag":
            assert sum(one.probabilities.values()) == pytest.approx(1)
            assert one.probabilities[one.label] == max(one.probabilities.values())
    assert len({str(p.probabilities) for p in alone}) > 10
    # of an endless stream, few are read ahead
    endless = cycle(examples)
    first = next(parser.stream(endless, batch_size=3))
    assert (first.words, first.trees) == (alone[0].words, alone[0].trees)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(parser.predict, [examples] * 4)) == [parser.predict(examples)] * 4


def test_the_mode_of_the_network_stays(tmp_path):
    parser = model(tmp_path, dropout=0.5)
    for training in (True, False):
        parser.train(training)
        assert parser.predict(["the film"]) == parser.predict(["the film"])
        assert parser.training is training


# ------------------------------------------------------------------ trees


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(
    ("kind", "null", "single_root"),
    [("classify", False, True), ("pair", True, False), ("tag", True, True)],
)
def test_heads_are_projective_trees_of_the_words(tmp_path, kind, null, soft, single_root):
    parser = model(tmp_path, kind, null=null, single_root=single_root, distances=None)
    for prediction in parser.predict(drawn(kind, 30), soft=soft):
        for words, heads in zip(prediction.words, map(torch.tensor, prediction.heads), strict=True):
            assert len(words) == len(heads)
            assert is_tree(heads, single_root=single_root and not null)
            assert is_projective(heads)


@with_and_without_null
@pytest.mark.parametrize("soft", [False, True])
def test_chains_and_models_without_trees(tmp_path, null, soft):
    for trees, heads in (("chain", ((0, 1, 2),)), ("none", None), ("intra", None)):
        parser = model(tmp_path, null=null, trees=trees)
        [prediction] = parser.predict(["the film was"], soft=soft)
        assert prediction.heads == heads
        assert prediction.label in parser.labels


@with_and_without_null
@every_kind
def test_given_trees_are_those_that_come_back(tmp_path, kind, null):
    """And they matter: of the same words another tree gives other probabilities."""
    parser = model(tmp_path, kind, null=null, trees="given")
    words, trees = ("the", "film", "was"), [(2, 0, 2), (3, 1, 0), (0, 0, 0)]
    sentences = [Sentence(words, heads) for heads in trees]
    texts = 2 if kind == "pair" else 1
    predictions = parser.predict(
        [(sentence,) * 2 for sentence in sentences] if texts == 2 else sentences
    )
    assert [p.heads for p in predictions] == [(heads,) * texts for heads in trees]
    assert [p.words for p in predictions] == [(words,) * texts] * 3
    assert len({str(p.probability) for p in predictions}) == 3


def test_given_trees_must_be_there_and_be_trees(tmp_path):
    parser = model(tmp_path, trees="given")
    for texts, message in (
        ([Sentence(("a",), (0,)), ["film"]], r"texts\[1\]: received words without heads.*'given'"),
        ([Sentence(("a", "film"), (2, 1))], r"texts\[0\]: the heads go round in a circle"),
        ([Sentence(("a", "film"))], r"texts\[0\]: received no heads"),
    ):
        with pytest.raises((DataError, InputError), match=message):
            parser.predict(texts)
    assert parser.predict([[]])[0].label is None


# ------------------------------------------------------------------ texts


@with_and_without_null
def test_texts_without_words_have_no_label_and_keep_their_place(tmp_path, null):
    parser, empty = model(tmp_path, null=null), Prediction(((),))
    predictions = parser.predict(["", "the", []])
    assert predictions == [empty, *parser.predict(["the"]), empty]
    assert (empty.label, empty.probabilities, empty.probability, empty.heads) == (None,) * 4
    pairs = model(tmp_path, "pair", null=null)
    first, second = pairs.predict([("the", ""), ("the", "film")])
    assert first == Prediction((("the",), ()))
    assert second.label in pairs.labels
    assert model(tmp_path, "tag", null=null).predict([""]) == [empty]
    assert parser.predict([]) == []


def test_a_text_is_a_string_or_its_words(tmp_path):
    parser = model(tmp_path)
    tokens = ("The", "film", "'s", "fine", ".")
    first, second = parser.predict(["The film's fine.", list(tokens)])
    assert first == second
    assert first.words == (tokens,)
    text = "a\nline\tof  10\u00a0000\u2028words\u3000. "
    [whole] = parser.predict([text], tokens=True)
    assert whole.words == (("a", "line", "of", "10\u00a0000", "words", "."),)
    # a space in a word of a treebank or a list is a no-break space, as it was in training
    words, known = ("in", "New York"), ("in", "New\u00a0York")
    predictions = parser.predict([list(words), Sentence(words), list(known), known])
    assert predictions == predictions[:1] * 4
    assert predictions[0].words == (known,)


PAIR = r"\('A fine film.', 'It was.'\), which reads as a pair of texts; expected one text, as a str"


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("classify", "one text", "texts: received 'one text'; expected a list of texts"),
        ("classify", 3, "texts: received 3; expected a list"),
        ("classify", ["a", None], r"texts\[1\]: received None; expected a text or a list of its"),
        ("classify", [["a", " "]], r"texts\[0\]: received ' ' as a word; .* as one string"),
        ("classify", [["a", 3]], r"texts\[0\]: received 3 as a word"),
        ("pair", ["one text"], r"texts\[0\]: received 'one text'; expected two texts"),
        ("pair", [("a", "b"), ("a", "b", "c")], r"texts\[1\]: received \('a', 'b', 'c'\)"),
        ("classify", ["a film", ("A fine film.", "It was.")], rf"texts\[1\]: received {PAIR}"),
        ("tag", [("Yes.", "a\tfilm")], r"texts\[0\]: .* reads as a pair of texts"),
    ],
)
def test_what_is_no_text(tmp_path, kind, texts, message):
    with pytest.raises(InputError, match=message):
        model(tmp_path, kind).predict(texts)


# ------------------------------------------------------------------ binary trees

SENTENCE = "The film was good."
TOKENS = ["The", "film", "was", "good", "."]


def check_tree(line, words):
    """That a line is a binary tree over these words."""
    read, spans = read_brackets(line)
    assert read == list(words)
    assert bool(Binary().contains(spans_to_tensor(spans, len(words)), torch.tensor(len(words))))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("classify", {"model__relaxation": "entropy"}),
        ("pair", {}),  # with the NULL token
        ("tag", {"model__straight_through": True, "train__discrete_epochs": 1}),
    ],
)
def test_a_run_with_binary_trees(tmp_path, capsys, kind, settings):
    run = train(kind, tmp_path, model__structure="binary", **settings)
    [evaluated] = records(capsys, "eval", run, "--json")
    assert evaluated["accuracy"] == figures(run)["test"]["accuracy"]
    text = ("the film was good", "a plot") if kind == "pair" else "the film was good"
    for soft in (False, True):
        [prediction] = treelax.load(run).predict([text], soft=soft)
        assert prediction.heads is None
        for line, words in zip(prediction.brackets, prediction.words, strict=True):
            check_tree(line, words)


@pytest.mark.parametrize("output", ["softmax", "chain"])
def test_a_chain_knows_the_tag_before(tmp_path, capsys, output):
    """Words are all the same, the tags alternate, and no encoder can count."""
    options = []
    for split, count in (("train", 64), ("dev", 12)):
        rows = ["".join(f"x\t{'AB'[t % 2]}\n" for t in range(1 + i % 6)) for i in range(count)]
        (tmp_path / f"{split}.conll").write_text("\n".join([*rows, ""]))
        options += [f"--{split}", tmp_path / f"{split}.conll"]
    settings = ["trees=none", "encoder=none", "output_size=4", f"output={output}"]
    settings = [f"model.{setting}" for setting in settings]
    settings += ["train.epochs=25", "train.batch_size=8", "train.learning_rate=0.1"]
    options += [part for setting in settings for part in ("--set", setting)]
    shown(capsys, "train", "tag", *options, "--out", tmp_path / "run")
    right = figures(tmp_path / "run")["dev"]["accuracy"]
    if output == "softmax":
        assert right < 65
        return
    assert right == 100
    run, texts = treelax.load(tmp_path / "run"), [["x"] * n for n in (5, 1, 0, 8)]
    for prediction, words in zip(run.predict(texts), texts, strict=True):
        assert "".join(prediction.label or "") == "ABABABAB"[: len(words)]
        for probabilities in prediction.probabilities or ():
            assert sum(probabilities.values()) == pytest.approx(1)
    run.save_pretrained(tmp_path / "saved")
    assert treelax.load(tmp_path / "saved").predict(texts) == run.predict(texts)
    dev = tmp_path / "dev.conll"
    [evaluated] = records(capsys, "eval", tmp_path / "run", "--data", dev, "--json")
    assert evaluated["accuracy"] == 100


def test_a_tree_without_null_is_a_tree_of_the_other_words():
    trees = Binary().enumerate(6)
    without = spans_without_null(trees)
    assert bool(Binary().contains(without, torch.full((len(trees),), 5)).all())
    assert len(without.unique(dim=0)) == 14
    # of weights it is the mean over trees, as far as spans with NULL are independent of others
    marginals = spans_without_null(trees.mean(0))
    torch.testing.assert_close(marginals, without.mean(0), atol=0.05, rtol=0)


@with_and_without_null
def test_predict_writes_brackets(tmp_path, capsys, null):
    path, file = saved(tmp_path, null=null, structure="binary"), tmp_path / "new.txt"
    file.write_text(f"{SENTENCE}\n\nGood (!)\nYes\n")
    first, empty, escaped, word = records(capsys, "predict", path, file)
    check_tree(first["brackets"], first["words"])
    check_tree(escaped["brackets"], ["Good", "-LRB-", "!", "-RRB-"])
    assert "heads" not in first
    assert (empty["brackets"], word["brackets"]) == (None, "(Yes)")
    header, row, *_ = shown(capsys, "predict", path, file, "--format", "tsv").splitlines()
    assert header.endswith("\twords\tbrackets")
    assert row.endswith(f"\t{first['brackets']}")
    conllu = shown(capsys, "predict", path, file, "--format", "conllu")
    assert f"# brackets = {first['brackets']}" in conllu


@pytest.mark.parametrize(("kind", "texts"), [("tag", 1), ("pair", 2)])
def test_parse_draws_the_tree_with_weights_and_samples(tmp_path, capsys, kind, texts):
    command = ["parse", saved(tmp_path, kind, null=texts == 2, structure="binary")]
    command += [SENTENCE] * texts
    sampled = [*command, "--soft", "--samples", 20]
    [record] = records(capsys, *sampled, "--format", "json")
    if texts == 1:
        record |= {key: [record[key]] for key in ("brackets", "weights", "samples")}
    drawn = shown(capsys, *sampled, "--width", 70)
    spans = read_brackets(record["brackets"][0])[1]
    assert drawn.startswith(draw_binary_tree(TOKENS, spans, width=70))
    assert "not probabilities):\n1.00  0-4  The film was good .\n" in drawn
    assert "20 exact samples" in drawn
    for weights, samples in zip(record["weights"], record["samples"], strict=True):
        assert weights[0][4] == 1
        assert all(weight == 1 for weight in torch.tensor(weights).diagonal())
        assert sum(sample["count"] for sample in samples) == 20
        for sample in samples:
            check_tree(sample["brackets"], TOKENS)
    lines = shown(capsys, *command, "--format", "brackets")
    assert lines == "\t".join(record["brackets"]) + "\n"
    assert "soft tree" in shown(capsys, *command, "--format", "svg", "--soft")
    drawn = shown(capsys, *command, "--marginals", "--noise", 1)
    assert drawn.count("best tree with Gumbel noise times 1, seed 0:") == texts
    assert "probabilities of spans (temperature 1, Gumbel noise times 1, seed 0):" in drawn


def test_what_needs_heads_is_refused(tmp_path, capsys):
    path, file = saved(tmp_path, structure="binary"), tmp_path / "new.txt"
    file.write_text(f"{SENTENCE}\n")
    expected = "expected a model with dependency trees"
    for command, message in (
        (("analyse", path, "--data", file), expected),
        (("parse", path, SENTENCE, "--gold"), f"{expected} for --gold"),
        (("parse", path, SENTENCE, "--format", "heatmap"), f"{expected} for a heat map"),
        (("parse", path, SENTENCE, "--format", "heads"), f"brackets, the trees of {path}"),
    ):
        assert fail(capsys, *command).endswith(message)
