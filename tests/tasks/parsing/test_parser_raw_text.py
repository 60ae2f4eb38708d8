"""Parsers on raw text: words aligned by characters, and figures as the official evaluator has them."""

from __future__ import annotations

import json
import random
from io import StringIO
from pathlib import Path

import pytest

from treelax.__main__ import main
from treelax.apps.data.conllu import Sentence, read_conllu, write_conllu
from treelax.apps.tasks.parsing.evaluation import ParsingFigures, align, surface_tokens

Output = pytest.CaptureFixture[str]
LABELS = ("nsubj", "nsubj:pass", "obj", "root", "punct")
TOKENS = (("don't", "do", "n't"), ("its", "it", "'s"), ("dogs",), ("well",), ("-",), ("known",))
TOKENS += (("a b",), (".",), ("Cannot", "can", "not"))


def sentence(*tokens: tuple[str, ...], text: str | None = None, seed: int = 0) -> Sentence:
    """A sentence of tokens, which may be of several words, with a random tree."""
    rng, lines, words = random.Random(seed), [], list[str]()
    for form, *parts in tokens:
        if parts:
            lines.append(f"{len(words) + 1}-{len(words) + len(parts)}\t{form}" + "\t_" * 8)
        for word in parts or [form]:
            words.append(word)
            lines.append(f"{len(words)}\t{word}" + "\t_" * 8)
    comments = [] if text is None else [f"# text = {text}"]
    own = Sentence(tuple(words), *random_tree(len(words), rng), lines=(*comments, *lines))
    filled = own.with_tree(own.heads, columns={"DEPREL": own.labels or ()})
    return Sentence(own.words, own.heads, labels=own.labels, lines=tuple(filled))


def random_tree(n: int, rng: random.Random) -> tuple[tuple[int, ...], None, tuple[str, ...]]:
    order = rng.sample(range(1, n + 1), n)
    heads = [0] * n
    for i, word in enumerate(order[1:], 1):
        heads[word - 1] = rng.choice(order[:i])
    return tuple(heads), None, tuple(rng.choice(LABELS) if head else "root" for head in heads)


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
    said = (("well-known", "."), (0, 1), ("root", "punct"))
    figures = ParsingFigures.of([gold], [said])
    assert figures.word_f1 == pytest.approx(200 / 6)  # the stop is found, of 4 words and of 2
    assert figures.uas == 0  # its head is no gold word
    assert figures.exact_trees == 0
    assert figures.without_punctuation["words"] == 2


def test_the_official_evaluator_agrees(tmp_path: Path) -> None:
    udeval = pytest.importorskip("udtools.udeval")
    rng, gold, found = random.Random(0), [], []
    for seed in range(200):
        own = sentence(*(rng.choice(TOKENS) for _ in range(rng.randint(1, 9))), seed=seed)
        words = []
        for form, _ in surface_tokens(own):  # some are cut, some are joined
            text, place = form.replace(" ", ""), rng.randint(1, 2 * len(form))
            words += [part for part in (text[:place], text[place:]) if part]
        if rng.random() < 0.5 and len(words) > 1:
            place = rng.randrange(len(words) - 1)
            words[place : place + 2] = ["".join(words[place : place + 2])]
        gold.append(own)
        heads, _, labels = random_tree(len(words), rng)
        found.append((tuple(words), heads, labels))

    def read(name: str, sentences: list[Sentence]) -> object:
        write_conllu(tmp_path / name, sentences)
        return udeval.load_conllu(StringIO((tmp_path / name).read_text()), name, {})

    said = [Sentence(words, heads, labels=labels) for words, heads, labels in found]
    theirs = udeval.evaluate(read("gold.conllu", gold), read("said.conllu", said))
    ours = ParsingFigures.of(gold, found)
    assert 30 < ours.word_f1 < 95
    for key, own in (("Words", ours.word_f1), ("UAS", ours.uas), ("LAS", ours.las)):
        assert 100 * theirs[key].f1 == pytest.approx(own), key


def test_eval_cuts_the_texts_of_a_treebank(run: Path, tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "texts.conllu"
    rows = list(read_conllu(run.parent / "dev.conllu"))[:5]

    def evaluate(*options: str) -> int:
        return main(["eval", str(run), "--data", str(file), "--device", "cpu", *options])

    def write(text: str | None) -> None:
        blocks = []
        for own in rows:
            written = " ".join(own.words[:-1]) + own.words[-1] if text is None else text
            blocks += [*own.with_tree(None, comments={"text": written}), ""]
        file.write_text("\n".join([*blocks, ""]))

    write(None)
    assert evaluate("--raw", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["word_f1"], found["las"]) == (100, 100)
    write("other words")
    assert evaluate("--raw") == 2
    assert "texts.conllu, line 1: received the text 'other words'; expected a comment # text" in (
        capsys.readouterr().err
    )
    assert main(["eval", "listops", "--data", str(file), "--raw", "--device", "cpu"]) == 2
    assert "--raw: received listops, which learned from no treebank" in capsys.readouterr().err


def test_raw_text_keeps_its_quotes(run: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "x.txt").write_text('The “cats” don’t see "dogs".\n')
    assert main(["predict", str(run), str(tmp_path / "x.txt"), "--device", "cpu"]) == 0
    assert json.loads(capsys.readouterr().out)["words"] == [
        *("The", "“", "cats", "”", "do", "n’t", "see", '"', "dogs", '"', ".")
    ]
