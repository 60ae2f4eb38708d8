"""Weight decay, label smoothing and consistency: what they change, and what they leave as it is."""

from __future__ import annotations

import pytest
import torch
from tiny_texts import DATA, tiny, trained_with
from tolerances import VALUE_F32

from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.experiment import TextExperiment, divergence
from treelax.apps.training.steps import Stepper

CPU = torch.device("cpu")
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
