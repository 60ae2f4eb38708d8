"""Trained models by name: runs, files, and the model that comes with treelax."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from listops_runs import tiny

from treelax.data.listops import encode_listops, parse_expression
from treelax.errors import CheckpointError, InputError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.model import ListOpsTagger
from treelax.training.checkpoint import load_checkpoint, save_checkpoint
from treelax.training.config import flatten
from treelax.training.models import load_model, model_file
from treelax.training.run import Run

BATCH = encode_listops([parse_expression("[MAX 2 [MIN 4 7 ] 0 ]")])


def saved_run(
    folder: Path, config: ListOpsConfig | None = None
) -> tuple[Run, ListOpsTagger, ListOpsConfig]:
    """A run with a model."""
    config = config or tiny()
    run = Run.create(folder, config, task="listops")
    model = ListOpsTagger(config.model)
    state = {"config": flatten(config), "epoch": 3}
    save_checkpoint(run.best_model, model.state_dict(), kind="listops", state=state)
    return run, model.eval(), config


@pytest.mark.parametrize("preset", ["balanced-mc", "gold"])
def test_a_model_comes_back_from_folder_and_file(tmp_path: Path, preset: str) -> None:
    # None in the config: JSON keeps it, TOML does not
    config = tiny(preset, model__distances="none", model__left_head_bias=0)
    run, model, _ = saved_run(tmp_path / "run", config)
    for name in (run.path, str(run.path), run.best_model, str(run.best_model)):
        loaded = load_model(name)
        assert loaded.config == config
        assert loaded.state == {"epoch": 3}
        assert loaded.source == run.best_model
        assert torch.equal(loaded.model(BATCH), model(BATCH))


def test_a_model_is_ready_for_use(tmp_path: Path) -> None:
    run, _, _ = saved_run(tmp_path / "run")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    loaded = load_model(run.path, device=torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module.training for module in loaded.model.modules())


def test_the_model_that_comes_with_treelax() -> None:
    file = model_file("listops")
    assert file.stat().st_size < 3_000_000
    loaded = load_model("listops")
    assert loaded.config.model.trees == "latent"
    heads = loaded.model.tree(BATCH).argmax(-2)[:, 1:]
    assert torch.equal(heads, BATCH.heads)
    assert torch.equal(loaded.model(BATCH).argmax(-1), BATCH.tags)


def test_a_folder_of_the_same_name_is_asked_for_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved_run(Path("listops"))
    assert load_model("listops").config != tiny()
    assert load_model("./listops").config == load_model(Path("listops")).config == tiny()


def test_names_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"nowhere: does not exist; expected the folder of a run, .* or listops"
    ):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds no config.toml; expected the folder of a run"):
        load_model(tmp_path)
    run = Run.create(tmp_path / "new", tiny(), task="listops")
    with pytest.raises(InputError, match=r"new: holds no model yet; .* continue it with --resume"):
        load_model(run.path)


def test_a_model_of_another_task_version_or_size(tmp_path: Path) -> None:
    run, model, config = saved_run(tmp_path / "run")
    state = {"config": flatten(config)}
    save_checkpoint(tmp_path / "sst", model.state_dict(), kind="sst", state=state)
    with pytest.raises(CheckpointError, match=r"holds a checkpoint of 'sst'; expected one of 'li"):
        load_model(tmp_path / "sst")

    wide = {"config": flatten(tiny(model__gcn_size=16))}
    save_checkpoint(tmp_path / "wide", model.state_dict(), kind="listops", state=wide)
    with pytest.raises(
        CheckpointError, match=r"wide: does not fit this version .*composer.*train again"
    ) as caught:
        load_model(tmp_path / "wide")
    assert "\n" not in str(caught.value)

    later = {"config": flatten(config) | {"model.colour": "red"}}
    save_checkpoint(tmp_path / "later", model.state_dict(), kind="listops", state=later)
    with pytest.raises(CheckpointError, match=r"does not fit .*config: model.colour: no such key"):
        load_model(tmp_path / "later")

    save_checkpoint(tmp_path / "bare", model.state_dict(), kind="listops", state={})
    with pytest.raises(CheckpointError, match=r"bare: does not fit .*state_dict"):
        load_model(tmp_path / "bare")

    broken = model.state_dict() | {"composer.vertex": model.composer.vertex.detach() * torch.nan}
    save_checkpoint(tmp_path / "nan", broken, kind="listops", state={"config": flatten(config)})
    with pytest.raises(CheckpointError, match=r"nan: .*composer.vertex has numbers that are not"):
        load_model(tmp_path / "nan")

    os.truncate(run.best_model, 3000)
    with pytest.raises(CheckpointError, match=r"model.safetensors: is cut off or damaged"):
        load_model(run.path)


def test_loading_leaves_the_file_alone(tmp_path: Path) -> None:
    run, _, _ = saved_run(tmp_path / "run")
    before = run.best_model.read_bytes()
    loaded = load_model(run.path)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            parameter.zero_()
    assert run.best_model.read_bytes() == before
    assert load_checkpoint(run.best_model).state["config"] == flatten(tiny())
