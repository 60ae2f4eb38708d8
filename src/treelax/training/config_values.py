"""Values of a config's fields: what a field expects, and a value from Python, TOML or a setting.

A *kind* is the annotation of a field: int, float, bool, str, ``Literal[...]``, one of these
``| None``, or a ``tuple[X, ...]`` of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import types
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from treelax.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class MismatchError(Exception):
    """A value is not of the expected kind; the caller knows the key and says so."""


def field_kinds(kind: type[DataclassInstance], prefix: str = "") -> dict[str, Any]:
    """The kind of every field of a config, by dotted key.

    Args:
        kind: the dataclass.
        prefix: of all keys.

    Returns:
        The annotations, in the order of the fields.

    Raises:
        TypeError: a field has an annotation that a config cannot hold.

    Example:
        >>> Model = dataclasses.make_dataclass("Model", [("width", int, 8)], frozen=True)
        >>> field_kinds(Model, "model.")
        {'model.width': <class 'int'>}
    """
    kinds: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in settable_fields(kind):
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            kinds |= field_kinds(hint, f"{key}.")  # type: ignore[arg-type]
        else:
            describe(hint)  # refuses what a config cannot hold
            kinds[key] = hint
    return kinds


def field_defaults(kind: type[DataclassInstance], prefix: str = "") -> dict[str, Any]:
    """The default of every field of a config that has one, by dotted key.

    Args:
        kind: the dataclass.
        prefix: of all keys.

    Returns:
        The defaults, in the order of the fields.

    Example:
        >>> Model = dataclasses.make_dataclass("Model", [("width", int, 8)], frozen=True)
        >>> field_defaults(Model, "model.")
        {'model.width': 8}
    """
    defaults: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for field in settable_fields(kind):
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            defaults |= field_defaults(hint, f"{key}.")  # type: ignore[arg-type]
        elif field.default is not dataclasses.MISSING:
            defaults[key] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[key] = field.default_factory()
    return defaults


def settable_fields(kind: type[DataclassInstance]) -> list[dataclasses.Field[Any]]:
    """The fields that a caller may give; others follow from them."""
    return [field for field in dataclasses.fields(kind) if field.init]


def _without_none(kind: Any) -> Any:
    """X of ``X | None``, and any other annotation as it is."""
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not types.NoneType]
        if len(members) == 1:
            return members[0]
    return kind


def may_be_none(kind: Any) -> bool:
    """Whether a kind is ``X | None``."""
    return _without_none(kind) is not kind


def describe(kind: Any) -> str:
    """What a field of this kind expects, in words.

    Args:
        kind: the annotation.

    Returns:
        The words, to follow "expected".

    Raises:
        TypeError: a config cannot hold such a field.

    Example:
        >>> describe(Literal["gumbel", "none"] | None)
        'one of gumbel, none, or none'
    """
    if may_be_none(kind):
        return f"{describe(_without_none(kind))}, or none"
    if kind in (bool, int, float, str):
        return {bool: "true or false", int: "an integer", float: "a number", str: "text"}[kind]
    if get_origin(kind) is Literal:
        return f"one of {', '.join(_plain(choice) for choice in get_args(kind))}"
    if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        return f"a list such as [a, b], each item {describe(get_args(kind)[0])}"
    raise TypeError(f"a config cannot hold {kind}; see the module's documentation for what it can")


def _plain(choice: Any) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def check_value(kind: Any, value: Any) -> Any:
    """A Python value as a field of this kind holds it.

    Args:
        kind: the annotation.
        value: from TOML, JSON or a caller.

    Returns:
        The value: whole numbers become floats and lists tuples where the kind says so.

    Raises:
        MismatchError: the value is of another kind.

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
        try:
            number = float(value)
        except OverflowError:
            raise MismatchError from None
        if not math.isnan(number):
            return number
    elif type(value) is kind:
        return value
    raise MismatchError


def parse_value(kind: Any, text: str) -> Any:
    """The value that a setting's text means for a field of this kind.

    Args:
        kind: the annotation.
        text: what stands behind ``=``.

    Returns:
        The value.

    Raises:
        MismatchError: the text means no value of this kind.

    Example:
        >>> parse_value(bool, "true"), parse_value(tuple[int, ...], "64,32")
        (True, (64, 32))
    """
    plain = _without_none(kind)
    if text.startswith(("[", '"', "'")):
        with suppress(tomllib.TOMLDecodeError, MismatchError):
            return check_value(kind, _read_toml(text))
    if get_origin(plain) is Literal:
        choices = {_plain(choice): choice for choice in get_args(plain)}
        if text in choices:
            return choices[text]
    if may_be_none(kind) and text.lower() == "none":
        return None
    if get_origin(plain) is tuple:
        if text.startswith("[") and text.endswith("]"):  # text without quotes, say
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


def _read_toml(text: str) -> Any:
    table = tomllib.loads(f"value = {text}")
    if len(table) > 1:  # a line break and another key followed
        raise MismatchError
    return table["value"]


def value_to_toml(key: str, value: Any) -> str:
    """A value as TOML writes it.

    Args:
        key: of the field, for the message of an error.
        value: any that `check_value` lets pass, but None.

    Returns:
        The text.

    Raises:
        InputError: a text is not UTF-8.

    Example:
        >>> value_to_toml("train.balance", True), value_to_toml("preset", "small")
        ('true', '"small"')
    """
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
