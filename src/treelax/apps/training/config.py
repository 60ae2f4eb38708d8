"""Configs: frozen, nested dataclasses, changed by ``key=value`` and kept as TOML.

A field is an int, float, bool, str, ``Literal[...]``, one of these ``| None``, a
``tuple[X, ...]`` of them, or another config, which makes a section. A key names a field by its
path, with dots between: ``model.gcn_layers``.

TOML has no None. A field that is None is written as a comment, ``# noise = none``, and a field
that may be None and is absent is read as None; so the string ``"none"`` stays a string.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import tomllib
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from treelax.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["flatten", "from_table", "from_toml", "override", "to_toml"]

Config = TypeVar("Config", bound="DataclassInstance")
LIST_ALL = "treelax.apps.training.config.flatten(config) lists all keys"
hints_of = functools.cache(get_type_hints)  # dozens of presets are made at import
EXPECTED = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


def override(config: Config, settings: Sequence[str], *, list_all: str = LIST_ALL) -> Config:
    """Change some fields of a config.

    A value is written plainly: ``3``, ``1e-3``, ``true``, ``some text``; ``none`` for a field that
    may be None; ``64,32`` for a tuple, nothing for an empty one. It may also be written as in TOML:
    ``[64, 32]``, or ``"none"`` for the text where ``none`` is None. All settings are applied
    together, the last one of a key wins, and then the config validates itself. A section with a field
    ``name`` may be given that name alone: ``estimator=imle`` for ``estimator.name=imle``.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Training:
        ...     learning_rate: float = 1e-3
        ...     noise: str | None = "gumbel"
        >>> config = override(Training(), ["learning_rate=0.1", "noise=none"])
        >>> config
        Training(learning_rate=0.1, noise=None)
        >>> print(to_toml(config), end="")
        learning_rate = 0.1
        # noise = none
    """
    kinds, values = field_kinds(type(config)), flatten(config)
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise InputError(f"received the setting {setting!r}; expected key=value; {list_all}")
        if key not in kinds and f"{key}.name" in kinds:  # a section that is chosen by its name
            key += ".name"
        if key not in kinds:
            raise InputError(_unknown(key, kinds, list_all))
        values[key] = _value(key, kinds[key], text, _parse)
    return _build(type(config), values)


def flatten(config: DataclassInstance) -> dict[str, Any]:
    """Every field of a config by its dotted key, in the order of the fields."""
    return {key: attrgetter(key)(config) for key in field_kinds(type(config))}


def to_toml(config: DataclassInstance) -> str:
    """Write all fields of a config as TOML, which `from_toml` reads back to an equal config."""
    sections: dict[str, str] = {}
    for key, kind in sorted(field_kinds(type(config)).items(), key=lambda item: item[0].count(".")):
        section, _, name = key.rpartition(".")
        value = _value(key, kind, attrgetter(key)(config), _check)
        line = f"# {name} = none\n" if value is None else f"{name} = {value_to_toml(value)}\n"
        sections[section] = sections.get(section, f"[{section}]\n" if section else "") + line
    return "\n".join(sections.values())


def from_toml(kind: type[Config], text: str, source: str) -> Config:
    """Read a config from TOML; a missing key has its default, or is None if it may be."""
    try:
        return from_table(kind, tomllib.loads(text), source)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: is not TOML: {error}") from error


def from_table(kind: type[Config], table: Mapping[str, Any], source: str) -> Config:
    """Read a config from a parsed TOML table, or from the dotted keys of `flatten`."""
    kinds = field_kinds(kind)
    try:
        given = _dotted(table)
        for key in given:
            if key not in kinds:
                raise InputError(_unknown(key, kinds, f"there are {', '.join(kinds)}"))
        values = {
            key: _value(key, hint, given.get(key), _check)
            for key, hint in kinds.items()
            if key in given or _optional(hint)[1]
        }
        return _build(kind, values)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first three differences between two flattened configs, as ``key old → new``."""
    lines = []
    for key in {**old, **new}:
        values = [old.get(key), new.get(key)]
        first, second = (list(v) if isinstance(v, tuple) else v for v in values)  # as in JSON
        if first != second:
            lines.append(f"{key} {_plain(first)} → {_plain(second)}")
    return ", ".join(lines[:3])


def settings_between(old: DataclassInstance, new: DataclassInstance) -> list[str]:
    """The settings that turn one config into another, as `override` takes them."""
    known, kinds = flatten(old), field_kinds(type(new))
    return [
        f"{key}={written(kinds[key], value)}"
        for key, value in flatten(new).items()
        if value != known[key]
    ]


def written(kind: Any, value: Any) -> str:
    """A value as `override` takes it: plainly if that is read back unchanged, else as in TOML."""
    plain = _plain(value)
    with suppress(ValueError):
        if _parse(kind, plain.strip()) == value:
            return plain
    # where "none" is one of the choices and means itself
    return "None" if value is None else value_to_toml(value)


