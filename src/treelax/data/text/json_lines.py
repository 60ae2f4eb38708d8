"""Lines of JSON, an object in each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from treelax.data.text.delimited import short
from treelax.errors import DataError
from treelax.files import Line

__all__ = ["json_objects"]


def json_objects(lines: Iterable[Line], where: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Parse lines of JSON."""
    for number, text in lines:
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            if not text.strip():
                yield number, None
                continue
            raise DataError(
                f"{where}, line {number}, column {error.pos + 1}: is no JSON: {error.msg}"
            ) from error
        except (ValueError, RecursionError) as error:  # a number or a nesting beyond all bounds
            raise DataError(f"{where}, line {number}: is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise DataError(
                f"{where}, line {number}: received {short(value)}; expected an object in {{}}"
            )
        yield number, value
