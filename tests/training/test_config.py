"""Configs: overridden by text, written and read as TOML."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import Literal

import pytest

from treelax.apps.training.config import (
    flatten,
    from_table,
    from_toml,
    override,
    settings_between,
    to_toml,
)
from treelax.errors import InputError


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


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("model.gcn_layers=-1", "model.gcn_layers", -1),
        ("train.learning_rate=1e-3", "train.learning_rate", 0.001),
        ("train.clip=none", "train.clip", None),
        ("model.dense=true", "model.dense", True),
        ("model.pooling=mean", "model.pooling", "mean"),
        ("train.bits=16", "train.bits", 16),
        ("train.schedule=none", "train.schedule", "none"),  # a choice before it is None
        ("train.schedule=None", "train.schedule", None),
        ("name=a=b", "name", "a=b"),
        ("name=none", "name", "none"),
        ("noise=none", "noise", None),
        ("noise='none'", "noise", "none"),
        ("model.widths=3, 2,1", "model.widths", (3, 2, 1)),
        ("model.widths=[3, 2]", "model.widths", (3, 2)),
        ("model.widths=", "model.widths", ()),
        ("files=a.txt,b.txt", "files", ("a.txt", "b.txt")),
        ('files=["a,b", "c"]', "files", ("a,b", "c")),
        ("rates=[1, 1e-3]", "rates", (1.0, 0.001)),
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
        ("name=\udce9", r"name: received '.*'; expected text"),
        ("model.gcn_layers", "received the setting 'model.gcn_layers'; expected key=value"),
        ("model.gcn_layers=1.5", "model.gcn_layers: received '1.5'; expected an integer"),
        ("train.clip=nan", "train.clip: received 'nan'; expected a number, or none"),
        ("model.dense=1", "model.dense: received '1'; expected true or false"),
        ("model.pooling=sum", "model.pooling: received 'sum'; expected one of max, mean"),
        ("model.widths=3,x", r"received '3,x'; expected a list such as \[a, b\], .* an integer"),
        ("gcn_layers=1", r"gcn_layers: no such key; did you mean model.gcn_layers\?"),
        ("zzz=1", r"zzz: no such key; treelax.apps.training.config.flatten\(config\) lists all"),
        ("model.encoder=1", "model.encoder: is a section; expected one of its keys: model.enc"),
    ],
)
def test_what_cannot_be_overridden(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        override(DEFAULT, ["name=fine", setting])
    assert "\n" not in str(caught.value)


def test_settings_are_applied_together_and_the_last_one_wins() -> None:
    changed = override(DEFAULT, ["train.warm_up=20", "train.epochs=5", "train.epochs=30"])
    assert (changed.train.warm_up, changed.train.epochs) == (20, 30)
    with pytest.raises(InputError, match=r"^train.warm_up: received 20; expected at most epochs$"):
        override(DEFAULT, ["train.warm_up=20"])


TEXTS = [
    "",
    " ",
    "none",
    "None",
    "true",
    "3",
    "a,b",
    "[a]",
    '"quoted"',
    "\\n\n\t\x00\x7f'",
    "é𝄞\u2028",
]


def test_what_is_written_is_read_back() -> None:
    configs = [
        replace(DEFAULT, name=text, noise=noise, files=(text, "b"), rates=rates)
        for text in TEXTS
        for noise in (None, text)
        for rates in (None, (), (0.1, -1e-300, 1e22), (math.inf, -math.inf))
    ]
    configs += [
        override(DEFAULT, [f"train.schedule={kind}"]) for kind in ("None", "none", "cosine")
    ]
    configs += [override(DEFAULT, ["model.widths=", "train.clip=none", f"train.epochs={10**30}"])]
    for config in configs:
        assert from_toml(Experiment, to_toml(config), "here") == config
        assert from_table(Experiment, json.loads(json.dumps(flatten(config))), "here") == config
        for other in (DEFAULT, configs[0]):
            assert override(other, settings_between(other, config)) == config


WHOLE = to_toml(DEFAULT)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gcn_layers = 2", "gcn_layer = 2", r"model.gcn_layer: no such key; .* model.gcn_layers\?"),
        ("gcn_layers = 2", "gcn_layers = 2.0", "model.gcn_layers: received 2.0; .* an integer"),
        ('name = "first"', "name = 1", "name: received 1; expected text"),
        ("widths = [4, 2]", "widths = 4", "model.widths: received 4; expected a list"),
        ("dense = false", "dense = no", r"is not TOML: .* line 8"),
        ("warm_up = 1", "warm_up = 11", "train.warm_up: received 11; expected at most epochs"),
    ],
)
def test_broken_toml(old: str, new: str, message: str) -> None:
    assert WHOLE.count(old) == 1
    with pytest.raises(InputError, match=f"^runs/a/config.toml: .*{message}") as caught:
        from_toml(Experiment, WHOLE.replace(old, new), "runs/a/config.toml")
    assert "\n" not in str(caught.value)
