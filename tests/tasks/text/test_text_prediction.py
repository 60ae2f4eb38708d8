"""Predictions: in order whatever the batches, trees over words alone, texts without words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from tiny_texts import tiny_model

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks.base import Prediction
from treelax.apps.tasks.sentences import trained
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.apps.tasks.text.model import SentenceEncoder, Sentences
from treelax.apps.tasks.text.presets import preset
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.errors import DataError, InputError
from treelax.trees import is_projective, is_tree

WORDS = ["dogs", "bark", "cats", "sleep", "a", "bird", "sings", "loudly"]
LABELS = ("no", "perhaps", "yes")
KINDS = ["classify", "pair", "tag"]


class Model(SentenceModel):
    """A model with weights that no other test depends on."""

    def __init__(self, kind="classify", seed=0, **changes):
        model = tiny_model(**{"learned_words": 50, "encoder": "bilstm"} | changes.pop("model", {}))
        text = ("first", "second") if kind == "pair" else ("text",)
        settings = SentenceSettings(kind=kind, text=text, model=model, **changes)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            super().__init__(settings, random_vectors(WORDS, 12, seed=seed), LABELS)

    def predict(self, examples, **options):
        return list(self.stream(examples, **options))

    def stream(self, examples, **options):
        one = self.settings.texts == 1
        return super().stream((each[0] if one else each for each in examples), **options)


def drawn(kind, count, seed=0, least=1):
    generator = torch.Generator().manual_seed(seed)

    def text():
        length = int(torch.randint(least, 9, (), generator=generator))
        return [WORDS[i] for i in torch.randint(len(WORDS), (length,), generator=generator)]

    return [[text() for _ in range(2 if kind == "pair" else 1)] for _ in range(count)]


def same(one, other):
    """The same labels and trees, and probabilities up to rounding: batches are padded otherwise."""
    assert [(p.words, p.label, p.trees) for p in one] == [
        (p.words, p.label, p.trees) for p in other
    ]
    for first, second in zip(one, other, strict=True):
        assert first.probability == pytest.approx(second.probability, abs=1e-5)


# ------------------------------------------------------------------ order and batches


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("structure", ["projective", "binary"])
def test_an_example_is_predicted_as_if_it_were_alone(kind, null, structure):
    model = Model(kind, null=null, model={"structure": structure})
    examples = drawn(kind, 23)
    alone = [model.predict([example])[0] for example in examples]
    same(model.predict(examples, batch_size=5), alone)
    assert [list(map(list, p.words)) for p in alone] == examples
    assert len({str(p.probabilities) for p in alone}) > 20


def test_few_examples_are_read_ahead(monkeypatch):
    monkeypatch.setattr(trained, "WINDOW", 2)
    model = Model()
    read = []

    def examples():
        for example in drawn("classify", 20):
            read.append(example)
            yield example

    said = model.stream(examples(), batch_size=3)
    assert not read
    next(said)
    assert len(read) == 6
    assert len(list(said)) == 19


def test_long_sentences_come_in_small_batches(monkeypatch):
    monkeypatch.setattr(Model, "most_arcs", 400)
    sizes = []
    forward = SentenceEncoder.forward

    def watched(self, batch, *layout, **options):
        sizes.append(tuple(batch.ids.shape))
        return forward(self, batch, *layout, **options)

    monkeypatch.setattr(SentenceEncoder, "forward", watched)
    examples = [[["dogs"] * length] for length in (50, 2, 9, 1, 9, 30, 2, 9, 9)]
    said = Model().predict(examples)
    assert [len(p.words[0]) for p in said] == [50, 2, 9, 1, 9, 30, 2, 9, 9]
    assert sizes == [(3, 2), (3, 9), (1, 9), (1, 30), (1, 50)]


def test_the_mode_of_the_network_stays():
    model = Model(model={"dropout": 0.5})
    examples = drawn("classify", 4)
    for training in (True, False):
        model.network.train(training)
        assert model.predict(examples) == model.predict(examples)
        assert model.network.training is training


# ------------------------------------------------------------------ labels and probabilities


def test_probabilities_are_those_of_the_logits():
    model = Model("classify", null=True)
    [said] = model.predict([[["dogs", "bark"]]])
    ids = torch.tensor([[1, *model.vectors.ids(["dogs", "bark"])]])
    logits = model.network.eval()(Sentences(ids, torch.tensor([3])))[0]
    assert list(said.probabilities) == list(LABELS)
    assert list(said.probabilities.values()) == pytest.approx(logits.softmax(0).tolist())
    assert said.label == LABELS[logits.argmax()]
    assert said.probability == max(said.probabilities.values())


# ------------------------------------------------------------------ trees


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize(
    ("kind", "null", "single_root"),
    [("classify", False, True), ("pair", True, False), ("tag", True, True)],
)
def test_heads_are_projective_trees_of_the_words(kind, null, soft, single_root):
    model = Model(kind, null=null, model={"single_root": single_root, "distances": None})
    for said in model.predict(drawn(kind, 30), soft=soft):
        for words, found in zip(said.words, said.heads or (), strict=True):
            heads = torch.tensor(found)
            assert len(words) == len(heads)
            assert is_tree(heads, single_root=single_root and not null)
            assert is_projective(heads)


@pytest.mark.parametrize("null", [False, True])
def test_chains_and_models_without_trees(null):
    for soft in (False, True):
        chain = Model(null=null, model={"trees": "chain"})
        [said] = chain.predict([[["dogs", "bark", "loudly"]]], soft=soft)
        assert said.heads == ((0, 1, 2),)
        for trees in ("none", "intra"):
            [said] = Model("pair", null=null, model={"trees": trees}).predict([[["a"], ["bird"]]])
            assert said.heads is None
            assert said.label in LABELS


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_given_trees_are_those_that_come_back(kind, null):
    """And they matter: of the same words another tree gives other probabilities."""
    model = Model(kind, null=null, model={"trees": "given"})
    words = ("dogs", "bark", "loudly")
    trees = [(2, 0, 2), (3, 1, 0), (0, 0, 0)]
    texts = 2 if kind == "pair" else 1
    said = model.predict([[Sentence(words, heads)] * texts for heads in trees])
    assert [each.heads for each in said] == [(heads,) * texts for heads in trees]
    assert [each.words for each in said] == [(words,) * texts] * 3
    assert len({str(each.probability) for each in said}) == 3


def test_given_trees_must_be_there_and_be_trees():
    model = Model(model={"trees": "given"})
    with pytest.raises(InputError, match=r"texts\[1\]: received words without heads.*'given'"):
        model.predict([[Sentence(("dogs",), (0,))], [["bark"]]])
    with pytest.raises(DataError, match=r"texts\[0\]: the heads go round in a circle"):
        model.predict([[Sentence(("dogs", "bark"), (2, 1))]])
    with pytest.raises(DataError, match=r"texts\[0\]: received no heads"):
        model.predict([[Sentence(("dogs", "bark"))]])
    assert model.predict([[[]]])[0].label is None


# ------------------------------------------------------------------ what is not there


@pytest.mark.parametrize("null", [False, True])
def test_texts_without_words_have_no_label_and_keep_their_place(null):
    classes = Model("classify", null=null)
    empty = Prediction(((),))
    said = classes.predict([[[]], [["dogs"]], [[]]])
    assert (said[0], said[2]) == (empty, empty)
    assert said[1] == classes.predict([[["dogs"]]])[0]
    assert (empty.label, empty.probabilities, empty.probability, empty.heads) == (None,) * 4
    pair = Model("pair", null=null).predict([[["dogs"], []], [["dogs"], ["cats"]]])
    assert pair[0] == Prediction((("dogs",), ()))
    assert pair[1].label in LABELS
    assert Model("tag", null=null).predict([[[]]]) == [empty]


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("name", "columns", "tokens"),
    [
        ("snli-tree-1", ("premise", "hypothesis"), False),
        ("multinli-none", ("premise", "hypothesis"), False),
        ("sst-tree", ("sentence",), False),
        ("tag", ("text",), False),
        ("pair", ("first", "second"), True),
    ],
)
def test_settings_of_configs(name, columns, tokens):
    config = preset(name)
    config = replace(config, data=replace(config.data, tokens=True, vectors="glove.txt"))
    settings = SentenceSettings.of(config, rows=200)
    assert (settings.text, settings.tokens) == (columns, tokens)
    assert settings.model == config.model
    assert settings.null == config.data.null


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_get_in_each_other_s_way(kind):
    model = Model(kind)
    model.network.eval()
    examples = [drawn(kind, 5, seed) for seed in range(8)]
    alone = [model.predict(each) for each in examples]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            assert [p for each in threads.map(model.predict, examples) for p in each] == [
                p for each in alone for p in each
            ]
