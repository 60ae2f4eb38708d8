"""The ListOps tagger: what the composer sees, whose trees it gets, its sizes and its figures."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from listops_runs import tiny
from tolerances import VALUE_F32

from treelax.apps.data.listops import (
    Expression,
    encode_listops,
    generate_listops,
    parse_expression,
)
from treelax.apps.tasks.listops import evaluation
from treelax.apps.tasks.listops.evaluation import Parsed, evaluate, parse_all
from treelax.apps.tasks.listops.model import Composer, ListOpsTagger, ModelConfig
from treelax.apps.tasks.settings import RELAXING, EstimatorSettings
from treelax.structures import Heads, Projective
from treelax.trees import heads_to_tree

TREES = ("latent", "heads", "gold", "chain")
SHORT = "[MAX 2 9 ]"
LONG = "[MIN 4 [SM 7 7 0 ] [MED 1 2 ] 3 ]"
NAMES = [name for name in get_args(get_type_hints(EstimatorSettings)["name"]) if name != "exact"]


def encode(*texts):
    return encode_listops(map(parse_expression, texts))


def small(seed=0, **settings):
    """A tagger of size 8 in evaluation mode, always the same."""
    torch.manual_seed(seed)
    sizes = dict.fromkeys(
        ("embedding_size", "encoder_size", "scorer_size", "gcn_size", "tagger_size"), 8
    )
    return ListOpsTagger(ModelConfig(**sizes | settings)).eval()


def squared(logits):
    return logits.square().sum((-2, -1))


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
    logits = logits_by_degree(1, heads)
    for same in logits.values():
        assert torch.allclose(same, same[:1], rtol=0, atol=VALUE_F32)
    for degree, other in [(d, o) for d in logits for o in logits if d < o]:
        assert not torch.allclose(logits[degree][0], logits[other][0], rtol=0, atol=VALUE_F32)


def test_with_two_layers_that_is_no_longer_so():
    """So the test above can fail: a leaf's tag depends on the degree of its head."""
    leaves = logits_by_degree(2, list(parse_expression(LONG).heads))[0]
    assert not torch.allclose(leaves, leaves[:1], rtol=0, atol=VALUE_F32)


def logits_by_degree(layers, heads):
    torch.manual_seed(1)
    composer = Composer(ModelConfig(gcn_size=16, tagger_size=16, gcn_layers=layers))
    groups = defaultdict(list)
    for vertex, logits in enumerate(composer(heads_to_tree(torch.tensor([heads])).float())[0], 1):
        groups[heads.count(vertex)].append(logits)
    return {degree: torch.stack(rows) for degree, rows in groups.items()}


# ------------------------------------------------------------------ whose trees


