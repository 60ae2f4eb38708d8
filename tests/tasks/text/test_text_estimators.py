"""Sentence models trained with every estimator, also where two trees share a loss."""

from __future__ import annotations

import math
from typing import get_args, get_type_hints

import pytest
import torch
from sentence_runs import figures, interrupted_after_an_epoch, train
from tiny_texts import DATA, class_data, tiny, trained_with
from tolerances import VALUE_F32
from torch.nn import functional as F

from treelax.__main__ import main
from treelax.apps.tasks.settings import EstimatorSettings
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.model import both
from treelax.apps.tasks.text.task import TextExperiment, divergence
from treelax.apps.training.steps import Stepper
from treelax.errors import InputError

NAMES = [n for n in get_args(get_type_hints(EstimatorSettings)["name"]) if n != "exact"]
CPU = torch.device("cpu")


def experiment(kind, folder, name="relaxed", *, consistency=0.0, **settings):
    config = tiny(kind, DATA[kind](folder), estimator=EstimatorSettings(name), **settings)
    config = trained_with(config, consistency=consistency)
    return TextExperiment(config, load_text(config.data), CPU)


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_trains_all_layers(tmp_path, kind, name):
    task = experiment(kind, tmp_path, name)
    shape, indices = task.batches(seed=0)[0]
    loss = task.loss(shape, indices, torch.Generator().manual_seed(1))
    loss.backward()
    assert loss.isfinite()
    for part in (task.model.encoder.tree.scorer, task.model.encoder.gcn, task.model):
        grads = [p.grad for p in part.parameters() if p.grad is not None]
        assert all(g.isfinite().all() for g in grads)
        assert any(g.any() for g in grads)


