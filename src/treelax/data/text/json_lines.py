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
    """Parse lines of JSON.

    Args:
        lines: numbers and texts.
        where: the file, for messages.

    Returns:
        For each line its number and object; None for a blank line.

    Raises:
        DataError: a line is no JSON, or no object; the message names file, line and column.

    Example:
        >>> list(json_objects([(1, '{"text": "Hi"}'), (2, "")], "a.jsonl"))
        [(1, {'text': 'Hi'}), (2, None)]
    """
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
