"""What the training loop asks of a parser."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_treebank import SETTINGS

from treelax.apps.tasks.parsing.task import PARSER, ParserExperiment
from treelax.apps.tasks.sentences.experiment import PADDING


def prepared(folder: Path, *settings: str, device: str = "cpu") -> ParserExperiment:
    files = [f"data.{split}={folder / split}.conllu" for split in ("train", "dev")]
    own = [f"{key}={value}" for key, value in SETTINGS.items()]
    config = PARSER.configured("small", [*files, *own, *settings])
    return PARSER.experiment(config, torch.device(device), folder, print, lambda *_: None)


def test_on_a_gpu_there_are_few_shapes(files: Path) -> None:
    task = prepared(files)
    exact = task.batches(seed=0)
    task.device = torch.device("cuda")  # nothing is put there
    for ([length], indices), ([rounded], same) in zip(exact, task.batches(seed=0), strict=True):
        assert torch.equal(indices, same)
        assert rounded == -(-length // PADDING) * PADDING


@pytest.mark.parametrize("loss", ["labelled", "unlabelled", "heads"])
@pytest.mark.parametrize("structure", ["projective", "nonprojective", "heads"])
def test_padding_changes_no_loss(files: Path, loss: str, structure: str) -> None:
    task = prepared(files, f"model.loss={loss}", f"model.structure={structure}")
    task.model.eval()
    shape, indices = task.batches(seed=0)[0]
    exact, padded = (
        task.model.loss(task.everything.batch(indices, n), task.forms)
        for n in (shape[0], shape[0] + 3)
    )
    assert torch.allclose(exact, padded, rtol=1e-5)
    assert bool((exact > 0).all())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_nothing_waits_for_the_gpu(files: Path) -> None:
    task = prepared(files, device="cuda")
    shape, indices = task.batches(seed=0)[0]
    indices = indices.cuda()
    task.loss(shape, indices, torch.Generator("cuda")).backward()
    task.evaluate()
    torch.cuda.set_sync_debug_mode("error")
    try:
        task.loss(shape, indices, torch.Generator("cuda")).backward()
        task.evaluate()
    finally:
        torch.cuda.set_sync_debug_mode("default")
