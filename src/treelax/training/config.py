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
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from treelax.errors import InputError
from treelax.training.config_values import (
    MismatchError,
    check_value,
    describe,
    field_kinds,
    may_be_none,
    parse_value,
    settable_fields,
    value_to_toml,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["flatten", "from_table", "from_toml", "override", "to_toml"]

Config = TypeVar("Config", bound="DataclassInstance")
KEYS_SHOWN = 8  # in an error
LIST_ALL = "treelax.training.config.flatten(config) lists all keys"


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first three differences between two flattened configs, as ``key old → new``."""

    def plain(value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value  # as JSON has it

    keys = list(old) + [key for key in new if key not in old]
    found = [key for key in keys if plain(old.get(key)) != plain(new.get(key))]
    return ", ".join(f"{key} {_plain(old.get(key))} → {_plain(new.get(key))}" for key in found[:3])


def settings_between(old: DataclassInstance, new: DataclassInstance) -> dict[str, str]:
    """The settings that make one config of another, each as `override` takes it."""
    before, kinds = flatten(old), field_kinds(type(new))
    return {
        key: written(key, kinds[key], value)
        for key, value in flatten(new).items()
        if value != before[key]
    }


def written(key: str, kind: Any, value: Any) -> str:
    """A value as `override` takes it: plainly where that is read back, else as in TOML."""
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
    return {key: attrgetter(key)(config) for key in field_kinds(type(config))}


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
    return "\n".join(_toml_blocks(config))


def _toml_blocks(config: DataclassInstance, section: str = "") -> list[str]:
    """The text of each section with fields of its own, outer sections first."""
    lines, inner = [], []
    for field, hint in settable_fields(type(config)):
        key, value = f"{section}.{field.name}".lstrip("."), getattr(config, field.name)
        if dataclasses.is_dataclass(hint):
            inner += _toml_blocks(value, key)
        elif (value := _checked(hint, key, value)) is None:
            lines.append(f"# {field.name} = none\n")
        else:
            lines.append(f"{field.name} = {value_to_toml(key, value)}\n")
    if not lines:
        return inner
    return ["".join([f"[{section}]\n"] * bool(section) + lines), *inner]


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
    try:
        return _build(kind, table, field_kinds(kind))
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _unknown(key: str, kinds: Mapping[str, Any], list_all: str) -> str:
    """What to say of a key that no field has."""
    if inside := [known for known in kinds if known.startswith(f"{key}.")]:
        return f"{key}: is a section; expected one of its keys: {', '.join(inside)}"
    names = {known: known.rpartition(".")[2] for known in kinds}
    close = difflib.get_close_matches(key.rpartition(".")[2], names.values(), n=2)
    near = [known for known, name in names.items() if name in close][:3]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{key}: no such key; {meant}{list_all}"


def _checked(kind: Any, key: str, value: Any) -> Any:
    try:
        return check_value(kind, value)
    except MismatchError:
        raise InputError(f"{key}: received {value!r}; expected {describe(kind)}") from None


def _build(kind: type[Config], table: Any, kinds: Mapping[str, Any], prefix: str = "") -> Config:
    """A config from nested tables; a missing key has its default, None where that may be."""
    fields = {field.name: (field, hint) for field, hint in settable_fields(kind)}
    strange = [name for name in table if name not in fields] if isinstance(table, Mapping) else [""]
    if strange:
        listed = f"the keys are {', '.join(list(kinds)[:KEYS_SHOWN])}, …"
        raise InputError(_unknown((prefix + strange[0]).rstrip("."), kinds, listed))
    values: dict[str, Any] = {}
    for name, (field, hint) in fields.items():
        key = prefix + name
        if dataclasses.is_dataclass(hint):
            values[name] = _build(hint, table.get(name, {}), kinds, f"{key}.")  # type: ignore[arg-type]
        elif name in table or may_be_none(hint):
            values[name] = _checked(hint, key, table.get(name))
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise InputError(f"{key}: is missing; expected {describe(hint)}")
    return kind(**values)


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


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested tables; what is None is left out, as in TOML."""
    table: dict[str, Any] = {}
    if not isinstance(flat, dict):
        raise InputError(f"received {flat!r:.40}; expected settings by name")
    for key, value in flat.items():
        *sections, last = key.split(".")
        place = table
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise InputError(f"{key}: received {place!r:.40}; expected the section {section}")
        if value is not None:
            place[last] = value
    return table
