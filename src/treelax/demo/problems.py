"""What is wrong with a request, in one line: what was received, what was expected, what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

__all__ = ["invalid", "unreadable"]

LONGEST_SHOWN = 40  # characters of what was received
SCHEMA = "see /openapi.json"
PLAIN = {  # words of pydantic, and of this project
    "Input should be ": "",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid ": "a ",
}


def invalid(errors: Sequence[Mapping[str, Any]]) -> tuple[HTTPStatus, str]:
    """What validation says of a request.

    Args:
        errors: of pydantic, at least one; the first one is told.

    Returns:
        The status of the reply, and its line.

    Example:
        >>> error = {"type": "int_type", "loc": ("body", "noise_seed"), "input": "x",
        ...          "msg": "Input should be a valid integer"}
        >>> print(invalid([error])[1])
        noise_seed: received 'x'; expected a whole number: see /openapi.json
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return HTTPStatus.BAD_REQUEST, (
            f"the body is not JSON ({reason} at character {first['loc'][-1]}); expected a request "
            "as in /openapi.json"
        )
    place = _ascii(".".join(_short(str(part)) for part in first["loc"][1:])) or "body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return HTTPStatus.UNPROCESSABLE_ENTITY, f"{place}: {_ascii(_said(first))}{more}"


def unreadable(body: bytes, cause: BaseException) -> str:
    """Why a body that may well be JSON cannot be read.

    Args:
        body: of the request.
        cause: what its reader raised.

    Returns:
        One line.

    Example:
        >>> unreadable(b"[[[[", RecursionError()).partition(";")[0]
        "the body: received lists or objects too deep inside each other, '[[[['"
    """
    begin = _shown(body)
    if isinstance(cause, RecursionError):
        what = "lists or objects too deep inside each other"
        wanted = "at most four levels"
    elif isinstance(cause, ValueError):
        what, wanted = "a whole number of thousands of digits", "numbers of a few digits"
    else:
        what, wanted = "what cannot be read", "JSON"
    return f"the body: received {what}, {begin}; expected {wanted}: {SCHEMA}"


def _said(error: Mapping[str, Any]) -> str:
    kind, given, limits = error["type"], error.get("input"), error.get("ctx", {})
    if kind == "value_error":  # of a validator of ours, which says it all
        return str(error["msg"]).removeprefix("Value error, ")
    if kind == "missing":
        if len(error["loc"]) == 1:
            return f"received nothing; expected a JSON object, sent as application/json: {SCHEMA}"
        return f"received no such field; expected one: {SCHEMA}"
    if kind == "extra_forbidden":
        return f"received {_shown(given)} in a field that is not known; expected none: leave it out"
    if kind == "string_too_long":
        most = limits["max_length"]
        return f"received {len(str(given))} characters; expected at most {most}: shorten it"
    if kind == "too_long":
        received, most = limits["actual_length"], limits["max_length"]
        return f"received {received} items; expected at most {most}: leave some out"
    if kind == "string_unicode":
        return f"received {_shown(given)}; expected text without halves of surrogate pairs"
    wanted = str(error["msg"])
    for words, plain in PLAIN.items():
        wanted = wanted.replace(words, plain)
    if len(error["loc"]) == 1:
        wanted = "a JSON object, sent as application/json"
    elif kind.startswith("model_"):
        wanted = "a JSON object"
    return f"received {_shown(given)}; expected {wanted}: {SCHEMA}"


def _shown(value: object) -> str:
    """What was received: short, on one line, in ASCII, and as JSON names it."""
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, str):
        return ascii(_short(value))
    if isinstance(value, bytes):
        return ascii(_short(value.decode("utf-8", "replace")))
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return f"an object of {len(value)} fields"
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
