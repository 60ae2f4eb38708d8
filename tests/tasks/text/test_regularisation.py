"""Weight decay and label smoothing: what they change, and what they leave as it is."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
import torch
from tiny_texts import DATA, tiny, trained_with
from tolerances import VALUE_F32

from treelax.tasks.text.data import load_text
from treelax.tasks.text.experiment import TextExperiment
from treelax.training.steps import Stepper

CPU = torch.device("cpu")
every_kind = pytest.mark.parametrize("kind", DATA)


def trained(kind: str, folder: Path, **train: object) -> TextExperiment:
    """Without noise and dropout, so that a loss can be computed again."""
    config = trained_with(tiny(kind, DATA[kind](folder), noise="none"), **train)
    return TextExperiment(config, load_text(config.data), CPU)


@every_kind
def test_every_parameter_is_in_one_group(tmp_path: Path, kind: str) -> None:
    for decay in (0.0, 0.1):
        task = trained(kind, tmp_path, weight_decay=decay)
        groups = [[id(parameter) for parameter in group["params"]] for group in task.groups()]
        assert all(groups)
        assert sorted(chain(*groups)) == sorted(map(id, task.model.parameters()))
        assert len(groups) == (2 if decay else 1)


@every_kind
def test_an_update_shrinks_matrices_by_the_rate_times_the_decay(tmp_path: Path, kind: str) -> None:
    task = trained(kind, tmp_path, weight_decay=0.5)
    words = set(map(id, task.model.encoder.embedding.parameters()))
    before = [parameter.detach().clone() for parameter in task.model.parameters()]

    def no_loss(*_: object) -> torch.Tensor:
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
def test_smoothed_labels_are_a_mixture(tmp_path: Path, kind: str) -> None:
    share = 0.3
    plain, smooth = (trained(kind, tmp_path, label_smoothing=s) for s in (0.0, share))
    shape, indices = plain.batches(seed=0)[0]
    losses = [task.loss(shape, indices, torch.Generator()).item() for task in (plain, smooth)]
    logits = plain.logits(plain.train, shape, indices)
    word = plain.train.targets(indices, shape[0] - plain.null) >= 0
    even = -logits.log_softmax(-1).mean(-1)[word].mean().item()
    assert losses[1] == pytest.approx((1 - share) * losses[0] + share * even, rel=1e-5)
    assert losses[1] != losses[0]
