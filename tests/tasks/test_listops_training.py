"""ListOps in training: presets and settings, batches, loss and dev figures against slow counts."""

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
from treelax.apps.tasks.listops.config import PRESETS, ListOpsConfig, preset
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.tasks.listops.evaluation import parse_all
from treelax.apps.tasks.listops.model import Composer, ListOpsTagger
from treelax.apps.training.config import flatten, from_toml, override, to_toml
from treelax.errors import InputError
from treelax.lab.listops.experiment import ListOpsExperiment

TRAIN = ["[MAX 2 9 ]", "[MIN 4 [SM 7 7 0 ] 1 ]", "[MED 1 [MIN 0 3 ] ]"]


@pytest.fixture
def folder(tmp_path):
    """Data of three expressions."""
    for split in ("train", "dev", "test"):
        write_listops(tmp_path / f"{split}.tsv", map(parse_expression, TRAIN))
    return tmp_path


def experiment(preset="balanced-mc", **changes):
    return ListOpsExperiment(tiny(preset, **changes), torch.device("cpu"))


def drawn(work, epoch):
    work.begin(epoch)
    return work.batches(0)


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_and_survives_toml(name):
    config = preset(name)
    assert config.preset == name
    assert from_toml(ListOpsConfig, to_toml(config), "config.toml") == config
    assert (ListOpsTagger(config.model).parser is None) == (name in ("gold", "chain"))


def test_presets_differ_in_what_their_names_say():
    def differing(name, other):
        one, two = flatten(preset(name)), flatten(preset(other))
        return {key for key in one if one[key] != two[key]} - {"preset"}

    for recipe in ("paper", "balanced"):
        assert differing(f"{recipe}-mc", f"{recipe}-mc-st") == {"model.straight_through"}
        assert differing(f"{recipe}-mc", f"{recipe}-zero") == {"model.noise"}
        assert differing(f"{recipe}-zero", f"{recipe}-zero-st") == {"model.straight_through"}
        assert differing(f"{recipe}-mc", f"{recipe}-entropy") == {"model.relaxation"}
        assert differing(f"{recipe}-mc", f"{recipe}-heads") == {"model.trees"}
    assert differing("paper-mc", "paper-mc-all") == {"train.loss"}
    assert differing("paper-mc", "chain") == {"model.trees"}
    assert differing("balanced-mc", "paulus") == {
        *("data.variant", "data.min_length", "data.max_length")
    }
    assert differing("balanced-mc", "paper-mc") == {
        *("model.left_head_bias", "train.learning_rate", "train.composer_rate"),
        *("train.schedule", "train.loss", "train.balance"),
        *("data.max_length", "model.root_arcs", "train.improve_on", "train.dev_trees"),
    }


def test_the_paper_in_numbers():
    """Appendix A.1, and how we read what it leaves open."""
    config = preset("paper-mc")
    assert (config.data.max_length, config.model.root_arcs) == (40, False)
    assert (config.train.improve_on, config.train.dev_trees) == ("previous", "training")
    assert (config.train.learning_rate, config.train.decay, config.train.patience) == (1e-4, 0.9, 5)
    assert (config.train.epochs, config.train.updates, config.train.batch_size) == (100, 100, 64)
    assert (config.train.schedule, config.train.loss) == ("plateau", "operators")
    assert (config.model.noise, config.model.temperature) == ("default", 1.0)


REFUSED = {
    f"seed={2**63}": "seed is 9223372036854775808; expected at least 0 and at most 9,223,372,036,",
    "data.train=0": "data.train is 0; expected at least 1",
    "data.max_length=3": "data.max_length is 3; expected at least 4",
    "data.min_length=51": "data.max_length is 40; expected at least 51",
    "model.max_valency=0": "model.max_valency is 0; expected at least 1",
    "model.distances=0": "model.distances is 0",
    "model.temperature=inf": "model.temperature is inf; expected more than 0 and finite",
    "model.noise_scale=-1": "model.noise_scale is -1.0; expected at least 0",
    "model.left_head_bias=inf": "model.left_head_bias is inf; expected a number",
    "model.structure=binary": "model.structure: received 'binary'; expected one of projective",
    "train.updates=0": "train.updates is 0",
    "train.decay=1.01": "train.decay is 1.01; expected more than 0 and at most 1",
    "train.threads=2000000000000": "train.threads is 2000000000000; expected at least 0 and at most",
    # what nothing would read
    "model.estimator=imle model.temperature=0.5": "model.temperature is 0.5 and model.estimator imle",
    "model.estimator=exact model.temperature=2": "model.temperature is 2.0 and model.estimator exact",
    "model.estimator=imle model.relaxation=entropy": "model.relaxation is entropy and model.estim",
    "model.estimator=rloo model.noise=gaussian": "model.noise is gaussian and model.estimator rloo",
    "model.estimator=marginals model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator",
    "model.estimator=spigot model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator spi",
    "model.noise=none model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator relaxed",
    "model.estimator=spigot model.estimator.form=eg model.estimator.projection=polytope": (
        "model.estimator.projection is polytope and model.estimator.form eg"
    ),
}


@pytest.mark.parametrize("settings", REFUSED)
def test_bad_and_unused_settings_are_refused(settings):
    with pytest.raises(InputError, match=f"^{REFUSED[settings]}") as caught:
        override(preset("paper-mc"), settings.split())
    assert "\n" not in str(caught.value)


