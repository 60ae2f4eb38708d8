"""Settings of a table: which may be changed for all rows, and the command that makes its runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelax.cli.sweeps import refuse_other_data
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.tasks.text.config import TextConfig
    from treelax.training.run import Run


def differing(
    presets: Sequence[ListOpsConfig | TextConfig], keys: Collection[str]
) -> frozenset[str]:
    """Those of some settings in which the rows of a table differ."""
    from treelax.training.config import flatten

    found = [flatten(config) for config in presets]
    return frozenset(key for key in keys if any(row[key] != found[0][key] for row in found))


def refuse_settings(
    settings: Sequence[str],
    keys: Collection[str],
    family: str,
    *,
    why: str = "in which the rows of the table differ",
) -> None:
    """Refuse to change settings that make a table and its rows what they are."""
    for setting in settings:
        if setting.partition("=")[0].strip() in keys:
            raise InputError(
                f"--set: received {setting}, {why}; expected another setting: choose rows with "
                f"--rows, or train one model with treelax train {family}"
            )


def common_settings(
    ended: Sequence[tuple[Run, dict[str, Any]]],
    presets: Callable[[str], ListOpsConfig | TextConfig],
    *,
    files: Collection[str] = (),
    fixed: Collection[str] = (),
) -> list[str]:
    """The settings that make the runs of a table of their presets, from the runs themselves.

    What one run has unlike its preset all runs must have; it may be the preset's own value in others,
    for presets of a table differ.
    """
    from treelax.training.config import field_kinds, flatten, written

    usual = [presets(result["preset"]) for _, result in ended]
    configs = [run.config(type(preset)) for (run, _), preset in zip(ended, usual, strict=True)]
    before, after = ([flatten(config) for config in each] for each in (usual, configs))
    settings = []
    for key, kind in field_kinds(type(usual[0])).items():
        values = [written(key, kind, own[key]) for own in after]
        changed = [i for i, own in enumerate(after) if own[key] != before[i][key]]
        if not changed or key in {"seed", *files}:
            continue
        _refuse_mixed(key, values, [run for run, _ in ended], changed[0], fixed=key in fixed)
        settings.append(f"{key}={values[0]}")
    refuse_other_data(ended)
    return settings


def _refuse_mixed(
    key: str, values: Sequence[str], runs: Sequence[Run], changed: int, *, fixed: bool
) -> None:
    """Refuse runs if a setting that one of them has changed is another in others."""
    has = f"{key}: is {values[changed]} in {runs[changed].path}, unlike its preset"
    advice = "name rows that belong together with --rows, or give another --runs"
    if fixed:
        raise InputError(
            f"{has}; expected it as in the preset, for the rows of the table differ in it: {advice}"
        )
    for run, value in zip(runs, values, strict=True):
        if value != values[changed]:
            raise InputError(
                f"{has}, and {value} in {run.path}; expected the same in all rows of a table, or what "
                f"their presets have: {advice}"
            )


def command_line(
    table: str,
    seeds: int,
    rows: str | None,
    settings: Sequence[str],
    folders: Mapping[str, tuple[Path, Path]],
) -> str:
    """The command of a table, as its page says it; the page names corpora and vectors itself."""
    options = [("--rows", rows)] if rows else []
    options += [("--set", setting) for setting in settings]
    options += [
        (f"--{name}", str(given)) for name, (given, usual) in folders.items() if given != usual
    ]
    words = [word for option in options for word in option]
    return f"treelax table {table} --seeds {seeds} {shlex.join(words)}".rstrip()
