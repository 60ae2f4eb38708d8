"""Sentence models trained with every estimator, also where two trees share a loss."""

from __future__ import annotations

import math
from typing import get_args, get_type_hints

import pytest
import torch
from sentence_runs import figures, interrupted_after_an_epoch, train
from tiny_texts import class_data, pair_data, tag_data, tiny, trained_with
from torch.nn import functional as F

from treelax.__main__ import main
from treelax.apps.tasks.settings import EstimatorSettings
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.experiment import TextExperiment
from treelax.apps.tasks.text.model import both
from treelax.errors import InputError

DATA = {"classify": class_data, "pair": pair_data, "tag": tag_data}
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
