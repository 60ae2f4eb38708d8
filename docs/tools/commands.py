"""Writes ``docs/commands.md``, the page of all commands and options, from the commands' own help.

    python -m docs.tools.commands

A test holds the page to what this would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import typer.main

from treelax.__main__ import COMMANDS, app
from treelax.apps.cli.commands import value_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "commands.md"
OPENING = """# All commands and options

The output of `treelax COMMAND --help`, for every command; `treelax --version` prints the version. Every
error is one line on standard error that says what was received, what was expected and what to do, and
the exit status is 2; `TREELAX_DEBUG=1` in the environment prints the traceback before it.
[Other variables](#environment-variables) are listed at the end.
"""
VARIABLES = """## Environment variables

| variable | what it does |
|---|---|
| `TREELAX_CACHE` | the folder for downloaded corpora and encoded texts; \
by default `treelax` in the user's cache folder (`XDG_CACHE_HOME` or `~/.cache`; \
`~/Library/Caches` on macOS; `LOCALAPPDATA` on Windows) |
| `TREELAX_DEBUG` | `1` prints the traceback of an error before its line |
| `TREELAX_NATIVE` | `off` disables the C++ kernel; `generic`, `v2`, `v3` and `v4` select one of its \
variants instead of the best for the processor |
| `TRITON_INTERPRET` | `1` runs the GPU kernels on the CPU, slowly, for tests |
| `OMP_WAIT_POLICY` | the commands set it to `PASSIVE` unless it is set: waiting threads sleep |
| `OMP_NUM_THREADS` | threads of torch on the CPU; `treelax table` sets it for its runs |
| `CUDA_MPS_PIPE_DIRECTORY` | where NVIDIA's multi-process service is, for runs that share a GPU |
| `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`, \
`TORCHELASTIC_RESTART_COUNT` | set by torchrun or accelerate: [Several GPUs](distributed.md) |
"""
EXAMPLES = re.compile(r"\n\nExamples?:\n((?:  .*\n?)+)\s*\Z")
OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]*")


def page() -> str:
    """The page as it should be."""
    program = typer.main.get_command(app)
    known = program.commands  # type: ignore[attr-defined]
    parts = [OPENING, _contents(known)]
    for name in COMMANDS:
        parts += _sections(known[name], ("treelax", name))
    parts.append(VARIABLES)
    return "\n".join(parts)


def _contents(known: Any) -> str:
    rows = []
    for name in COMMANDS:
        summary = known[name].help.strip().partition("\n\n")[0]
        rows.append(f"| [`treelax {name}`](#treelax-{name}) | {_prose(summary)} |")
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """A section for the command, and one for each command inside it."""
    inner = getattr(command, "commands", {})
    text = command.help.strip()
    examples = EXAMPLES.search(text)
    prose = text[: examples.start()] if examples else text
    yield f"{'#' * len(path)} {' '.join(path)}\n"
    if not inner:
        yield f"```text\n{_usage(command, path)}\n```\n"
    for paragraph in prose.split("\n\n"):
        if paragraph.startswith("Every ") and paragraph.endswith("its own --help."):
            continue  # on this page it follows below
        yield _prose(paragraph) + "\n"
    if examples:
        lines = [line[2:].rstrip() for line in examples[1].splitlines()]  # without the indent
        yield "\n".join(["```sh", *lines, "```", ""])
    if inner:
        for name, child in inner.items():
            yield from _sections(child, (*path, name))
    else:
        yield _table(command)


def _usage(command: Any, path: tuple[str, ...]) -> str:
    words = list(path)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            if parameter.nargs == -1 and "..." not in name:
                name += "..."
            words.append(name if parameter.required or name.startswith("[") else f"[{name}]")
    return " ".join([*words, "[OPTIONS]"])


def _table(command: Any) -> str:
    hints = get_type_hints(command.callback)
    rows = ["| argument or option | what it is | default |", "|---|---|---|"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
        else:
            value = value_name(parameter, hints.get(parameter.name))
            name = f"{', '.join(parameter.opts)} {value}".rstrip()
        cells = (f"`{_cell(name)}`", _cell(_prose(parameter.help or "")), _default(parameter))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, ""])


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if getattr(parameter, "is_flag", False) or value in (None, [], ()):
        return ""
    return f"`{_cell(str(value))}`"


def _prose(text: str) -> str:
    """A paragraph of a help in one line, as Markdown."""
    text = " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*")
    return OPTION.sub(lambda match: f"`{match[0]}`", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
