"""A run that was interrupted ends with the metrics and figures of one that was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import treebank_runs
from listops_runs import metrics, result
from sentence_runs import interrupted_after_an_epoch, train

from treelax.__main__ import main

UNLABELLED = {"data.labelled": 0.25, "data.rest": "unlabelled", "unlabelled.warm_up": 1}


def run(kind: str, folder: Path, settings: dict[str, Any]) -> Path:
    if kind != "parser":
        return train(kind, folder, **settings)
    folder.mkdir()
    treebank_runs.write_treebanks(folder)
    changes = {"train.epochs": 2, "train.updates": 4} | settings
    options = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    assert treebank_runs.train(folder, *options) == 0
    return folder / "run"


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("classify", {"model.structure": "binary"}),
        ("pair", {"model.noise": "gumbel", "train.consistency": 1, "train.discrete_epochs": 1}),
        # a baseline that moves
        ("tag", {"model.estimator": "reinforce", "model.estimator.samples": 2}),
        ("tag", {"model.output": "chain"}),
        ("parser", {}),
        ("parser", UNLABELLED),
    ],
)
def test_an_interrupted_run_ends_as_an_uninterrupted_one(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    whole = run(kind, tmp_path / "whole", settings)
    with interrupted_after_an_epoch(), pytest.raises(AssertionError):
        run(kind, tmp_path / "broken", settings)
    broken = tmp_path / "broken" / "run"
    assert main(["train", kind, "--out", str(broken), "--resume"]) == 0
    assert metrics(broken) == metrics(whole)
    assert result(broken) == result(whole)
