"""Values of a config's fields, from Python, TOML or a setting; a *kind* is a field's annotation."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from treelax.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


class MismatchError(Exception):
    """A value is not of the expected kind; the caller knows the key and says so."""


def settable_fields(kind: Any) -> Iterator[tuple[dataclasses.Field[Any], Any]]:
    """The fields that a caller may give, and their kinds."""
    hints = get_type_hints(kind)
    return ((field, hints[field.name]) for field in dataclasses.fields(kind) if field.init)


def field_kinds(kind: type[DataclassInstance], prefix: str = "") -> dict[str, Any]:
    """The kind of every field of a config, by dotted key."""
    kinds: dict[str, Any] = {}
    for field, hint in settable_fields(kind):
        key = prefix + field.name
        kinds |= field_kinds(hint, f"{key}.") if dataclasses.is_dataclass(hint) else {key: hint}  # type: ignore[arg-type]
    return kinds


def field_defaults(kind: type[DataclassInstance], prefix: str = "") -> dict[str, Any]:
    """The default of every field of a config that has one, by dotted key."""
    defaults: dict[str, Any] = {}
    for field, hint in settable_fields(kind):
        key = prefix + field.name
        if dataclasses.is_dataclass(hint):
            defaults |= field_defaults(hint, f"{key}.")  # type: ignore[arg-type]
        elif field.default is not dataclasses.MISSING:
            defaults[key] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[key] = field.default_factory()
    return defaults


def _without_none(kind: Any) -> Any:
    """X of ``X | None``, and any other annotation as it is."""
    if get_origin(kind) in (Union, types.UnionType):
        kind, *_ = (member for member in get_args(kind) if member is not types.NoneType)
    return kind


def may_be_none(kind: Any) -> bool:
    """Whether a kind is ``X | None``."""
    return _without_none(kind) is not kind


def describe(kind: Any) -> str:
    """What a field of this kind expects, to follow "expected"."""
    if may_be_none(kind):
        return f"{describe(_without_none(kind))}, or none"
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(_plain, get_args(kind)))}"
    if get_origin(kind) is tuple:
        return f"a list such as [a, b], each item {describe(get_args(kind)[0])}"
    return NAMES[kind]


def _plain(choice: Any) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def check_value(kind: Any, value: Any) -> Any:
    """A Python value as a field of this kind holds it: ints become floats, lists tuples.

    Example:
        >>> check_value(float, 1), check_value(tuple[int, ...], [1, 2])
        (1.0, (1, 2))
    """
    if value is None and may_be_none(kind):
        return None
    kind = _without_none(kind)
    if get_origin(kind) is Literal:
        if any(choice == value and type(choice) is type(value) for choice in get_args(kind)):
            return value
    elif get_origin(kind) is tuple:
        if isinstance(value, list | tuple):
            return tuple(check_value(get_args(kind)[0], item) for item in value)
    elif kind is float and type(value) in (int, float):
        with suppress(OverflowError):
            if not math.isnan(number := float(value)):
                return number
    elif type(value) is kind:
        return value
    raise MismatchError


def parse_value(kind: Any, text: str) -> Any:
    """The value that the text of a setting means for a field of this kind.

    Example:
        >>> parse_value(bool, "true"), parse_value(tuple[int, ...], "64,32")
        (True, (64, 32))
    """
    plain = _without_none(kind)
    if text.startswith(("[", '"', "'")) and "\n" not in text:
        with suppress(tomllib.TOMLDecodeError, MismatchError):
            return check_value(kind, tomllib.loads(f"value = {text}")["value"])
    if get_origin(plain) is Literal:
        choices = {_plain(choice): choice for choice in get_args(plain)}
        if text in choices:
            return choices[text]
    if may_be_none(kind) and text.lower() == "none":
        return None
    if get_origin(plain) is tuple:
        if text.startswith("[") and text.endswith("]"):  # items without quotes
            text = text[1:-1].strip()
        parts = text.split(",") if text else []
        return tuple(parse_value(get_args(plain)[0], part.strip()) for part in parts)
    if plain is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if plain is str:
        return text
    if plain in (int, float):
        with suppress(ValueError):
            return check_value(plain, plain(text))
    raise MismatchError


def value_to_toml(key: str, value: Any) -> str:
    """A value other than None as TOML; an error names the key."""
    if isinstance(value, tuple):
        return f"[{', '.join(value_to_toml(key, item) for item in value)}]"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{key}: received {value!r}, which is not UTF-8 text") from error
        # what JSON escapes TOML reads; one character more must be escaped in TOML
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return _plain(value) if isinstance(value, bool) else repr(value)
