"""Configs: frozen, nested dataclasses, changed by ``key=value`` and kept as TOML.

A field is an int, float, bool, str, ``Literal[...]``, one of these ``| None``, a
``tuple[X, ...]`` of them, or another config, which makes a section. A key names a field by its
path, with dots between: ``model.gcn_layers``.

TOML knows no None. A field that is None is written as a comment, ``# noise = none``, and a field
that may be None and is absent is read as None; so the string ``"none"`` stays a string.
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from treelax.errors import InputError
from treelax.training.config_values import (
    MismatchError,
    check_value,
    describe,
    field_defaults,
    field_kinds,
    may_be_none,
    parse_value,
    settable_fields,
    value_to_toml,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "flatten",
    "from_table",
    "from_toml",
    "override",
    "settings_between",
    "to_toml",
    "written",
]

Config = TypeVar("Config", bound="DataclassInstance")
KEYS_SHOWN = 8  # in an error
LIST_ALL = "treelax.training.config.flatten(config) lists all keys"


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs between two flattened configs, the first three, in words; empty if nothing does.

    Args:
        old: of `flatten`, also after a way through JSON.
        new: likewise.

    Returns:
        ``key old → new``, with commas between.

    Example:
        >>> changes({"seed": 0, "epochs": 3}, {"seed": 1, "epochs": 3})
        'seed 0 → 1'
    """

    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value  # as JSON has it

    keys = list(old) + [key for key in new if key not in old]
    found = [key for key in keys if plain(old.get(key)) != plain(new.get(key))]
    return ", ".join(f"{key} {_plain(old.get(key))} → {_plain(new.get(key))}" for key in found[:3])


def settings_between(old: DataclassInstance, new: DataclassInstance) -> dict[str, str]:
    """The settings that make one config of another, each as `override` takes it.

    Args:
        old: a config.
        new: another of the same class.

    Returns:
        Keys and values in words, in the order of the keys; nothing if they are the same.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     epochs: int = 3
        ...     text: tuple[str, ...] = ()
        >>> settings_between(Training(), Training(text=("a", "b")))
        {'text': 'a,b'}
    """
    before, kinds = flatten(old), field_kinds(type(new))
    return {
        key: written(key, kinds[key], value)
        for key, value in flatten(new).items()
        if value != before[key]
    }


def written(key: str, kind: Any, value: Any) -> str:
    """A value as `override` takes it: plainly where that is read back, else as in TOML.

    Args:
        key: of the field, for the message of an error.
        kind: the annotation of the field.
        value: of that kind.

    Returns:
        The text, to stand behind ``key=``.

    Raises:
        InputError: a text is not UTF-8.

    Example:
        >>> written("text", tuple[str, ...], ("a", "b")), written("text", tuple[str, ...], ("a, b",))
        ('a,b', '["a, b"]')
        >>> written("vectors", str | None, None), written("vectors", str | None, "none")
        ('none', '"none"')
    """
    plain = _plain(value)
    with suppress(MismatchError):
        if parse_value(kind, plain.strip()) == value:
            return plain
    # where "none" is one of the choices and means itself
    return "None" if value is None else value_to_toml(key, value)