@pytest.mark.parametrize("straight_through", [False, True])
@pytest.mark.parametrize("trees", ["latent", "heads"])
def test_training_samples_and_evaluation_has_the_best(trees, straight_through):
    batch = encode(LONG, SHORT)
    model = small(trees=trees, straight_through=straight_through)
    scores = model.parser.scores(batch.tokens, batch.lengths)
    best = model.both_trees(batch)[0]
    structure = Projective() if trees == "latent" else Heads()
    assert torch.equal(best, structure(scores, batch.lengths).mode)
    assert torch.equal(model(batch), model(batch))

    def sampled(seed: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return model.parser.tree.sample(scores, batch.lengths, generator=generator)

    model.train()
    one, same, other = map(sampled, (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert (set(one.unique().tolist()) == {0, 1}) is straight_through
    assert torch.allclose(one.sum(-2), best.sum(-2), atol=VALUE_F32)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("trees", "structure"),
    [("latent", "projective"), ("latent", "nonprojective"), ("heads", "projective")],
)
def test_every_estimator_trains_and_without_root_arcs_the_root_learns_nothing(
    name, trees, structure, generator
):
    batch = encode(LONG, SHORT)
    settings = {"trees": trees, "structure": structure, "gcn_layers": 2}
    settings["estimator"] = EstimatorSettings(name)
    if name in RELAXING:
        settings["relaxation"] = "entropy"
    for root_arcs in (True, False):
        model = small(**settings, root_arcs=root_arcs).train()
        assert model.parser.scores(batch.tokens, batch.lengths)[:, 0].any() == root_arcs
        losses = model.expect(batch, squared, generator=generator)
        assert losses.shape == (2,)
        losses.sum().backward()
        for part in (model.parser.encoder, model.composer):
            assert any(p.grad.any() for p in part.parameters() if p.grad is not None)
        if not root_arcs:
            assert not model.parser.root.vector.grad.any()
        estimator = model.parser.tree.estimator
        noise = getattr(getattr(estimator, "relaxed", estimator), "noise", None)
        assert noise is None or noise.root_arcs == root_arcs


@pytest.mark.parametrize("trees", TREES)
def test_root_arcs_and_padding(trees):
    for root_arcs in (True, False):
        model = small(trees=trees, root_arcs=root_arcs, gcn_layers=2)
        alone, padded = encode(SHORT), encode(SHORT, LONG)
        assert torch.allclose(model(padded)[:1, :4], model(alone), atol=VALUE_F32)
        for tree, other in zip(model.both_trees(padded), model.both_trees(alone), strict=True):
            assert torch.allclose(tree[:1, :5, :5], other, atol=VALUE_F32)
            assert not tree[0, 5:].any()
            assert not tree[0, :, 5:].any()
            # a root of which the composer sees the arcs, or does not
            changed = tree.clone()
            changed[:, 0, 1:] = torch.rand(tree.shape[1] - 1)
            same = torch.equal(model.composer(tree), model.composer(changed))
            assert same is not root_arcs


@pytest.mark.parametrize("trees", TREES)
def test_every_parameter_learns(trees, generator):
    """The paper's sizes: tiny ones may leave a unit without a gradient."""
    torch.manual_seed(0)
    model = ListOpsTagger(ModelConfig(trees=trees)).train()
    model.expect(encode(LONG, SHORT), squared, generator=generator).sum().backward()
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
        part = [p for name, p in model.named_parameters() if name.startswith(prefix)]
        assert sum(p.numel() for p in part) == count, prefix
    assert sum(p.numel() for p in model.parameters()) == sum(counts.values()) == 508_123


# ------------------------------------------------------------------ figures by hand

#         1    2 3    4 5 6 7 8      heads 0 1 1 3 3 3 1 1, valencies 3 0 2 0 0 0 0 0
NESTED = "[MAX 2 [MIN 4 7 ] 0 ]"
#       1    2 3 4                   heads 0 1 1 1, valencies 2 0 0 0
FLAT = "[SM 2 9 ]"
#       1    2 3 4 5 6    7 8 9 10 11 12, a list in the last place
WIDE = "[MED 1 2 3 4 [MIN 5 6 7 8 ] ]"
PARSES = {
    # 0 and the last bracket hang off [MIN: 6 of 8 heads; [MAX has 1 modifier less: tag wrong
    NESTED: Parsed((0, 1, 1, 3, 3, 3, 3, 3), (1, 0, 2, 0, 0, 0, 0, 0), (3, 0, 3, 0, 0, 0, 0, 1)),
    # all right, but for a digit's tag; soft: all right
    FLAT: Parsed((0, 1, 1, 1), (2, 1, 0, 0), (2, 0, 0, 0)),
    # a chain; tags right for [MIN only, soft for none of the operators
    WIDE: Parsed(tuple(range(12)), (1, *[0] * 4, 4, *[0] * 6), (1, *[0] * 4, 1, *[0] * 6)),
}


def figures(monkeypatch, parses, **settings):
    """The figures of a tagger that parses like this."""
    monkeypatch.setattr(evaluation, "parse_all", lambda *_, **options: list(parses.values()))
    return evaluate(small(**settings), list(map(parse_expression, parses)))


def test_figures_by_hand(monkeypatch):
    short = {"longest": 10, "sentences": 2, "tokens": 12, "operators": 3, "arcs": 12}
    short |= {"operator_accuracy": 100 * 2 / 3, "attachment": 100 * 10 / 12, "exact_trees": 50.0}
    long = {"longest": 20, "sentences": 1, "tokens": 12, "operators": 2, "arcs": 12}
    long |= {"operator_accuracy": 50.0, "attachment": 100 * 3 / 12, "exact_trees": 0.0}
    every = figures(monkeypatch, PARSES).record()
    assert every == {
        **{"sentences": 3, "tokens": 24, "operators": 5, "arcs": 24},
        # [MIN of NESTED, [SM, [MIN of WIDE
        "operator_accuracy": 100 * 3 / 5,
        # wrong: [MAX; 2 of FLAT; [MED
        "token_accuracy": 100 * 21 / 24,
        # NESTED 6, FLAT 4; WIDE: [MED, 1 and 5, for the others hang off an operator further left
        "attachment": 100 * (6 + 4 + 3) / 24,
        "exact_trees": 100 / 3,
        # [MAX and [SM
        "soft_operator_accuracy": 100 * 2 / 5,
        # wrong: [MIN and ] of NESTED; [MED and [MIN of WIDE
        "soft_token_accuracy": 100 * 20 / 24,
        "attachment_by_kind": {
            # NESTED 2 4 7 but not 0; FLAT both; WIDE 1 and 5 of eight
            "argument": 100 * (3 + 2 + 2) / 14,
            # NESTED the first; FLAT; WIDE neither
            "bracket": 100 * 2 / 5,
            # NESTED yes, WIDE no
            "nested operator": 50.0,
            "outermost operator": 100.0,
        },
        "by_length": [
            short | {"attachment_operator": 100 * 10 / 12},
            long | {"attachment_operator": 100 * 11 / 12},
        ],
        "baselines": {
            # NESTED [MAX 2 4; FLAT [SM 2; WIDE [MED 1 5
            "previous token": 100 * (3 + 2 + 3) / 24,
            # all but 0 and ] of NESTED, and the last ] of WIDE
            "last operator": 100 * 21 / 24,
        },
    }
    # without root arcs the outermost operator has no head to find: that of NESTED does not count
    wrong_root = replace(PARSES[NESTED], heads=(8, 1, 1, 3, 3, 3, 1, 1))
    evaluated = figures(monkeypatch, PARSES | {NESTED: wrong_root}, root_arcs=False)
    record = evaluated.record()
    by_length = record.pop("by_length")
    changed = {
        **{"arcs": 21, "attachment": 100 * (7 + 3 + 2) / 21, "exact_trees": 100 * 2 / 3},
        "attachment_by_kind": {
            **{"argument": 100 * (4 + 2 + 2) / 14, "bracket": 100 * 3 / 5},
            "nested operator": 50.0,
        },
        "baselines": {"previous token": 100 * 5 / 21, "last operator": 100 * 18 / 21},
    }
    assert record == {key: changed.get(key, every[key]) for key in record}
    assert [row["arcs"] for row in by_length] == [10, 11]
    assert [row["attachment"] for row in by_length] == [100.0, 100 * 2 / 11]
    assert [row["attachment_operator"] for row in by_length] == [80.0, 100 * 10 / 11]
    assert "attachment below the root" in str(evaluated.tables("test")[0].rows)


@pytest.mark.parametrize(("most", "entries"), [(1, 10**9), (7, 10**9), (256, 600), (256, 1)])
def test_the_size_of_batches_never_changes_results(most, entries, monkeypatch):
    expressions, model = generate_listops(40, seed=3, max_length=60), small()
    expected = parse_all(model, expressions)
    monkeypatch.setattr(evaluation, "BATCH_MOST", most)
    monkeypatch.setattr(evaluation, "BATCH_ENTRIES", entries)
    sizes, trees = [], model.both_trees

    def counted(batch, scores):
        sizes.append(len(batch))
        assert len(batch) == 1 or len(batch) * (batch.tokens.shape[1] + 1) ** 2 <= entries
        return trees(batch)

    monkeypatch.setattr(model, "both_trees", counted)
    assert parse_all(model, expressions) == expected
    assert sum(sizes) == 40
    assert len(sizes) > 1
    assert max(sizes) <= most


@pytest.mark.parametrize("training", [False, True])
def test_the_mode_is_left_as_it_was(training):
    model = small().train(training)
    expressions = generate_listops(5, seed=1, max_length=20)

    def fail(done):
        assert not model.training
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parse_all(model, expressions, progress=fail)
    assert model.training is model.composer.training is training


def test_long_expressions():
    def nested(tokens):
        depth = (tokens - 1) // 3
        return Expression(("[MAX", "1") * depth + ("2",) + ("]",) * depth)

    expressions = [nested(301), parse_expression(FLAT)]
    parsed = parse_all(small(), expressions)
    assert [len(p.heads) for p in parsed] == [301, 4]
    assert heads_to_tree(torch.tensor([parsed[0].heads])).sum() == 301
    assert [row["longest"] for row in evaluate(small(), expressions).by_length] == [10, 500]
    longest = evaluate(ListOpsTagger(tiny("gold").model), [nested(601)])
    assert longest.by_length[0]["longest"] is None
    assert longest.exact_trees == 100
