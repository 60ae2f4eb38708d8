"""``--list``: all settings with their values, as ``--set`` takes them."""

from __future__ import annotations

import pytest

from treelax.cli.main import main
from treelax.cli.train import show_settings
from treelax.tasks.text.presets import preset
from treelax.training.config import override

Capture = pytest.CaptureFixture[str]


def listed(capsys: Capture) -> list[str]:
    """The settings that were shown, each ``key=value``."""
    rows = capsys.readouterr().out.partition("\n\n")[2].splitlines()[2:]
    return ["=".join(cell.strip() for cell in row.split("|")[1:3]) for row in rows]


def test_a_column_with_a_comma_in_its_name(capsys: Capture) -> None:
    assert main(["train", "classify", "--text", "a, b", "--label", " none ", "--list"]) == 0
    assert {'data.text=["a, b"]', 'data.label=" none "'} < set(listed(capsys))


@pytest.mark.parametrize(
    "changes",
    [
        ['data.text=["a, b", "c"]', "data.dev=a, b.tsv"],
        ['data.text=["[a", "none"]', 'data.train="none"', """data.label='"a"'"""],
        ['data.text=[" a"]', "data.more_vectors=", 'data.vectors=" "', "model.distances=none"],
        ["data.text=a,b", "model.encoder=none", "model.trees=none", "data.quoted=true"],
    ],
)
def test_what_is_listed_can_be_set(capsys: Capture, changes: list[str]) -> None:
    config = override(preset("pair"), changes)
    show_settings({}, config)
    assert override(preset("pair"), listed(capsys)) == config
