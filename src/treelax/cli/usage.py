"""What to tell of a command line that typer refuses: what was received, expected, and to do.

Typer's own words leave out what was received, and are others in every version of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["explain_usage"]

# how typer's messages name what they refuse: "'K' is not a valid integer", "-1 is not in the range"
_NAMED = re.compile(r"(?:Value error, |Value )?'?(.*?)'? is not (?:a |an )?")
KINDS = {"int": "a whole number", "float": "a number"}


def explain_usage(error: Any, arguments: Sequence[str] = ()) -> str:
    """One line on an error of the command line.

    Args:
        error: raised by typer; it has ``format_message`` and perhaps a context and a parameter.
        arguments: the command line.

    Returns:
        What was received, what was expected, and which help to see.

    Example:
        >>> import typer
        >>> explain_usage(typer.BadParameter("'K' is not a valid integer."))
        "Invalid value: 'K' is not a valid integer; see treelax --help"
    """
    context = getattr(error, "ctx", None)
    path = "treelax" if context is None else context.command_path
    return f"{_told(error, context, path, arguments)}; see {path} --help"


def _told(error: Any, context: Any, path: str, arguments: Sequence[str]) -> str:
    message = error.format_message().removesuffix(".")
    parameter = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    match type(error).__name__:
        case "BadParameter" if parameter is not None and (received := _received(error)) is not None:
            return f"{_name(parameter)}: received {received}; expected {_expected(error)}"
        case "MissingParameter" if parameter is not None:
            return f"{_name(parameter)}: received nothing; expected {_wanted(parameter)}"
        case "NoSuchOption":
            meant = ", ".join(sorted(getattr(error, "possibilities", None) or ()))
            expected = f"one that it has, perhaps {meant}" if meant else "one that it has"
            expected = _as_setting(str(option), context, arguments) or expected
            return f"{option}: received an option that {path} does not have; expected {expected}"
        case "BadOptionUsage" if "requires" in message:
            return f"{option}: received no value; expected one after it"
        case "BadOptionUsage" if "does not take" in message:
            return f"{option}: received a value; expected none"
    if (unknown := re.fullmatch(r"No such command '(.*)'", message)) and context is not None:
        commands = ", ".join(context.command.list_commands(context))
        return f"COMMAND: received '{unknown.group(1)}'; expected one of {commands}"
    if extra := re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        return (
            f"received more arguments than {path} takes: {extra.group(1)}; expected none of these"
        )
    return message


def _as_setting(option: str, context: Any, arguments: Sequence[str]) -> str:
    """The settings that an option is named after, as ``--set`` takes them; empty if there is none."""
    if context is None or not any("--set" in each.opts for each in context.command.params):
        return ""
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.tasks.text.config import TextConfig
    from treelax.training.config_values import field_kinds

    name, value = option.lstrip("-").replace("-", "_"), "VALUE"
    for word, after in zip(arguments, [*arguments[1:], "--"], strict=True):
        if word == option and not after.startswith("--"):
            value = after
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    keys = field_kinds(ListOpsConfig if context.command.name == "listops" else TextConfig)
    found = [key for key in keys if name in (key, key.rpartition(".")[2])]
    return " or ".join(f"--set {key}={value}" for key in found)


def _name(parameter: Any) -> str:
    """As the user writes it: the option, or the argument of the help."""
    if getattr(parameter, "param_type_name", "") == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name)


def _received(error: Any) -> str | None:
    """The value that was refused; None if nobody says it."""
    cause = error.__cause__
    if hasattr(cause, "errors"):  # of pydantic, which checks for the newer versions of typer
        return str(cause.errors()[0]["input"])
    named = _NAMED.match(error.message)
    return None if named is None else named.group(1)


def _expected(error: Any) -> str:
    """The kind of value and its range; else what typer says of it."""
    parameter = error.param
    kind = getattr(parameter, "type", parameter)  # where older versions have the range
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    limits = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    name = getattr(annotation, "__name__", None) or getattr(kind, "name", "")
    for each, words in KINDS.items():
        if str(name).startswith(each):
            return " of ".join([words, " and ".join(limits)]) if limits else words
    said = error.message.removesuffix(".").removeprefix("Input should be ")
    named = _NAMED.match(said)
    return said if named is None else str(said[named.end() :])


def _wanted(parameter: Any) -> str:
    """What the help says of a parameter, without the capital and the full stop of a sentence."""
    text = (getattr(parameter, "help", None) or "").strip().removesuffix(".")
    if not text:
        return "a value"
    first, rest = text[0], text[1:]
    return (first if rest[:1].isupper() else first.lower()) + rest
