"""The ListOps tagger: what the composer sees, whose trees it gets, and its sizes."""

from __future__ import annotations

from collections import defaultdict
from typing import get_args, get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import VALUE_F32

from treelax.apps.data.listops import encode_listops, parse_expression
from treelax.apps.tasks.listops.model import Composer, ListOpsTagger, ModelConfig
from treelax.apps.tasks.settings import RELAXING, EstimatorSettings
from treelax.structures import Heads, Projective
from treelax.trees import heads_to_tree

TREES = ("latent", "heads", "gold", "chain")
SHORT = "[MAX 2 9 ]"
LONG = "[MIN 4 [SM 7 7 0 ] [MED 1 2 ] 3 ]"


def encode(*texts):
    return encode_listops(map(parse_expression, texts))


def small(seed=0, **settings):
    """A tagger of size 8 in evaluation mode, always the same."""
    torch.manual_seed(seed)
    sizes = dict.fromkeys(
        ("embedding_size", "encoder_size", "scorer_size", "gcn_size", "tagger_size"), 8
    )
    return ListOpsTagger(ModelConfig(**sizes | settings)).eval()


# ------------------------------------------------------------------ the composer sees the tree


@pytest.mark.parametrize("trees", ["gold", "chain"])
@pytest.mark.parametrize("layers", [1, 2])
def test_given_the_tree_tokens_change_nothing(trees, layers):
    model = small(trees=trees, gcn_layers=layers)
    logits = model(encode(LONG))
    same_tree = model(encode("[SM 0 [MIN 1 2 3 ] [MAX 9 9 ] 5 ]"))
    assert torch.equal(logits, same_tree)
    assert not logits.isnan().any()


@given(st.data())
def test_with_one_layer_only_the_number_of_modifiers_counts(data):
    n = data.draw(st.integers(1, 7))
    heads = [data.draw(st.integers(0, n).filter(lambda h, m=m: h != m)) for m in range(1, n + 1)]
    logits = _logits_by_degree(1, heads)
    for same in logits.values():
        assert torch.allclose(same, same[:1], rtol=0, atol=VALUE_F32)
    for degree, other in [(d, o) for d in logits for o in logits if d < o]:
        assert not torch.allclose(logits[degree][0], logits[other][0], rtol=0, atol=VALUE_F32)


def test_with_two_layers_that_is_no_longer_so():
    """So the test above can fail: a leaf's tag depends on the degree of its head."""
    leaves = _logits_by_degree(2, list(parse_expression(LONG).heads))[0]
    assert not torch.allclose(leaves, leaves[:1], rtol=0, atol=VALUE_F32)


def _logits_by_degree(layers, heads):
    torch.manual_seed(1)
    composer = Composer(ModelConfig(gcn_size=16, tagger_size=16, gcn_layers=layers))
    tree = heads_to_tree(torch.tensor([heads])).float()
    found = defaultdict(list)
    for vertex, logits in enumerate(composer(tree)[0], 1):
        found[heads.count(vertex)].append(logits)
    return {degree: torch.stack(rows) for degree, rows in found.items()}


# ------------------------------------------------------------------ whose trees


@pytest.mark.parametrize("trees", ["latent", "heads"])
def test_trees_are_discrete_or_soft_and_of_the_structure_that_was_set(trees, generator):
    batch = encode(LONG, SHORT)
    model = small(trees=trees)
    scores = model.parser.scores(batch.tokens, batch.lengths)
    structure = Projective() if trees == "latent" else Heads()
    tree = model.both_trees(batch)[0]
    assert torch.equal(tree, structure(scores, batch.lengths).mode)
    soft = model.parser.tree.sample(scores, batch.lengths, generator=generator)
    assert torch.allclose(soft.sum(-2), tree.sum(-2), atol=VALUE_F32)
    assert ((soft > 0) & (soft < 1)).any()


