"""Sentence models: the paper's sizes, every kind of trees, padding, types."""

from __future__ import annotations

import pytest
import torch
from tiny_texts import tiny_model
from tolerances import EXACT, VALUE_F32, largest_error
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call

from treelax.apps.tasks.text import model as encoder_module
from treelax.apps.tasks.text.config import ModelConfig
from treelax.apps.tasks.text.model import (
    ClassModel,
    PairModel,
    SentenceEncoder,
    Sentences,
    TagModel,
)
from treelax.apps.tasks.text.presets import preset
from treelax.nn.layout import PADDED, Packed
from treelax.noise import perturbation
from treelax.ops import best_tree, select_heads, soft_tree
from treelax.structures import base as trees_module
from treelax.structures import heads as heads_module
from treelax.trees import heads_to_tree, is_projective, is_tree, tree_to_heads

KINDS = ["none", "intra", "latent", "heads", "chain", "given"]
WITH_TREES = KINDS[2:]
every_kind = pytest.mark.parametrize("trees", KINDS)
every_kind_with_trees = pytest.mark.parametrize("trees", WITH_TREES)
with_and_without_lstm = pytest.mark.parametrize("lstm", ["none", "bilstm"])

LENGTHS = torch.tensor([5, 3, 1])
# one with two roots and crossing arcs; the padding holds what is no head
HEADS = torch.tensor([[3, 4, 0, 0, 1], [2, 0, 2, 9, 9], [0, -1, -1, -1, -1]])


def table(rows=9, size=4, dtype=torch.float32):
    values = torch.randn(rows, size, generator=torch.Generator().manual_seed(1)).to(dtype)
    values[0] = 0
    return values


def batch(*, more=0):
    """Three sentences, padded to five words and some more."""
    ids = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 2, 0, 0], [3, 0, 0, 0, 0]])
    pad = nn.functional.pad
    return Sentences(pad(ids, (0, more)), LENGTHS, pad(HEADS, (0, more), value=-1))


def seeded(seed=2):
    return torch.Generator().manual_seed(seed)


def settled(model):
    """A model with no weight at its initial value, but for the LSTM's: some close it to padding."""
    generator = seeded(4)
    for name, parameter in model.named_parameters():
        if "stacks" not in name:
            parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator).to(parameter)
    return model


def encoder(**changes):
    torch.manual_seed(0)
    return SentenceEncoder(tiny_model(**changes), table())


def words_of(vectors):
    return [row[:length] for row, length in zip(vectors, LENGTHS.tolist(), strict=True)]


# ------------------------------------------------------------------ the paper's sizes


def count(model):
    """Parameters without learned words, root and distance bias, as PAPER_NOTES counts them."""
    left_out = ("embedding.learned", "root.vector", "scorer.distance")
    return sum(p.numel() for name, p in model.named_parameters() if not name.endswith(left_out))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("snli-none", 382_003),
        ("snli-intra", 582_403),
        ("snli-tree-1", 703_003),
        ("snli-tree-2", 1_063_603),
        ("multinli-tree-2", 1_063_603),
        ("snli-heads-2", 1_063_603),  # head selection has the same network
        ("snli-chain-1", 703_003 - 2 * 40_200),  # and a chain needs no scores
    ],
)
def test_the_papers_numbers_of_parameters(name, parameters):
    config = preset(name).model
    assert count(PairModel(config, table(103, 300), 3)) == parameters


# ------------------------------------------------------------------ every kind of trees


@every_kind_with_trees
@pytest.mark.parametrize("packed", [True, False])
def test_without_root_arcs_no_word_sees_the_root(trees, packed):
    for root_arcs in (True, False):
        model = settled(encoder(trees=trees, root_arcs=root_arcs)).eval()
        layout = model.layout(batch()) if packed else PADDED
        assert packed == (layout is not PADDED)
        vectors, tree, _ = model(batch(), layout)
        assert tree[:, 0].any()  # there is still a root
        if trees in ("latent", "heads"):
            assert model.scores(batch())[:, 0].any() == root_arcs
        vertices = model.with_root(model.words(batch(), layout), layout)
        model.root.vector.data += 1
        moved = model.with_root(model.words(batch(), layout), layout)
        assert not torch.equal(vertices, moved)
        again = model.compose(moved, tree, layout.rooted())
        assert torch.equal(vectors, again) is not root_arcs


