"""The public surface as text: names, signatures, methods and commands.

    python tests/surface.py     writes tests/surface.txt

`test_surface.py` compares the two.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from treelax.__main__ import app

FILE = Path(__file__).with_name("surface.txt")
MODULES = ("nn", "ops", "noise", "trees", "estimators", "structures", "convert", "brackets")


def signature(function: Any) -> str:
    """Parameters, their types and defaults; nothing of what depends on the machine."""
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(function)))
    except (TypeError, ValueError):
        return "(...)"


def members(owner: type) -> Iterator[str]:
    """Public methods and properties of a class, and calls of it, as far as treelax defines them."""
    for name in sorted({name for kind in ours(owner) for name in vars(kind)}):
        if name.startswith("_") and name != "__call__":
            continue
        value = next(vars(kind)[name] for kind in ours(owner) if name in vars(kind))
        if isinstance(value, property):
            returns = inspect.signature(value.fget).return_annotation if value.fget else ""
            yield f"  {name}: property -> {returns}"
        elif isinstance(value, staticmethod | classmethod):
            yield f"  {name}{signature(value.__func__)} {type(value).__name__}"
        elif inspect.isfunction(value):
            yield f"  {name}{signature(value)}"
        else:
            yield f"  {name}"


def ours(owner: type) -> list[type]:
    """The classes of treelax that a class derives from, itself first."""
    return [kind for kind in owner.__mro__ if kind.__module__.startswith("treelax")]


def described(name: str, value: Any) -> Iterator[str]:
    """The lines of a public name."""
    if inspect.isclass(value):
        yield f"class {name}{signature(value)}"
        yield from [] if issubclass(value, enum.Enum | BaseException) else members(value)
    elif inspect.isfunction(value):
        yield f"{name}{signature(value)}"
    elif inspect.ismodule(value):
        yield f"module {name}"
    else:
        yield f"{name} = {value!r}"


def commands(command: Any, path: str) -> Iterator[str]:
    """A command's arguments and options, then those of the commands below it."""
    yield f"$ {path}"
    for parameter in command.params:
        names = "/".join([*parameter.opts, *parameter.secondary_opts])
        needed = " required" if parameter.required else ""
        yield f"  {names} {parameter.param_type_name}{needed}"
    for name, child in sorted(getattr(command, "commands", {}).items()):
        yield from commands(child, f"{path} {name}")


def surface() -> str:
    """All of it."""
    lines, homes = [], {}
    for path in ("treelax", *(f"treelax.{name}" for name in MODULES)):
        module = importlib.import_module(path)
        public = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == path
        ]
        for name in sorted(public):
            value, whole = getattr(module, name), f"{path}.{name}"
            if callable(value) and homes.setdefault(id(value), whole) != whole:
                lines.append(f"{whole} is {homes[id(value)]}")
            else:
                lines += described(whole, value)
    lines += commands(typer.main.get_command(app), "treelax")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
    print(f"{FILE} written", file=sys.stderr)
