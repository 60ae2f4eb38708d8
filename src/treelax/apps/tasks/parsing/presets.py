"""All presets of parsers: two sizes, and for each of them the rows of the tables of parsers."""

from __future__ import annotations

from typing import NamedTuple

from treelax.apps.tasks.parsing.commands import SIZES
from treelax.apps.tasks.parsing.config import ModelConfig, ParserConfig, TrainConfig
from treelax.apps.training.config import override

FULL = ParserConfig(
    "full",
    model=ModelConfig(
        character_size=50,
        filters=100,
        tag_size=100,
        encoder_size=400,
        encoder_stacks=3,
        arc_size=500,
        label_size=100,
        dropout=0.33,
        input_dropout=0.33,
        word_dropout=0.1,
    ),
    train=TrainConfig(epochs=40, batch_size=64),
)
BASE = {
    "small": (ParserConfig(), "two CPU cores, minutes"),
    "full": (FULL, "a GPU: three BiLSTM layers of 400"),
}


class Row(NamedTuple):
    """A row of a table: its label, and the settings that make it differ from the preset."""

    label: str
    settings: tuple[str, ...]


STRUCTURES = {
    "heads": Row("head selection", ("model.structure=heads",)),
    "projective": Row("projective CRF", ("model.structure=projective",)),
    "nonprojective": Row("non-projective CRF", ("model.structure=nonprojective",)),
}
LABELS = {
    f"labels-{share}{suffix}": Row(
        f"{share} % of trees{more}", (f"data.labelled={share / 100}", *settings)
    )
    for share in (1, 5, 10, 100)
    for suffix, more, settings in (
        ("", "", ()),
        ("-rest", ", the rest unlabelled", ("data.rest=unlabelled",)),
    )
    if share < 100 or not suffix
}


def _presets() -> dict[str, tuple[ParserConfig, str]]:
    """The sizes, and the rows of the tables in each of them, ``SIZE-ROW``; and what they are."""
    presets = dict(BASE)
    for size in SIZES:
        for name, (label, settings) in (STRUCTURES | LABELS).items():
            config = override(BASE[size][0], [f"preset={size}-{name}", *settings])
            presets[f"{size}-{name}"] = (config, f"{size}: {label}")
    return presets


PRESETS = _presets()
