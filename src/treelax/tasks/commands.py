"""How a task declares its commands, without importing torch: help must not wait for it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option of a command that stands for a setting.

    Attributes:
        name: ``--train``.
        key: of the setting, ``data.train``.
        kind: what Typer makes of it: ``Path``, ``str``, ``list[str]``, ``bool``.
        help: one line.
        rest: key of the setting for all values of a list but the first.
    """

    name: str
    key: str
    kind: Any
    help: str
    rest: str | None = None

    @property
    def parameter(self) -> str:
        """Name of the function's parameter."""
        return self.key.replace(".", "__")


class TrainCommand(NamedTuple):
    """A command ``treelax train NAME``.

    Attributes:
        name: of the command.
        task: in ``treelax.tasks.TASKS``.
        help: its text, with an example.
        preset: where settings start from if none is named.
        has_presets: there is an option ``--preset``.
        options: those beside ``--set``, ``--out``, ``--seed``, ``--device``, ``--resume``.
    """

    name: str
    task: str
    help: str
    preset: str
    has_presets: bool = False
    options: tuple[Option, ...] = ()


class TableCommand(NamedTuple):
    """A command ``treelax table NAME``, for a table of the paper.

    Attributes:
        name: of the command, and of the table for `Task.table`.
        task: in ``treelax.tasks.TASKS``.
        help: its text, with an example.
        seeds: how many by default.
        runs: name of the folder of runs; tables may share it.
        has_recipes: there is an option ``--recipe``.
        options: those beside ``--set``, ``--rows``, ``--runs``, ``--results`` and the like.
    """

    name: str
    task: str
    help: str
    seeds: int
    runs: str
    has_recipes: bool = False
    options: tuple[Option, ...] = ()