def test_latent_trees():
    model = settled(encoder(trees="latent"))
    scores = model.scores(batch())
    assert scores.shape == (3, 6, 6)
    sampled = model(batch(), generator=seeded())[1]
    perturbed = scores + perturbation("gumbel", scores, LENGTHS, generator=seeded())
    assert torch.equal(sampled, soft_tree(perturbed, LENGTHS))
    tree = model.eval()(batch())[1]
    assert torch.equal(tree, best_tree(scores, LENGTHS))
    heads = tree_to_heads(tree, LENGTHS)
    assert is_tree(heads, LENGTHS).all()
    assert is_projective(heads, LENGTHS).all()
    soft = model(batch(), soft=True)[1]
    assert torch.equal(soft, soft_tree(scores, LENGTHS))
    assert largest_error(soft.detach(), tree.detach()) > 1e-3


def test_chosen_heads():
    model = settled(encoder(trees="heads", temperature=0.5))
    scores = model.scores(batch())
    sampled = model(batch(), generator=seeded())[1]
    perturbed = scores + perturbation("gumbel", scores, LENGTHS, generator=seeded())
    assert torch.equal(sampled, select_heads(perturbed, LENGTHS, temperature=0.5))
    model.eval()
    assert torch.equal(model(batch())[1], select_heads(scores, LENGTHS, hard=True))
    assert torch.equal(model(batch(), soft=True)[1], select_heads(scores, LENGTHS, temperature=0.5))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("soft", [True, False])
def test_chains_and_given_trees_are_the_same_in_every_mode(training, soft):
    chain = encoder(trees="chain").train(training)(batch(), soft=soft)[1]
    left = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1], [0, -1, -1, -1, -1]])
    assert torch.equal(chain, heads_to_tree(left, LENGTHS))
    given = encoder(trees="given").train(training)(batch(), soft=soft)[1]
    assert torch.equal(given, heads_to_tree(HEADS, LENGTHS))
    assert not is_projective(HEADS, LENGTHS).all()


# ------------------------------------------------------------------ padding and gradients


@every_kind
@with_and_without_lstm
def test_padding_and_company_change_nothing(trees, lstm):
    model = settled(encoder(trees=trees, encoder=lstm, noise="none").double())
    for training in (True, False):
        model.train(training)
        together, tree, _ = model(batch())
        wide, wide_tree, _ = model(batch(more=3))
        for i, length in enumerate(LENGTHS.tolist()):
            one = Sentences(
                batch().ids[i : i + 1, :length], LENGTHS[i : i + 1], HEADS[i : i + 1, :length]
            )
            alone, alone_tree, _ = model(one)
            for vectors, its_tree in ((together, tree), (wide, wide_tree)):
                error = largest_error(vectors[i, :length].detach(), alone[0].detach())
                assert error < EXACT
                if its_tree is not None:
                    size = length + 1
                    part = its_tree[i, :size, :size].detach()
                    assert largest_error(part, alone_tree[0].detach()) < EXACT


@every_kind
def test_padding_changes_no_gradient(trees):
    model = settled(ClassModel(tiny_model(trees=trees, noise="none"), table(), 2).double())
    gradients = []
    for more in (0, 4):
        model(batch(more=more)).sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        model.zero_grad()
    assert gradients[0]
    for narrow, wide in zip(*gradients, strict=True):
        assert largest_error(wide, narrow) < EXACT


@every_kind
def test_every_parameter_gets_a_gradient(trees):
    model = settled(
        PairModel(tiny_model(trees=trees, encoder="bilstm", learned_words=8), table(), 3)
    )
    model(batch(), batch(), generator=seeded()).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("trees", ["latent", "intra"])
