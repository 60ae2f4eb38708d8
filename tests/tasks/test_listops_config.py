"""Settings of the ListOps experiment: presets, TOML, and what is refused."""

from __future__ import annotations

import pytest

from treelax.apps.tasks.listops.config import PRESETS, DataConfig, ListOpsConfig, preset
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.training.config import flatten, from_toml, override, to_toml
from treelax.errors import InputError


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_and_survives_toml(name):
    config = preset(name)
    assert config.preset == name
    assert from_toml(ListOpsConfig, to_toml(config), "config.toml") == config
    model = ListOpsTagger(config.model)
    assert (model.parser is None) == (name in ("gold", "chain"))


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
    """Appendix A.1, and how we read what it leaves open; settings give the earlier reading."""
    config = preset("paper-mc")
    assert (config.data.max_length, config.model.root_arcs) == (40, False)
    assert (config.train.improve_on, config.train.dev_trees) == ("previous", "training")
    assert (config.train.learning_rate, config.train.decay, config.train.patience) == (1e-4, 0.9, 5)
    assert (config.train.epochs, config.train.updates, config.train.batch_size) == (100, 100, 64)
    assert (config.train.schedule, config.train.loss) == ("plateau", "operators")
    assert (config.model.noise, config.model.temperature) == ("default", 1.0)
    earlier = override(config, ["model.root_arcs=true", "data.max_length=50"])
    assert (earlier.data.max_length, earlier.model.root_arcs) == (50, True)


BAD = {
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
}


UNUSED = {
    "model.estimator=imle model.temperature=0.5": "model.temperature is 0.5 and model.estimator imle",
    "model.estimator=exact model.temperature=2": "model.temperature is 2.0 and model.estimator exact",
    "model.estimator=imle model.relaxation=entropy": "model.relaxation is entropy and model.estimator",
    "model.estimator=rloo model.noise=gaussian": "model.noise is gaussian and model.estimator rloo",
    "model.estimator=marginals model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator",
    "model.estimator=spigot model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator spigot",
    "model.noise=none model.noise_scale=2": "model.noise_scale is 2.0 and model.estimator relaxed",
    "model.estimator=spigot model.estimator.form=eg model.estimator.projection=polytope": (
        "model.estimator.projection is polytope and model.estimator.form eg"
    ),
}
USED = [
    "model.estimator=sparsemap model.temperature=0.5",
    "model.estimator=straight-through model.temperature=0.5 model.noise_scale=2",
    "model.estimator=straight-through model.relaxation=entropy",
    "model.estimator=imle model.noise_scale=2",
    "model.estimator=spigot model.noise=gumbel model.noise_scale=2",
    "model.estimator=rloo model.noise=none",
]


@pytest.mark.parametrize("settings", UNUSED)
def test_settings_that_nothing_would_look_at_are_refused(settings):
    with pytest.raises(InputError, match=f"^{UNUSED[settings]}") as caught:
        override(preset("paper-mc"), settings.split())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("settings", USED)
def test_settings_that_are_used_are_taken(settings):
    override(preset("paper-mc"), settings.split())


@pytest.mark.parametrize("setting", BAD)
def test_bad_values_are_refused_with_the_name_of_the_key(setting):
    with pytest.raises(InputError, match=f"^{BAD[setting]}") as caught:
        override(preset("paper-mc"), [setting])
    assert "\n" not in str(caught.value)


def test_a_folder_of_data_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = override(preset("gold"), ["data.folder=data/"])
    assert config.data.folder == str(tmp_path / "data")
    text = to_toml(config)
    monkeypatch.chdir(tmp_path.parent)
    assert from_toml(ListOpsConfig, text, "config.toml") == config
    assert DataConfig().folder is None
