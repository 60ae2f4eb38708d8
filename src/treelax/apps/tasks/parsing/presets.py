"""All presets of parsers: two sizes, and for each of them the rows of the tables of parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from treelax.apps.tasks.parsing.commands import SIZES
from treelax.apps.tasks.parsing.config import PRESETS, ParserConfig
from treelax.apps.training.config import override


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


def row_presets(size: str, rows: Mapping[str, Row]) -> dict[str, tuple[ParserConfig, str]]:
    """The rows of a table with the sizes of a preset, as presets ``SIZE-ROW``, and what they are."""
    usual = PRESETS[size][0]
    return {
        f"{size}-{name}": (
            override(usual, [f"preset={size}-{name}", *settings]),
            f"{size}: {label}",
        )
        for name, (label, settings) in rows.items()
    }


ALL_PRESETS = PRESETS | {
    name: preset
    for size in SIZES
    for rows in (STRUCTURES, LABELS)
    for name, preset in row_presets(size, rows).items()
}
