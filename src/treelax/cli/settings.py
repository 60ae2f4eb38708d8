"""Presets and settings, as ``--list`` shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from treelax.cli.console import console, table


def show_settings(presets: Mapping[str, tuple[Callable[[], Any], str]], config: Any) -> None:
    """Print what presets there are and all settings of a config.

    Args:
        presets: by name, each with what it is in words.
        config: a dataclass with a field ``preset``.
    """
    from treelax.training.config import flatten

    table(["preset", "what it is"], [[name, text] for name, (_, text) in presets.items()])
    console.print()
    table(
        [f"settings of {config.preset}", "value"],
        [[key, "none" if value is None else str(value)] for key, value in flatten(config).items()],
    )