def value_to_toml(value: Any) -> str:
    """A value other than None as TOML."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_to_toml, value))}]"
    if isinstance(value, float):
        return repr(value)
    # TOML reads JSON's escapes, but requires one more character to be escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def leaves(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted key, annotation and section of every field of a config."""
    hints = hints_of(kind)
    for field in dataclasses.fields(kind):
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, f"{key}.")
        elif field.init:
            yield key, hint, kind


def field_kinds(kind: Any) -> dict[str, Any]:
    """The annotation of every field of a config, by dotted key."""
    return {key: hint for key, hint, _ in leaves(kind)}


def _build(kind: type[Config], values: Mapping[str, Any], prefix: str = "") -> Config:
    """A config from values by dotted key; what is missing has its default."""
    hints = hints_of(kind)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        key = prefix + field.name
        if dataclasses.is_dataclass(hints[field.name]):
            arguments[field.name] = _build(hints[field.name], values, f"{key}.")
        elif key in values:
            arguments[field.name] = values[key]
    return kind(**arguments)


def _dotted(table: Any, prefix: str = "") -> dict[str, Any]:
    """Nested tables as one with dotted keys; what is None is left out, as in TOML."""
    if not isinstance(table, Mapping):
        raise InputError(f"received {table!r:.40}; expected settings by name")
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _dotted(value, f"{prefix}{name}.")
        elif value is not None:
            flat[prefix + name] = value
    return flat


def _unknown(key: str, kinds: Mapping[str, Any], list_all: str) -> str:
    """What to say of a key that no field has."""
    if inside := [known for known in kinds if known.startswith(f"{key}.")]:
        return f"{key}: is a section; expected one of its keys: {', '.join(inside)}"
    names = {known: known.rpartition(".")[2] for known in kinds}
    close = difflib.get_close_matches(key.rpartition(".")[2], names.values(), n=2)
    near = [known for known, name in names.items() if name in close][:3]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{key}: no such key; {meant}{list_all}"


def _optional(kind: Any) -> tuple[Any, bool]:
    """X of ``X | None`` or of X itself, and whether None is allowed."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind, False
    inner, *_ = (member for member in get_args(kind) if member is not types.NoneType)
    return inner, True


def _expected(kind: Any) -> str:
    """What a field expects, for error messages."""
    kind, may_be_none = _optional(kind)
    if get_origin(kind) is Literal:
        text = f"one of {', '.join(map(_plain, get_args(kind)))}"
    elif get_origin(kind) is tuple:
        text = f"a list such as [a, b], each item {_expected(get_args(kind)[0])}"
    else:
        text = EXPECTED[kind]
    return f"{text}, or none" if may_be_none else text


def _plain(value: Any) -> str:
    """A value in words; see `written`, which knows its kind."""
    if isinstance(value, tuple | list):
        if any("," in str(part) for part in value):  # for example in a file name
            return value_to_toml(tuple(value))
        return ",".join(map(_plain, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _value(key: str, kind: Any, value: Any, read: Any) -> Any:
    """The value of a field as `_check` or `_parse` reads it."""
    try:
        return read(kind, value)
    except ValueError:
        raise InputError(f"{key}: received {value!r}; expected {_expected(kind)}") from None


def _check(kind: Any, value: Any) -> Any:
    """A Python value as a field of this kind holds it: ints become floats, lists tuples."""
    kind, may_be_none = _optional(kind)
    if value is None and may_be_none:
        return None
    if get_origin(kind) is Literal:
        if any(choice == value and type(choice) is type(value) for choice in get_args(kind)):
            return value
    elif get_origin(kind) is tuple:
        if isinstance(value, list | tuple):
            return tuple(_check(get_args(kind)[0], item) for item in value)
    elif kind is float and type(value) in (int, float):
        with suppress(OverflowError):
            if not math.isnan(number := float(value)):
                return number
    elif type(value) is kind:
        if kind is str:
            value.encode()  # a ValueError if it is not UTF-8
        return value
    raise ValueError


def _parse(kind: Any, text: str) -> Any:
    """The value that the text of a setting means for a field of this kind."""
    plain, may_be_none = _optional(kind)
    if text.startswith(("[", '"', "'")) and "\n" not in text:
        with suppress(ValueError):
            return _check(kind, tomllib.loads(f"value = {text}")["value"])
    if get_origin(plain) is Literal:
        choices = {_plain(choice): choice for choice in get_args(plain)}
        if text in choices:
            return choices[text]
    if may_be_none and text.lower() == "none":
        return None
    if get_origin(plain) is tuple:
        if text.startswith("[") and text.endswith("]"):  # items without quotes
            text = text[1:-1].strip()
        parts = text.split(",") if text else []
        return tuple(_parse(get_args(plain)[0], part.strip()) for part in parts)
    if plain is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if plain in (str, int, float):
        return _check(plain, plain(text))
    raise ValueError
