"""Sentence models: the paper's sizes, every kind of trees, padding, gradients, types."""

from __future__ import annotations

import pytest
import torch
from sentence_runs import tiny_model
from tolerances import EXACT, largest_error
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call

from treelax.apps.tasks.text import model as encoder_module
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
from treelax.trees import heads_to_tree, is_projective

KINDS = ["none", "intra", "latent", "heads", "chain", "given"]
every_kind = pytest.mark.parametrize("trees", KINDS)
with_and_without_lstm = pytest.mark.parametrize("lstm", ["none", "bilstm"])
LENGTHS = torch.tensor([5, 3, 1])
# one with two roots and crossing arcs; the padding holds what is no head
HEADS = torch.tensor([[3, 4, 0, 0, 1], [2, 0, 2, 9, 9], [0, -1, -1, -1, -1]])


def table(rows=9, size=4):
    return torch.randn(rows, size, generator=seeded(1)).index_fill(0, torch.tensor([0]), 0)


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
    """Without learned words, root and distance bias, which the paper does not count."""
    left_out = ("embedding.learned", "root.vector", "scorer.distance")
    named = PairModel(preset(name).model, table(103, 300), 3).named_parameters()
    assert sum(p.numel() for name, p in named if not name.endswith(left_out)) == parameters


# ------------------------------------------------------------------ every kind of trees


@pytest.mark.parametrize("trees", KINDS[2:])
@pytest.mark.parametrize("packed", [True, False])
def test_without_root_arcs_no_word_sees_the_root(trees, packed):
    for root_arcs in (True, False):
        model = settled(encoder(trees=trees, root_arcs=root_arcs)).eval()
        layout = model.layout(batch()) if packed else PADDED
        assert packed == isinstance(layout, Packed)
        vectors, tree, _ = model(batch(), layout)
        assert tree[:, 0].any()  # there is still a root
        if trees in ("latent", "heads"):
            assert model(batch())[2][:, 0].any() == root_arcs
        model.root.vector.data += 1
        again = model.compose(
            model.with_root(model.words(batch(), layout), layout), tree, layout.rooted()
        )
        assert torch.equal(vectors, again) is not root_arcs


@pytest.mark.parametrize(
    ("trees", "soft", "hard"),
    [
        ("latent", soft_tree, best_tree),
        (
            "heads",
            lambda scores, lengths: select_heads(scores, lengths, temperature=0.5),
            lambda scores, lengths: select_heads(scores, lengths, hard=True),
        ),
    ],
)
@pytest.mark.parametrize("half", [False, True])
def test_trees_are_sampled_in_training_and_the_best_later(trees, soft, hard, half):
    """Under autocast the scores are made in bfloat16; noise and trees are not."""
    model = settled(encoder(trees=trees, temperature=1.0 if trees == "latent" else 0.5))
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        scores = model(batch())[2]
        noise = perturbation("gumbel", scores, LENGTHS, generator=seeded())
        vectors, sampled, _ = model(batch(), generator=seeded())
        model.eval()
        best, softened = model(batch())[1], model(batch(), soft=True)[1]
    assert vectors.dtype == (torch.bfloat16 if half else torch.float32)
    assert scores.dtype == sampled.dtype == best.dtype == torch.float32
    assert torch.equal(scores, scores.bfloat16().float()) == half
    assert torch.equal(sampled, soft(scores + noise, LENGTHS))
    assert torch.equal(best, hard(scores, LENGTHS))
    assert torch.equal(softened, soft(scores, LENGTHS))
    assert largest_error(softened.detach(), best.detach()) > 1e-3


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("soft", [True, False])
def test_chains_and_given_trees_are_the_same_in_every_mode(training, soft):
    left = torch.tensor([[0, 1, 2, 3, 4], [0, 1, 2, -1, -1], [0, -1, -1, -1, -1]])
    for trees, heads in (("chain", left), ("given", HEADS)):
        tree = encoder(trees=trees).train(training)(batch(), soft=soft)[1]
        assert torch.equal(tree, heads_to_tree(heads, LENGTHS))
    assert not is_projective(HEADS, LENGTHS).all()


# ------------------------------------------------------------------ padding and gradients


@every_kind
def test_padding_changes_no_gradient_and_every_parameter_has_one(trees):
    config = tiny_model(trees=trees, encoder="bilstm", learned_words=8, noise="none")
    model = settled(PairModel(config, table(), 3).double())
    gradients = []
    for more in (0, 4):
        model.zero_grad()
        model(batch(more=more), batch()).square().sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        assert gradient is not None, name
        assert gradient.any(), name
        assert largest_error(gradients[1][name], gradient) < EXACT, name


def test_gradients_of_a_whole_model():
    sizes = dict.fromkeys(("projection_size", "scorer_size", "gcn_size", "output_size"), 3)
    config = tiny_model(**sizes, noise="none", gcn_layers=1)
    model = settled(PairModel(config, table(size=3), 2).double())
    names, values = zip(*model.named_parameters(), strict=True)

    def run(*parameters):
        return functional_call(model, dict(zip(names, parameters, strict=True)), (batch(), batch()))

    assert gradcheck(run, values, fast_mode=True)


@every_kind
@with_and_without_lstm
@pytest.mark.parametrize("network", [PairModel, ClassModel, TagModel])
def test_packed_words_are_trained_like_padded_ones(trees, lstm, network, monkeypatch):
    """The same draws of dropout and noise, values and gradients."""
    dropout = {"dropout": 0.3, "input_dropout": 0.2, "word_dropout": 0.2}
    model = settled(network(tiny_model(trees=trees, encoder=lstm, **dropout), table(), 3).double())
    texts = (batch(), batch(more=1))[: 2 if network is PairModel else 1]
    results = []
    for packed in (True, False):
        if not packed:
            monkeypatch.setattr(encoder_module, "best_layout", lambda lengths, size: PADDED)
        elif trees != "intra":
            assert isinstance(model.encoder.layout(texts[0]), Packed)
        torch.manual_seed(5)
        logits = model(*texts, generator=seeded())
        if network is TagModel:
            logits = torch.cat([row[:n] for row, n in zip(logits, LENGTHS.tolist(), strict=True)])
        model.zero_grad()
        logits.square().sum().backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        results.append([logits.detach(), *gradients])
    for one, other in zip(*results, strict=True):
        assert largest_error(one, other) < EXACT
