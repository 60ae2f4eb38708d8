"""How the modules of ``treelax.cli`` add their commands to the program."""

from __future__ import annotations

from collections.abc import Callable

import typer

__all__ = ["Register", "command", "group"]

Register = Callable[[typer.Typer], None]


def command(name: str, help: str, function: Callable[..., None]) -> Register:
    """What adds a command to the program, or to a group.

    Args:
        name: of the command.
        help: its help.
        function: what it does, with its options as annotated arguments.

    Returns:
        A function of the program.

    Example:
        >>> app = typer.Typer()
        >>> command("hello", "Greet.", lambda: None)(app)
        >>> [each.name for each in app.registered_commands]
        ['hello']
    """

    def register(app: typer.Typer) -> None:
        app.command(name, help=help)(function)

    return register


def group(name: str, help: str, *commands: Register) -> Register:
    """What adds a group of commands to the program.

    Args:
        name: of the group.
        help: its help.
        commands: what adds its commands to it.

    Returns:
        A function of the program.

    Example:
        >>> app = typer.Typer()
        >>> group("say", "Speak.", command("hello", "Greet.", lambda: None))(app)
        >>> [each.name for each in app.registered_groups]
        ['say']
    """

    def register(app: typer.Typer) -> None:
        inner = typer.Typer(no_args_is_help=True)
        inner.callback()(lambda: None)  # else typer takes a group of one command for that command
        for add in commands:
            add(inner)
        app.add_typer(inner, name=name, help=help)

    return register