@pytest.mark.parametrize("straight_through", [False, True])
def test_training_samples_and_evaluation_does_not(straight_through):
    batch = encode(LONG, SHORT)
    model = small(straight_through=straight_through)
    assert torch.equal(model(batch), model(batch))
    model.train()

    def sampled(seed: int) -> torch.Tensor:
        scores = model.parser.scores(batch.tokens, batch.lengths)
        generator = torch.Generator().manual_seed(seed)
        return model.parser.tree.sample(scores, batch.lengths, generator=generator)

    one, same, other = map(sampled, (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert (set(one.unique().tolist()) == {0, 1}) is straight_through


def test_every_estimator_trains_parser_and_composer(generator):
    batch = encode(LONG, SHORT)
    for name in get_args(get_type_hints(EstimatorSettings)["name"]):
        if name == "exact":
            continue  # of shorter expressions
        model = small(estimator=EstimatorSettings(name)).train()
        losses = model.expect(
            batch, lambda logits: logits.square().sum((-2, -1)), generator=generator
        )
        assert losses.shape == (2,)
        losses.sum().backward()
        for part in (model.parser.encoder, model.composer):
            assert any((p.grad != 0).any() for p in part.parameters() if p.grad is not None), name


NAMES = [name for name in get_args(get_type_hints(EstimatorSettings)["name"]) if name != "exact"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("trees", "structure"),
    [("latent", "projective"), ("latent", "nonprojective"), ("heads", "projective")],
)
def test_without_root_arcs_the_root_learns_nothing(name, trees, structure, generator):
    batch = encode(LONG, SHORT)
    settings = {"trees": trees, "structure": structure, "gcn_layers": 2}
    settings["estimator"] = EstimatorSettings(name)
    if name in RELAXING:
        settings["relaxation"] = "entropy"
    for root_arcs in (True, False):
        model = small(**settings, root_arcs=root_arcs).train()
        scores = model.parser.scores(batch.tokens, batch.lengths)
        assert scores[:, 0].any() == root_arcs
        losses = model.expect(
            batch, lambda logits: logits.square().sum((-2, -1)), generator=generator
        )
        losses.sum().backward()
        assert any(p.grad.any() for p in model.parser.encoder.parameters())
        if not root_arcs:
            assert not model.parser.root.vector.grad.any()
        noise = getattr(getattr(model.parser.tree.estimator, "relaxed", None), "noise", None)
        noise = noise or getattr(model.parser.tree.estimator, "noise", None)
        assert noise is None or noise.root_arcs == root_arcs


@pytest.mark.parametrize("trees", TREES)
@pytest.mark.parametrize("root_arcs", [True, False])
def test_without_root_arcs_the_composer_does_not_see_them(trees, root_arcs):
    model = small(trees=trees, root_arcs=root_arcs, gcn_layers=2)
    batch = encode(LONG, SHORT)
    tree = model.both_trees(batch)[1]
    assert tree[:, 0].any()  # there is still a root
    other = tree.clone()
    other[:, 0, 1:] = torch.rand(tree.shape[1] - 1)
    assert torch.equal(model.composer(tree), model.composer(other)) is not root_arcs


# ------------------------------------------------------------------ shapes, padding, sizes


@pytest.mark.parametrize("trees", TREES)
def test_padding_changes_nothing(trees):
    model = small(trees=trees)
    alone, padded = encode(SHORT), encode(SHORT, LONG)
    assert torch.allclose(model(padded)[:1, :4], model(alone), atol=VALUE_F32)
    for tree, other in zip(model.both_trees(padded), model.both_trees(alone), strict=True):
        assert torch.allclose(tree[:1, :5, :5], other, atol=VALUE_F32)
        assert tree[0, 5:].eq(0).all()
        assert tree[0, :, 5:].eq(0).all()


@pytest.mark.parametrize("trees", TREES)
def test_every_parameter_learns(trees, generator):
    """The paper's sizes: tiny ones may leave a unit without a gradient."""
    torch.manual_seed(0)
    model = ListOpsTagger(ModelConfig(trees=trees)).train()
    batch = encode(LONG, SHORT)
    losses = model.expect(batch, lambda logits: logits.square().sum((-2, -1)), generator=generator)
    losses.sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_parameters_of_the_paper():
    """Appendix A.1: all sizes are 100, two BiLSTM stacks, two layers to score arcs, one of the GCN."""
    model = ListOpsTagger(ModelConfig())
    counts = {
        "parser.embedding": 16 * 100,  # 15 tokens and padding
        # four gates of two directions, with one input more that tells padding and two biases
        "parser.encoder": 2 * 4 * 100 * ((101 + 100 + 2) + (201 + 100 + 2)),
        "parser.root": 200,
        "parser.tree": 2 * (201 * 100 + 101 * 100) + 23,
        "composer.vertex": 100,
        "composer.gcn": 3 * 101 * 100,
        "composer.hidden": 101 * 100,
        "composer.output": 100 * 6,
    }
    for prefix, count in counts.items():
        own = [p for name, p in model.named_parameters() if name.startswith(prefix)]
        assert sum(p.numel() for p in own) == count, prefix
    assert sum(p.numel() for p in model.parameters()) == sum(counts.values()) == 508_123
