"""How the modules of ``treelax.cli`` add their commands to the program."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
import typer.core

Register = Callable[[typer.Typer], None]
VALUES = {int: "N", float: "X", Path: "PATH", str: "TEXT"}


class Command(typer.core.TyperCommand):
    """A command whose help shows no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, each with the word that the help shows for its value."""
        return _named(super().get_params(ctx), self.callback)


class Group(typer.core.TyperGroup):
    """A group whose help shows no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, each with the word that the help shows for its value."""
        return _named(super().get_params(ctx), self.callback)


def _named(parameters: list[Any], callback: Any) -> list[Any]:
    hints = get_type_hints(callback)
    for each in parameters:
        word = value_name(each, hints.get(each.name))
        each.display_type_rich = lambda ctx, word=word: word
    return parameters


def value_name(parameter: Any, hint: Any) -> str:
    """A word for what follows an option; empty for flags and arguments."""
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return ""
    if parameter.metavar:
        return str(parameter.metavar)
    choices = [get_args(each) for each in (hint, *get_args(hint)) if get_origin(each) is Literal]
    if choices:
        return "|".join(chain(*choices))
    kinds = [hint, *get_args(hint), *(inner for each in get_args(hint) for inner in get_args(each))]
    word = next((VALUES[kind] for kind in kinds if kind in VALUES), "VALUE")
    return f"{word} ..." if parameter.multiple else word


def command(name: str, help: str, function: Callable[..., None]) -> Register:
    """What adds a command to the program, or to a group."""

    def register(app: typer.Typer) -> None:
        app.command(name, help=help, cls=Command)(function)

    return register


def group(name: str, help: str, *commands: Register) -> Register:
    """What adds a group of commands to the program."""

    def register(app: typer.Typer) -> None:
        inner = typer.Typer(cls=Group, no_args_is_help=True)
        inner.callback()(lambda: None)  # else typer takes a group of one command for that command
        for add in commands:
            add(inner)
        app.add_typer(inner, name=name, help=help)

    return register
