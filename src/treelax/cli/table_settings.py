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

__all__ = ["command_line", "common_settings", "differing", "refuse_settings", "shell_word"]

SPLIT = "{split}"  # of data.trees, which a shell leaves as it is


def differing(
    presets: Sequence[ListOpsConfig | TextConfig], keys: Collection[str]
) -> frozenset[str]:
    """Those of some settings in which the rows of a table differ.

    Args:
        presets: the configs of the rows.
        keys: of the settings.

    Returns:
        The keys of those that are not the same in all rows.

    Example:
        >>> from treelax.tasks.text.presets import preset
        >>> rows = [preset("sst-none"), preset("sst-tree")]
        >>> sorted(differing(rows, ["model.trees", "model.gcn_layers"]))
        ['model.trees']
    """
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
    """Refuse to change settings that make a table and its rows what they are.

    Args:
        settings: the changes, each ``key=value``.
        keys: of the settings that may not be changed.
        family: what ``treelax train`` trains one model of the table with.
        why: what they are to the table, in words that follow the setting.

    Raises:
        InputError: one of them is changed.

    Example:
        >>> refuse_settings(["train.epochs=3"], ["model.trees"], "sst")
    """
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

    Args:
        ended: the runs with their results.
        presets: gives the config of a preset.
        files: settings that name files, which say nothing to others and may differ.
        fixed: settings that all runs must have as their presets; see `refuse_settings`.

    Returns:
        The settings, each ``key=value``.

    Raises:
        InputError: no command would give all runs their settings, or they were trained or tested on
            other data.
    """
    from treelax.training.config import flatten, written
    from treelax.training.config_values import field_kinds

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
    *,
    files: Sequence[tuple[str, str]] = (),
) -> str:
    """The command that makes a table, as the table says it and a shell reads it.

    Args:
        table: its name, and the options that belong to it.
        seeds: number of them.
        rows: the presets, if they were named.
        settings: the changes; see `common_settings`.
        folders: for each option that names a folder the one given and the default.
        files: options that name files, each with its value.

    Returns:
        The command.

    Example:
        >>> command_line("sst", 5, None, ["train.epochs=3"], {"runs": (Path("here"), Path("runs"))})
        'treelax table sst --seeds 5 --set train.epochs=3 --runs here'
    """
    options = [
        *files,
        *([("--rows", rows)] if rows else []),
        *(("--set", setting) for setting in settings),
        *((f"--{name}", str(given)) for name, (given, usual) in folders.items() if given != usual),
    ]
    return " ".join(
        [f"treelax table {table} --seeds {seeds}"]
        + [f"{option} {shell_word(value)}" for option, value in options]
    )


def shell_word(text: str) -> str:
    """A text as one word of a command, in quotes only where a shell needs them.

    Args:
        text: any.

    Returns:
        The word.

    Example:
        >>> shell_word("data.trees=trees/{split}.conllu"), shell_word("my runs")
        ('data.trees=trees/{split}.conllu', "'my runs'")
    """
    plain = text.replace(SPLIT, "split")
    return text if shlex.quote(plain) == plain else shlex.quote(text)