def test_gradients_of_a_whole_model(trees):
    sizes = {name: 3 for name in ("projection_size", "scorer_size", "gcn_size", "output_size")}
    config = ModelConfig(**sizes, trees=trees, dropout=0.0, noise="none", gcn_layers=1)
    model = settled(PairModel(config, table(size=3), 2).double())
    names, values = zip(*model.named_parameters(), strict=True)

    def run(*parameters):
        return functional_call(model, dict(zip(names, parameters, strict=True)), (batch(), batch()))

    assert gradcheck(run, values, fast_mode=True)


# ------------------------------------------------------------------ types


@pytest.mark.parametrize("trees", ["latent", "heads"])
@pytest.mark.parametrize("mode", ["train", "eval", "soft"])
def test_trees_are_float32_in_half_precision(trees, mode, monkeypatch):
    """Under autocast the scores are made in bfloat16; noise and trees are not."""
    seen = []
    module = trees_module if trees == "latent" else heads_module
    for name in ("make_call",) if trees == "latent" else ("select_heads",):
        operation = getattr(module, name)

        def spy(*args, operation=operation, **options):
            seen.append(next(x for x in args if isinstance(x, torch.Tensor)))
            return operation(*args, **options)

        monkeypatch.setattr(module, name, spy)
    model = settled(encoder(trees=trees)).train(mode == "train")
    with torch.autocast("cpu", torch.bfloat16):
        scores = model.scores(batch())
        layout = model.layout(batch())
        vectors, tree, _ = model(batch(), layout, soft=mode == "soft", generator=seeded())
    assert vectors.dtype == torch.bfloat16
    assert scores.dtype == tree.dtype == torch.float32
    assert torch.equal(scores.bfloat16().float(), scores)
    assert [s.dtype for s in seen] == [torch.float32]
    if mode == "train":  # the noise was not rounded
        noise = perturbation("gumbel", scores, LENGTHS, generator=seeded())
        assert torch.equal(seen[0][noise != 0], (scores + noise)[noise != 0])
        assert not torch.equal(seen[0].bfloat16().float(), seen[0])


@every_kind
@with_and_without_lstm
@pytest.mark.parametrize("network", [PairModel, ClassModel, TagModel])
def test_packed_words_are_trained_like_padded_ones(trees, lstm, network, monkeypatch):
    """The same draws of dropout and noise, values and gradients."""
    dropout = {"dropout": 0.3, "input_dropout": 0.2, "word_dropout": 0.2}
    config = tiny_model(trees=trees, encoder=lstm, **dropout)
    model = settled(network(config, table(), 3).double())
    texts = (batch(), batch(more=1))[: 2 if network is PairModel else 1]
    found = []
    for packed in (True, False):
        if not packed:
            monkeypatch.setattr(encoder_module, "best_layout", lambda lengths, size: PADDED)
        elif trees != "intra":
            assert isinstance(model.encoder.layout(texts[0]), Packed)
        torch.manual_seed(5)
        logits = model(*texts, generator=seeded())
        if network is TagModel:
            logits = torch.cat(words_of(logits))
        model.zero_grad()
        logits.square().sum().backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        found.append([logits.detach(), *gradients])
    for one, other in zip(*found, strict=True):
        assert largest_error(one, other) < EXACT


# ------------------------------------------------------------------ the three models


@every_kind
def test_pairs(trees):
    model = settled(PairModel(tiny_model(trees=trees, pooling="sum"), table(), 3)).eval()
    first, second = batch(), batch(more=1)
    logits = model(first, second)
    assert logits.shape == (3, 3)
    a, b = model.encoder(first)[0], model.encoder(second)[0]
    expected = model.head(a, LENGTHS, b, LENGTHS)
    assert largest_error(logits.detach(), expected.detach()) < VALUE_F32
    assert model.head.pooling == "sum"


@every_kind
def test_classes_by_a_slow_maximum(trees):
    """Vectors without trees may be negative, so padding must not count as 0."""
    model = settled(ClassModel(tiny_model(trees=trees, encoder="bilstm"), table(), 2)).eval()
    vectors = model.encoder(batch(more=2))[0]
    pooled = torch.stack([words.max(0).values for words in words_of(vectors)])
    if trees == "none":
        assert (pooled < 0).any()
    expected = model.output(model.hidden(pooled))
    assert largest_error(model(batch(more=2)).detach(), expected.detach()) < VALUE_F32
