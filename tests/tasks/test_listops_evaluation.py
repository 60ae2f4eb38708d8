"""Figures of a tagger: by hand on a few expressions, whatever the batches and lengths."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from listops_runs import tiny
from torch import nn

from treelax.apps.data.listops import Expression, encode_listops, generate_listops, parse_expression
from treelax.apps.tasks.listops import evaluation
from treelax.apps.tasks.listops.evaluation import Parsed, evaluate, parse_all
from treelax.apps.tasks.listops.model import ListOpsTagger, ModelConfig
from treelax.trees import heads_to_tree


class Scripted(nn.Module):
    """A tagger that says what it is told to say of each expression."""

    class Composer(nn.Module):
        def __init__(self):
            super().__init__()
            self.vertex = nn.Parameter(torch.zeros(1))
            self.said = {}  # by the tree's address

        def forward(self, tree):
            return nn.functional.one_hot(self.said[tree.data_ptr()], 6)

    def __init__(self, answers, **settings):
        super().__init__()
        self.config = ModelConfig(**settings)
        self.composer = Scripted.Composer()
        self.answers = {
            tuple(encode_listops([parse_expression(text)]).tokens[0].tolist()): answer
            for text, answer in answers.items()
        }
        self.batches = []

    def both_trees(self, batch, scores):
        assert not self.training
        self.batches.append(len(batch))
        rows = [
            self.answers[tuple(tokens[:n].tolist())]
            for tokens, n in zip(batch.tokens, batch.lengths.tolist(), strict=True)
        ]
        heads, tags, soft = (
            torch.zeros(batch.tokens.shape, dtype=torch.int64) for _ in ("heads", "tags", "soft")
        )
        for b, row in enumerate(rows):
            n = len(row.heads)
            heads[b, :n] = torch.tensor(row.heads)
            tags[b, :n] = torch.tensor(row.tags)
            soft[b, :n] = torch.tensor(row.soft_tags)
        # the figures ask for the first head of each column, so these need not be trees
        discrete = nn.functional.one_hot(heads, heads.shape[1] + 1).transpose(1, 2)
        discrete = nn.functional.pad(discrete, (1, 0))
        softened = discrete.clone()
        self.composer.said = {discrete.data_ptr(): tags, softened.data_ptr(): soft}
        return discrete, softened


#         1    2 3    4 5 6 7 8      heads 0 1 1 3 3 3 1 1, valencies 3 0 2 0 0 0 0 0
NESTED = "[MAX 2 [MIN 4 7 ] 0 ]"
#       1    2 3 4                   heads 0 1 1 1, valencies 2 0 0 0
FLAT = "[SM 2 9 ]"
#       1    2 3 4 5 6    7 8 9 10 11 12, a list in the last place
WIDE = "[MED 1 2 3 4 [MIN 5 6 7 8 ] ]"
ANSWERS = {
    # 0 and the last bracket hang off [MIN: 6 of 8 heads; [MAX has 1 modifier less: tag wrong
    NESTED: Parsed((0, 1, 1, 3, 3, 3, 3, 3), (1, 0, 2, 0, 0, 0, 0, 0), (3, 0, 3, 0, 0, 0, 0, 1)),
    # all right, but for a digit's tag; soft: all right
    FLAT: Parsed((0, 1, 1, 1), (2, 1, 0, 0), (2, 0, 0, 0)),
    # a chain; tags right for [MIN only, soft for none of the operators
    WIDE: Parsed(tuple(range(12)), (1, *[0] * 4, 4, *[0] * 6), (1, *[0] * 4, 1, *[0] * 6)),
}


def scripted(**settings):
    return Scripted(ANSWERS, **settings), [parse_expression(text) for text in ANSWERS]


# ------------------------------------------------------------------ figures by hand


def test_figures_by_hand():
    short = {"longest": 10, "sentences": 2, "tokens": 12, "operators": 3, "arcs": 12}
    short |= {"operator_accuracy": 100 * 2 / 3, "attachment": 100 * 10 / 12, "exact_trees": 50.0}
    long = {"longest": 20, "sentences": 1, "tokens": 12, "operators": 2, "arcs": 12}
    long |= {"operator_accuracy": 50.0, "attachment": 100 * 3 / 12, "exact_trees": 0.0}
    assert evaluate(*scripted()).record() == {
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


def test_without_root_arcs_the_outermost_operator_has_no_head_to_find():
    every = evaluate(*scripted()).record()
    # [MAX of NESTED is attached to ], and its other heads are right
    wrong_root = replace(ANSWERS[NESTED], heads=(8, 1, 1, 3, 3, 3, 1, 1))
    model, expressions = scripted(root_arcs=False)
    model.answers |= Scripted({NESTED: wrong_root}).answers
    figures = evaluate(model, expressions)
    changed = {
        **{"arcs": 21, "attachment": 100 * (7 + 3 + 2) / 21, "exact_trees": 100 * 2 / 3},
        "attachment_by_kind": {
            **{"argument": 100 * (4 + 2 + 2) / 14, "bracket": 100 * 3 / 5},
            "nested operator": 50.0,
        },
        "baselines": {"previous token": 100 * 5 / 21, "last operator": 100 * 18 / 21},
    }
    received = figures.record()
    by_length = received.pop("by_length")
    assert received == {key: changed.get(key, every[key]) for key in received}
    assert [row["arcs"] for row in by_length] == [10, 11]
    assert [row["attachment"] for row in by_length] == [100.0, 100 * 2 / 11]
    assert [row["attachment_operator"] for row in by_length] == [80.0, 100 * 10 / 11]
    assert "attachment below the root" in str(figures.tables("test")[0].rows)


# ------------------------------------------------------------------ batches, modes, lengths


def latent():
    torch.manual_seed(4)
    return ListOpsTagger(tiny().model)


@pytest.mark.parametrize(("most", "entries"), [(1, 10**9), (7, 10**9), (256, 600), (256, 1)])
def test_the_size_of_batches_never_changes_results(most, entries, monkeypatch):
    expressions = generate_listops(40, seed=3, max_length=60)
    model = latent()
    expected = parse_all(model, expressions)
    monkeypatch.setattr(evaluation, "BATCH_MOST", most)
    monkeypatch.setattr(evaluation, "BATCH_ENTRIES", entries)
    sizes = []
    trees = model.both_trees

    def counted(batch, scores):
        sizes.append(len(batch))
        assert len(batch) == 1 or len(batch) * (batch.tokens.shape[1] + 1) ** 2 <= entries
        return trees(batch)

    monkeypatch.setattr(model, "both_trees", counted)
    assert parse_all(model, expressions) == expected
    assert sum(sizes) == 40
    assert max(sizes) <= most
    assert len(sizes) > 1


@pytest.mark.parametrize("training", [False, True])
def test_the_mode_is_left_as_it_was(training):
    model = latent().train(training)
    expressions = generate_listops(5, seed=1, max_length=20)
    parse_all(model, expressions)
    assert model.training is model.composer.training is training

    def fail(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parse_all(model, expressions, progress=fail)
    assert model.training is training


def long_expression(tokens):
    """Nested lists of two arguments: ``[MAX 1 [MAX 1 ... [MAX 1 2 ] ... ] ]``."""
    depth = (tokens - 1) // 3
    return Expression(("[MAX", "1") * depth + ("2",) + ("]",) * depth)


def test_long_expressions():
    long = long_expression(301)
    assert len(long) == 301
    expressions = [long, parse_expression(FLAT)]
    model = latent()
    parsed = parse_all(model, expressions)
    assert [len(p.heads) for p in parsed] == [301, 4]
    heads = torch.tensor([parsed[0].heads])
    assert heads_to_tree(heads).sum() == 301
    figures = evaluate(model, expressions)
    assert [row["longest"] for row in figures.by_length] == [10, 500]
    longest = evaluate(ListOpsTagger(tiny("gold").model), [long_expression(601)])
    assert longest.by_length[0]["longest"] is None
    assert longest.exact_trees == 100
