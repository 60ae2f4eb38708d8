"""Settings and folders of runs: what a run may go on with, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from listops_runs import tiny

from treelax.analysis.run_folders import (
    check_same,
    configure,
    moved_files,
    name,
    open_or_create,
    settings_of,
)
from treelax.errors import InputError, RunInUseError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.presets import preset
from treelax.training.config import override
from treelax.training.run import Run


def test_a_preset_with_settings() -> None:
    config = configure("gold", ["train.epochs=3", "seed=2"])
    assert (config.preset, config.train.epochs, config.seed) == ("gold", 3, 2)
    assert name(config) == "gold-2"
    with pytest.raises(InputError, match=r"^preset is 'gould'"):
        configure("gould", [])
    with pytest.raises(InputError, match=r"train.epoch: no such key; .* --list shows all settings"):
        configure("gold", ["train.epoch=3"])
    with pytest.raises(InputError, match=r"^preset: received the setting preset=chain; .*--preset"):
        configure("gold", ["preset=chain"])


def test_a_run_goes_on_with_its_own_settings_only(tmp_path: Path) -> None:
    run = open_or_create(tmp_path / "run", tiny())
    assert settings_of(run) == tiny()
    assert open_or_create(tmp_path / "run", tiny()).path == run.path
    with pytest.raises(
        InputError,
        match=r"run: was started with other settings \(seed 0 → 1, train.epochs 4 → 9\); resume it",
    ):
        check_same(run, tiny(seed=1, train__epochs=9))
    other = Run.create(tmp_path / "other", tiny(), task="sst")
    with pytest.raises(InputError, match=r"other: is a run of 'sst'; expected one of 'listops'"):
        check_same(other, tiny())


def test_files_may_have_moved_but_not_given_trees(tmp_path: Path) -> None:
    first = ["data.path=sst", "data.vectors=a.npz", 'data.more_vectors=["b, c.txt"]']
    run = Run.create(tmp_path / "run", override(preset("sst-given"), first), task="classify")
    assert moved_files(run, override(preset("sst-given"), first)) == []
    now = ["data.path=/here", "data.vectors=g", 'data.more_vectors=["d, e.txt", "f"]']
    config = override(preset("sst-given"), now)
    check_same(run, config)
    moved = moved_files(run, config)
    assert override(run.config(TextConfig), moved) == config
    assert run.config(TextConfig) == override(preset("sst-given"), first)  # until they are read
    with pytest.raises(InputError, match=r"other settings \(data.trees none → \{split\}.conllu\)"):
        check_same(run, override(preset("sst-given"), [*first, "data.trees={split}.conllu"]))


def test_a_run_that_never_began_takes_other_settings(tmp_path: Path) -> None:
    before, after = (tiny("paper-mc", seed=1, train__epochs=epochs) for epochs in (9, 4))
    open_or_create(tmp_path / "run", before)
    run = open_or_create(tmp_path / "run", after)
    assert run.config(ListOpsConfig) == after
    with run.lock(), pytest.raises(RunInUseError):  # somebody may have begun just now
        open_or_create(tmp_path / "run", before)
