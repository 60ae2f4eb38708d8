"""Configs: overridden by text, written and read as TOML."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.errors import InputError
from treelax.training.config import (
    flatten,
    from_table,
    from_toml,
    override,
    settings_between,
    to_toml,
)


@dataclass(frozen=True)
class Encoder:
    width: int = 8
    dropout: float = 0.1


@dataclass(frozen=True)
class Model:
    encoder: Encoder = Encoder()
    gcn_layers: int = 2
    dense: bool = False
    pooling: Literal["max", "mean"] = "max"
    widths: tuple[int, ...] = (4, 2)


@dataclass(frozen=True)
class Training:
    learning_rate: float = 1e-3
    clip: float | None = 5.0
    epochs: int = 10
    warm_up: int = 1
    schedule: Literal["none", "cosine"] | None = None
    bits: Literal[16, 32] = 32

    def __post_init__(self) -> None:
        if self.warm_up > self.epochs:
            raise InputError(f"train.warm_up: received {self.warm_up}; expected at most epochs")


@dataclass(frozen=True)
class Experiment:
    model: Model = Model()
    train: Training = Training()
    name: str = "first"
    noise: str | None = "gumbel"
    files: tuple[str, ...] = ()
    rates: tuple[float, ...] | None = None
    ready: bool = field(default=True, init=False)  # not a setting


DEFAULT = Experiment()


# ------------------------------------------------------------------ overriding


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("model.gcn_layers=-1", "model.gcn_layers", -1),
        ("train.learning_rate=1e-3", "train.learning_rate", 0.001),
        ("train.learning_rate=2", "train.learning_rate", 2.0),
        ("train.learning_rate=inf", "train.learning_rate", math.inf),
        ("train.clip=none", "train.clip", None),
        ("train.clip=1", "train.clip", 1.0),
        ("model.dense=true", "model.dense", True),
        ("model.dense=False", "model.dense", False),
        ("model.pooling=mean", "model.pooling", "mean"),
        ("train.bits=16", "train.bits", 16),
        ("train.schedule=cosine", "train.schedule", "cosine"),
        ("train.schedule=none", "train.schedule", "none"),  # a choice before it is None
        ("train.schedule=None", "train.schedule", None),
        ("name=a=b", "name", "a=b"),
        ("name=", "name", ""),
        ("name=none", "name", "none"),
        ("name=3", "name", "3"),
        ("noise=none", "noise", None),
        ("noise='none'", "noise", "none"),
        ('noise=" spaced "', "noise", " spaced "),
        ('noise="a" or "b"', "noise", '"a" or "b"'),
        ("noise=[a]", "noise", "[a]"),
        ('model.pooling="mean"', "model.pooling", "mean"),
        ("model.widths=3, 2,1", "model.widths", (3, 2, 1)),
        ("model.widths=[3, 2]", "model.widths", (3, 2)),
        ("model.widths=", "model.widths", ()),
        ("model.widths=[]", "model.widths", ()),
        ("files=a.txt,b.txt", "files", ("a.txt", "b.txt")),
        ("files=[a.txt, b.txt]", "files", ("a.txt", "b.txt")),
        ('files=["a,b", "c"]', "files", ("a,b", "c")),
        ("rates=[1, 1e-3]", "rates", (1.0, 0.001)),
        ("rates=", "rates", ()),
    ],
)
def test_override(setting: str, key: str, value: object) -> None:
    changed = override(DEFAULT, [setting])
    assert type(changed) is Experiment
    assert flatten(changed) == flatten(DEFAULT) | {key: value}
    assert type(flatten(changed)[key]) is type(value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.gcn_layers", "received the setting 'model.gcn_layers'; expected key=value"),
        ("model.gcn_layers=1.5", "model.gcn_layers: received '1.5'; expected an integer"),
        ("train.learning_rate=nan", "train.learning_rate: received 'nan'; expected a number"),
        ("train.clip=x", "train.clip: received 'x'; expected a number, or none"),
        ("model.dense=1", "model.dense: received '1'; expected true or false"),
        ("model.pooling=sum", "model.pooling: received 'sum'; expected one of max, mean"),
        ("train.bits=8", "train.bits: received '8'; expected one of 16, 32"),
        ("train.schedule=x", "train.schedule: received 'x'; expected one of none, cosine, or none"),
        ("model.widths=3,x", r"received '3,x'; expected a list such as \[a, b\], .* an integer"),
        ("model.widths=3,", "received '3,'; expected a list"),
        ("gcn_layers=1", r"gcn_layers: no such key; did you mean model.gcn_layers\?"),
        ("width=1", r"width: .*did you mean model.encoder.width or model.widths\?"),
        ("zzz=1", r"zzz: no such key; treelax.training.config.flatten\(config\) lists all keys"),
        ("name.first=1", "name.first: no such key"),
        (
            "model.encoder=1",
            "model.encoder: is a section; expected one of its keys: model.encoder.width, "
            "model.encoder.dropout",
        ),
    ],
)
def test_what_cannot_be_overridden(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        override(DEFAULT, ["name=fine", setting])
    assert "\n" not in str(caught.value)


def test_settings_are_applied_together_and_the_last_one_wins() -> None:
    changed = override(DEFAULT, ["train.warm_up=20", "train.epochs=5", "train.epochs=30"])
    assert (changed.train.warm_up, changed.train.epochs) == (20, 30)
    assert override(DEFAULT, []) == DEFAULT
    with pytest.raises(InputError, match=r"^train.warm_up: received 20; expected at most epochs$"):
        override(DEFAULT, ["train.warm_up=20"])


# ------------------------------------------------------------------ TOML


def test_toml_is_complete_and_readable() -> None:
    assert to_toml(override(DEFAULT, ["noise=none", "files=a,b"])) == (
        'name = "first"\n'
        "# noise = none\n"
        'files = ["a", "b"]\n'
        "# rates = none\n"
        "\n"
        "[model]\n"
        "gcn_layers = 2\n"
        "dense = false\n"
        'pooling = "max"\n'
        "widths = [4, 2]\n"
        "\n"
        "[train]\n"
        "learning_rate = 0.001\n"
        "clip = 5.0\n"
        "epochs = 10\n"
        "warm_up = 1\n"
        "# schedule = none\n"
        "bits = 32\n"
        "\n"
        "[model.encoder]\n"
        "width = 8\n"
        "dropout = 0.1\n"
    )


text = st.text(st.characters(exclude_categories=["Cs"])) | st.just("none")
number = st.floats(allow_nan=False)
experiments = st.builds(
    Experiment,
    model=st.builds(
        Model,
        encoder=st.builds(Encoder, width=st.integers(), dropout=number),
        gcn_layers=st.integers(),
        dense=st.booleans(),
        pooling=st.sampled_from(["max", "mean"]),
        widths=st.lists(st.integers(), max_size=3).map(tuple),
    ),
    train=st.builds(
        Training,
        learning_rate=number,
        clip=st.none() | number,
        schedule=st.sampled_from([None, "none", "cosine"]),
        bits=st.sampled_from([16, 32]),
    ),
    name=text,
    noise=st.none() | text,
    files=st.lists(text, max_size=3).map(tuple),
    rates=st.none() | st.lists(number, max_size=3).map(tuple),
)


@settings(max_examples=50)
@given(experiments, experiments)
def test_what_is_written_is_read_back(config: Experiment, other: Experiment) -> None:
    assert from_toml(Experiment, to_toml(config), "here") == config
    assert from_table(Experiment, json.loads(json.dumps(flatten(config))), "here") == config
    between = [f"{key}={value}" for key, value in settings_between(other, config).items()]
    assert override(other, between) == config


def test_settings_are_in_quotes_only_where_they_would_be_misread() -> None:
    config = Experiment(name="none", noise="none", files=("a", "b c"), rates=(1.0, 0.5))
    config = dataclasses.replace(config, train=Training(schedule="none"))
    assert settings_between(DEFAULT, config) == {
        **{"train.schedule": "none", "name": "none", "noise": '"none"'},
        **{"files": "a,b c", "rates": "1.0,0.5"},
    }
    assert settings_between(config, DEFAULT)["train.schedule"] == "None"


def test_numbers_are_written_to_the_bit() -> None:
    for value in (1e-5, 1e22, 5e-324, -0.0, math.inf, 1):
        read = from_toml(Encoder, to_toml(Encoder(dropout=value)), "here").dropout
        assert read.hex() == float(value).hex()


WHOLE = to_toml(DEFAULT)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gcn_layers = 2", "gcn_layer = 2", r"model.gcn_layer: no such key; .* model.gcn_layers\?"),
        ("gcn_layers = 2", "gcn_layers = 2.0", "model.gcn_layers: received 2.0; .* an integer"),
        ("dropout = 0.1", "dropout = nan", "dropout: received nan; expected a number"),
        ("dense = false", "dense = 0", "model.dense: received 0; expected true or false"),
        ('name = "first"', "name = 1", "name: received 1; expected text"),
        ("bits = 32", 'bits = "32"', "train.bits: received '32'; expected one of 16, 32"),
        ("widths = [4, 2]", "widths = 4", "model.widths: received 4; expected a list"),
        (
            "[train]",
            "[other]",
            "other.learning_rate: no such key; did you mean train.learning_rate",
        ),
        ("dense = false", "dense = no", r"is not TOML: .* line 8"),
        ("warm_up = 1", "warm_up = 11", "train.warm_up: received 11; expected at most epochs"),
    ],
)
def test_broken_toml(old: str, new: str, message: str) -> None:
    assert WHOLE.count(old) == 1
    with pytest.raises(InputError, match=f"^runs/a/config.toml: .*{message}") as caught:
        from_toml(Experiment, WHOLE.replace(old, new), "runs/a/config.toml")
    assert "\n" not in str(caught.value)


def test_a_key_without_a_default_is_needed() -> None:
    @dataclasses.dataclass(frozen=True)
    class Bare:
        width: int
        layers: int = 2

    with pytest.raises(InputError, match=r"^here: width: is missing; expected an integer"):
        from_toml(Bare, "", "here")
    assert from_toml(Bare, "width = 1", "here") == Bare(1)


def test_a_setting_that_is_newer_than_the_file_has_its_default() -> None:
    old = to_toml(DEFAULT).replace("gcn_layers = 2\n", "").replace("# rates = none\n", "")
    assert from_toml(Experiment, old, "here") == DEFAULT


def test_a_section_must_be_a_section() -> None:
    with pytest.raises(InputError, match="here: model: is a section; expected one of its keys"):
        from_table(Experiment, tomllib.loads(WHOLE) | {"model": 1}, "here")


def test_what_is_not_text_is_not_written() -> None:
    with pytest.raises(InputError, match=r"name: received '\\ud800', which is not UTF-8 text"):
        to_toml(Experiment(name="\ud800"))


def test_flatten_keeps_the_order_of_the_fields() -> None:
    flat = flatten(DEFAULT)
    assert list(flat)[:3] == ["model.encoder.width", "model.encoder.dropout", "model.gcn_layers"]
    assert flat["rates"] is None
    assert "ready" not in flat
