"""How the modules of ``treelax.apps.cli`` add their commands to the program, and shared options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
import typer.core

from treelax.apps.tasks.commands import Option

Register = Callable[[typer.Typer], None]
CHOICES_WIDTH = 20  # columns
VALUES = {int: "N", float: "X", Path: "PATH", str: "TEXT"}

# options that several commands have
Data = Annotated[
    str | None, typer.Option(help="Sentences: CoNLL-U, ListOps, a table, text, or - for stdin.")
]
Split = Annotated[
    Literal["train", "dev", "test"], typer.Option(help="Without --data: which split of the runs.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N examples.")]
MaxLength = Annotated[int | None, typer.Option(min=1, help="Skip sentences with more words.")]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Text column of a table; twice for pairs. Default: as in training."),
]
Label = Annotated[
    str | None, typer.Option(help="Label column of a table. Default: as in training.")
]
Input = Annotated[
    Literal["conllu", "tsv", "csv", "jsonl", "conll", "text"] | None,
    typer.Option("--input", help="File format. Default: by its name."),
]
Tokens = Annotated[
    bool, typer.Option("--tokens", help="Texts are tokenised: words separated by spaces.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; repeatable.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out, or start it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Show = Annotated[bool, typer.Option("--list", help="Show presets and all settings, and exit.")]
Vectors = Annotated[
    list[Path] | None,
    typer.Option(help="Word vectors used in training, all files in order, to look up new words."),
]


class _Named:
    """Help that shows no types of Python, but a name for the value of each parameter."""

    callback: Any

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        hints = get_type_hints(self.callback)
        for parameter in parameters:
            name = _folded(value_name(parameter, hints.get(parameter.name)))
            parameter.display_type_rich = lambda ctx, name=name: name
        return parameters


class Command(_Named, typer.core.TyperCommand):
    """A command whose help shows no types of Python."""

    @property
    def task(self) -> str | None:
        """The task whose settings it takes."""
        return getattr(self.callback, "task", None)


class Group(_Named, typer.core.TyperGroup):
    """A group whose help shows no types of Python."""


def _folded(name: str) -> str:
    """Choices in lines short enough for a narrow terminal, which would break them anywhere."""
    first, *others = name.split("|")
    lines = [first]
    for choice in others:
        if len(lines[-1]) + len(choice) < CHOICES_WIDTH:
            lines[-1] += f"|{choice}"
        else:
            lines[-1] += "|"
            lines.append(choice)
    return "\n".join(lines)


def value_name(parameter: Any, hint: Any) -> str:
    """A name for the value of an option; empty for flags and arguments."""
    if parameter.param_type_name == "argument" or parameter.is_flag:
        return ""
    if parameter.metavar:
        return str(parameter.metavar)
    choices = [get_args(kind) for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
    if choices:
        return "|".join(chain(*choices))
    kinds = [hint, *get_args(hint), *(inner for kind in get_args(hint) for inner in get_args(kind))]
    name = next((VALUES[kind] for kind in kinds if kind in VALUES), "VALUE")
    return f"{name} ..." if parameter.multiple else name


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


def with_options(
    function: Callable[..., None],
    command: Any,
    left_out: Sequence[str] = (),
    choices: Mapping[str, tuple[str, ...]] | None = None,
    **others: Any,
) -> Callable[..., None]:
    """A function for Typer that calls another with a command of a task and the values of its options.

    Common options, annotated in ``function``, can be left out or get other defaults. Those with
    ``choices`` take one of these, by default the first; without any the option is left out.
    """
    hints = get_type_hints(function, include_extras=True)
    for name, values in (choices or {}).items():
        if values:
            hints[name] = Annotated[Literal[values], *hints[name].__metadata__]
            others[name] = values[0]
        else:
            left_out = (*left_out, name)
    hints |= {
        option.parameter: Annotated[
            bool if option.kind is bool else option.kind | None,
            typer.Option(option.name, help=option.help),
        ]
        for option in command.options
    }
    defaults = {
        option.parameter: False if option.kind is bool else None for option in command.options
    }
    _, *common = signature(function).parameters.values()
    defaults |= {
        parameter.name: others.get(parameter.name, parameter.default)
        for parameter in common
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and parameter.name not in left_out
    }

    def call(**given: Any) -> None:
        function(command, **given)

    call.task = command.task  # type: ignore[attr-defined]
    call.__annotations__ = {name: hints[name] for name in defaults}
    call.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, default in defaults.items()
        ]
    )
    return call


def option_settings(options: Sequence[Option], given: Mapping[str, Any]) -> list[str]:
    """The settings that options stand for, ``key=value``; a file may have commas in its name."""
    from treelax.apps.training.config import value_to_toml

    pairs: list[tuple[str, Any]] = []
    for option in options:
        value = given[option.parameter]
        if value is None or value is False or value == []:
            continue
        if not isinstance(value, list):
            pairs.append((option.key, value if value is True else str(value)))
        elif option.rest is None:
            pairs.append((option.key, tuple(map(str, value))))
        else:
            pairs.append((option.key, str(value[0])))
            if len(value) > 1:
                pairs.append((option.rest, tuple(map(str, value[1:]))))
    return [f"{key}={value_to_toml(value)}" for key, value in pairs]