def _plain(value: Any) -> str:
    """A value in words; see `written`, which knows its kind."""
    if value is None:
        return "none"
    if isinstance(value, tuple | list):
        if any("," in str(part) for part in value):  # the name of a file may have one
            return value_to_toml("", tuple(value))
        return ",".join(map(_plain, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def override(config: Config, settings: Sequence[str], *, list_all: str = LIST_ALL) -> Config:
    """Change some fields of a config, told as ``key=value``.

    A value is written plainly: ``3``, ``1e-3``, ``true``, ``some text``; ``none`` for a field that
    may be None; ``64,32`` for a tuple, nothing for an empty one. It may also be written as in TOML:
    ``[64, 32]``, or ``"none"`` for the text where ``none`` is None. All settings are applied at
    once, the last one of a key wins, and only then the config checks itself.

    Args:
        config: a frozen dataclass; stays as it is.
        settings: the changes, each ``key=value``.
        list_all: what an error says on how to see all keys.

    Returns:
        The changed config, of the same type.

    Raises:
        InputError: a setting has no ``=``, its key is unknown or names a section, or its value is
            not of the field's type; or the config itself refuses the values.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     learning_rate: float = 1e-3
        ...     noise: str | None = "gumbel"
        >>> override(Training(), ["learning_rate=0.1", "noise=none"])
        Training(learning_rate=0.1, noise=None)
    """
    kinds = field_kinds(type(config))
    changes: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(
                f"received the setting {setting!r}; expected key=value with a key such as "
                f"{next(iter(kinds), 'model.width')}; {list_all}"
            )
        if key not in kinds:
            raise InputError(_unknown(key, kinds, list_all))
        try:
            changes[key] = parse_value(kinds[key], text)
        except MismatchError:
            raise InputError(f"{key}: received {text!r}; expected {describe(kinds[key])}") from None
    return _replace(config, changes)


def flatten(config: DataclassInstance) -> dict[str, Any]:
    """Every field of a config by its dotted key, in the order of the fields.

    Args:
        config: a dataclass.

    Returns:
        A dictionary from key to value.

    Example:
        >>> Model = dataclasses.make_dataclass("Model", [("width", int, 8)], frozen=True)
        >>> Experiment = dataclasses.make_dataclass("Experiment", [("model", Model, Model())])
        >>> flatten(Experiment())
        {'model.width': 8}
    """
    values: dict[str, Any] = {}
    for key in field_kinds(type(config)):
        value: Any = config
        for name in key.split("."):
            value = getattr(value, name)
        values[key] = value
    return values


def to_toml(config: DataclassInstance) -> str:
    """Write a config as TOML, complete: every field of every section.

    Args:
        config: a dataclass.

    Returns:
        The text, which `from_toml` reads back to an equal config.

    Raises:
        InputError: a value is not of its field's type.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     learning_rate: float = 1e-3
        ...     noise: str | None = None
        >>> print(to_toml(Training()), end="")
        learning_rate = 0.001
        # noise = none
    """
    kinds = field_kinds(type(config))
    sections: dict[str, list[str]] = {"": []}
    for key, value in flatten(config).items():
        section, _, name = key.rpartition(".")
        for end, letter in enumerate(section):  # an outer section stands before its inner ones
            if letter == ".":
                sections.setdefault(section[:end], [])
        lines = sections.setdefault(section, [])
        try:
            checked = check_value(kinds[key], value)
        except MismatchError:
            raise InputError(
                f"{key}: received {value!r}; expected {describe(kinds[key])}"
            ) from None
        lines.append(
            f"# {name} = none" if checked is None else f"{name} = {value_to_toml(key, checked)}"
        )
    blocks = [
        "".join(f"{line}\n" for line in ([f"[{section}]"] if section else []) + lines)
        for section, lines in sections.items()
        if lines
    ]
    return "\n".join(blocks)


def from_toml(kind: type[Config], text: str, source: str) -> Config:
    """Read a config from TOML.

    Args:
        kind: the dataclass.
        text: what `to_toml` wrote, or someone by hand.
        source: where the text comes from, for errors.

    Returns:
        The config.

    Raises:
        InputError: the text is not TOML; a key is unknown, missing or of another type; or the
            config itself refuses the values. The message names the source.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     learning_rate: float = 1e-3
        ...     noise: str | None = None
        >>> from_toml(Training, "learning_rate = 1", "config.toml")
        Training(learning_rate=1.0, noise=None)
    """
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source}: is not TOML: {error}") from error
    return from_table(kind, table, source)


def from_table(kind: type[Config], table: Mapping[str, Any], source: str) -> Config:
    """Read a config from a parsed TOML table; see `from_toml`.

    A key that is missing has its default, so that what was written before there was such a setting
    can still be read; one that may be None is None.

    Args:
        kind: the dataclass.
        table: nested dictionaries, as ``tomllib`` returns them.
        source: where they come from, for errors.

    Returns:
        The config.

    Raises:
        InputError: as `from_toml`.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     learning_rate: float = 1e-3
        >>> from_table(Training, {"learning_rate": 0.5}, "config.toml")
        Training(learning_rate=0.5)
    """
    kinds = field_kinds(kind)
    received = _flat_table(table, kinds, source)
    defaults = field_defaults(kind)
    missing = [key for key in kinds if key not in received and not may_be_none(kinds[key])]
    if unknown := [key for key in missing if key not in defaults]:
        raise InputError(f"{source}: without {', '.join(unknown)}; expected a value for these keys")
    received |= {key: defaults[key] for key in missing}
    values: dict[str, Any] = {}
    for key, expected in kinds.items():
        try:
            values[key] = check_value(expected, received.get(key))
        except MismatchError:
            raise InputError(
                f"{source}: {key}: received {received[key]!r}; expected {describe(expected)}"
            ) from None
    try:
        return _build(kind, values)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _inside(section: str, kinds: Mapping[str, Any]) -> list[str]:
    return [key for key in kinds if key.startswith(f"{section}.")]


def _unknown(key: str, kinds: Mapping[str, Any], list_all: str | None = None) -> str:
    """What to say of a key that no field has; where no command lists all keys, a few of them."""
    if inside := _inside(key, kinds):
        return f"{key}: is a section; expected one of its keys: {', '.join(inside)}"
    by_name: dict[str, list[str]] = {}
    for known in kinds:
        by_name.setdefault(known.rpartition(".")[2], []).append(known)
    near = difflib.get_close_matches(key, kinds, n=3)
    for name in difflib.get_close_matches(key.rpartition(".")[2], by_name, n=3):
        near += [known for known in by_name[name] if known not in near]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    if list_all is None and near:
        list_all = "Else take it out"
    elif list_all is None:
        keys = _inside(key.rpartition(".")[0], kinds) or list(kinds)
        more = ", …" if len(keys) > KEYS_SHOWN else ""
        list_all = f"the keys are {', '.join(keys[:KEYS_SHOWN])}{more}"
    return f"{key}: no such key; {meant}{list_all}"


def _flat_table(
    table: Mapping[str, Any], kinds: Mapping[str, Any], source: str, prefix: str = ""
) -> dict[str, Any]:
    """The values of nested tables, by dotted key."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = prefix + name
        if key in kinds:
            values[key] = value
        elif isinstance(value, dict) and _inside(key, kinds):
            values |= _flat_table(value, kinds, source, f"{key}.")
        else:
            raise InputError(f"{source}: {_unknown(key, kinds)}")
    return values


def _build(kind: type[Config], values: Mapping[str, Any], prefix: str = "") -> Config:
    hints = get_type_hints(kind)
    return kind(
        **{
            field.name: _build(hints[field.name], values, f"{prefix}{field.name}.")
            if dataclasses.is_dataclass(hints[field.name])
            else values[prefix + field.name]
            for field in settable_fields(kind)
        }
    )


def _replace(config: Config, changes: Mapping[str, Any]) -> Config:
    here: dict[str, Any] = {}
    deeper: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        name, dot, rest = key.partition(".")
        if dot:
            deeper.setdefault(name, {})[rest] = value
        else:
            here[name] = value
    for name, inner in deeper.items():
        here[name] = _replace(getattr(config, name), inner)
    return dataclasses.replace(config, **here) if here else config
