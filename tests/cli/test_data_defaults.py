"""``treelax data listops`` writes by default what training generates by default."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest

from treelax.cli import data
from treelax.cli.main import main
from treelax.data.listops import read_listops
from treelax.tasks.listops.config import DataConfig, preset
from treelax.tasks.listops.experiment import load_splits

SIZES = {"train": 300, "dev": 40, "test": 50}
SMALL = [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]


def test_sizes_and_seed() -> None:
    defaults = {name: p.default for name, p in signature(data.listops).parameters.items()}
    trained_on = preset("balanced-mc").data
    for name in ("variant", "train", "dev", "test", "seed"):
        assert defaults[name] == getattr(trained_on, name)


@pytest.mark.parametrize("variant", ["original", "paulus"])
def test_lengths(variant: str) -> None:
    trained_on = preset("paulus").data if variant == "paulus" else DataConfig()
    for name, length in data.LENGTHS[variant].items():
        assert length == getattr(trained_on, name)
    assert set(data.LENGTHS[variant]) == {"min_length", "max_length"}


@pytest.mark.parametrize(
    ("variant", "trained_on"), [("original", DataConfig()), ("paulus", preset("paulus").data)]
)
def test_expressions(tmp_path: Path, variant: str, trained_on: DataConfig) -> None:
    assert main(["data", "listops", "--out", str(tmp_path), *SMALL, "--variant", variant]) == 0
    generated = load_splits(replace(trained_on, **SIZES)).expressions
    assert len(generated["train"]) == SIZES["train"]
    for name, expressions in generated.items():
        assert read_listops(tmp_path / f"{name}.tsv") == expressions
