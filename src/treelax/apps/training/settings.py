"""Settings: fields of a config with a description and a range, which are checked as it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args, get_origin

from treelax.apps.training.config import hints_of, leaves
from treelax.errors import InputError
from treelax.ops.checks import one_of

LARGEST_SEED = 2**63 - 1  # that torch takes
SIZE, SHARE, POSITIVE, NOT_NEGATIVE = "[1, inf)", "[0, 1)", "(0, inf)", "[0, inf)"
SEED = f"[0, {LARGEST_SEED}]"


def setting(default: Any, help: str = "", interval: str = "") -> Any:
    """A field of a config: its default, what it is, and the range of its values.

    A subclass that changes only the default need not repeat the others.
    """
    given = {"help": help, "interval": interval}
    return field(default=default, metadata={key: text for key, text in given.items() if text})


@dataclass(frozen=True)
class Settings:
    """A config whose values are checked against their choices and ranges.

    >>> @dataclass(frozen=True)
    ... class Train(Settings):
    ...     section = "train"
    ...     decay: float = setting(0.9, "factor on the learning rate", "(0, 1]")
    >>> Train(decay=2)
    Traceback (most recent call last):
    ...
    treelax.errors.InputError: train.decay is 2; expected more than 0 and at most 1
    """

    section: ClassVar[str] = ""  # of the whole config, for messages

    def __post_init__(self) -> None:
        config: Any = type(self)
        for name, kind in hints_of(config).items():
            if get_origin(kind) is Literal:
                one_of(self._key(name), getattr(self, name), get_args(kind))
        for part in fields(self):
            if interval := _metadata(config, part.name).get("interval"):
                self.check_range(part.name, interval)

    def check_range(self, name: str, interval: str) -> None:
        """Refuse a value outside of an interval such as ``(0, 1]``."""
        value = getattr(self, name)
        if value is None:
            return
        low, high = map(_number, interval[1:-1].split(","))
        above = low < value if interval[0] == "(" else low <= value
        below = value < high if interval[-1] == ")" else value <= high
        if above and below:
            return
        expected = f"{'more than' if interval[0] == '(' else 'at least'} {low:g}"
        if low == -math.inf:
            expected = "a number"
        if high != math.inf:
            shown = f"{high:,}" if isinstance(high, int) else f"{high:g}"
            expected += f" and {'less than' if interval[-1] == ')' else 'at most'} {shown}"
        elif value == high:
            expected += " and finite"
        raise InputError(f"{self._key(name)} is {value}; expected {expected}")

    def _key(self, name: str) -> str:
        return f"{self.section}.{name}" if self.section else name


def descriptions(kind: type) -> dict[str, str]:
    """What each setting of a config is, by its dotted key."""
    texts = {key: _metadata(part, key.split(".")[-1]).get("help") for key, _, part in leaves(kind)}
    return {key: text for key, text in texts.items() if text}


def _metadata(kind: type, name: str) -> Mapping[str, str]:
    """The metadata of a field, with those of the classes it overrides."""
    merged: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        part = base.__dict__.get("__dataclass_fields__", {}).get(name)
        merged |= {} if part is None else part.metadata
    return merged


def _number(text: str) -> float:
    with suppress(ValueError):
        return int(text)
    return float(text)
