"""Presets and settings, as ``--list`` shows them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from treelax.cli.console import console, table

_SECTION = re.compile(r"^Attributes:\n((?:[ ]{4}.*\n|\n)*)", re.MULTILINE)
_FIELD = re.compile(r"^[ ]{4}(\w+): (.*(?:\n[ ]{5,}.*)*)", re.MULTILINE)


def show_settings(presets: Mapping[str, tuple[Callable[[], Any], str]], config: Any) -> None:
    """Print what presets there are and all settings of a config, values as ``--set`` takes them."""
    from treelax.training.config import field_kinds, flatten, written

    table(["preset", "what it is"], [[name, text] for name, (_, text) in presets.items()])
    console.print()
    told, kinds = describe_settings(type(config)), field_kinds(type(config))
    table(
        [f"settings of {config.preset}", "value", "what it is"],
        [
            [key, written(key, kinds[key], value), told.get(key)]
            for key, value in flatten(config).items()
        ],
    )


def describe_settings(kind: type) -> dict[str, str]:
    """What the docstring of a config says of its settings, and those of its sections of theirs."""
    section = _SECTION.search(f"{inspect.getdoc(kind) or ''}\n")
    told = dict(_FIELD.findall(section[1])) if section else {}
    kinds = get_type_hints(kind)
    found: dict[str, str] = {}
    for field in fields(kind):
        if is_dataclass(kinds[field.name]):
            inside = describe_settings(kinds[field.name])
            found |= {f"{field.name}.{key}": text for key, text in inside.items()}
        elif field.name in told:
            found[field.name] = _plain(told[field.name])
    return found


def _plain(text: str) -> str:
    """A text for people who write settings, not Python."""
    text = " ".join(text.split()).replace("`", "").removesuffix(".")
    return re.sub(r"\bNone\b", "none", text)
