"""``treelax parse``: where texts come from, how trees are written, what is refused."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from commands import TREEBANK, ask, saved, shown, typed, written
from commands import fail as refused
from drawings import texts

import treelax
from treelax import ProjectiveTrees
from treelax.apps.cli.parse import split_arguments
from treelax.apps.data.conllu import Sentence, read_conllu, write_conllu
from treelax.apps.data.listops import parse_expression
from treelax.apps.pictures import draw_tree, list_weights
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.trees import is_projective, is_tree

TEXT = "[MAX 2 [MIN 4 7 ] 0 ]"
EXPRESSION = parse_expression(TEXT)
SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"
SENTENCE = "The film was good."
WORDS = ["The", "film", "was", "good", "."]


@pytest.fixture
def run(finished):
    """A tiny run of ListOps, whose trees are often wrong."""
    return finished[0]


@pytest.fixture
def treebank(tmp_path):
    return written(tmp_path, TREEBANK, "tb.conllu")


def parse(capsys, *arguments):
    return shown(capsys, "parse", *arguments)


def records(capsys, *arguments):
    return [json.loads(line) for line in parse(capsys, *arguments, "--format", "json").splitlines()]


# ------------------------------------------------------------------ the model and the texts


def test_the_model_that_comes_with_treelax(capsys):
    drawn = parse(capsys, TEXT, "--width", 60)
    tree = draw_tree(EXPRESSION.tokens, EXPRESSION.heads, width=60)
    assert drawn == f"{tree}\ntags: [MAX 3, [MIN 2\n"
    assert parse(capsys, "listops", TEXT, "--width", 60) == drawn
    assert parse(capsys, *TEXT.split(), "--width", 60) == drawn  # without quotes
    assert parse(capsys, TEXT, TEXT, "--width", 60) == f"{drawn}\n{drawn}"
    assert parse(capsys, "[MAX 1 2 3 4 5 6 7 ]").endswith("tags: [MAX 5+\n")  # beyond training
    soft = parse(capsys, "english", "Time flies.", "--soft")
    assert "soft tree (entropy relaxation, temperature 1; probabilities):" in soft


def test_a_run_of_listops(run, capsys):
    [reply] = treelax.load(run).parse([TEXT])
    [record] = records(capsys, run, TEXT)
    assert record == {
        "line": 1,
        "tags": list(reply.label or ()),
        "words": list(EXPRESSION.tokens),
        "heads": list((reply.heads or ((),))[0]),
    }
    [file] = run.glob("best/*.safetensors")
    assert records(capsys, file, TEXT) == [record]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuchrun"],
        ["The", "old", "cat", "sleeps", "."],
        ["Stop!", "A fine film ."],
        ["A fine film .", "Thanks"],
        ["english", "Thanks", "A fine film ."],
        ["-"],
    ],
)
def test_sentences_are_not_taken_for_a_run(arguments):
    run, *texts = arguments if arguments[0] == "english" else (None, *arguments)
    assert split_arguments(arguments) == (run, texts)


def test_standard_input(run, capsys, monkeypatch):
    typed(monkeypatch, f"{TEXT}\n\n3\t[MAX 2 3 ]\n")
    out, err = ask(capsys, "parse", run, "-")
    assert {"line 1", "line 3"} <= set(out.splitlines())
    assert err == "standard input: 1 line dropped: empty sentence (2)\n"


def test_words_tables_and_blank_lines(tmp_path, capsys):
    model = saved(tmp_path)
    assert records(capsys, model, *SENTENCE.split()) == records(capsys, model, SENTENCE)
    assert len(records(capsys, model, SENTENCE, "good")) == 2
    table = tmp_path / "new.tsv"
    table.write_text("text\tstars\nA good film.\t5\n\t1\nbad\t1\n")
    assert [row["line"] for row in records(capsys, model, "--file", table)] == [2, 4]
    lines = tmp_path / "new.txt"
    lines.write_text("ca n't\n")
    assert records(capsys, model, "--file", lines, "--tokens")[0]["words"] == ["ca", "n't"]
    assert records(capsys, model, "ca n't .", "--tokens")[0]["words"] == ["ca", "n't", "."]


# ------------------------------------------------------------------ how trees are written


def test_gold_and_weights(run, capsys):
    [record] = records(capsys, run, TEXT, "--gold", "--soft")
    heads, gold, weights = record["heads"], record["gold"], torch.tensor(record["weights"])
    assert gold == list(EXPRESSION.heads) != heads  # so that there is something to mark
    assert torch.allclose(weights[:, 1:].sum(0), torch.ones(len(EXPRESSION)), atol=1e-4)
    assert bool(((weights > 0.01) & (weights < 0.99)).any())
    drawn = parse(capsys, run, TEXT, "--gold", "--soft", "--width", 70)
    assert drawn.startswith(draw_tree(record["words"], heads, gold=gold, width=70))
    header = "soft tree (softmax relaxation, temperature 1; weights, not probabilities)"
    listed = list_weights(EXPRESSION.tokens, weights, heads=heads, width=70)
    assert drawn.endswith(f"\n{header}:\n{listed}\n")
    right = sum(a == b for a, b in zip(heads, gold, strict=True))
    svg = parse(capsys, run, TEXT, "--gold", "--soft", "--format", "svg")
    assert {f"{right} of 8 arcs right", "wrong", "missed", "weight", header} <= set(texts(svg))
    heat_map = texts(parse(capsys, run, TEXT, "--format", "heatmap"))
    assert "rows: heads, columns: modifiers" in heat_map


def test_marginals_temperature_and_noise(run, capsys):
    scores, n = treelax.load(run).arc_scores(EXPRESSION.tokens), len(EXPRESSION)

    def asked(*options):
        [record] = records(capsys, run, TEXT, *options)
        return record, parse(capsys, run, TEXT, *options, "--width", 200)

    def close(outcome, expected):
        return torch.allclose(torch.tensor(outcome), expected.float(), atol=1e-5)

    record, drawn = asked("--marginals")
    assert close(record["marginals"], ProjectiveTrees(scores).marginals)
    assert "probabilities of arcs (temperature 1):" in drawn
    record, drawn = asked("--marginals", "--temperature", 4)
    assert close(record["marginals"], ProjectiveTrees(scores / 4).marginals)
    record, drawn = asked("--temperature", 4)
    assert close(record["weights"], treelax.ops.soft_tree(scores, temperature=4.0))
    assert "(softmax relaxation, temperature 4; weights, not probabilities):" in drawn
    record, drawn = asked("--noise", 3, "--seed", 5)
    noise = treelax.noise.gumbel((n + 1, n + 1), generator=torch.Generator().manual_seed(5))
    assert close(record["weights"], treelax.ops.soft_tree(scores + 3 * noise))
    best = treelax.trees.tree_to_heads(treelax.ops.best_tree(scores + 3 * noise)).tolist()
    assert record["noisy_heads"] == best != record["heads"]
    told = "best tree with Gumbel noise times 3, seed 5"
    assert f"{told}:\n{draw_tree(EXPRESSION.tokens, best, width=200)}\n" in drawn
    svg = texts(parse(capsys, run, TEXT, "--noise", 3, "--seed", 5, "--format", "svg"))
    assert told in svg


def test_samples(run, capsys, tmp_path):
    """Their counts, the same for a seed and whatever stands before the text, in every form."""
    asked = partial(records, capsys, run)
    [record] = asked(TEXT, "--samples", 50)
    samples, different = record["samples"], len(record["samples"])
    counts = [row["count"] for row in samples]
    assert sum(counts) == 50
    assert counts == sorted(counts, reverse=True)
    assert all(bool(is_tree(torch.tensor(row["heads"]))) for row in samples)
    assert asked("[MAX 1 2 ]", TEXT, "--samples", 50)[1]["samples"] == samples
    assert asked(TEXT, "--samples", 50, "--seed", 1)[0]["samples"] != samples
    drawn = parse(capsys, run, TEXT, "--samples", 50, "--width", 60)
    headline = f"50 exact samples (seed 0): {different} different trees"
    tree = draw_tree(record["words"], samples[0]["heads"], width=60)
    assert f"{headline}\n{counts[0]} of 50:\n{tree}\n" in drawn
    svg = texts(parse(capsys, run, TEXT, "--samples", 50, "--format", "svg"))
    assert sum(text.startswith("sampled ") for text in svg) == 5
    assert {headline, drawn.splitlines()[-1]} <= set(svg)
    assert drawn.endswith(f"{different - 5} others (all with --format json)\n")
    heads = parse(capsys, run, TEXT, "--samples", 50, "--format", "heads").splitlines()
    assert heads[0] == f"{counts[0]}\t{' '.join(map(str, samples[0]['heads']))}"
    assert len(heads) == different
    file = tmp_path / "samples.conllu"
    file.write_text(parse(capsys, run, TEXT, "--samples", 50, "--format", "conllu"))
    sentences = list(read_conllu(file))
    assert [int(sentence.metadata["count"]) for sentence in sentences] == counts
    assert sentences[0].id == "1-sample-1"


def test_files_by_their_names(run, capsys, tmp_path):
    [record] = records(capsys, run, TEXT)
    for name in ("one.svg", "one.json", "one.conllu", "one.conllu.gz", "one.txt"):
        assert parse(capsys, run, TEXT, "--out", tmp_path / name, "--width", 60) == ""
    assert "2" in texts((tmp_path / "one.svg").read_text())
    assert json.loads((tmp_path / "one.json").read_text()) == record
    for name in ("one.conllu", "one.conllu.gz"):
        [sentence] = read_conllu(tmp_path / name)
        assert list(sentence.heads or ()) == record["heads"]
        assert sentence.words == EXPRESSION.tokens
    assert (tmp_path / "one.txt").read_text() == parse(capsys, run, TEXT, "--width", 60)
    heads = parse(capsys, run, TEXT, "--format", "heads")
    assert heads.split() == list(map(str, record["heads"]))
    parse(capsys, run, TEXT, "--format", "heads", "--out", tmp_path / "one.heads")
    assert (tmp_path / "one.heads").read_text() == heads
    assert parse(capsys, run, TEXT, "--format", "heads", "--out", "-") == heads
    assert len(list(tmp_path.iterdir())) == 6


def test_a_file_is_whole_or_not_there(run, capsys, tmp_path):
    file, out = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text(f"{TEXT}\n[MAX 2\n")
    out.write_text("before")
    line = refused(capsys, "parse", run, "--file", file, "--out", out)
    assert line.startswith(f"{file}, line 2: ")
    assert out.read_text() == "before"
    assert sorted(row.name for row in tmp_path.iterdir()) == ["in.txt", "out.txt"]


# ------------------------------------------------------------------ models of sentences


def test_a_class_is_told(tmp_path, capsys):
    model = saved(tmp_path)
    [direct] = SentenceModel.from_pretrained(model).predict([SENTENCE])
    [reply] = records(capsys, model, SENTENCE)
    assert (reply["words"], reply["heads"]) == (WORDS, list((direct.heads or ((),))[0]))
    assert reply["label"] == direct.label
    assert reply["probability"] == pytest.approx(direct.probability, abs=1e-5)
    label = f"{reply['label']} ({reply['probability']:.2f})"
    tree = draw_tree(WORDS, reply["heads"], width=60)
    assert parse(capsys, model, SENTENCE, "--width", 60) == f"{tree}\nlabel: {label}\n"
    assert texts(parse(capsys, model, SENTENCE, "--format", "svg"))[0] == label
    parse(capsys, model, SENTENCE, "--out", tmp_path / "one.conllu")
    [sentence] = read_conllu(tmp_path / "one.conllu")
    assert sentence.metadata["label"] == reply["label"]


def test_pairs(tmp_path, capsys, monkeypatch):
    model = saved(tmp_path, "pair")
    [reply] = records(capsys, model, SENTENCE, "A plot")
    assert reply["words"] == [WORDS, ["A", "plot"]]
    assert [len(heads) for heads in reply["heads"]] == [5, 2]
    first, second = (
        draw_tree(words, heads, width=60)
        for words, heads in zip(reply["words"], reply["heads"], strict=True)
    )
    drawn = parse(capsys, model, SENTENCE, "A plot", "--width", 60)
    assert drawn.startswith(f"{first}\n\n{second}\nlabel: {reply['label']} (")
    heads = parse(capsys, model, SENTENCE, "A plot", "--format", "heads")
    assert heads == "\t".join(" ".join(map(str, row)) for row in reply["heads"]) + "\n"
    typed(monkeypatch, f"{SENTENCE}\tA plot\n")
    assert records(capsys, model, "-") == [reply]
    more = records(capsys, model, SENTENCE, "A plot", "bad", "good", "--soft")
    assert len(more[1]["weights"]) == 2
    svg = parse(capsys, model, SENTENCE, "A plot", "--format", "svg")
    assert {*WORDS, "A", "plot"} <= set(texts(svg))
    parse(capsys, model, SENTENCE, "A plot", "--out", tmp_path / "pair.conllu")
    assert [sentence.id for sentence in read_conllu(tmp_path / "pair.conllu")] == ["1-1", "1-2"]


@pytest.mark.parametrize(("trees", "null"), [("latent", False), ("heads", False), ("latent", True)])
def test_weights_and_samples_of_sentences(tmp_path, capsys, trees, null):
    model = saved(tmp_path, trees=trees, null=null)
    [record] = records(capsys, model, SENTENCE, "--soft", "--samples", 60)
    weights = torch.tensor(record["weights"])
    assert torch.allclose(weights[:, 1:].sum(0), torch.ones(5), atol=1e-4)
    assert bool((weights.diagonal() == 0).all())
    assert sum(sample["count"] for sample in record["samples"]) == 60
    if trees == "latent":
        heads = torch.tensor([sample["heads"] for sample in record["samples"]])
        assert bool((is_tree(heads) & is_projective(heads)).all())
    if not null:  # as the network itself makes them when it predicts with soft trees
        network, seen = SentenceModel.from_pretrained(model), []
        network.network.encoder.register_forward_hook(lambda m, i, out: seen.append(out[1]))
        network.predict([SENTENCE], soft=True)
        assert torch.allclose(weights, seen[0][0], atol=1e-5)


# ------------------------------------------------------------------ treebanks


def test_a_file_of_trees_is_marked(tmp_path, capsys):
    model, file = saved(tmp_path, "tag"), tmp_path / "gold.conllu.gz"
    write_conllu(file, [Sentence(("Dogs", "bark"), (2, 0)), Sentence(("a b", "c"), (0, 1))])
    reply = records(capsys, model, "--file", file, "--gold")
    assert [row["gold"] for row in reply] == [[2, 0], [0, 1]]
    assert [row["words"] for row in reply] == [["Dogs", "bark"], ["a\u00a0b", "c"]]
    assert parse(capsys, model, "--file", file, "--gold").count("of 2 arcs right") == 2
    bare = tmp_path / "bare.conllu"
    write_conllu(bare, [Sentence(("Dogs", "bark"))])
    assert len(records(capsys, model, "--file", bare)) == 1


def test_a_treebank_with_other_trees(tmp_path, treebank, capsys):
    """Heads of words are those of the model, labels of arcs go, and all else stays."""
    model, out = saved(tmp_path), tmp_path / "out.conllu"
    drawn = parse(capsys, model, "--file", treebank).splitlines()
    assert [line for line in drawn if line.startswith("line ")] == ["line 1: weblog-16", "line 12"]
    reply = records(capsys, model, "--file", treebank)
    assert [(row["line"], row.get("sent_id")) for row in reply] == [(1, "weblog-16"), (12, None)]
    parse(capsys, model, "--file", treebank, "--out", out)
    expected = []
    for row, block in zip(reply, TREEBANK.split("\n\n")[:2], strict=True):
        lines = block.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        expected += [*comments, f"# predicted_label = {row['label']}"]
        expected.append(f"# predicted_probability = {row['probability']:.6f}")
        for line in lines[len(comments) :]:
            cells = line.split("\t")
            if cells[0].isdigit():
                cells[6:8] = str(row["heads"][int(cells[0]) - 1]), "_"
            expected.append("\t".join(cells))
        expected.append("")
    assert out.read_text(encoding="utf-8").splitlines() == expected
    for asked in (["parse", model, "--file", treebank], ["predict", model, treebank]):
        assert shown(capsys, *asked, "--format", "conllu").splitlines() == expected
    parse(capsys, model, "--file", out, "--out", tmp_path / "again.conllu")
    assert (tmp_path / "again.conllu").read_text() == out.read_text()
