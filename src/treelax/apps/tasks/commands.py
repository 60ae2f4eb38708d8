"""How a task declares its commands, without importing torch: help must not wait for it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Option(NamedTuple):
    """An option of a command that stands for a setting."""

    name: str  # --train
    key: str  # data.train
    kind: Any  # its type for Typer: Path, str, list[str], bool
    help: str
    rest: str | None = None  # key of the setting for all values of a list but the first

    @property
    def parameter(self) -> str:
        """Name of the function's parameter."""
        return self.key.replace(".", "__")


class TrainCommand(NamedTuple):
    """A command ``treelax train NAME``."""

    name: str
    task: str
    help: str
    preset: str  # by default
    has_presets: bool = False  # whether there is an option --preset
    options: tuple[Option, ...] = ()  # beside --set, --out, --seed, --device, --resume
