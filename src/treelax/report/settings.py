"""The settings of runs: those that differ first and side by side, then all by their sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treelax.report.markup import Html, join, table, tag
from treelax.report.runs import RunRecord
from treelax.table import Table

__all__ = ["settings_section", "written"]

SECTIONS = {"": "Experiment", "data": "Data", "model": "Model", "train": "Training"}
CHANGED = "changed"


def written(value: Any) -> str:
    """A value as people write it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(written, value)) or "(empty)"
        case _:
            return str(value)


def settings_section(runs: Sequence[RunRecord]) -> Html:
    """All settings of some runs."""
    settings = {run.name: run.settings for run in runs}
    first = next(iter(settings.values()))
    differing = [key for key in first if len({repr(own[key]) for own in settings.values()}) > 1]
    parts: list[Html] = []
    if differing:
        rows = [[key, *(written(own[key]) for own in settings.values())] for key in differing]
        parts.append(table(Table(["setting", *settings], rows, "Settings that differ")))
    shared = [key for key in first if key not in differing]
    groups: dict[str, list[str]] = {}
    for key in shared:
        groups.setdefault(key.rpartition(".")[0], []).append(key)
    tables = [_group(name, keys, runs) for name, keys in groups.items()]
    grid = tag("div", *tables, class_="grid settings")
    if len(runs) == 1:
        return join([*parts, grid])
    summary = tag("summary", f"{len(shared)} settings that all runs share")
    if not differing:
        parts.append(tag("p", "All runs have the same settings."))
    return join([*parts, tag("details", summary, grid)])


def _group(name: str, keys: Sequence[str], runs: Sequence[RunRecord]) -> Html:
    """The settings of one section, which all runs share."""
    own, usual = runs[0].settings, runs[0].changed
    one_preset = len({run.config.preset for run in runs}) == 1
    shown = {key: written(usual[key]) for key in keys if key in usual and one_preset}
    rows = [
        [key.rpartition(".")[2], written(own[key]), *([shown.get(key, "")] if shown else [])]
        for key in keys
    ]
    columns = ["setting", "value", *(["preset has"] if shown else [])]
    markers = [CHANGED if key in shown else "" for key in keys]
    title = SECTIONS.get(name, name)
    return table(Table(columns, rows, title), markers=markers)