@pytest.mark.parametrize("consistency", [0.0, 0.5])
def test_two_trees_that_share_a_loss_get_its_whole_gradient(tmp_path, consistency):
    """RLOO on a pair of texts, or on two runs of a text, against the sum over all pairs of trees."""
    kind = "classify" if consistency else "pair"
    task = experiment(kind, tmp_path, "rloo", consistency=consistency)
    copies = 4000
    index = task.train.lengths.sum(1).argmin(keepdim=True)  # few trees
    lengths = [int(x) + task.null for x in task.train.lengths[index][0]] * (2 if consistency else 1)
    shape = tuple(lengths[: task.train.texts])
    latent = task.model.encoder.tree
    weight = latent.scorer.bias if hasattr(latent.scorer, "bias") else next(latent.parameters())
    task.model.double()

    # exact: all pairs of trees of the two texts, or of the two copies
    texts = task.texts(task.train, shape, index.repeat(2 if consistency else 1))
    encoder = task.model.encoder
    batch = texts[0]
    if len(texts) == 2:
        batch = both(*texts)
    vertices = encoder.with_root(encoder.words(batch))
    trees = encoder.trees(vertices, batch.lengths)
    size = vertices.shape[-2]
    found = [
        F.pad(t, (0, size - t.shape[-1]) * 2)
        for t in (latent.structure.enumerate(n) for n in lengths)
    ]
    target = task.train.targets(index, shape[0] - task.null)
    total = torch.zeros((), dtype=torch.float64)
    for a in found[0]:
        for b in found[1]:
            pair = torch.stack((a, b))
            probability = trees.log_prob(pair).sum().exp()
            logits = task.model.logits(encoder.compose(vertices, pair), batch.lengths)
            loss = F.cross_entropy(logits, target.expand(len(logits)))
            if consistency:
                p, q = logits.log_softmax(-1)
                loss = loss + consistency * ((p.exp() - q.exp()) * (p - q)).sum() / 2
            total = total + probability * loss
    (expected,) = torch.autograd.grad(total, weight, retain_graph=True)

    drawn, values = [], []
    generator = torch.Generator().manual_seed(2)
    for _ in range(20):
        loss = task.loss(shape, index.repeat(copies // 20), generator)
        drawn.append(torch.autograd.grad(loss, weight)[0])
        values.append(loss.item())
    gradients = torch.stack(drawn)
    error = gradients.std(0) / math.sqrt(len(gradients))
    close = (gradients.mean(0) - expected).abs() < 5 * error + 1e-9
    assert close.all()
    assert sum(values) / 20 == pytest.approx(total.item(), rel=0.02)


def test_exact_needs_one_tree_for_each_loss(tmp_path):
    with pytest.raises(
        InputError, match=r"model.estimator is exact and kind pair, where two trees"
    ):
        experiment("pair", tmp_path, "exact")
    config = tiny("classify", class_data(tmp_path), estimator=EstimatorSettings("exact"))
    with pytest.raises(InputError, match=r"exact and train.consistency not 0"):
        trained_with(config, consistency=1.0)


def test_a_moving_baseline_survives_a_kill(tmp_path):
    settings = {"model__estimator": "reinforce", "model__estimator__samples": 2}
    whole = figures(train("classify", tmp_path / "whole", **settings))
    with interrupted_after_an_epoch(), pytest.raises(AssertionError):
        train("classify", tmp_path / "broken", **settings)
    assert main(["train", "classify", "--out", str(tmp_path / "broken/run"), "--resume"]) == 0
    assert figures(tmp_path / "broken/run") == whole


# ------------------------------------------------------------------ weight decay, smoothing, consistency

every_kind = pytest.mark.parametrize("kind", DATA)


def trained(kind, folder, **train):
    """Without noise and dropout, so that a loss can be computed again."""
    config = trained_with(tiny(kind, DATA[kind](folder), noise="none", encoder="bilstm"), **train)
    return TextExperiment(config, load_text(config.data), CPU)


@every_kind
def test_an_update_shrinks_matrices_by_the_rate_times_the_decay(tmp_path, kind):
    task = trained(kind, tmp_path, weight_decay=0.5)
    encoder = task.model.encoder
    words = set(map(id, encoder.embedding.parameters()))
    assert encoder.encoder is not None
    words |= set(map(id, encoder.encoder.gates()))  # which keep padding out
    before = [parameter.detach().clone() for parameter in task.model.parameters()]

    def no_loss(*_):
        return sum((0 * p.sum() for p in task.model.parameters()), torch.zeros(()))

    stepper = Stepper(task.model, no_loss, task.groups(), torch.Generator(), 1.0, CPU)
    stepper.set_rate(0.1)
    stepper.step((), torch.zeros(1, dtype=torch.int64))
    shrunk = 0
    for old, new in zip(before, task.model.parameters(), strict=True):
        shrinks = new.dim() > 1 and id(new) not in words
        factor = 1 - 0.1 * 0.5 if shrinks else 1.0
        torch.testing.assert_close(new.detach(), old * factor, atol=VALUE_F32, rtol=0)
        shrunk += shrinks
    assert shrunk


@every_kind
def test_smoothed_labels_are_a_mixture(tmp_path, kind):
    share = 0.3
    plain, smooth = (trained(kind, tmp_path, label_smoothing=s) for s in (0.0, share))
    shape, indices = plain.batches(seed=0)[0]
    losses = [task.loss(shape, indices, torch.Generator()).item() for task in (plain, smooth)]
    logits = plain.logits(plain.train, shape, indices)
    word = plain.train.targets(indices, shape[0] - plain.null) >= 0
    even = -logits.log_softmax(-1).mean(-1)[word].mean().item()
    assert losses[1] == pytest.approx((1 - share) * losses[0] + share * even, rel=1e-5)
    assert losses[1] != losses[0]


@every_kind
def test_answers_apart_cost_their_divergence(tmp_path, kind):
    config = tiny(kind, DATA[kind](tmp_path), noise="gumbel")
    losses = []
    for weight in (1.0, 3.0):
        changed = trained_with(config, consistency=weight)
        task = TextExperiment(changed, load_text(changed.data), CPU)
        shape, indices = task.batches(seed=0)[0]
        losses.append(task.loss(shape, indices, torch.Generator().manual_seed(1)).item())
    # the same noise: the loss is linear in the weight
    both = torch.cat((indices, indices))
    logits = task.logits(task.train, shape, both, generator=torch.Generator().manual_seed(1))
    targets = task.train.targets(both, shape[0] - task.null)
    word = task.train.targets(indices, shape[0] - task.null) >= 0
    p, q = (one[word].softmax(-1) for one in logits.chunk(2))
    apart = ((p - q) * (p.log() - q.log())).sum(-1).mean().item() / 2
    plain = torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=-1
    ).item()
    assert apart > 1e-6
    assert losses == pytest.approx([plain + apart, plain + 3 * apart], rel=1e-4)


def test_the_divergence_has_a_gradient():
    first, second = torch.randn(
        2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    targets = torch.tensor([0, -1, 2, 1, -1])
    inputs = (first.clone().requires_grad_(), second.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: divergence(a, b, targets), inputs)
    kept = targets >= 0
    kl = torch.nn.functional.kl_div
    log_p, log_q = first[kept].log_softmax(-1), second[kept].log_softmax(-1)
    there = kl(log_p, log_q, reduction="batchmean", log_target=True)
    back = kl(log_q, log_p, reduction="batchmean", log_target=True)
    expected = (there + back) / 2
    torch.testing.assert_close(divergence(first, second, targets).sum() / kept.sum(), expected)
