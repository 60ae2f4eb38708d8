"""What the training loop gets of ListOps: batches, loss and dev figures, against slow counts."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from listops_runs import tiny
from tolerances import VALUE_F32
from torch.nn import functional as F

from treelax.apps.data.listops import parse_expression, write_listops
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.tasks.listops.evaluation import parse_all
from treelax.apps.tasks.listops.model import Composer
from treelax.errors import InputError
from treelax.lab.listops.experiment import ListOpsExperiment

CPU = torch.device("cpu")
TRAIN = ["[MAX 2 9 ]", "[MIN 4 [SM 7 7 0 ] 1 ]", "[MED 1 [MIN 0 3 ] ]"]
NOISE = torch.Generator()


@pytest.fixture
def folder(tmp_path):
    """Data of three expressions."""
    for split in ("train", "dev", "test"):
        write_listops(tmp_path / f"{split}.tsv", map(parse_expression, TRAIN))
    return tmp_path


def experiment(preset="balanced-mc", **changes):
    return ListOpsExperiment(tiny(preset, **changes), CPU)


# ------------------------------------------------------------------ data


def test_the_data_are_those_of_the_settings():
    splits = load_splits(tiny().data)
    assert {name: len(split) for name, split in splits.items()} == {
        **{"train": 300, "dev": 50, "test": 60}
    }
    everything = [e for split in splits.values() for e in split]
    assert len(set(everything)) == 410
    assert max(map(len, everything)) <= 16
    assert load_splits(tiny(seed=7).data) is splits  # seeds of runs share the data
    other = load_splits(tiny(data__seed=1).data)
    assert other["test"] != splits["test"]


def test_an_operator_with_more_arguments_than_tags(folder):
    write_listops(folder / "train.tsv", [parse_expression("[MAX 1 2 3 4 5 6 7 ]")])
    with pytest.raises(
        InputError, match=r"^model.max_valency is 5; expected at least 7, the most arguments"
    ):
        experiment(data__folder=folder)
    assert experiment(data__folder=folder, model__max_valency=7).model.config.max_valency == 7


# ------------------------------------------------------------------ batches


def test_batches_have_the_right_sizes():
    work = experiment()
    batches = work.batches(0)
    assert [len(indices) for _, indices in batches] == [16] * 5
    for length, indices in batches:
        assert length == work.lengths[indices].max()
    drawn = torch.cat([indices for _, indices in batches])
    assert len(drawn.unique()) == 80  # none twice, for there are enough


def test_an_epoch_may_be_larger_than_the_data():
    work = experiment(data__train=7, train__updates=3, train__batch_size=10)
    counts = Counter(torch.cat([indices for _, indices in work.batches(0)]).tolist())
    assert sum(counts.values()) == 30
    # four rounds of seven and two more: nobody is left out, nobody is favoured
    assert sorted(counts.values()) == [4, 4, 4, 4, 4, 5, 5]


def test_short_expressions_first(monkeypatch, folder):
    monkeypatch.setattr("treelax.lab.listops.experiment.SHORT", 8)
    work = experiment(train__short_epochs=2, train__updates=40)
    lengths = [[work.lengths[indices] for _, indices in drawn(work, epoch)] for epoch in (2, 3)]
    assert max(int(batch.max()) for batch in lengths[0]) == 8
    assert work.lengths.max() <= 16
    # tokens are drawn equally often, and the batches of an epoch overlap at most at their ends
    expected = work.lengths.double().square().mean() / work.lengths.double().mean()
    assert abs(torch.cat(lengths[1]).double().mean() - expected) < 0.5
    bounds = sorted((int(batch.min()), int(batch.max())) for batch in lengths[1])
    assert all(one[1] <= other[0] for one, other in pairwise(bounds))
    assert torch.equal(drawn(work, 3)[0][1], drawn(work, 3)[0][1])
    monkeypatch.setattr("treelax.lab.listops.experiment.SHORT", 5)
    longest = [max(length for length, _ in drawn(work, epoch)) for epoch in (0, 1, 3, 5, 999)]
    assert longest == [5, 5, 10, work.lengths.max(), work.lengths.max()]
    write_listops(folder / "train.tsv", [parse_expression("[MAX 1 2 3 4 5 6 7 ]")])
    with pytest.raises(InputError, match=r"^train.short_epochs is 2; expected 0, since no"):
        experiment(data__folder=folder, train__short_epochs=2, model__max_valency=7)


def drawn(work, epoch):
    work.begin(epoch)
    return work.batches(0)


# ------------------------------------------------------------------ loss


def by_hand(work, weight):
    """The weighted mean of -log p over all tokens of `TRAIN` that have a weight."""
    total = norm = 0.0
    for i, expression in enumerate(map(parse_expression, TRAIN)):
        logits = work.model(work.train.select([i]))[0].double().tolist()
        for row, tag in zip(logits, expression.valencies, strict=True):
            if tag in weight:
                surprise = math.log(sum(map(math.exp, row))) - row[tag]
                total += weight[tag] * surprise
                norm += weight[tag]
    return total / norm


@pytest.mark.parametrize(
    ("loss", "balance", "weight"),
    [
        ("operators", "false", {2: 1, 3: 1}),
        ("all", "false", {0: 1, 2: 1, 3: 1}),
        # TRAIN has three operators of valency 2, two of valency 3 and fifteen other tokens
        ("operators", "true", {2: 1 / 3, 3: 1 / 2}),
        ("all", "true", {0: 1 / 15, 2: 1 / 3, 3: 1 / 2}),
    ],
)
def test_the_loss_by_hand(folder, loss, balance, weight):
    work = experiment("gold", data__folder=folder, train__loss=loss, train__balance=balance)
    expressions = list(map(parse_expression, TRAIN))
    counts = Counter(tag for e in expressions for tag in e.valencies)
    assert counts == {0: 15, 2: 3, 3: 2}
    indices = torch.tensor([2, 0, 1])
    received = work.loss(9, indices, NOISE)
    assert received.item() == pytest.approx(by_hand(work, weight), abs=VALUE_F32)
    assert received.requires_grad


def test_groups_hold_every_parameter_once():
    for preset, rates in (("balanced-mc", [1.0, 0.3]), ("paper-mc", [1.0, 1.0]), ("gold", [1.0])):
        work = experiment(preset)
        groups = work.groups()
        assert [group["rate"] for group in groups] == rates
        held = [id(p) for group in groups for p in group["params"]]
        assert sorted(held) == sorted(map(id, work.model.parameters()))


# ------------------------------------------------------------------ dev figures


def count_modifiers(self, tree):
    """A composer that has learned: an operator has a bracket more than arguments."""
    valency = (tree.sum(-1)[:, 1:] - 1).clamp(0, 5).round().long()
    return F.one_hot(valency, 6).float()


@pytest.mark.parametrize(
    "preset", ["paper-mc", "paper-mc-st", "balanced-mc", "balanced-heads", "gold", "chain"]
)
def test_counts_are_those_of_a_slow_count(preset, monkeypatch):
    monkeypatch.setattr("treelax.lab.listops.experiment.DEV_BATCH", 13)
    monkeypatch.setattr(Composer, "forward", count_modifiers)
    work = experiment(preset, data__max_length=30)
    dev = load_splits(work.config.data)["dev"]
    counts = [0] * 7
    root_arcs = preset.startswith("balanced")
    for expression, parsed in zip(dev, parse_all(work.model, dev), strict=True):
        for kind, tag, soft_tag, gold_tag, head, gold_head in zip(
            expression.kinds,
            parsed.tags,
            parsed.soft_tags,
            expression.valencies,
            parsed.heads,
            expression.heads,
            strict=True,
        ):
            counts[0] += kind == "operator" and tag == gold_tag
            counts[1] += kind == "operator"
            counts[2] += tag == gold_tag
            counts[3] += 1
            counts[4] += head == gold_head and (gold_head > 0 or root_arcs)
            counts[5] += gold_head > 0 or root_arcs
            counts[6] += kind == "operator" and soft_tag == gold_tag
    received = work.evaluate()
    assert received.tolist() == counts
    assert work.model.training
    assert not received.requires_grad
    assert work.summary(received) == {
        "score": 100 * counts[6 if preset == "paper-mc" else 0] / counts[1],
        "operator_accuracy": 100 * counts[0] / counts[1],
        "soft_operator_accuracy": 100 * counts[6] / counts[1],
        "token_accuracy": 100 * counts[2] / counts[3],
        "attachment": 100 * counts[4] / counts[5],
    }
    # else one could stand for another; in a chain the token after each operator is right
    assert len({*counts[:5]}) == 5 or preset in ("gold", "chain")
    if preset == "gold":
        assert counts == [counts[i] for i in (1, 1, 3, 3, 5, 5, 1)]