def test_settings_that_are_used_are_taken():
    for settings in (
        "model.estimator=sparsemap model.temperature=0.5",
        "model.estimator=straight-through model.temperature=0.5 model.noise_scale=2",
        "model.estimator=straight-through model.relaxation=entropy",
        "model.estimator=imle model.noise_scale=2",
        "model.estimator=spigot model.noise=gumbel model.noise_scale=2",
        "model.estimator=rloo model.noise=none",
    ):
        override(preset("paper-mc"), settings.split())


# ------------------------------------------------------------------ data and batches


def test_the_data_are_those_of_the_settings(tmp_path, monkeypatch):
    splits = load_splits(tiny().data)
    sizes = {name: len(split) for name, split in splits.items()}
    assert sizes == {"train": 300, "dev": 50, "test": 60}
    everything = [e for split in splits.values() for e in split]
    assert len(set(everything)) == 410
    assert max(map(len, everything)) <= 16
    assert load_splits(tiny(seed=7).data) is splits  # seeds of runs share the data
    assert load_splits(tiny(data__seed=1).data)["test"] != splits["test"]
    monkeypatch.chdir(tmp_path)
    assert override(preset("gold"), ["data.folder=data/"]).data.folder == str(tmp_path / "data")


def test_data_that_do_not_fit_the_settings(folder):
    write_listops(folder / "train.tsv", [parse_expression("[MAX 1 2 3 4 5 6 7 ]")])
    message = r"^model.max_valency is 5; expected at least 7, the most arguments"
    with pytest.raises(InputError, match=message):
        experiment(data__folder=folder)
    assert experiment(data__folder=folder, model__max_valency=7).model.config.max_valency == 7


def test_batches_have_the_right_sizes():
    work = experiment()
    batches = work.batches(0)
    assert [len(indices) for _, indices in batches] == [16] * 5
    assert all(length == work.lengths[indices].max() for length, indices in batches)
    assert len(torch.cat([indices for _, indices in batches]).unique()) == 80
    # an epoch may be larger than the data: nobody is left out, nobody is favoured
    work = experiment(data__train=7, train__updates=3, train__batch_size=10)
    counts = Counter(torch.cat([indices for _, indices in work.batches(0)]).tolist())
    assert sorted(counts.values()) == [4, 4, 4, 4, 4, 5, 5]


def test_short_expressions_first(monkeypatch, folder):
    monkeypatch.setattr("treelax.lab.listops.experiment.SHORT", 8)
    work = experiment(train__short_epochs=2, train__updates=40)
    lengths = [[work.lengths[indices] for _, indices in drawn(work, epoch)] for epoch in (2, 3)]
    assert max(int(batch.max()) for batch in lengths[0]) == 8
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


# ------------------------------------------------------------------ loss and figures


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
    total = norm = 0.0
    for i, expression in enumerate(map(parse_expression, TRAIN)):
        logits = work.model(work.train.select([i]))[0].double().tolist()
        for row, tag in zip(logits, expression.valencies, strict=True):
            surprise = math.log(sum(map(math.exp, row))) - row[tag]
            total += weight.get(tag, 0) * surprise
            norm += weight.get(tag, 0)
    received = work.loss(9, torch.tensor([2, 0, 1]), torch.Generator())
    assert received.item() == pytest.approx(total / norm, abs=VALUE_F32)
    assert received.requires_grad


def test_groups_hold_every_parameter_once():
    for name, rates in (("balanced-mc", [1.0, 0.3]), ("paper-mc", [1.0, 1.0]), ("gold", [1.0])):
        work = experiment(name)
        groups = work.groups()
        assert [group["rate"] for group in groups] == rates
        held = [id(p) for group in groups for p in group["params"]]
        assert sorted(held) == sorted(map(id, work.model.parameters()))


def count_modifiers(self, tree):
    """A composer that has learned: an operator has a bracket more than arguments."""
    valency = (tree.sum(-1)[:, 1:] - 1).clamp(0, 5).round().long()
    return F.one_hot(valency, 6).float()


@pytest.mark.parametrize("preset", ["paper-mc", "paper-mc-st", "balanced-heads", "gold"])
def test_counts_are_those_of_a_slow_count(preset, monkeypatch):
    monkeypatch.setattr("treelax.lab.listops.experiment.DEV_BATCH", 13)
    monkeypatch.setattr(Composer, "forward", count_modifiers)
    work = experiment(preset, data__max_length=30)
    dev = load_splits(work.config.data)["dev"]
    counts = [0] * 7
    for expression, parsed in zip(dev, parse_all(work.model, dev), strict=True):
        for i, (kind, valency, head) in enumerate(
            zip(expression.kinds, expression.valencies, expression.heads, strict=True)
        ):
            operator, arc = kind == "operator", head > 0 or preset == "balanced-heads"
            right, attached = parsed.tags[i] == valency, parsed.heads[i] == head
            soft = operator and parsed.soft_tags[i] == valency
            row = (operator and right, operator, right, True, attached and arc, arc, soft)
            counts = [count + flag for count, flag in zip(counts, row, strict=True)]
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
    if preset == "gold":
        assert counts == [counts[i] for i in (1, 1, 3, 3, 5, 5, 1)]
    else:  # or one could stand for another
        assert len({*counts[:5]}) == 5
